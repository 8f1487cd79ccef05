//! The rules as a person would tell them, for plain messages, `/stop` and `/new`: the core must agree with them.

use proptest::prelude::*;
use proto::event::BusyMode;
use proto::id::{Epoch, Seq};
use proto::turn::{News, Outcome};
use scheduler_core::{Input, Policy};

use crate::kit::{Story, W1, W2, event};

#[derive(Clone, Debug)]
enum Op {
    Text(BusyMode),
    Queue,
    Stop,
    New,
    Claim,
    Finish(Outcome),
    HandBack,
    Lapse,
    Adopt,
    Status,
    Repeat,
    StaleReport,
}

fn op() -> impl Strategy<Value = Op> {
    use Outcome::{Completed, Failed, Interrupted};
    prop_oneof![
        6 => Just(Op::Text(BusyMode::Interrupt)),
        2 => Just(Op::Text(BusyMode::Queue)),
        2 => Just(Op::Queue),
        1 => Just(Op::Stop),
        1 => Just(Op::New),
        6 => Just(Op::Claim),
        6 => prop_oneof![Just(Completed), Just(Interrupted), Just(Failed)].prop_map(Op::Finish),
        1 => Just(Op::HandBack),
        1 => Just(Op::Lapse),
        1 => Just(Op::Adopt),
        1 => Just(Op::Status),
        1 => Just(Op::Repeat),
        1 => Just(Op::StaleReport),
    ]
}

const LIMIT: usize = 4;

/// The rules, as a person would tell them.
#[derive(Debug)]
struct Naive {
    phase: &'static str,
    turn: u64,
    attempt: u64,
    queue: Vec<u64>,
    depth: u8,
    crashes: u8,
}

impl Naive {
    fn new() -> Self {
        Self { phase: "idle", turn: 0, attempt: 0, queue: Vec::new(), depth: 0, crashes: 0 }
    }

    fn begin(&mut self, turn: u64, depth: u8) {
        *self = Self {
            phase: "starting",
            turn,
            attempt: 1,
            queue: std::mem::take(&mut self.queue),
            depth,
            crashes: 0,
        };
    }

    fn next(&mut self, depth: u8) {
        if self.queue.is_empty() {
            self.phase = "idle";
        } else {
            let head = self.queue.remove(0);
            self.begin(head, depth);
        }
    }

    fn text(&mut self, seq: u64, mode: BusyMode) {
        if self.phase == "idle" {
            self.begin(seq, 0);
        } else if self.queue.len() < LIMIT {
            self.queue.push(seq);
            if self.phase == "running" && mode == BusyMode::Interrupt && self.depth < 3 {
                self.phase = "stopping";
            }
        }
    }

    fn apply(&mut self, op: &Op, seq: u64) {
        let held = matches!(self.phase, "running" | "stopping");
        match op {
            Op::Text(mode) => self.text(seq, *mode),
            Op::Queue => self.text(seq, BusyMode::Queue),
            Op::Stop | Op::New => {
                self.queue.clear();
                match (op, held) {
                    (Op::Stop, false) => self.phase = "idle",
                    (Op::Stop, true) => self.phase = "stopping",
                    (_, false) => self.begin(seq, 0),
                    (_, true) => {
                        self.phase = "stopping";
                        self.queue.push(seq);
                    }
                }
            }
            Op::Claim if self.phase == "starting" => self.phase = "running",
            Op::Finish(Outcome::Interrupted) if held => self.next(self.depth + 1),
            Op::Finish(_) if held => self.next(0),
            Op::HandBack if self.phase == "running" => {
                (self.phase, self.attempt) = ("starting", self.attempt + 1)
            }
            Op::HandBack if self.phase == "stopping" => self.next(self.depth + 1),
            Op::Lapse if self.phase == "running" => {
                self.crashes += 1;
                if self.crashes < 3 {
                    (self.phase, self.attempt) = ("starting", self.attempt + 1);
                } else {
                    self.next(0);
                }
            }
            Op::Lapse if self.phase == "stopping" => self.next(self.depth + 1),
            _ => {}
        }
    }

    fn state(&self) -> String {
        if self.phase == "idle" {
            return "idle".into();
        }
        let queue: String = self.queue.iter().map(|seq| format!(" {seq}")).collect();
        let behind = if queue.is_empty() { String::new() } else { format!(" +{queue}") };
        format!("{} {}.{}{behind}", self.phase, self.turn, self.attempt)
    }
}

fn perform(story: &mut Story, op: &Op) {
    let (turn, attempt) =
        story.session.lease.phase.turn().map_or((0, 0), |turn| (turn.id.get(), turn.attempt.get()));
    match op {
        Op::Text(mode) => story.says_in(*mode, "text"),
        Op::Queue => story.says("/queue text"),
        Op::Stop => story.says("/stop"),
        Op::New => story.says("/new"),
        Op::Status => story.says("/status"),
        Op::Claim => story.claims(W1, turn, attempt),
        Op::Finish(outcome) => story.finishes(W1, turn, attempt, *outcome),
        Op::HandBack => story.reports(W1, turn, attempt, News::HandedBack),
        Op::StaleReport => story.finishes(W2, turn, attempt, Outcome::Completed),
        Op::Lapse => story.after(15_000),
        Op::Adopt => story.input(&Input::Adopt(Epoch::new(story.session.lease.epoch.get() + 1))),
        Op::Repeat => {
            let seq = Seq::new(story.last_seq.max(1));
            let event = Box::new(event(seq.get(), "text"));
            if story.last_seq == 0 { story } else { story.input(&Input::Message { seq, event }) }
        }
    };
}

fn policy() -> Policy {
    Policy { queue_limit: LIMIT, notify: None, timeout: None, setup: None, ..Policy::default() }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn the_core_agrees_with_the_rules(ops in prop::collection::vec(op(), 1..60)) {
        let mut story = Story::with(policy());
        let mut naive = Naive::new();
        for op in &ops {
            perform(&mut story, op);
            naive.apply(op, story.last_seq);
            prop_assert_eq!(story.state(), naive.state(), "after {:?} of {:?}", op, ops);
        }
    }
}
