//! Stories of jobs: the `/cron` of a chat, and the runs in a session of their own.

use crate::kit::{Story, W1, W2, key};
use proto::activity::{Activity, State};
use proto::id::{Epoch, JobId};
use proto::job::run_id;
use proto::lease::{Effect, Phase};
use proto::turn::{Control, Decision, News, Outcome, StopReason, Usage};
use scheduler_core::{Policy, Session, Time, TimeoutSetting};

fn job() -> JobId {
    JobId::of_request("a job")
}

/// The session of a job.
fn runs(policy: Policy) -> Story {
    let mut story = Story::with(policy);
    story.session = Session::new(key().of_job(job()), Epoch::new(1), Time::from_ms(1_000_000));
    story
}

/// A run is due: turn and message place are the next ones.
fn due(story: &mut Story, due_ms: u64) {
    story.writes(|event| {
        event.id = run_id(job(), due_ms);
        event.session = key().of_job(job());
        event.text = "[Scheduled job]\n\nlook".into();
    });
}

fn says(reply: &str) -> News {
    let (outcome, reply) = (Outcome::Completed, reply.to_owned());
    News::Finished { outcome, reply, steered: Vec::new(), usage: Usage::default() }
}

#[test]
fn cron_is_carried_out_when_it_is_answered_and_disturbs_nothing() {
    let mut story = Story::new();
    story.says("/cron").is("idle").sends(&["cron 1"]);
    story.says("a").claims(W1, 2, 1).says("/cron add in 5m x").is("running 2.1").sends(&["cron 3"]);
}

#[test]
fn a_run_begins_afresh_answers_no_message_and_tells_its_end() {
    let mut story = runs(Policy::default());
    for turn in [1, 3] {
        due(&mut story, 100 * turn);
        story.sends(&["order"]);
        let Phase::Starting { turn: ordered } = &story.session.lease.phase else {
            panic!("ordered")
        };
        assert!(ordered.fresh, "what the run before said is not its own");
        story.claims(W1, turn, 1).reports(W1, turn, 1, says("sunny")).is("idle");
        story.sends(&["reply to no one", &format!("run {} answered", 100 * turn)]);
    }
}

#[test]
fn a_run_with_nothing_to_report_sends_nothing_and_one_without_an_answer_says_so() {
    let mut story = runs(Policy::default());
    due(&mut story, 100);
    story.claims(W1, 1, 1).reports(W1, 1, 1, says(" [SILENT]\n")).is("idle");
    story.sends(&["run 100 silent"]);
    due(&mut story, 200);
    story.claims(W1, 3, 1).reports(W1, 3, 1, says(" \n")).is("idle");
    story.sends_like("ended without an answer").sends_like("run 200 failed");
    due(&mut story, 300);
    story.claims(W1, 5, 1).finishes(W1, 5, 1, Outcome::Failed);
    story.sends(&["reply to no one", "run 300 failed"]);
    // In a chat these are words like any others.
    let mut chat = Story::new();
    chat.says("a").claims(W1, 1, 1).reports(W1, 1, 1, says("[SILENT]")).sends(&["reply to m1"]);
}

#[test]
fn a_run_has_a_limit_of_its_own_and_says_nothing_on_the_way() {
    let idle =
        |ms| Activity { state: State::RunningTool, since_activity_ms: ms, ..Activity::default() };
    let policy = Policy {
        lease_ttl: 10_000_000,
        timeout: Some(600_000),
        timeout_setting: TimeoutSetting::Cron,
        warning: None,
        notify: None,
        ..Policy::default()
    };
    let mut story = runs(policy);
    due(&mut story, 100);
    story.claims(W1, 1, 1);
    // It works for half an hour: no notice, no warning, no end.
    for _ in 0..30 {
        story.after(60_000).sends(&[]).beats(W1, 1, 1, idle(0)).is("running 1.1");
    }
    story.after(599_000).sends(&[]).is("running 1.1");
    story
        .after(1_000)
        .is("stopping 1.1")
        .sends_like("no progress for 10 min")
        .sends_like("cron.timeout");
    story.finishes(W1, 1, 1, Outcome::Interrupted).is("idle").sends(&["run 100 timed_out"]);
    // Turned off, it never ends by itself.
    let mut story = runs(Policy { timeout: None, ..policy });
    due(&mut story, 100);
    story.claims(W1, 1, 1).after(9_000_000).is("running 1.1");
}

#[test]
fn whatever_a_run_asks_is_refused_at_once() {
    let mut story = runs(Policy::default());
    due(&mut story, 100);
    story.claims(W1, 1, 1).asks(W1, 1, 1, 1).is("running 1.1").sends(&[]);
    let [Control::Answer { decision: Decision::Denied { reason: Some(why) }, .. }] =
        &story.told()[..]
    else {
        panic!("{:?}", story.told())
    };
    assert!(why.contains("no one is there"), "{why}");
    let mut story = runs(Policy { job_approve: true, ..Policy::default() });
    due(&mut story, 100);
    story.claims(W1, 1, 1).asks(W1, 1, 1, 1);
    assert!(matches!(&story.told()[..], [Control::Answer { decision: Decision::Approved, .. }]));
}

#[test]
fn a_run_that_is_stopped_or_given_up_tells_its_end() {
    let mut story = runs(Policy::default());
    due(&mut story, 100);
    story.claims(W1, 1, 1);
    let seq = story.seq();
    story.input(&scheduler_core::Input::Hangup { seq, message: run_id(job(), 100) });
    assert!(matches!(&story.told()[..], [Control::Interrupt { reason: StopReason::Hangup, .. }]));
    story.finishes(W1, 1, 1, Outcome::Interrupted).is("idle").sends(&["run 100 stopped"]);

    due(&mut story, 200);
    for attempt in 1..=3 {
        story.claims(W2, 4, attempt).after(15_000);
    }
    story.is("idle").sends_like("worker died 3 times").sends_like("run 200 failed");
    assert!(
        !story.effects.iter().any(
            |effect| matches!(effect, Effect::Send { outbound } if outbound.reply_to.is_some())
        )
    );
}
