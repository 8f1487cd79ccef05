//! Properties: whatever happens in whatever order, the core agrees with a naive model of the rules, each message is in exactly
//! one place until it reaches its one end, and applying the log again changes nothing.

#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "the naive model names only what changes something"
)]

#[path = "../kit/mod.rs"]
mod kit;
mod naive;
mod ops;

use std::collections::{BTreeMap, BTreeSet};

use kit::{Story, W1};
use ops::{Op, op, perform, policy};
use proptest::prelude::*;
use proto::id::{Seq, TurnId};
use proto::lease::{Effect, Lease, Phase, Waiting};
use proto::receipt::Decided;
use proto::turn::Outcome;
use scheduler_core::{Input, Policy};

/// The messages that a session holds.
fn held(lease: &Lease) -> BTreeSet<String> {
    let mut held = BTreeSet::new();
    let mut add = |waiting: &Waiting| {
        held.insert(waiting.origin.message.clone());
        held.extend(waiting.more.iter().map(|more| more.message.clone()));
    };
    lease.queue.iter().for_each(&mut add);
    if let Phase::Collecting { waiting } = &lease.phase {
        add(waiting);
    }
    if let Some(turn) = lease.phase.turn() {
        turn.steers.iter().for_each(&mut add);
        held.insert(turn.origin.message.clone());
        held.extend(turn.more.iter().map(|more| more.message.clone()));
    }
    held
}

/// A story of which every message is followed.
struct Followed {
    story: Story,
    accepted: BTreeSet<String>,
    replies: BTreeMap<TurnId, BTreeSet<Seq>>,
}

impl Followed {
    fn new(policy: Policy) -> Self {
        Self { story: Story::with(policy), accepted: BTreeSet::new(), replies: BTreeMap::new() }
    }

    fn perform(&mut self, op: &Op) -> Result<(), TestCaseError> {
        let before = self.story.last_seq;
        perform(&mut self.story, op);
        // What runs in a session of its own ends there.
        let elsewhere = self.story.decision() == Some(Decided::Background);
        if op.is_message() && self.story.last_seq > before && !elsewhere {
            self.accepted.insert(format!("m{}", self.story.last_seq));
        }
        for effect in &self.story.effects {
            if let Effect::Reply { report, outbound } = effect {
                self.replies.entry(outbound.turn.unwrap_or_default()).or_default().insert(*report);
            }
        }
        self.holds()
    }

    fn holds(&self) -> Result<(), TestCaseError> {
        let held = held(&self.story.session.lease);
        let mut ends = BTreeMap::<&str, usize>::new();
        for (message, _) in &self.story.fates {
            *ends.entry(message).or_default() += 1;
        }
        for message in &self.accepted {
            let ends = ends.get(message.as_str()).copied().unwrap_or_default();
            let here = usize::from(held.contains(message));
            prop_assert_eq!(
                here + ends,
                1,
                "{} is held {} times and has {} ends",
                message,
                here,
                ends
            );
        }
        prop_assert!(ends.keys().all(|message| self.accepted.contains(*message)));
        prop_assert!(self.replies.values().all(|reports| reports.len() == 1));
        Ok(())
    }

    /// Lets everything that is there come to its end.
    fn drain(&mut self) -> Result<(), TestCaseError> {
        for _ in 0..1_000 {
            let story = &mut self.story;
            let of = |story: &Story| (story.turn().id.get(), story.turn().attempt.get());
            match story.session.lease.phase.clone() {
                Phase::Idle => return self.holds(),
                Phase::Collecting { .. } => story.after(5_000),
                Phase::Starting { .. } => {
                    let (turn, attempt) = of(story);
                    story.claims(W1, turn, attempt)
                }
                Phase::Running { worker, .. } | Phase::Stopping { worker, .. } => {
                    let (turn, attempt) = of(story);
                    story.finishes(worker, turn, attempt, Outcome::Completed)
                }
            };
            self.holds()?;
        }
        Err(TestCaseError::fail("it does not come to an end"))
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn every_message_is_in_one_place_and_then_has_one_end(
        policy in policy(),
        ops in prop::collection::vec(op(), 1..80),
    ) {
        let mut followed = Followed::new(policy);
        for op in &ops {
            followed.perform(op)?;
        }
        followed.drain()?;
        prop_assert_eq!(followed.story.fates.len(), followed.accepted.len());
    }

    #[test]
    fn applying_the_log_again_changes_nothing(
        policy in policy(),
        ops in prop::collection::vec(op(), 1..40),
    ) {
        let mut story = Story::with(policy);
        for op in &ops {
            perform(&mut story, op);
        }
        let (before, fates) = (story.session.lease.clone(), story.fates.len());
        for seq in 1..=story.last_seq {
            let event = Box::new(kit::event(seq, "text"));
            story.input(&Input::Message { seq: Seq::new(seq), event });
        }
        prop_assert_eq!(Lease { effects: before.effects.clone(), ..story.session.lease.clone() }, before);
        prop_assert_eq!(story.fates.len(), fates);
    }

    #[test]
    fn what_is_due_is_due_at_the_deadline_and_not_before(
        policy in policy(),
        ops in prop::collection::vec(op(), 1..40),
    ) {
        let mut story = Story::with(policy);
        for op in &ops {
            perform(&mut story, op);
            let Some(at) = story.session.deadline(&story.policy) else { continue };
            if at > story.now.after(1) {
                let mut early = story.clone();
                let before = early.state();
                early.after(at.since(early.now) - 1);
                prop_assert_eq!(early.state(), before);
                prop_assert_eq!(early.sent(), Vec::<String>::new());
            }
        }
    }
}
