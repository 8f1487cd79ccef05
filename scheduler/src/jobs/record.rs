//! Records of jobs in the bucket: read from its leader, written by compare-and-set.

use std::time::Duration;

use anyhow::Context;
use bytes::Bytes;
use futures_util::TryStreamExt;
use node::bus::{Stored, Write, WriteError};
use proto::codec;
use proto::id::{JobId, Seq};
use proto::job::{Job, JobEnd, JobPhase};
use proto::session::SessionKey;
use proto::subject;
use proto::topology::{INBOX, JOBS};
use scheduler_core::jobs;

use super::Jobs;

/// The pause before something is tried again whose outcome is unknown.
pub(super) const PAUSE: Duration = Duration::from_millis(20);

/// A record as it is stored.
#[derive(Clone, Debug)]
pub(super) struct Record {
    /// None where nothing is stored (any more).
    pub(super) job: Option<Job>,
    /// What a write must expect.
    pub(super) revision: u64,
}

/// The name of the stream under the bucket.
pub(super) fn bucket_stream() -> String {
    format!("KV_{JOBS}")
}

impl Jobs {
    /// The key of a job.
    pub(super) fn key(&self, chat: &SessionKey, job: JobId) -> String {
        let sid = chat.sid();
        subject::job_key(self.bus.partition_of(sid), sid, job)
    }

    pub(super) async fn read(&self, key: &str) -> anyhow::Result<Record> {
        let subject = subject::bucket_subject(JOBS, key);
        let stored = self.bus.last(&bucket_stream(), &subject).await?;
        let Some(stored) = stored else { return Ok(Record { job: None, revision: 0 }) };
        let job = stored.is_value().then(|| codec::decode(&stored.payload)).transpose();
        let job = job.with_context(|| format!("the record of the job {key} cannot be read"))?;
        Ok(Record { job, revision: stored.sequence })
    }

    /// Writes a record if the stored one is still that of `revision`. None means that it is not, or that no one knows: read it
    /// and decide again.
    pub(super) async fn write(
        &self,
        key: &str,
        job: &Job,
        revision: u64,
    ) -> anyhow::Result<Option<u64>> {
        let over = matches!(job.phase, JobPhase::Done | JobPhase::Removed);
        let ttl = (over && job.run.is_none()).then_some(self.keep);
        let write = Write { expect: Some(revision), ttl, id: None };
        let payload = Bytes::from(codec::encode(job));
        match self.bus.write(subject::bucket_subject(JOBS, key), payload, write).await {
            Ok(written) => Ok(Some(written.sequence)),
            Err(WriteError::Refused) => Ok(None),
            Err(WriteError::Unknown) => {
                tokio::time::sleep(PAUSE).await;
                Ok(None)
            }
            Err(error @ WriteError::TooLarge) => Err(error.into()),
        }
    }

    /// All records whose keys a filter matches.
    pub(super) async fn all(&self, filter: &str) -> anyhow::Result<Vec<(String, Job)>> {
        let filter = subject::bucket_subject(JOBS, filter);
        let stream = self.bus.stream().get_stream_no_info(bucket_stream()).await?;
        let subjects: Vec<(String, usize)> =
            stream.info_with_subjects(filter).await?.try_collect().await?;
        let mut found = Vec::with_capacity(subjects.len());
        for (subject, _) in subjects {
            let Some(key) = subject::bucket_key(JOBS, &subject) else { continue };
            if let Some(job) = self.read(key).await?.job {
                found.push((key.to_owned(), job));
            }
        }
        Ok(found)
    }

    /// All jobs of a chat.
    pub(super) async fn of_chat(&self, chat: &SessionKey) -> anyhow::Result<Vec<(String, Job)>> {
        let sid = chat.sid();
        self.all(&subject::jobs_of(self.bus.partition_of(sid), sid)).await
    }

    /// The last message that a job's own session has in the log.
    pub(super) async fn last_input(&self, job: &Job) -> anyhow::Result<Seq> {
        let sid = job.home.session.of_job(job.id).sid();
        let subject = subject::inbox(self.bus.partition_of(sid), sid);
        let last = self.bus.last(INBOX, &subject).await?;
        Ok(Seq::new(last.map_or(0, |stored| stored.sequence)))
    }
}

/// Notes that a run has ended. `session` is the one that it took place in. A repetition changes nothing.
pub(crate) async fn ended(
    jobs: &Jobs,
    session: &SessionKey,
    due_ms: u64,
    end: JobEnd,
) -> anyhow::Result<()> {
    let Some((chat, id)) = session.job() else { return Ok(()) };
    let key = jobs.key(&chat, id);
    loop {
        let Record { job, revision } = jobs.read(&key).await?;
        let Some(after) = job.and_then(|job| jobs::ended(&job, due_ms, end)) else { return Ok(()) };
        if jobs.write(&key, &after, revision).await?.is_some() {
            jobs.metrics.ended(end);
            return Ok(());
        }
    }
}

/// What stands above the answer of a job's run; nothing in any other session.
pub(crate) async fn label(jobs: &Jobs, session: &SessionKey) -> anyhow::Result<String> {
    let Some((chat, id)) = session.job().filter(|_| jobs.label) else { return Ok(String::new()) };
    let subject = subject::bucket_subject(JOBS, &jobs.key(&chat, id));
    let stored = jobs.bus.last_nearby(&bucket_stream(), &subject).await?;
    let job = stored
        .filter(Stored::is_value)
        .and_then(|stored| codec::decode::<Job>(&stored.payload).ok());
    Ok(job.as_ref().map(jobs::label).unwrap_or_default())
}
