//! Everything that can happen to a session, in any order.

use proptest::prelude::*;
use proto::activity::State;
use proto::event::{BusyMode, MediaKind};
use proto::id::{Epoch, ProcessId, Seq};
use proto::lease::Phase;
use proto::turn::{News, Outcome, Usage};
use scheduler_core::{Edits, Input, Policy, Session};

use crate::kit::{Story, W1, W2, ask, event, media};

#[derive(Clone, Debug)]
pub(crate) enum Op {
    Says(&'static str, BusyMode),
    Shows { user: u8, album: Option<u8> },
    Brings,
    Edit { back: u64, text: &'static str },
    Withdraw { back: u64 },
    Hangup { back: u64 },
    Claim(u8),
    Finish { outcome: Outcome, seen: u8 },
    HandBack,
    Ask,
    Wonder,
    CloseAsk,
    Beat { state: State, seen: u8 },
    StaleReport,
    Repeat,
    Unreadable,
    Gone,
    Wait(u64),
    Adopt,
    Crash,
}

impl Op {
    /// Whether a person sends a message.
    pub(crate) const fn is_message(&self) -> bool {
        matches!(self, Self::Says(..) | Self::Shows { .. } | Self::Brings)
    }
}

const TEXTS: &[&str] = &[
    "/queue text",
    "/steer hint",
    "/steer",
    "/interrupt text",
    "/background text",
    "/stop",
    "stop",
    "/new",
    "/resume",
    "/retry",
    "/undo",
    "/model",
    "/compress",
    "/approve",
    "/approve all",
    "/deny no",
    "/busy queue",
    "/busy steer",
    "/busy collect",
    "/busy default",
    "/yolo",
    "/status",
    "/agents",
    "/why",
    "/whoami",
    "/help",
    "/start",
    "/queue /stop",
    "/unknown",
];

fn mode() -> impl Strategy<Value = BusyMode> {
    prop::sample::select(BusyMode::ALL.to_vec())
}

fn outcome() -> impl Strategy<Value = Outcome> {
    prop::sample::select(vec![
        Outcome::Completed,
        Outcome::Interrupted,
        Outcome::Failed,
        Outcome::Refused,
    ])
}

fn doing() -> impl Strategy<Value = State> {
    use State::{Compressing, Delegating, Streaming, WaitingForHuman};
    prop::sample::select(vec![Streaming, Streaming, Delegating, Compressing, WaitingForHuman])
}

pub(crate) fn op() -> impl Strategy<Value = Op> {
    let edit = prop::sample::select(vec!["new words", "/stop", "/queue new words", "/queue /new"]);
    prop_oneof![
        10 => mode().prop_map(|mode| Op::Says("text", mode)),
        10 => (prop::sample::select(TEXTS), mode()).prop_map(|(text, mode)| Op::Says(text, mode)),
        6 => (0..2_u8, prop::option::of(0..2_u8))
            .prop_map(|(user, album)| Op::Shows { user, album }),
        1 => Just(Op::Brings),
        3 => (0..6_u64, edit).prop_map(|(back, text)| Op::Edit { back, text }),
        3 => (0..6_u64).prop_map(|back| Op::Withdraw { back }),
        1 => (0..6_u64).prop_map(|back| Op::Hangup { back }),
        10 => (1..3_u8).prop_map(Op::Claim),
        8 => (outcome(), any::<u8>()).prop_map(|(outcome, seen)| Op::Finish { outcome, seen }),
        1 => Just(Op::HandBack),
        2 => Just(Op::Ask),
        2 => Just(Op::Wonder),
        1 => Just(Op::CloseAsk),
        3 => (doing(), any::<u8>()).prop_map(|(state, seen)| Op::Beat { state, seen }),
        1 => Just(Op::StaleReport),
        1 => Just(Op::Repeat),
        1 => Just(Op::Unreadable),
        1 => Just(Op::Gone),
        4 => prop::sample::select(vec![100, 400, 900, 5_000, 15_000]).prop_map(Op::Wait),
        1 => Just(Op::Adopt),
        1 => Just(Op::Crash),
    ]
}

pub(crate) fn policy() -> impl Strategy<Value = Policy> {
    let edits = prop::sample::select(vec![Edits::Ignore, Edits::Steer, Edits::Interrupt]);
    (mode(), edits, any::<bool>(), 1..5_usize).prop_map(
        |(busy_mode, edits, stop_suspends, queue_limit)| Policy {
            busy_mode,
            edits,
            stop_suspends,
            queue_limit,
            ..Policy::default()
        },
    )
}

/// Some of the hints of the turn, by the bits of a number.
fn some(story: &Story, bits: u8) -> Vec<u64> {
    let steers = story.session.lease.phase.turn().map(|turn| turn.steers.as_slice());
    let numbered = steers.unwrap_or_default().iter().enumerate();
    numbered.filter(|(n, _)| bits >> (n % 8) & 1 == 1).map(|(_, steer)| steer.seq.get()).collect()
}

fn holder(story: &Story) -> ProcessId {
    match story.session.lease.phase {
        Phase::Running { worker, .. } | Phase::Stopping { worker, .. } => worker,
        _ => W1,
    }
}

pub(crate) fn perform(story: &mut Story, op: &Op) {
    let (turn, attempt) =
        story.session.lease.phase.turn().map_or((0, 0), |turn| (turn.id.get(), turn.attempt.get()));
    let worker = holder(story);
    let back = |story: &Story, back: u64| story.last_seq.saturating_sub(back).max(1);
    match op {
        Op::Says(text, mode) => story.says_in(*mode, text),
        Op::Shows { user, album } => {
            let album = album.map(|album| album.to_string());
            story.shows(&user.to_string(), album.as_deref())
        }
        Op::Brings => story.writes(|event| event.media = vec![media(MediaKind::Voice, None)]),
        Op::Edit { back: by, text } => story.edits(back(story, *by), text),
        Op::Withdraw { back: by } => story.withdraws(back(story, *by)),
        Op::Hangup { back: by } => story.hangs_up(back(story, *by)),
        Op::Claim(worker) => story.claims(ProcessId::new((*worker).into()), turn, attempt),
        Op::Finish { outcome, seen } => {
            let steered = some(story, *seen).into_iter().map(Seq::new).collect();
            let (outcome, usage) = (*outcome, Usage::default());
            let news = News::Finished { outcome, reply: "done".into(), steered, usage };
            story.reports(worker, turn, attempt, news)
        }
        Op::HandBack => story.reports(worker, turn, attempt, News::HandedBack),
        Op::Ask => {
            let number = u32::try_from(story.last_seq).unwrap_or_default();
            story.asks(worker, turn, attempt, number)
        }
        Op::Wonder => {
            let number = u32::try_from(story.last_seq).unwrap_or_default();
            story.wonders(worker, turn, attempt, number)
        }
        Op::CloseAsk => {
            let open = story
                .session
                .lease
                .phase
                .turn()
                .and_then(|turn| turn.asks.first().map(|ask| ask.id));
            let ask = open.unwrap_or_else(|| ask(turn, attempt, 1));
            story.reports(worker, turn, attempt, News::AskClosed { ask })
        }
        Op::Beat { state, seen } => {
            let seen = some(story, *seen);
            story.beats_with(worker, (turn, attempt), *state, &seen)
        }
        Op::StaleReport => story.finishes(ProcessId::new(9), turn, attempt, Outcome::Completed),
        Op::Repeat => {
            let seq = Seq::new(story.last_seq);
            let event = Box::new(event(seq.get(), "text"));
            if story.last_seq == 0 { story } else { story.input(&Input::Message { seq, event }) }
        }
        Op::Unreadable => {
            let seq = story.seq();
            story.input(&Input::Unreadable { seq })
        }
        Op::Gone => story.input(&Input::WorkerGone(if turn % 2 == 0 { W2 } else { worker })),
        Op::Wait(ms) => story.after(*ms),
        Op::Adopt => story.input(&Input::Adopt(Epoch::new(story.session.lease.epoch.get() + 1))),
        Op::Crash => {
            story.session = Session::restore(story.session.lease.clone(), story.now);
            story.input(&Input::Adopt(Epoch::new(story.session.lease.epoch.get() + 1)))
        }
    };
}
