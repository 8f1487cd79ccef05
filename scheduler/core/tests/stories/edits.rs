//! Stories of messages that are changed or taken back, and of clients that hang up.

use crate::kit::{self, Story, W1};
use proto::event::{BusyMode, MessageEvent, User};
use proto::id::Seq;
use proto::lease::Phase;
use proto::receipt::{Decided, Fate, Refusal};
use proto::turn::{Control, Outcome, StopReason};
use scheduler_core::{Edits, Input, Policy};

#[test]
fn a_client_that_hangs_up_takes_its_turn_with_it() {
    let hangup = |story: &mut Story, message: &str| {
        story.last_seq += 1;
        let seq = Seq::new(story.last_seq);
        story.input(&Input::Hangup { seq, message: message.into() });
    };
    let mut story = Story::new();
    story.says("a").claims(W1, 1, 1).says("/queue b");
    hangup(&mut story, "m2");
    story.is("running 1.1");
    hangup(&mut story, "m1");
    story.is("stopping 1.1");
    story.finishes(W1, 1, 1, Outcome::Interrupted).is("idle");
    story.says("c").is("starting 6.1");
    hangup(&mut story, "m6");
    story.is("idle");
}

fn with(edits: Edits) -> Story {
    let mut story = Story::with(Policy { edits, ..Policy::default() });
    story.says("a").claims(W1, 1, 1);
    story
}

#[test]
fn an_edit_of_what_waits_replaces_its_words_in_its_place() {
    let mut story = Story::new();
    story
        .says("a")
        .says("b")
        .says("c")
        .edits(2, "b2")
        .was(Decided::Edited)
        .is("starting 1.1 + 2 3");
    story.claims(W1, 1, 1).finishes(W1, 1, 1, Outcome::Completed).is("starting 2.1 + 3");
    assert_eq!(story.inputs(), [4], "the newest words stand there");
    let mut story = Story::new();
    story.shows("u", None).edits(1, "look").was(Decided::Edited).shows("u", None).after(800);
    assert_eq!(story.inputs(), [2, 3]);
}

#[test]
fn an_edit_of_a_part_of_an_album_replaces_that_part() {
    let mut story = Story::new();
    story.shows("u", Some("x")).shows("u", Some("x")).edits(2, "look").is("collecting 1&3");
    story.after(800).claims(W1, 1, 1).finishes(W1, 1, 1, Outcome::Completed);
    story.settles(1, Fate::Answered).settles(2, Fate::Merged);
}

#[test]
fn an_edit_of_what_starts_or_is_over_comes_too_late() {
    let mut story = Story::new();
    story.says("a").edits(1, "a2").was(Decided::TooLate).claims(W1, 1, 1);
    story.finishes(W1, 1, 1, Outcome::Completed).edits(1, "a3").was(Decided::TooLate).is("idle");
    story.edits(77, "never heard of").was(Decided::TooLate).sends(&[]);
}

#[test]
fn an_edit_of_what_runs_does_what_the_operator_chose() {
    let mut story = with(Edits::Ignore);
    story.edits(1, "a2").was(Decided::TooLate).is("running 1.1");
    let mut story = with(Edits::Steer);
    story.edits(1, "a2").was(Decided::Steered).is("running 1.1");
    assert_eq!(story.told(), [Control::Steer { of: story.of(1, 1), seq: Seq::new(2) }]);
    story.finishes_having_seen(W1, 1, &[2]).is("idle").settles(1, Fate::Answered);
    let mut story = with(Edits::Interrupt);
    story.says("/queue b").edits(1, "a2").was(Decided::Interrupted).is("stopping 1.1 + 3 2");
    story.finishes(W1, 1, 1, Outcome::Interrupted).is("starting 3.1 + 2").is_open(1);
    story.claims(W1, 3, 1).finishes(W1, 3, 1, Outcome::Completed).settles(1, Fate::Answered);
}

#[test]
fn an_edit_that_the_model_did_not_see_is_the_next_turn_and_the_message_ends_with_it() {
    let mut story = with(Edits::Steer);
    story.edits(1, "a2").finishes_having_seen(W1, 1, &[]).is("starting 2.1").is_open(1);
    story.claims(W1, 2, 1).finishes(W1, 2, 1, Outcome::Completed).settles(1, Fate::Answered);
}

