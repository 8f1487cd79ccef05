//! What a scheduler knows of all jobs, and when it must look at which. It may be a moment old.

use std::collections::{BTreeMap, BTreeSet};

use proto::id::Partition;
use proto::job::{Job, JobPhase};
use scheduler_core::jobs;

/// One job.
struct Entry {
    partition: Partition,
    revision: u64,
    /// Whether it may still run.
    alive: bool,
    /// The run in progress.
    run_ms: Option<u64>,
    /// The run whose message is known to be in the log.
    written_ms: Option<u64>,
    /// When it is due next.
    next: Option<u64>,
}

impl Entry {
    /// When to look at it: at once as long as a run has been claimed whose message may be missing.
    fn wake(&self) -> Option<u64> {
        let unsure = self.run_ms.is_some() && self.run_ms != self.written_ms;
        if unsure { Some(0) } else { self.next }
    }
}

/// All jobs.
#[derive(Default)]
pub(super) struct Book {
    entries: BTreeMap<String, Entry>,
    wakes: BTreeSet<(u64, String)>,
}

impl Book {
    /// Notes a record, unless a newer one is known.
    pub(super) fn put(&mut self, key: &str, partition: Partition, job: &Job, revision: u64) {
        let known = self.entries.get(key);
        if known.is_some_and(|known| known.revision > revision) {
            return;
        }
        let entry = Entry {
            partition,
            revision,
            alive: matches!(job.phase, JobPhase::Active | JobPhase::Paused),
            run_ms: job.run.map(|run| run.due_ms),
            written_ms: known.and_then(|known| known.written_ms),
            next: jobs::wake(job),
        };
        self.forget(key);
        self.enter(key, entry);
    }

    /// Notes that the message of a run is in the log.
    pub(super) fn written(&mut self, key: &str, due_ms: u64) {
        if let Some(entry) = self.forget(key) {
            self.enter(key, Entry { written_ms: Some(due_ms), ..entry });
        }
    }

    /// Notes that a record is gone.
    pub(super) fn forget_key(&mut self, key: &str) {
        self.forget(key);
    }

    fn enter(&mut self, key: &str, entry: Entry) {
        if let Some(at) = entry.wake() {
            self.wakes.insert((at, key.to_owned()));
        }
        self.entries.insert(key.to_owned(), entry);
    }

    fn forget(&mut self, key: &str) -> Option<Entry> {
        let entry = self.entries.remove(key)?;
        if let Some(at) = entry.wake() {
            self.wakes.remove(&(at, key.to_owned()));
        }
        Some(entry)
    }

    /// The jobs to look at now, in the partitions that are `ours`.
    pub(super) fn due(&self, now_ms: u64, ours: impl Fn(Partition) -> bool) -> Vec<String> {
        let due = self.wakes.iter().take_while(|(at, _)| *at <= now_ms);
        due.filter(|(_, key)| self.entries.get(key).is_some_and(|entry| ours(entry.partition)))
            .map(|(_, key)| key.clone())
            .collect()
    }

    /// When the first job behind `now_ms` wants to be looked at.
    pub(super) fn next(&self, now_ms: u64) -> Option<u64> {
        self.wakes.range((now_ms + 1, String::new())..).next().map(|(at, _)| *at)
    }

    /// How many jobs of the partitions that are `ours` may still run.
    pub(super) fn count(&self, ours: impl Fn(Partition) -> bool) -> usize {
        self.entries.values().filter(|entry| entry.alive && ours(entry.partition)).count()
    }
}
