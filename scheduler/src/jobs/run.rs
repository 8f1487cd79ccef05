//! One look at a job that may be due: claim its run, and write the run's message to the log, once.

use async_nats::jetstream::stream::RawMessageErrorKind;
use bytes::Bytes;
use node::bus::{Stored, Write, WriteError};
use node::clock::wall_ms;
use node::members;
use proto::access::Admission;
use proto::codec;
use proto::event::{Address, BusyMode, MessageEvent};
use proto::id::{ProcessId, Seq};
use proto::inbox::Inbox;
use proto::job::{Job, JobEnd, Run, run_id};
use proto::lease::{Effect, Lease, Phase};
use proto::member::Role;
use proto::subject;
use proto::topology::{INBOX, LEASES};
use scheduler_core::jobs::{self, Due};

use super::Jobs;
use super::record::{PAUSE, Record};

/// What was found and done.
pub(super) struct Looked {
    /// The record as it is now; none if there is none.
    pub(super) record: Option<(Job, u64)>,
    /// The run whose message is in the log.
    pub(super) written_ms: Option<u64>,
}

impl Jobs {
    /// Looks at a job, and does what is due.
    pub(super) async fn look(&self, key: &str) -> anyhow::Result<Looked> {
        loop {
            let Record { job, revision } = self.read(key).await?;
            let Some(job) = job else { return Ok(Looked { record: None, written_ms: None }) };
            let now = wall_ms();
            let after = match jobs::due(&job, now) {
                Due::No => {
                    // Claimed by a request or by an owner that is gone: its message may be missing.
                    let written_ms = self.write_run(&job).await?;
                    return Ok(Looked { record: Some((job, revision)), written_ms });
                }
                Due::Run => jobs::claim(&job, now, self.last_input(&job).await?),
                Due::Overlap => match self.fate_of_run(&job).await? {
                    Some(end) => match job.run.and_then(|run| jobs::ended(&job, run.due_ms, end)) {
                        Some(after) => after,
                        None => continue,
                    },
                    None => jobs::skip(&job, now),
                },
            };
            let Some(revision) = self.write(key, &after, revision).await? else { continue };
            self.count(&job, &after);
            if jobs::due(&after, now) != Due::No {
                continue;
            }
            let written_ms = self.write_run(&after).await?;
            return Ok(Looked { record: Some((after, revision)), written_ms });
        }
    }

    fn count(&self, before: &Job, after: &Job) {
        let (old, new) = (before.counts, after.counts);
        self.metrics.fired.inc_by(new.runs - old.runs);
        self.metrics.missed.inc_by(new.missed - old.missed);
        self.metrics.skipped.inc_by(new.skipped - old.skipped);
        match (before.run, after.run) {
            (None, Some(run)) => {
                self.metrics.late(run.claimed_ms.saturating_sub(run.due_ms));
                tracing::info!(job = %after.id, chat = %after.home.session, due = run.due_ms, missed = run.missed, "a job runs");
            }
            (Some(_), None) => {
                let end = after.last.map_or(JobEnd::Lost, |last| last.end);
                self.metrics.ended(end);
            }
            (Some(run), Some(_)) => {
                tracing::warn!(job = %after.id, chat = %after.home.session, since = run.claimed_ms, "a due time is skipped: the run before is still in progress");
            }
            (None, None) => {}
        }
    }

    /// Makes sure that the message of the run in progress is in the log. The claim names the place after which it stands, and
    /// the broker takes it only as the next message of its subject: whoever writes it, and however often, it is there once.
    async fn write_run(&self, job: &Job) -> anyhow::Result<Option<u64>> {
        let Some(run) = job.run else { return Ok(None) };
        let event = self.event(job, run);
        let sid = event.session.sid();
        let subject = subject::inbox(self.bus.partition_of(sid), sid);
        let id = format!("{}-{sid}", event.id);
        let message = event.id.clone();
        let payload = Bytes::from(codec::encode(&Inbox::Message(Box::new(event))));
        let mut last = run.after;
        loop {
            let write = Write { id: Some(&id), expect: Some(last.get()), ttl: None };
            match self.bus.write(subject.clone(), payload.clone(), write).await {
                Ok(_) => return Ok(Some(run.due_ms)),
                Err(WriteError::Unknown) => tokio::time::sleep(PAUSE).await,
                Err(WriteError::Refused) => match self.find(&subject, run.after, &message).await? {
                    Found::Message => return Ok(Some(run.due_ms)),
                    Found::Others(seq) => last = seq,
                },
                Err(error @ WriteError::TooLarge) => return Err(error.into()),
            }
        }
    }