#[test]
fn an_edit_into_a_command_is_refused_and_the_words_before_it_stay() {
    for text in ["/stop", "stop", "/new", "/queue /stop", "/undo"] {
        let mut story = Story::new();
        story.says("a").says("b").edits(2, text).is("starting 1.1 + 2");
        story.was(Decided::Refused { reason: Refusal::NotNow }).sends_like("send it by itself");
        story.is_open(2);
        assert_eq!(story.session.lease.queue[0].edited, None);
    }
    let mut story = Story::new();
    story.says("a").says("b").edits(2, "/queue b2").was(Decided::Edited);
}

#[test]
fn a_command_that_waits_or_runs_is_not_edited_into_words() {
    let mut story = with(Edits::Interrupt);
    story.says("/new").is("stopping 1.1 + 2").edits(2, "hello").was(Decided::TooLate);
    story.finishes(W1, 1, 1, Outcome::Interrupted).claims(W1, 2, 1).edits(2, "hello");
    story.was(Decided::TooLate).is("running 2.1");
}

#[test]
fn what_waits_or_starts_can_be_taken_back() {
    let mut story = Story::new();
    story.says("a").says("b").says("c").withdraws(2).was(Decided::Withdrawn);
    story.is("starting 1.1 + 3").settles(2, Fate::Withdrawn).sends(&["closed m2"]);
    story.withdraws(1).is("starting 3.1").settles(1, Fate::Withdrawn);
    assert!(!story.claims(W1, 1, 1).granted());
    story.withdraws(3).is("idle").withdraws(3).was(Decided::TooLate);
    let mut story = Story::new();
    story.says_in(BusyMode::Collect, "a").withdraws(1).is("idle").settles(1, Fate::Withdrawn);
}

#[test]
fn what_runs_is_taken_back_only_if_the_operator_chose_so() {
    for edits in [Edits::Ignore, Edits::Steer] {
        let mut story = with(edits);
        story.withdraws(1).was(Decided::TooLate).is("running 1.1");
    }
    let mut story = with(Edits::Interrupt);
    story.withdraws(1).was(Decided::Withdrawn).is("stopping 1.1").sends(&["closed m1"]);
    let told = Control::Interrupt { of: story.of(1, 1), reason: StopReason::Withdrawn };
    assert_eq!(story.told(), [told]);
    story.finishes(W1, 1, 1, Outcome::Completed).is("idle").sends(&[]);
}

#[test]
fn taking_back_the_first_of_an_album_leaves_the_others() {
    // Collecting, then queued, then starting.
    let mut story = Story::new();
    story.shows("u", Some("x")).shows("u", Some("x")).shows("u", Some("x"));
    story.withdraws(1).is("collecting 2&3").settles(1, Fate::Withdrawn).is_open(2);
    story.after(800).is("starting 2.1").withdraws(2).is("starting 3.1");
    assert_eq!(story.inputs(), [3]);
    story.settles(2, Fate::Withdrawn).is_open(3).claims(W1, 3, 1);
    story.shows("u", Some("y")).shows("u", Some("y")).is("running 3.1 + 6&7");
    story.withdraws(6).is("running 3.1 + 7").is_open(7);
    story.withdraws(7).is("running 3.1").settles(6, Fate::Withdrawn).settles(7, Fate::Withdrawn);
}

#[test]
fn taking_back_a_later_part_of_an_album_takes_only_that() {
    let mut story = Story::new();
    story.shows("u", Some("x")).shows("u", Some("x")).withdraws(2).is("collecting 1");
    story.settles(2, Fate::Withdrawn).after(800);
    assert_eq!(story.inputs(), [1]);
    assert!(matches!(story.session.lease.phase, Phase::Starting { .. }));
}

#[test]
fn only_the_author_of_a_message_changes_it_or_takes_it_back() {
    let mut story = Story::new();
    story.says("a").claims(W1, 1, 1).says("/queue b").is("running 1.1 + 2");
    let event =
        MessageEvent { user: User { id: "other".into(), name: None }, ..kit::event(2, "mine now") };
    story.last_seq += 1;
    story.input(&Input::Edit { seq: Seq::new(3), event: Box::new(event) }).is("running 1.1 + 2");
    assert_eq!(story.decision(), Some(Decided::Refused { reason: Refusal::NotYours }));
    story.last_seq += 1;
    let (message, user) = ("m2".to_owned(), "other".to_owned());
    story.input(&Input::Withdrawal { seq: Seq::new(4), message, user }).is("running 1.1 + 2");
    assert_eq!(story.decision(), Some(Decided::Refused { reason: Refusal::NotYours }));
    story.withdraws(2).is("running 1.1");
}
