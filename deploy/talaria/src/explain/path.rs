//! The path of one message through one session, and how it is told.

use std::collections::BTreeSet;
use std::fmt;
use std::time::SystemTime;

use proto::id::TurnId;
use proto::receipt::{Decided, End, Fact, Fate, Stage, StateName};
use proto::session::SessionKey;
use proto::turn::{Outcome, StopReason};
use serde::Serialize;

/// What happened to a message in one session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Path {
    /// The session's readable key.
    pub session: String,
    /// The turns that it was part of.
    pub turns: Vec<TurnId>,
    /// What happened, in order.
    pub steps: Vec<Step>,
    /// What became of it in the end; none if it has not ended.
    pub fate: Option<Fate>,
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// When its receipt was stored.
    pub at: String,
    /// It, in words.
    pub text: String,
    /// It, as it was recorded.
    pub fact: Fact,
}

/// Whether a fact names a message.
pub(super) fn names(fact: &Fact, id: &str) -> bool {
    match fact {
        Fact::Decided { message, .. } | Fact::Settled { message, .. } => message == id,
        Fact::State { .. }
        | Fact::Claimed { .. }
        | Fact::Slow { .. }
        | Fact::Ended { .. }
        | Fact::Retried { .. } => false,
    }
}

impl Path {
    /// Picks what concerns a message out of all that happened in a session.
    pub(super) fn of(
        message: &str,
        session: &SessionKey,
        facts: &[(SystemTime, Fact)],
    ) -> Option<Self> {
        let named = || facts.iter().filter(|(_, fact)| names(fact, message));
        named().next()?;
        let turns: BTreeSet<TurnId> = named().filter_map(|(_, fact)| led(fact)).collect();
        let concerns = |fact: &Fact| {
            names(fact, message) || of_turn(fact).is_some_and(|turn| turns.contains(&turn))
        };
        let steps: Vec<Step> = facts
            .iter()
            .filter(|(_, fact)| concerns(fact))
            .map(|(at, fact)| Step {
                at: humantime::format_rfc3339_millis(*at).to_string(),
                text: words(fact),
                fact: fact.clone(),
            })
            .collect();
        let fate = named().rev().find_map(|(_, fact)| fate(fact));
        let turns = turns.into_iter().filter(|turn| is_known(*turn, &steps)).collect();
        Some(Self { session: session.to_string(), turns, steps, fate })
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "In session {}:", self.session)?;
        for Step { at, text, .. } in &self.steps {
            writeln!(f, "  {at}  {text}")?;
        }
        match self.fate {
            Some(fate) => writeln!(f, "In the end it was {}.", ending(fate)),
            None => writeln!(f, "It has not come to its end."),
        }
    }
}

/// The turn that a message leads, or is part of.
fn led(fact: &Fact) -> Option<TurnId> {
    match fact {
        Fact::Decided {
            seq,
            decision:
                Decided::Started
                | Decided::Queued { .. }
                | Decided::Interrupted
                | Decided::RolledBack
                | Decided::Steered
                | Decided::Answering
                | Decided::Collecting,
            ..
        } => Some((*seq).into()),
        Fact::Settled { turn, .. } => *turn,
        Fact::Decided { .. }
        | Fact::State { .. }
        | Fact::Claimed { .. }
        | Fact::Slow { .. }
        | Fact::Ended { .. }
        | Fact::Retried { .. } => None,
    }
}

const fn of_turn(fact: &Fact) -> Option<TurnId> {
    match fact {
        Fact::Claimed { turn, .. }
        | Fact::Slow { turn, .. }
        | Fact::Ended { turn, .. }
        | Fact::Retried { turn, .. } => Some(*turn),
        Fact::State { state: StateName::Starting | StateName::Stopping, turn, .. } => *turn,
        Fact::State { .. } | Fact::Decided { .. } | Fact::Settled { .. } => None,
    }
}

const fn fate(fact: &Fact) -> Option<Fate> {
    if let Fact::Settled { fate, .. } = fact { Some(*fate) } else { None }
}

/// A message that was queued may be the place of a turn that never was.
fn is_known(turn: TurnId, steps: &[Step]) -> bool {
    steps.iter().any(|step| of_turn(&step.fact) == Some(turn))
}

fn words(fact: &Fact) -> String {
    match fact {
        Fact::Decided { seq, decision, .. } => {
            let (what, why) =
                (scheduler_core::outcome(*decision), scheduler_core::because(*decision));
            format!("input {}: {what}, since {why}", seq.get())
        }
        Fact::State { state: StateName::Stopping, turn, .. } => {
            format!("turn {}: told to stop", number(*turn))
        }
        Fact::State { turn, .. } => format!("turn {}: ordered", number(*turn)),
        Fact::Claimed { turn, attempt, worker } => {
            format!("turn {}, attempt {}: run by worker {worker}", turn.get(), attempt.get())
        }
        Fact::Slow { turn, attempt, stage } => {
            let what = match stage {
                Stage::StillWorking => "its person was told that it still works",
                Stage::Warned => "no progress for a while, and its person was warned",
                Stage::TimedOut => "no progress for too long",
            };
            format!("turn {}, attempt {}: {what}", turn.get(), attempt.get())
        }
        Fact::Retried { turn, attempt, handed_back: true } => {
            format!("turn {}: handed back; attempt {} follows", turn.get(), attempt.get())
        }
        Fact::Retried { turn, attempt, handed_back: false } => {
            format!("turn {}: its worker is gone; attempt {} follows", turn.get(), attempt.get())
        }
        Fact::Ended { turn, attempt, end } => {
            format!("turn {}, attempt {}: {}", turn.get(), attempt.get(), ended(*end))
        }
        Fact::Settled { fate, turn, .. } => {
            let of = turn.map(|turn| format!(" (turn {})", turn.get())).unwrap_or_default();
            format!("settled: {}{of}", ending(*fate))
        }
    }
}

fn number(turn: Option<TurnId>) -> String {
    turn.map_or_else(String::new, |turn| turn.get().to_string())
}

const fn ended(end: End) -> &'static str {
    match end {
        End::Reported { outcome: Outcome::Completed } => "completed",
        End::Reported { outcome: Outcome::Interrupted } => "interrupted, as its worker confirmed",
        End::Reported { outcome: Outcome::Refused } => "was refused when it was taken up",
        End::Reported { outcome: Outcome::Failed } => "failed, and said why",
        End::Released { why } => match why {
            StopReason::Message => "left behind: a message interrupted it, unconfirmed",
            StopReason::Stop => "left behind: /stop, unconfirmed",
            StopReason::Reset => "left behind: /new, unconfirmed",
            StopReason::Timeout => "left behind: no progress, unconfirmed",
            StopReason::Hangup => "left behind: its client hung up, unconfirmed",
            StopReason::Rollback => "left behind: taken back, unconfirmed",
            StopReason::Withdrawn => "left behind: its message was withdrawn, unconfirmed",
        },
        End::Withdrawn => "withdrawn before a worker had it",
        End::Parked => "given up after too many attempts",
    }
}

const fn ending(fate: Fate) -> &'static str {
    match fate {
        Fate::Answered => "answered",
        Fate::Interrupted => "interrupted; what was said until then stays",
        Fate::Merged => "answered as part of another message's turn",
        Fate::Steered => "seen by a running turn as a hint",
        Fate::Cleared => "dropped by a command before its turn began",
        Fate::Withdrawn => "taken back by its sender",
        Fate::Refused => "refused, which its sender was told",
        Fate::Done => "carried out as a command",
        Fate::Parked => "given up after too many attempts",
    }
}