    /// Looks for a message behind a place in the log.
    async fn find(&self, subject: &str, after: Seq, message: &str) -> anyhow::Result<Found> {
        let mut last = after;
        while let Some(stored) = self.next_input(subject, last.next()).await? {
            let input = codec::decode::<Inbox>(&stored.payload);
            if matches!(input, Ok(Inbox::Message(event)) if event.id == message) {
                return Ok(Found::Message);
            }
            last = Seq::new(stored.sequence);
        }
        if last == after {
            // Nothing is behind it, and perhaps nothing is left of what was before it.
            let stored = self.bus.last(INBOX, subject).await?;
            last = Seq::new(stored.map_or(0, |stored| stored.sequence));
        }
        Ok(Found::Others(last))
    }

    async fn next_input(&self, subject: &str, from: Seq) -> anyhow::Result<Option<Stored>> {
        let stream = self.bus.stream().get_stream_no_info(INBOX).await?;
        let asked = stream.raw_message_builder().sequence(from.get()).next_by_subject(subject);
        match asked.send().await {
            Ok(message) => Ok(Some(message.into())),
            Err(error) if error.kind() == RawMessageErrorKind::NoMessageFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// How the run in progress has ended, if it has and the record does not know: read from the lease of its session.
    async fn fate_of_run(&self, job: &Job) -> anyhow::Result<Option<JobEnd>> {
        let Some(run) = job.run else { return Ok(None) };
        let sid = job.home.session.of_job(job.id).sid();
        let key = subject::lease_key(self.bus.partition_of(sid), sid);
        let stored =
            self.bus.last(&format!("KV_{LEASES}"), &subject::bucket_subject(LEASES, &key)).await?;
        let Some(stored) = stored.filter(Stored::is_value) else {
            // It has not begun, or it is so long ago that nothing is left of it.
            let age = wall_ms().saturating_sub(run.claimed_ms);
            return Ok((u128::from(age) > self.keep.as_millis()).then_some(JobEnd::Lost));
        };
        let lease: Lease = codec::decode(&stored.payload)?;
        if lease.phase != Phase::Idle || lease.seen <= run.after {
            return Ok(None);
        }
        let told = lease.effects.iter().find_map(|effect| {
            if let Effect::JobEnded { due_ms, end } = effect {
                (*due_ms == run.due_ms).then_some(*end)
            } else {
                None
            }
        });
        Ok(Some(told.unwrap_or(JobEnd::Lost)))
    }

    /// The message of a run: the same whoever makes it.
    fn event(&self, job: &Job, run: Run) -> MessageEvent {
        MessageEvent {
            id: run_id(job.id, run.due_ms),
            session: job.home.session.of_job(job.id),
            address: self.reachable(job.home.address.clone()),
            user: job.home.user.clone(),
            text: jobs::prompt(job),
            media: Vec::new(),
            reply_to: None,
            mode: Some(BusyMode::Queue),
            history: Vec::new(),
            // In a run no one else speaks.
            admission: Admission { shared: false, ..job.home.admission.clone() },
            accepted_at_ms: run.claimed_ms,
        }
    }

    /// An address of a platform whose account is a process of ours (the chat page): that process may be gone, and then another
    /// one delivers.
    fn reachable(&self, mut address: Address) -> Address {
        if let Ok(process) = address.account.parse::<ProcessId>() {
            let members = self.members.borrow();
            let mut doors = members::of_role(&members, Role::Ingress).map(|member| member.id);
            if !members.contains_key(&process)
                && let Some(other) = doors.next()
            {
                address.account = other.to_string();
            }
        }
        address
    }
}

/// What stands in the log.
enum Found {
    /// The message.
    Message,
    /// Not it; and where the last one of its subject stands.
    Others(Seq),
}
