//! Stories of hints: passed on, seen, or next.

use crate::kit::{Story, W1, W2};
use proto::activity::State;
use proto::id::Seq;
use proto::receipt::Fate;
use proto::turn::{Control, News, Outcome, Usage};

#[test]
fn an_unseen_steer_leads_the_next_turn_and_a_seen_one_does_not() {
    let mut story = Story::new();
    story
        .says("a")
        .claims(W1, 1, 1)
        .says("/steer left")
        .says("/steer right")
        .says("/queue b")
        .is("running 1.1 + 4");
    let steered = vec![Seq::new(2)];
    let news = News::Finished {
        outcome: Outcome::Completed,
        reply: "ok".into(),
        steered,
        usage: Usage::default(),
    };
    story.reports(W1, 1, 1, news).is("starting 3.1 + 4");
}

#[test]
fn a_hint_that_a_beat_says_was_seen_is_receipted_once_and_not_queued_again() {
    let mut story = Story::new();
    story.says("a").claims(W1, 1, 1).says("/steer left");
    story
        .beats_with(W1, (1, 1), State::Streaming, &[2])
        .sends(&["The agent has seen your hint.", "closed m2"]);
    story.settles(2, Fate::Steered);
    story.beats_with(W1, (1, 1), State::Streaming, &[2]).sends(&[]);
    story.finishes_having_seen(W1, 1, &[2]).is("idle").sends(&["reply to m1"]);
    story.settles(2, Fate::Steered).settles(1, Fate::Answered);
}

#[test]
fn a_hint_that_only_the_report_says_was_seen_is_receipted_then() {
    let mut story = Story::new();
    story.says("a").claims(W1, 1, 1).says("/steer left").finishes_having_seen(W1, 1, &[2]);
    story.is("idle").sends(&["reply to m1", "The agent has seen your hint.", "closed m2"]);
    story.settles(2, Fate::Steered);
}

#[test]
fn a_new_attempt_hears_of_the_hints_that_the_one_before_did_not_show_the_model() {
    let mut story = Story::new();
    story.says("a").claims(W1, 1, 1).says("/steer left").says("/steer right");
    story.beats_with(W1, (1, 1), State::Streaming, &[2]).after(15_000).claims(W2, 1, 2);
    assert_eq!(story.told(), [Control::Steer { of: story.of(1, 2), seq: Seq::new(3) }]);
}

#[test]
fn unseen_hints_of_a_turn_that_was_interrupted_or_given_up_are_next_in_order() {
    let mut story = Story::new();
    story.says("a").claims(W1, 1, 1).says("/steer b").says("/steer c").says("/interrupt d");
    story.finishes(W1, 1, 1, Outcome::Interrupted).is("starting 2.1 + 3 4");
    let mut story = Story::new();
    story.says("a").claims(W1, 1, 1).says("/steer b").says("/interrupt c").after(5_000);
    story.is("starting 2.1 + 3").settles(1, Fate::Interrupted).is_open(2);
}

#[test]
fn an_empty_hint_is_answered_with_its_usage() {
    let mut story = Story::new();
    story.says("a").claims(W1, 1, 1).says("/steer   ").sends_like("Usage: /steer <hint>");
}

#[test]
fn hints_of_an_earlier_attempt_are_next_or_cleared_when_the_turn_is_withdrawn() {
    let mut story = Story::new();
    story.says("a").claims(W1, 1, 1).says("/steer b").after(15_000).is("starting 1.2");
    let mut stopped = story.clone();
    story.withdraws(1).is("starting 2.1").settles(1, Fate::Withdrawn).is_open(2);
    stopped.says("/stop").is("idle").settles(1, Fate::Cleared).settles(2, Fate::Cleared);
}
