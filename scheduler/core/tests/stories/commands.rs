//! Stories of commands: `/stop`, `/new`, and those that answer at once.

use crate::kit::{Story, W1, W2};
use proto::lease::Effect;
use proto::receipt::{Decided, Fate, QueueReason, Refusal};
use proto::turn::{Outcome, TurnKind};

#[test]
fn stop_frees_the_session_in_every_state() {
    let mut story = Story::new();
    story.says("/stop").is("idle").sends(&["Nothing is running."]);
    story.says("a").says("b").says("/stop").is("idle");
    story.sends(&["closed m3", "closed m2", "Stopped. One queued message was dropped."]);
    assert!(!story.claims(W1, 2, 1).granted(), "an order that was withdrawn is denied");

    story.says("c").claims(W1, 5, 1).says("/queue d").says("stop").is("stopping 5.1");
    story.sends_like("Stopped. One queued message was dropped.");
    story.says("/stop").is("stopping 5.1").sends(&["Already stopping."]);
    story.finishes(W1, 5, 1, Outcome::Completed).is("idle").sends(&[]);
}

#[test]
fn a_worker_that_does_not_confirm_a_stop_is_left_behind() {
    let mut story = Story::new();
    story.says("a").claims(W1, 1, 1).says("/stop").says("b").is("stopping 1.1 + 3");
    story.after(5_000).is("starting 3.1");
    story.claims(W2, 3, 1).finishes(W1, 1, 1, Outcome::Completed).is("running 3.1").sends(&[]);
    assert!(!story.beats(W1, 1, 1, Default::default()).kept());
}

#[test]
fn new_drops_what_runs_and_waits_and_begins_afresh() {
    let mut story = Story::new();
    story
        .says("/new")
        .is("starting 1.1")
        .claims(W1, 1, 1)
        .finishes(W1, 1, 1, Outcome::Completed)
        .is("idle");
    story.says("a").claims(W1, 3, 1).says("/queue b").says("/new").is("stopping 3.1 + 5");
    story.finishes(W1, 3, 1, Outcome::Completed).is("starting 5.1").sends(&["order"]);
    story.says("/reset").is("starting 7.1");
}

#[test]
fn status_help_and_usage_answer_at_once_and_disturb_nothing() {
    let mut story = Story::new();
    story.says("/status").sends(&["idle; nothing queued"]);
    story.says("a").claims(W1, 2, 1).says("/status").is("running 2.1").sends_like("running, since");
    story.says("/help").is("running 2.1").sends_like("/queue <message>");
    story.says("/queue").is("running 2.1").sends_like("Usage");
    story.says("/unknown thing").is("stopping 2.1 + 6");
}

#[test]
fn stop_is_recognised_by_its_plain_forms_and_only_alone() {
    for text in ["/stop", "stop", "Stop.", " STOP ", "stop!", "/STOP now"] {
        let mut story = Story::new();
        story.says("a").claims(W1, 1, 1).says(text).is("stopping 1.1").was(Decided::Done);
    }
    for text in ["please stop the music", "/stopwatch", "stop it", "/etc/stop", "/stop@otherbot"] {
        let mut story = Story::new();
        story.says("a").claims(W1, 1, 1).says(text).is("stopping 1.1 + 2");
        story.was(Decided::Interrupted);
    }
}

#[test]
fn stop_clears_and_settles_everything_and_nothing_of_the_turn_is_shown_any_more() {
    let mut story = Story::new();
    story.says("a").claims(W1, 1, 1).says("/steer b").says("/queue c").says("/stop");
    story.sends_like("closed m1").sends_like("closed m3").is_open(1);
    story.settles(3, Fate::Cleared).settles(4, Fate::Done);
    story.asks(W1, 1, 1, 1).sends(&[]);
    story.finishes(W1, 1, 1, Outcome::Completed).is("idle").sends(&["closed m2"]);
    story.settles(1, Fate::Interrupted).settles(2, Fate::Cleared);
}

#[test]
fn stop_before_the_claim_denies_the_order_however_often_it_comes() {
    let mut story = Story::new();
    story.says("a").says("/stop").is("idle").settles(1, Fate::Cleared);
    for worker in [W1, W2, W1] {
        assert!(!story.claims(worker, 1, 1).granted());
    }
    story.finishes(W1, 1, 1, Outcome::Completed).is("idle").sends(&[]);
    story.says("b").is("starting 4.1");
}

#[test]
fn what_changes_the_conversation_is_refused_unless_nothing_runs() {
    for text in ["/retry", "/undo 2", "/compress", "/model x", "/resume"] {
        let mut story = Story::new();
        story.says(text).is("starting 1.1").was(Decided::Started);
        assert_eq!(story.turn().kind, TurnKind::Command);
        story.says(text).was(Decided::Refused { reason: Refusal::NotNow });
        story.sends_like("cannot be done while a turn runs").settles(2, Fate::Refused);
        story.claims(W1, 1, 1).says(text).was(Decided::Refused { reason: Refusal::NotNow });
    }
}

#[test]
fn a_command_inside_a_command_is_refused_and_never_words_for_a_model() {
    for text in ["/queue /stop", "/steer /new", "/interrupt stop", "/bg /status", "/q /q x"] {
        let mut story = Story::new();
        story.says("a").claims(W1, 1, 1).says(text).is("running 1.1").was(Decided::Done);
        story.sends_like("is a command and cannot run later").settles(2, Fate::Done);
    }
}

#[test]
fn background_begins_a_session_of_its_own_and_disturbs_nothing() {
    let mut story = Story::new();
    story.says("/background count").is("idle").was(Decided::Background);
    story.sends(&[
        "spawn test:dm:c:@background:1",
        "Started beside the conversation; its answer comes here. /agents lists what runs.",
    ]);
    story.says("a").claims(W1, 2, 1).says("/bg more").is("running 2.1").was(Decided::Background);
    story.says("/agents").sends_like("This conversation: running");
    let Some(Effect::Roster { sessions, .. }) = story.effects.first() else { panic!("a roster") };
    let names: Vec<_> = sessions.iter().map(ToString::to_string).collect();
    assert_eq!(names, ["test:dm:c:@background:1", "test:dm:c:@background:3"]);
    for _ in 0..10 {
        story.says("/bg again");
    }
    assert_eq!(story.session.lease.background.len(), 8, "the oldest are forgotten");
}

#[test]
fn why_says_what_was_decided_last_and_why() {
    let mut story = Story::new();
    story.says("/why").sends(&["Nothing has been decided here yet."]);
    story.says("a").says("/why");
    story.sends(&["Message m2 was started: nothing ran, so it started a turn."]);
    story.says("b").says("/why").says("/why");
    story.sends(&["Message m4 was queued: the turn before it was still starting."]);
}

#[test]
fn whoami_start_and_restart_answer_at_once() {
    let mut story = Story::new();
    story.says("a").claims(W1, 1, 1);
    story.says("/whoami").sends(&["You are u. This session is test:dm:c."]);
    story.says("/start").sends(&[]).was(Decided::Done).is("running 1.1");
    story.says("/restart").sends_like("Restarting").is("running 1.1");
}

#[test]
fn new_during_a_stop_and_stop_after_new_take_effect_in_that_order() {
    let mut story = Story::new();
    story.says("a").claims(W1, 1, 1).says("/stop").says("/new").is("stopping 1.1 + 3");
    story.says("/stop").is("stopping 1.1").settles(3, Fate::Cleared);
    story.says("b").was(Decided::Queued { reason: QueueReason::Stopping });
    story.finishes(W1, 1, 1, Outcome::Interrupted).is("starting 5.1");
}
