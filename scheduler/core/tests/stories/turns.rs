//! Stories of turns: ordered, claimed, answered, given to another worker, and in line.

use crate::kit::{Story, W1, W2, finished};
use proto::event::MediaKind;
use proto::id::Seq;
use proto::receipt::{Decided, Fate, QueueReason, Refusal};
use proto::turn::{News, Outcome};
use scheduler_core::{Input, Policy};

#[test]
fn a_message_becomes_a_turn_and_its_reply_goes_out() {
    let mut story = Story::new();
    story.says("hello").is("starting 1.1").sends(&["order"]);
    assert!(story.claims(W1, 1, 1).is("running 1.1").granted());
    story.finishes(W1, 1, 1, Outcome::Completed).is("idle").sends(&["reply to m1"]);
}

#[test]
fn a_message_during_start_waits_and_no_second_turn_starts() {
    let mut story = Story::new();
    story.says("a").says("b").is("starting 1.1 + 2");
    assert_eq!(story.decision(), Some(Decided::Queued { reason: QueueReason::Starting }));
    story.sends_like("still starting");
    story
        .claims(W1, 1, 1)
        .finishes(W1, 1, 1, Outcome::Completed)
        .is("starting 2.1")
        .sends(&["reply to m1", "order"]);
}

#[test]
fn a_turn_that_ends_while_it_is_being_interrupted_keeps_its_reply() {
    let mut story = Story::new();
    story.says("a").claims(W1, 1, 1).says("b");
    story
        .finishes(W1, 1, 1, Outcome::Completed)
        .is("starting 2.1")
        .sends(&["reply to m1", "order"]);
}

#[test]
fn queued_messages_run_first_in_first_out() {
    let mut story = Story::new();
    story
        .says("a")
        .claims(W1, 1, 1)
        .says("/queue b")
        .says("/queue c")
        .says("/queue d")
        .is("running 1.1 + 2 3 4");
    for turn in 1..4 {
        story.finishes(W1, turn, 1, Outcome::Completed);
        let next = story.session.lease.phase.turn().unwrap().id.get();
        assert_eq!(next, turn + 1);
        story.claims(W1, next, 1);
    }
    story.finishes(W1, 4, 1, Outcome::Completed).is("idle");
}

#[test]
fn a_full_queue_refuses_aloud() {
    let mut story = Story::with(Policy { queue_limit: 2, ..Policy::default() });
    story
        .says("a")
        .claims(W1, 1, 1)
        .says("/queue b")
        .says("/queue c")
        .says("/queue d")
        .is("running 1.1 + 2 3");
    assert_eq!(story.decision(), Some(Decided::Refused { reason: Refusal::Full }));
    story.sends_like("Not taken");
    story.says("plain text in interrupt mode").is("running 1.1 + 2 3").sends_like("Not taken");
    assert_eq!(story.told(), []);
}

#[test]
fn an_input_that_was_seen_is_not_applied_again() {
    let mut story = Story::new();
    story.says("a").claims(W1, 1, 1).finishes(W1, 1, 1, Outcome::Completed).is("idle");
    let event = Box::new(crate::kit::event(1, "a"));
    story.input(&Input::Message { seq: Seq::new(1), event }).is("idle").sends(&[]);
}

#[test]
fn a_stale_report_changes_nothing() {
    let mut story = Story::new();
    story.says("a").claims(W1, 1, 1).after(15_000).claims(W2, 1, 2);
    story.reports(W1, 1, 1, finished(Outcome::Completed)).is("running 1.2").sends(&[]);
    story.reports(W1, 1, 2, finished(Outcome::Completed)).is("running 1.2");
}

#[test]
fn handing_back_costs_no_attempt() {
    let mut story = Story::new();
    story.says("a");
    for attempt in 1..=9 {
        story.claims(W1, 1, attempt).reports(W1, 1, attempt, News::HandedBack);
    }
    story.is("starting 1.10");
}

#[test]
fn a_crashed_worker_is_replaced_and_three_crashes_park_the_turn() {
    let mut story = Story::new();
    story.says("a").claims(W1, 1, 1).after(15_000).is("starting 1.2").sends(&["order"]);
    story.claims(W1, 1, 1);
    assert!(!story.granted());
    story.claims(W2, 1, 2).after(15_000).is("starting 1.3");
    story.claims(W1, 1, 3).says("/queue b").after(15_000).is("starting 2.1").sends_like("given up");
}

#[test]
fn a_turn_that_is_refused_when_it_is_taken_up_says_so_and_what_waits_goes_on() {
    let mut story = Story::new();
    story.says("a").claims(W1, 1, 1).says("/queue b").finishes(W1, 1, 1, Outcome::Refused);
    story.settles(1, Fate::Refused).sends(&["reply to m1", "order"]).is("starting 2.1");
}

#[test]
fn each_message_is_settled_once_whatever_its_turn_comes_to() {
    let mut story = Story::new();
    story.says("a").claims(W1, 1, 1).is_open(1).finishes(W1, 1, 1, Outcome::Completed);
    story.settles(1, Fate::Answered);
    story.says("b").claims(W1, 3, 1).finishes(W1, 3, 1, Outcome::Failed).settles(3, Fate::Answered);
    story.says("c").claims(W1, 5, 1).says("d").finishes(W1, 5, 1, Outcome::Interrupted);
    story.settles(5, Fate::Interrupted).is_open(6);
    for attempt in 1..=3 {
        story.claims(W1, 6, attempt).after(15_000);
    }
    story.settles(6, Fate::Parked).is("idle");
}

#[test]
fn voice_and_documents_keep_one_turn_each() {
    let mut story = Story::new();
    story.says("a").claims(W1, 1, 1).says("/busy queue");
    story.brings(MediaKind::Voice).brings(MediaKind::Voice).brings(MediaKind::Document);
    story.is("running 1.1 + 3 4 5").brings(MediaKind::Document).is("running 1.1 + 3 4 5 6");
}

#[test]
fn hints_that_nobody_saw_and_a_full_queue_stay_within_twice_the_limit() {
    let mut story = Story::with(Policy { queue_limit: 2, ..Policy::default() });
    story.says("a").claims(W1, 1, 1).says("/steer b").says("/steer c").says("/queue d");
    story.says("/queue e").says("/queue f").was(Decided::Refused { reason: Refusal::Full });
    story.is("running 1.1 + 4 5").finishes_having_seen(W1, 1, &[]).is("starting 2.1 + 3 4 5");
    story.claims(W1, 2, 1).says("/steer g").was(Decided::Refused { reason: Refusal::Full });
}
