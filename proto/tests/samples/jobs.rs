//! Examples of scheduled jobs, and of what is wished of them.

use proto::id::{JobId, Seq};
use proto::job::{
    Home, Job, JobAction, JobChange, JobCounts, JobEnd, JobPhase, JobReply, JobRequest, Past,
    Requester, Run, When,
};
use proto::lease::{Effect, Phase};
use proto::outbound::Kind;
use talaria_proto as proto;

use super::{address, event, lease, outbound, session, user};
use crate::frozen;

fn home() -> Home {
    let admission = event().admission;
    Home { session: session(), address: address(), user: user(), admission }
}

fn job() -> Job {
    let run = Run { due_ms: 3, claimed_ms: 4, after: Seq::new(9), missed: 2, asked: true };
    Job {
        id: JobId::new(0xab),
        home: home(),
        name: "mail".into(),
        prompt: "look at the mail".into(),
        when: When::Cron { expression: "0 9 * * 1-5".into() },
        zone: "Europe/Berlin".into(),
        made_at_ms: 1,
        phase: JobPhase::Paused,
        next_ms: Some(2),
        run: Some(run),
        last: Some(Past { due_ms: 1, end: JobEnd::TimedOut }),
        counts: JobCounts { runs: 3, missed: 2, skipped: 1, failed: 1 },
        seen: Seq::new(5),
    }
}

#[test]
fn jobs() {
    frozen("job", &job());
    let bare = |when| Job { run: None, last: None, next_ms: None, when, ..job() };
    frozen("job-every", &bare(When::Every { period_ms: 600_000 }));
    frozen("job-once", &bare(When::At { at_ms: 1_700_000_000_000 }));
    let action = JobAction::Add {
        schedule: "in 20m".into(),
        prompt: "look".into(),
        name: Some("mail".into()),
        zone: Some("UTC".into()),
    };
    let asked = |by, action| JobRequest { by, request: "r1".into(), at_ms: 7, action };
    frozen("job-request-add", &asked(Requester::Agent { home: home() }, action));
    let change = JobAction::Change { job: "ab".into(), change: JobChange::Remove };
    frozen("job-request-change", &asked(Requester::Operator { home: None }, change));
    let list = asked(Requester::Person { seq: Seq::new(4), home: home() }, JobAction::List);
    frozen("job-request-list", &list);
    frozen("job-reply", &JobReply { done: true, text: "done".into(), jobs: vec![job()] });
    let cron = Effect::Cron { seq: Seq::new(4), outbound: outbound(Kind::Notice) };
    let ended = Effect::JobEnded { due_ms: 3, end: JobEnd::Silent };
    frozen("lease-jobs", &lease(Phase::Idle, vec![cron, ended]));
    frozen("vocabulary-job-ends", &JobEnd::ALL.to_vec());
    frozen("vocabulary-job-changes", &JobChange::ALL.to_vec());
}
