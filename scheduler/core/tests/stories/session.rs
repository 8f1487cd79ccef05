//! Stories of conversations that are set aside: `/stop` suspends, the next turn begins afresh, `/resume` goes back.

use proto::receipt::{Decided, Fate};
use proto::turn::Outcome;
use scheduler_core::Policy;

use crate::kit::{Story, W1};

fn stopped() -> Story {
    let mut story = Story::new();
    story.says("a").claims(W1, 1, 1).says("/stop").sends_like("begins a fresh conversation");
    story.finishes(W1, 1, 1, Outcome::Interrupted).is("idle");
    story
}

#[test]
fn the_turn_after_a_stop_begins_afresh_and_the_one_after_it_goes_on() {
    let mut story = stopped();
    story.says("/status").sends_like("/resume goes on with it");
    story.says("b");
    assert!(story.turn().fresh);
    story.claims(W1, 5, 1).finishes(W1, 5, 1, Outcome::Completed).says("c");
    assert!(!story.turn().fresh);
}

#[test]
fn resume_after_a_stop_keeps_the_conversation() {
    let mut story = stopped();
    story.says("/resume").sends_like("goes on where it was stopped").is("idle").was(Decided::Done);
    story.says("b");
    assert!(!story.turn().fresh);
}

#[test]
fn resume_works_while_the_stop_is_not_confirmed_yet() {
    let mut story = Story::new();
    story.says("a").claims(W1, 1, 1).says("/stop").says("b").says("/resume").was(Decided::Done);
    story.finishes(W1, 1, 1, Outcome::Interrupted).is("starting 3.1");
    assert!(!story.turn().fresh);
}

#[test]
fn a_fresh_turn_that_is_taken_back_leaves_the_conversation_set_aside() {
    let mut story = stopped();
    story.says("b").is("starting 4.1").says("/stop").sends_like("begins a fresh conversation");
    story.settles(4, Fate::Cleared).says("c");
    assert!(story.turn().fresh);
    story.withdraws(6).is("idle").says("d");
    assert!(story.turn().fresh);
}

#[test]
fn a_stop_of_what_has_not_begun_sets_nothing_aside() {
    let mut story = Story::new();
    story.says("a").says("/stop").sends_like("Stopped.").says("b");
    assert!(!story.turn().fresh);
}

#[test]
fn the_operator_may_choose_that_a_stop_sets_nothing_aside() {
    let mut story = Story::with(Policy { stop_suspends: false, ..Policy::default() });
    story.says("a").claims(W1, 1, 1).says("/stop").sends(&["closed m1", "Stopped."]);
    story.finishes(W1, 1, 1, Outcome::Interrupted).says("b");
    assert!(!story.turn().fresh);
}

#[test]
fn a_new_conversation_needs_not_be_fresh_twice() {
    let mut story = stopped();
    story.says("/new");
    assert!(!story.turn().fresh);
    story.claims(W1, 4, 1).finishes(W1, 4, 1, Outcome::Completed).says("b");
    assert!(!story.turn().fresh);
}

#[test]
fn a_second_attempt_is_as_fresh_as_the_first() {
    let mut story = stopped();
    story.says("b").claims(W1, 4, 1).after(15_000).is("starting 4.2");
    assert!(story.turn().fresh);
}
