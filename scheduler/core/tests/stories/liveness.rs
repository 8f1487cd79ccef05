//! Stories of time: silence, warnings, heartbeats, and owners that change.

use crate::kit::{Story, W1, W2};
use proto::id::Epoch;
use scheduler_core::{Input, Policy};

#[test]
fn a_replaced_process_is_known_to_be_dead_at_once() {
    let mut story = Story::new();
    story.says("a").claims(W1, 1, 1).input(&Input::WorkerGone(W2)).is("running 1.1");
    story.input(&Input::WorkerGone(W1)).is("starting 1.2").sends(&["order"]);
}

#[test]
fn heartbeats_keep_a_turn_and_repeat_what_was_not_applied() {
    let mut story = Story::new();
    story.says("a").claims(W1, 1, 1).says("/steer left");
    for _ in 0..20 {
        story.after(10_000);
        assert!(story.beats(W1, 1, 1, Default::default()).kept());
    }
    let again = format!("{:?}", story.signals);
    assert!(again.contains("Steer"), "{again}");
    assert!(!story.beats(W2, 1, 1, Default::default()).kept(), "another worker does not have it");
}

#[test]
fn silence_is_warned_of_once_and_then_ended_with_a_diagnosis() {
    use proto::activity::{Activity, State};
    let stuck = |idle_s: u64| Activity {
        state: State::RunningTool,
        tool: Some("terminal".into()),
        idle_ms: idle_s * 1000,
        iteration: 3,
        max_iterations: 90,
        ..Activity::default()
    };
    let mut story = Story::with(Policy { notify: None, ..Policy::default() });
    story.says("a").claims(W1, 1, 1);
    let mut warnings = 0;
    for second in (10..1_800).step_by(10) {
        story.after(10_000);
        warnings += usize::from(story.sent().iter().any(|text| text.contains("No progress")));
        story.beats(W1, 1, 1, stuck(second));
    }
    assert_eq!(warnings, 1);
    story
        .after(10_000)
        .is("stopping 1.1")
        .sends_like("stuck in the tool terminal, at step 3 of 90");
}

#[test]
fn waiting_for_a_person_and_a_tool_within_its_deadline_are_not_silence() {
    use proto::activity::{Activity, State};
    for activity in [
        Activity { state: State::WaitingForHuman, idle_ms: 9_000_000, ..Activity::default() },
        Activity {
            state: State::RunningTool,
            idle_ms: 9_000_000,
            deadline_ms: Some(60_000),
            ..Activity::default()
        },
    ] {
        let mut story = Story::with(Policy { notify: None, ..Policy::default() });
        story.says("a").claims(W1, 1, 1);
        for _ in 0..400 {
            story.after(10_000).beats(W1, 1, 1, activity.clone()).is("running 1.1");
        }
    }
}

#[test]
fn zero_turns_each_limit_off_and_a_warning_needs_a_timeout() {
    let mut story = Story::with(Policy { timeout: None, notify: None, ..Policy::default() });
    story.says("a").claims(W1, 1, 1);
    for _ in 0..1_000 {
        story.after(10_000).sends(&[]);
        story.beats(W1, 1, 1, Default::default()).is("running 1.1");
    }
}

#[test]
fn a_new_owner_gives_the_worker_a_fresh_grace_period() {
    let mut story = Story::new();
    story.says("a").claims(W1, 1, 1);
    story.now = story.now.after(14_000);
    story.input(&Input::Adopt(Epoch::new(2)));
    story.after(14_000).is("running 1.1").after(1_000).is("starting 1.2");
}

#[test]
fn an_order_that_no_one_claims_is_sent_again() {
    let mut story = Story::new();
    story.says("a").after(29_999).sends(&[]).after(1).is("starting 1.1").sends(&["order"]);
}
