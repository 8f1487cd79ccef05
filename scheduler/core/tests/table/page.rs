//! The table as a page for people.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use proto::event::BusyMode;
use proto::receipt::{Decided, QueueReason, Refusal};

use crate::rows::{Row, STATES, kinds};

const INTRODUCTION: &str = "\
# What a message does

This page is written by `TABLE=write cargo test -p scheduler-core --test table`, which runs the scheduler's core for every
kind of input, mode and state; a test fails when the page and the code differ.

The **mode** says what an ordinary message does to a running turn. The first that is set counts: a command in front of the
message (`/queue`, `/steer`, `/interrupt`), the session's `/busy`, the channel's, the system's (`agent.busy_mode`).

The **states**: *idle*, nothing runs; *collecting*, part of an album has come and more may follow; *starting*, a turn is
ordered and no worker has it; *running*; *asking*, the turn waits for a decision; *wondering*, it waits for words; *delegating*, sub-agents work; *at depth
limit*, the turn follows three that were interrupted in a row; *stopping*, the worker was told to stop and has not confirmed.
";

/// A decision in a few words.
fn short(row: &Row) -> String {
    match row.result.decision {
        Decided::Started => "starts a turn".into(),
        Decided::Queued { reason } => format!("waits ({})", why(reason)),
        Decided::Interrupted => "**interrupts**, is next".into(),
        Decided::RolledBack => "**takes the turn back**, is next".into(),
        Decided::Steered => "is a hint".into(),
        Decided::Answering => "is the answer".into(),
        Decided::Merged => "joins".into(),
        Decided::Collecting => "waits for more".into(),
        Decided::Background => "starts beside".into(),
        Decided::Done => done(row),
        Decided::Edited => "replaces".into(),
        Decided::Withdrawn => "is taken back".into(),
        Decided::TooLate => "is too late".into(),
        Decided::Refused { reason: Refusal::Full } => "refused: full".into(),
        Decided::Refused { reason: Refusal::Busy } => "refused: a turn runs".into(),
        Decided::Refused { reason: Refusal::NotNow } => "refused: not now".into(),
        Decided::Refused { reason: Refusal::NotYours } => "refused: someone else's".into(),
        Decided::Refused { reason: Refusal::Forbidden } => "refused: a hook says no".into(),
    }
}

fn done(row: &Row) -> String {
    let told = |what: &str| row.result.told.iter().any(|told| told.starts_with(what));
    if told("interrupt") {
        "**stops**".into()
    } else if told("answer") {
        "decides".into()
    } else if row.result.effects.contains(&"closed") {
        "withdraws".into()
    } else {
        "answered".into()
    }
}

const fn why(reason: QueueReason) -> &'static str {
    match reason {
        QueueReason::Asked => "as asked",
        QueueReason::Starting => "starting",
        QueueReason::Stopping => "stopping",
        QueueReason::Depth => "depth",
        QueueReason::Delegating => "sub-agents",
        QueueReason::Compressing => "compression",
        QueueReason::Asking => "a decision is open",
        QueueReason::NotSteered => "no hint",
        QueueReason::Burst => "with its kind",
    }
}

pub(crate) fn render(rows: &[Row]) -> String {
    let mut page = INTRODUCTION.to_owned();
    page += "\n## Inputs\n\n| input | mode |";
    for (state, _) in STATES {
        let _ = write!(page, " {state} |");
    }
    let _ = writeln!(page, "\n|{}", "---|".repeat(STATES.len() + 2));
    for kind in kinds() {
        for (modes, cells) in lines(rows, &kind) {
            let shown = if kind.starts_with('/') { format!("`{kind}`") } else { kind.clone() };
            let _ = writeln!(page, "| {shown} | {modes} | {} |", cells.join(" | "));
        }
    }
    page += &said(rows);
    page
}

/// The lines of one input: modes that do the same in every state share one.
fn lines(rows: &[Row], kind: &str) -> Vec<(String, Vec<String>)> {
    let mut lines: Vec<(Vec<BusyMode>, Vec<String>)> = Vec::new();
    for mode in BusyMode::ALL {
        let cell = |state: &str| {
            let mut of = rows.iter().filter(|row| row.kind == kind && row.state == state);
            short(of.find(|row| row.modes.contains(&mode)).expect("each mode is in a row"))
        };
        let cells: Vec<_> = STATES.iter().map(|(state, _)| cell(state)).collect();
        match lines.iter_mut().find(|(_, same)| *same == cells) {
            Some((modes, _)) => modes.push(mode),
            None => lines.push((vec![mode], cells)),
        }
    }
    let named = |modes: Vec<BusyMode>| {
        if modes.len() == BusyMode::ALL.len() {
            return "any".to_owned();
        }
        modes.into_iter().map(BusyMode::name).collect::<Vec<_>>().join(", ")
    };
    lines.into_iter().map(|(modes, cells)| (named(modes), cells)).collect()
}

/// What is said with each decision on words and files.
fn said(rows: &[Row]) -> String {
    let mut words = BTreeMap::<String, String>::new();
    for row in rows.iter().filter(|row| row.result.decision != Decided::Done) {
        if let Some(said) = row.result.said.clone().filter(|said| !said.is_empty()) {
            words.entry(short(row)).or_insert(said);
        }
    }
    let mut page = String::from(
        "\n## What is said\n\nAn acknowledgement is made from the decision itself, and comes at most every 30 s unless a command \
         asked for it; what is refused or dropped is always told.\n\n| decision | words |\n|---|---|\n",
    );
    for (decision, said) in words {
        let _ = writeln!(page, "| {decision} | {said} |");
    }
    page
}
