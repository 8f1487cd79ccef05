//! Stories of modes: what a plain message does to a turn, and what is said about it.

use crate::kit::{Story, W1, W2};
use proto::activity::State;
use proto::event::{BusyMode, MediaKind};
use proto::receipt::{Decided, Fate, QueueReason, Refusal};
use proto::turn::{Control, Outcome, StopReason};
use scheduler_core::Policy;

#[test]
fn a_message_interrupts_a_running_turn_and_is_next() {
    let mut story = Story::new();
    story.says("a").claims(W1, 1, 1).says("b").is("stopping 1.1 + 2");
    assert_eq!(story.decision(), Some(Decided::Interrupted));
    assert_eq!(
        story.told(),
        [Control::Interrupt { of: story.of(1, 1), reason: StopReason::Message }]
    );
    story
        .finishes(W1, 1, 1, Outcome::Interrupted)
        .is("starting 2.1")
        .sends(&["closed m1", "order"]);
}

#[test]
fn queue_never_interrupts_whether_by_command_or_by_mode() {
    for (text, mode) in
        [("/queue b", BusyMode::Interrupt), ("/q b", BusyMode::Interrupt), ("b", BusyMode::Queue)]
    {
        let mut story = Story::new();
        story.says("a").claims(W1, 1, 1).says_in(mode, text).is("running 1.1 + 2");
        assert_eq!(story.told(), []);
        assert_eq!(story.decision(), Some(Decided::Queued { reason: QueueReason::Asked }));
    }
}

#[test]
fn the_fourth_interrupt_in_a_row_waits_and_says_why() {
    let mut story = Story::new();
    story.says("a").claims(W1, 1, 1);
    for _ in 0..3 {
        let turn = story.session.lease.phase.turn().unwrap().id.get();
        story.says("again");
        assert_eq!(story.decision(), Some(Decided::Interrupted));
        story.finishes(W1, turn, 1, Outcome::Interrupted);
        let next = story.session.lease.phase.turn().unwrap().id.get();
        story.claims(W1, next, 1);
    }
    for _ in 0..3 {
        let turn = story.session.lease.phase.turn().unwrap().id.get();
        story.after(10_000).beats(W1, turn, 1, Default::default());
    }
    story.says("and again").sends_like("left to finish");
    assert_eq!(story.decision(), Some(Decided::Queued { reason: QueueReason::Depth }));
}

#[test]
fn acknowledgements_come_at_most_every_thirty_seconds_and_refusals_always() {
    let mut story = Story::new();
    story.says("a").says("b").sends_like("Queued");
    story.says("c").sends(&[]);
    story.after(30_000).says("d").sends_like("Queued");
}

/// The session in each state in which a turn is there, with the place of the next message.
fn states() -> Vec<(&'static str, Story, u64)> {
    let mut starting = Story::new();
    starting.says("a");
    let mut running = starting.clone();
    running.claims(W1, 1, 1);
    let mut stopping = running.clone();
    stopping.says("/interrupt b").after(100);
    // What is said does not depend on what was said a moment before.
    stopping.policy.ack_interval = 0;
    vec![("starting", starting, 2), ("running", running, 2), ("stopping", stopping, 3)]
}

#[test]
fn while_a_turn_starts_or_stops_every_mode_but_reject_queues_and_says_why() {
    for (state, story, next) in states().into_iter().filter(|(state, ..)| *state != "running") {
        let reason =
            if state == "starting" { QueueReason::Starting } else { QueueReason::Stopping };
        for mode in [BusyMode::Interrupt, BusyMode::Queue, BusyMode::Steer, BusyMode::Rollback] {
            let mut story = story.clone();
            story.says_in(mode, "x").was(Decided::Queued { reason });
            story.sends_like(&format!("still {state}")).is_open(next);
            assert_eq!(story.told(), []);
        }
        let mut story = story;
        let refused = Decided::Refused { reason: Refusal::Busy };
        story.says_in(BusyMode::Reject, "x").was(refused).settles(next, Fate::Refused);
    }
}

#[test]
fn an_idle_session_starts_a_turn_in_every_mode_and_collect_waits_a_moment_first() {
    for mode in BusyMode::ALL {
        let mut story = Story::new();
        story.says_in(mode, "x");
        if mode == BusyMode::Collect {
            story.is("collecting 1").was(Decided::Collecting).sends(&[]).after(350);
        } else {
            story.was(Decided::Started);
        }
        story.is("starting 1.1").sends(&["order"]);
    }
}

#[test]
fn a_running_turn_takes_a_message_as_its_mode_says() {
    let running = states().swap_remove(1).1;
    for (mode, decision, state, words) in [
        (BusyMode::Interrupt, Decided::Interrupted, "stopping 1.1 + 2", "Interrupting"),
        (BusyMode::Rollback, Decided::RolledBack, "stopping 1.1 + 2", "Taking the turn back"),
        (
            BusyMode::Queue,
            Decided::Queued { reason: QueueReason::Asked },
            "running 1.1 + 2",
            "Queued (next)",
        ),
        (BusyMode::Steer, Decided::Steered, "running 1.1", "Passed on"),
        (
            BusyMode::Reject,
            Decided::Refused { reason: Refusal::Busy },
            "running 1.1",
            "Not taken: a turn is running",
        ),
    ] {
        let mut story = running.clone();
        story.says_in(mode, "x").was(decision).is(state).sends_like(words);
    }
    let mut story = running;
    story.says_in(BusyMode::Collect, "x").is("running 1.1 + 2").sends(&[]);
    story.was(Decided::Queued { reason: QueueReason::Burst });
}

