//! How long one step of the core takes, and how often it allocates: `cargo bench -p scheduler-core`.

#[path = "../tests/kit/mod.rs"]
mod kit;

use divan::counter::ItemsCount;
use divan::{AllocProfiler, Bencher};
use kit::{Story, W1};
use proto::event::BusyMode;
use proto::turn::{BeatTurn, Outcome, TurnReport};
use scheduler_core::Input;

#[global_allocator]
static ALLOC: AllocProfiler = AllocProfiler::system();

fn main() {
    divan::main();
}

/// The inputs, and the state in which each comes.
const CASES: [&str; 9] = [
    "text, idle",
    "text, starting",
    "text, running: interrupts",
    "/queue, 31 wait",
    "/status, running",
    "/stop, running",
    "beat, running",
    "report, running",
    "repeat",
];

fn case(name: &str) -> (Story, Input) {
    let mut story = Story::new();
    if name != "text, idle" {
        story.says("a");
    }
    if name.contains("running") || name.contains("wait") {
        story.claims(W1, 1, 1);
    }
    if name.contains("wait") {
        for _ in 0..31 {
            story.says("/queue b");
        }
    }
    let text = |story: &mut Story, text: &str| {
        let seq = story.seq();
        Input::Message { seq, event: Box::new(kit::event(seq.get(), text)) }
    };
    let input = match name.split(',').next().unwrap_or_default() {
        "beat" => Input::Beat {
            worker: W1,
            turn: BeatTurn {
                of: story.of(1, 1),
                activity: Default::default(),
                steers: Vec::new(),
                seen: Vec::new(),
                answers: Vec::new(),
            },
        },
        "report" => {
            let news = kit::finished(Outcome::Completed);
            let report = TurnReport { of: story.of(1, 1), worker: W1, news };
            Input::Report { seq: story.seq(), report }
        }
        "repeat" => {
            let event = Box::new(kit::event(1, "a"));
            Input::Message { seq: proto::id::Seq::new(1), event }
        }
        "/queue" => text(&mut story, "/queue c"),
        "/status" => text(&mut story, "/status"),
        "/stop" => text(&mut story, "/stop"),
        _ => text(&mut story, "words"),
    };
    story.session.effects_are_out();
    (story, input)
}

#[divan::bench(args = CASES)]
fn step(bencher: Bencher<'_, '_>, name: &str) {
    let (story, input) = case(name);
    bencher
        .counter(ItemsCount::new(1_u32))
        .with_inputs(|| (story.session.clone(), Vec::with_capacity(8)))
        .bench_local_refs(|(session, signals)| {
            session.step(&story.policy, story.now, &input, signals)
        });
}

/// A conversation of 100 turns, each with its message, claim and report: 300 steps.
#[divan::bench]
fn hundred_turns(bencher: Bencher<'_, '_>) {
    bencher.counter(ItemsCount::new(300_u32)).bench_local(|| {
        let mut story = Story::new();
        for _ in 0..100 {
            story.says_in(BusyMode::Queue, "words");
            let turn = story.last_seq;
            story.claims(W1, turn, 1).finishes(W1, turn, 1, Outcome::Completed);
        }
        story.fates.len()
    });
}
