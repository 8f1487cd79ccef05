//! Stories: what happens to a session, and what follows.

mod kit;

use kit::{Story, W1, W2, ask, finished};
use proto::event::BusyMode;
use proto::id::{Epoch, Seq};
use proto::receipt::{Decided, QueueReason, Refusal};
use proto::turn::{Control, Decision, News, Outcome, StopReason, Usage};
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
fn a_turn_that_ends_while_it_is_being_interrupted_keeps_its_reply() {
    let mut story = Story::new();
    story.says("a").claims(W1, 1, 1).says("b");
    story
        .finishes(W1, 1, 1, Outcome::Completed)
        .is("starting 2.1")
        .sends(&["reply to m1", "order"]);
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
fn a_crashed_worker_is_replaced_and_three_crashes_park_the_turn() {
    let mut story = Story::new();
    story.says("a").claims(W1, 1, 1).after(15_000).is("starting 1.2").sends(&["order"]);
    story.claims(W1, 1, 1);
    assert!(!story.granted());
    story.claims(W2, 1, 2).after(15_000).is("starting 1.3");
    story.claims(W1, 1, 3).says("/queue b").after(15_000).is("starting 2.1").sends_like("given up");
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
fn an_ask_is_decided_once_by_id_and_never_interrupts() {
    let mut story = Story::new();
    story.says("/approve").sends(&["Nothing waits for a decision."]);
    story.says("a").claims(W1, 2, 1).asks(W1, 2, 1, 1).asks(W1, 2, 1, 2).sends(&["rm -rf?"]);
    story.says("wait, what?").is("running 2.1 + 5").sends_like("A decision is open");
    story.says("/approve 2-1-2").is("running 2.1 + 5");
    let answer =
        Control::Answer { of: story.of(2, 1), ask: ask(2, 1, 2), decision: Decision::Approved };
    assert_eq!(story.told(), [answer]);
    story.says("/approve 2-1-2").sends_like("no longer open");
    story.says("/deny not that").sends(&["Denied."]);
    let reason = Some("not that".into());
    let answer = Control::Answer {
        of: story.of(2, 1),
        ask: ask(2, 1, 1),
        decision: Decision::Denied { reason },
    };
    assert_eq!(story.told(), [answer]);
    story.says("/approve").sends(&["Nothing waits for a decision."]);
}

#[test]
fn a_new_attempt_closes_the_asks_of_the_one_before() {
    let mut story = Story::new();
    story.says("a").claims(W1, 1, 1).asks(W1, 1, 1, 1).after(15_000).claims(W2, 1, 2);
    story
        .says("/approve")
        .sends_like("Nothing waits")
        .says("/approve 1-1-1")
        .sends_like("no longer open");
    story.asks(W2, 1, 2, 1).says("/approve 1-1-1").sends_like("no longer open");
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

#[test]
fn an_input_that_was_seen_is_not_applied_again() {
    let mut story = Story::new();
    story.says("a").claims(W1, 1, 1).finishes(W1, 1, 1, Outcome::Completed).is("idle");
    let event = Box::new(kit::event(1, "a"));
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
fn acknowledgements_come_at_most_every_thirty_seconds_and_refusals_always() {
    let mut story = Story::new();
    story.says("a").says("b").sends_like("Queued");
    story.says("c").sends(&[]);
    story.after(30_000).says("d").sends_like("Queued");
}