#[test]
fn a_command_goes_before_the_session_that_before_the_channel_and_that_before_the_default() {
    let reject = Decided::Refused { reason: Refusal::Busy };
    let mut story = Story::with(Policy { busy_mode: BusyMode::Reject, ..Policy::default() });
    story.says("a").claims(W1, 1, 1);
    story.says("b").was(reject);
    story.says_in(BusyMode::Steer, "c").was(Decided::Steered);
    story.says("/busy queue").sends_like("queue (chosen here)");
    story.says_in(BusyMode::Steer, "d").was(Decided::Queued { reason: QueueReason::Asked });
    story.says_in(BusyMode::Reject, "/steer e").was(Decided::Steered);
    story.says("/busy default").sends_like("reject (the default here)");
    story.says("f").was(reject);
    story.says_in(BusyMode::Queue, "/busy").sends_like("queue (the default here)");
    story.says("/busy sideways").sends_like("There is no mode \"sideways\"");
    story.says_in(BusyMode::Queue, "/interrupt g").was(Decided::Interrupted);
}

#[test]
fn what_must_not_be_disturbed_is_not_and_the_words_say_why() {
    for (state, reason, words) in [
        (State::Delegating, QueueReason::Delegating, "Sub-agents are at work; /stop stops them."),
        (State::Compressing, QueueReason::Compressing, "The conversation is being compressed."),
    ] {
        for mode in [BusyMode::Interrupt, BusyMode::Rollback] {
            let mut story = Story::new();
            story.says("a").claims(W1, 1, 1).beats_with(W1, (1, 1), state, &[]);
            story.says_in(mode, "x").was(Decided::Queued { reason }).is("running 1.1 + 2");
            story.sends_like(words).says("/stop").is("stopping 1.1").settles(2, Fate::Cleared);
        }
    }
}

#[test]
fn rollback_leaves_no_answer_of_the_turn_that_it_takes_back() {
    let mut story = Story::new();
    story.says("a").claims(W1, 1, 1).says_in(BusyMode::Rollback, "b").sends_like("closed m1");
    let told = Control::Interrupt { of: story.of(1, 1), reason: StopReason::Rollback };
    assert_eq!(story.told(), [told]);
    story.finishes(W1, 1, 1, Outcome::Completed).is("starting 2.1").sends(&["order"]);
    story.settles(1, Fate::Interrupted).is_open(2);
}

#[test]
fn the_turn_after_a_rollback_sees_to_it_that_no_trace_is_left() {
    let forgets =
        |story: &Story| -> Vec<u64> { story.turn().forget.iter().map(|turn| turn.get()).collect() };
    let mut story = Story::new();
    story.says("a").claims(W1, 1, 1).says_in(BusyMode::Rollback, "b").after(15_000);
    assert_eq!(forgets(story.is("starting 2.1")), [1], "its worker is gone");
    story.claims(W2, 2, 1).says_in(BusyMode::Rollback, "c").after(15_000);
    assert_eq!(forgets(story.is("starting 3.1")), [1, 2], "and so is the next one's");
    story.claims(W1, 3, 1).finishes(W1, 3, 1, Outcome::Completed).is("idle").says("d");
    assert_eq!(forgets(&story), [0_u64; 0]);
    story.says("/stop").says("e").claims(W1, 7, 1).says("/interrupt f");
    story.finishes(W1, 7, 1, Outcome::Interrupted);
    assert_eq!(forgets(&story), [0_u64; 0], "only what was taken back");
}

#[test]
fn a_hint_with_a_file_is_queued_and_said_so() {
    let mut story = Story::new();
    story.says("a").claims(W1, 1, 1).says("/busy steer").brings(MediaKind::Voice);
    story.was(Decided::Queued { reason: QueueReason::NotSteered });
    story.is("running 1.1 + 3").sends_like("cannot take it as a hint");
}

#[test]
fn collected_messages_become_one_turn_before_and_while_one_runs() {
    let mut story = Story::with(Policy { busy_mode: BusyMode::Collect, ..Policy::default() });
    story.says("a").after(300).says("b").was(Decided::Merged).is("collecting 1&2").sends(&[]);
    story.after(300).is("collecting 1&2").after(50).is("starting 1.1");
    assert_eq!(story.inputs(), [1, 2]);
    story.claims(W1, 1, 1).says("c").says("d").says("/queue e").says("f");
    story
        .is("running 1.1 + 3&4 5 6")
        .finishes(W1, 1, 1, Outcome::Completed)
        .is("starting 3.1 + 5 6");
    assert_eq!(story.inputs(), [3, 4]);
    story.settles(1, Fate::Answered).settles(2, Fate::Merged).is_open(3);
}

#[test]
fn a_collection_ends_at_the_latest_when_its_time_is_up() {
    let mut story = Story::with(Policy { busy_mode: BusyMode::Collect, ..Policy::default() });
    for _ in 0..4 {
        story.says("more").after(249);
    }
    story.is("collecting 1&2&3&4").after(4).is("starting 1.1");
}
