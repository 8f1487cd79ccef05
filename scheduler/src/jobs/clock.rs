//! The clock: follows all jobs, and looks at each of ours when it is due.

use std::collections::BTreeSet;
use std::time::Duration;

use async_nats::jetstream::kv::{Entry, Operation, Watch};
use futures_util::{FutureExt, StreamExt, stream};
use node::clock::wall_ms;
use node::members;
use proto::codec;
use proto::id::Partition;
use proto::job::Job;
use proto::member::Role;
use proto::topology::JOBS;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Jobs;
use super::book::Book;
use crate::ownership::owner;

/// How often the time of day is looked at: it may be set, and partitions come and go.
const TICK: Duration = Duration::from_millis(500);
/// How many jobs are begun at the same time.
const AT_ONCE: usize = 32;
/// After how long a watch is made anew, whatever it says of itself.
const WATCH_AGE: Duration = Duration::from_secs(300);
/// The pause before a broken watch is made anew.
const PAUSE: Duration = Duration::from_millis(100);

/// Begins the runs of jobs until `stop`.
pub(crate) async fn keep_time(jobs: Jobs, stop: CancellationToken) {
    let mut book = Book::default();
    let mut connects = jobs.bus.connects();
    loop {
        connects.mark_unchanged();
        tokio::select! {
            () = stop.cancelled() => return,
            outcome = jobs.follow(&mut book) => if let Err(error) = outcome {
                tracing::warn!("following the jobs again: {error:#}");
            },
            _ = connects.changed() => {}
        }
        tokio::time::sleep(PAUSE).await;
    }
}

impl Jobs {
    /// Follows one watch for as long as it is to be believed. What is stored already comes first.
    async fn follow(&self, book: &mut Book) -> anyhow::Result<()> {
        let store = self.bus.stream().get_key_value(JOBS).await?;
        let mut watch = store.watch_with_history(">").await?;
        let until = Instant::now() + WATCH_AGE;
        while Instant::now() < until {
            let now = wall_ms();
            let to_next = book.next(now).map(|at| Duration::from_millis(at - now));
            tokio::select! {
                entry = watch.next() => match entry {
                    Some(entry) => {
                        self.note(book, &entry?);
                        self.note_more(book, &mut watch);
                    }
                    None => return Ok(()),
                },
                () = tokio::time::sleep(to_next.unwrap_or(TICK).min(TICK)) => {}
            }
            self.look_at_due(book).await;
        }
        Ok(())
    }

    /// Takes what else has come, so that a long list does not cost a look each.
    fn note_more(&self, book: &mut Book, watch: &mut Watch) {
        while let Some(Some(Ok(entry))) = watch.next().now_or_never() {
            self.note(book, &entry);
        }
    }

    fn note(&self, book: &mut Book, entry: &Entry) {
        if entry.operation != Operation::Put || entry.value.is_empty() {
            return book.forget_key(&entry.key);
        }
        match codec::decode::<Job>(&entry.value) {
            Ok(job) => {
                let partition = self.bus.partition_of(job.home.session.sid());
                book.put(&entry.key, partition, &job, entry.revision);
            }
            Err(error) => {
                tracing::error!(key = %entry.key, %error, "the record of a job cannot be read; it does not run until it is mended");
                book.forget_key(&entry.key);
            }
        }
    }

    async fn look_at_due(&self, book: &mut Book) {
        let members = self.members.borrow().clone();
        let schedulers: Vec<_> =
            members::of_role(&members, Role::Scheduler).map(|member| member.id).collect();
        let owned: BTreeSet<_> = Partition::all(self.bus.partitions())
            .filter(|partition| owner(*partition, &schedulers) == Some(self.id))
            .collect();
        let ours = |partition: Partition| owned.contains(&partition);
        self.metrics.jobs.set(i64::try_from(book.count(ours)).unwrap_or(i64::MAX));
        let due = book.due(wall_ms(), ours);
        let looks = stream::iter(due.into_iter().map(|key| async move {
            let looked = self.look(&key).await;
            (key, looked)
        }));
        let looked: Vec<_> = looks.buffer_unordered(AT_ONCE).collect().await;
        for (key, looked) in looked {
            match looked {
                Ok(looked) => {
                    match looked.record {
                        Some((job, revision)) => {
                            let partition = self.bus.partition_of(job.home.session.sid());
                            book.put(&key, partition, &job, revision);
                        }
                        None => book.forget_key(&key),
                    }
                    if let Some(due_ms) = looked.written_ms {
                        book.written(&key, due_ms);
                    }
                }
                Err(error) => {
                    tracing::warn!(%key, "a job could not be looked at, and is again: {error:#}")
                }
            }
        }
    }
}
