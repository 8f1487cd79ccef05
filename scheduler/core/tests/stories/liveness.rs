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
        current_tool: Some("terminal".into()),
        last_activity_desc: "make".into(),
        since_activity_ms: idle_s * 1000,
        api_call_count: 3,
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
        .sends_like(
            "no progress for 30 min. It was stuck in the tool terminal (make), at step 3 of 90",
        )
        .sends_like("/retry tries again, /new begins afresh")
        .sends_like("agent.timeout (0 turns it off)");
}

#[test]
fn waiting_for_a_person_and_a_tool_within_its_deadline_are_not_silence() {
    use proto::activity::{Activity, State};
    for activity in [
        Activity {
            state: State::WaitingForHuman,
            since_activity_ms: 9_000_000,
            ..Activity::default()
        },
        Activity {
            state: State::RunningTool,
            since_activity_ms: 9_000_000,
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

/// An agent that has done nothing for so long.
fn idle(state: proto::activity::State, seconds: u64) -> proto::activity::Activity {
    let since_activity_ms = seconds * 1000;
    proto::activity::Activity { state, since_activity_ms, ..Default::default() }
}

#[test]
fn the_diagnosis_says_whether_a_tool_or_the_provider_is_to_blame() {
    use proto::activity::State;
    let mut story = Story::with(Policy { notify: None, warning: None, ..Policy::default() });
    story.says("a").claims(W1, 1, 1).beats(W1, 1, 1, idle(State::WaitingForModel, 0));
    for second in (10..1_800).step_by(10) {
        story.after(10_000).beats(W1, 1, 1, idle(State::WaitingForModel, second));
    }
    story.after(10_000).is("stopping 1.1").sends_like("waiting for the model's provider");
}

#[test]
fn what_is_being_prepared_has_a_limit_of_its_own() {
    use proto::activity::State;
    let mut story = Story::new();
    story.says("a").claims(W1, 1, 1);
    for second in (0..300).step_by(10) {
        story.beats(W1, 1, 1, idle(State::Preparing, second)).is("running 1.1").after(10_000);
    }
    story.is("stopping 1.1").sends_like("agent.setup_timeout");
}

#[test]
fn still_working_is_one_message_whose_words_are_replaced() {
    use proto::lease::Effect;
    let mut story = Story::new();
    story.says("a").claims(W1, 1, 1);
    let mut said = Vec::new();
    for _ in 0..190 {
        story.after(10_000);
        for effect in &story.effects {
            if let Effect::Send { outbound } = effect {
                said.push((
                    outbound.id.to_string(),
                    outbound.replaces.as_ref().map(ToString::to_string),
                ));
            }
        }
        story.beats(W1, 1, 1, idle(proto::activity::State::Streaming, 0));
    }
    let first = "t1-working-1".to_owned();
    assert_eq!(
        said,
        [
            (first.clone(), None),
            ("t1-working-1-2".into(), Some(first.clone())),
            ("t1-working-1-3".into(), Some(first)),
        ]
    );
}

#[test]
fn extend_gives_the_current_turn_more_time_and_zero_takes_it_back() {
    use proto::activity::State;
    let mut story = Story::with(Policy { notify: None, ..Policy::default() });
    story.says("/extend 10").sends_like("Nothing is running");
    story.says("a").claims(W1, 2, 1).says("/extend soon").sends_like("Usage: /extend <minutes>");
    story.says("/extend 10").sends_like("only after 40 min without progress").is("running 2.1");
    for second in (10..2_400).step_by(10) {
        story.after(10_000).is("running 2.1").beats(W1, 2, 1, idle(State::RunningTool, second));
    }
    story.says("/status").sends_like("10 min longer than usual");
    story.after(10_000).is("stopping 2.1");

    let mut story = Story::with(Policy { notify: None, ..Policy::default() });
    story.says("a").claims(W1, 1, 1).says("/extend 10").says("/extend 0");
    story.sends_like("after 30 min without progress, as usual");
    for second in (10..1_800).step_by(10) {
        story.after(10_000).beats(W1, 1, 1, idle(State::RunningTool, second));
    }
    story.after(10_000).is("stopping 1.1");
}

#[test]
fn an_agent_that_says_nothing_of_its_progress_is_judged_by_how_long_it_runs() {
    use proto::turn::BeatTurn;
    let hour = 3_600_000;
    for (timeout, limit) in [(1_800_000, 5 * hour), (60_000, 2 * hour)] {
        let policy = Policy { timeout: Some(timeout), notify: None, ..Policy::default() };
        let mut story = Story::with(policy);
        story.says("a").claims(W1, 1, 1);
        let of = story.of(1, 1);
        let silent = BeatTurn {
            of,
            activity: None,
            steers: Vec::new(),
            seen: Vec::new(),
            answers: Vec::new(),
        };
        for _ in (10_000..limit).step_by(10_000) {
            story.input(&Input::Beat { worker: W1, turn: silent.clone() });
            story.after(10_000).is("running 1.1").sends(&[]);
        }
        story.input(&Input::Beat { worker: W1, turn: silent.clone() });
        story.after(10_000).is("stopping 1.1").sends_like("says nothing of its progress");
    }
}

#[test]
fn progress_after_a_warning_is_no_timeout_and_a_later_standstill_is_warned_of_again() {
    use proto::activity::State;
    let mut story = Story::with(Policy { notify: None, ..Policy::default() });
    story.says("a").claims(W1, 1, 1);
    let mut warnings = 0;
    for _ in 0..2 {
        for second in (10..1_000).step_by(10) {
            story.after(10_000);
            warnings += usize::from(story.sent().iter().any(|text| text.contains("No progress")));
            story.beats(W1, 1, 1, idle(State::RunningTool, second));
        }
        story.after(10_000).beats(W1, 1, 1, idle(State::RunningTool, 0));
    }
    assert_eq!(warnings, 2);
    story.is("running 1.1");
}
