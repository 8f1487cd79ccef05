//! One partition: its log in, its leases written, what follows from them sent.
//!
//! A round takes whatever is ready (log entries, claims, heartbeats, due timers), applies it with the pure core, writes every
//! changed lease by compare-and-set, all in flight at once, and only then lets anything be seen. While a round waits for the
//! broker more arrives: that is the batching.

mod aside;
mod desk;
mod effects;
mod log;
mod observed;
mod rollout;
mod round;
mod settle;
mod table;
mod takeover;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use node::Node;
use node::bus::{Bus, Write, WriteError};
use node::clock::Clock;
use proto::codec;
use proto::id::{Epoch, Partition, ProcessId, Seq};
use proto::lease::Checkpoint;
use proto::subject;
use proto::topology::LEASES;
use scheduler_core::Time;
use tokio::sync::{broadcast, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::aside::Asides;
use self::desk::Desk;
use self::observed::Census;
use self::round::Round;
use crate::jobs::Jobs;
use crate::metrics::Metrics;
use crate::policy::Policies;

/// How often a checkpoint is stored.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(1);

/// Another scheduler has the partition: everything in memory is worthless.
#[derive(Debug, thiserror::Error)]
#[error("another owner has taken partition {0} over")]
pub(crate) struct Lost(pub(crate) Partition);

/// The owner of a partition: what its rounds work with.
pub(crate) struct Owner {
    pub(crate) partition: Partition,
    pub(crate) epoch: Epoch,
    /// Up to which revision all effects were out when this owner took over.
    pub(crate) settled: u64,
    pub(crate) bus: Bus,
    pub(crate) policies: Policies,
    /// Whether logs show hashes instead of ids.
    pub(crate) masked: bool,
    /// Whose workers run the turns.
    pub(crate) pool: String,
    /// How long the record of an idle session is kept: as long as the inputs that it has seen.
    pub(crate) idle_ttl: Duration,
    pub(crate) metrics: Arc<Metrics>,
    /// What people do with scheduled jobs.
    pub(crate) jobs: Jobs,
    /// How often workers beat.
    pub(crate) beat: Duration,
    /// Whether its log can be read at the moment.
    pub(crate) reading: watch::Sender<bool>,
    clock: Clock,
}

impl Owner {
    pub(crate) fn now(&self) -> Time {
        Time::from_ms(self.clock.now_ms())
    }
}

/// Takes a partition over and decides for it until `stop`, or until another owner shows up.
pub(crate) async fn run(
    partition: Partition,
    node: Node,
    (metrics, jobs): (Arc<Metrics>, Jobs),
    gone: broadcast::Receiver<ProcessId>,
    reading: watch::Sender<bool>,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let mut owner = Owner {
        partition,
        epoch: Epoch::default(),
        settled: 0,
        policies: Policies::new(&node.settings),
        masked: node.settings.access.redact_pii,
        pool: node.settings.worker.pool.clone(),
        idle_ttl: node.settings.streams.inbox_retention.get(),
        bus: node.bus,
        metrics,
        jobs,
        beat: node.settings.scheduler.beat.get(),
        reading,
        clock: Clock::start(),
    };
    let began = Instant::now();
    let mut progress = takeover::raise_epoch(&mut owner).await?;
    // Claims and heartbeats wait here while the leases are loaded.
    let mut desk = Desk::open(&owner).await?;
    let mut asides = Asides::new(&progress.checkpoint);
    let mut table = takeover::load(&owner, &mut asides).await?;
    let mut log = log::follow(&owner, progress.checkpoint.cursor);
    let mut gone = gone;
    let mut census = Census::new(Arc::clone(&owner.metrics));
    owner.metrics.takeover.observe(began.elapsed().as_secs_f64());
    tracing::debug!(%partition, epoch = %owner.epoch, cursor = %progress.checkpoint.cursor, "taken over");
    loop {
        let mut round = Round::default();
        tokio::select! {
            () = stop.cancelled() => break,
            () = sleep_until(&owner, table.deadline()) => {}
            () = tokio::time::sleep_until(progress.due) => {}
            () = asides.due() => asides.mend(&owner, &mut table, progress.checkpoint.cursor).await?,
            Some(entry) = log.recv() => round.entry(entry, &owner.metrics),
            Some(request) = desk.recv() => round.request(request),
            Ok(worker) = gone.recv() => round.worker_gone(worker, &table),
        }
        while !round.is_full()
            && let Ok(entry) = log.try_recv()
        {
            round.entry(entry, &owner.metrics);
        }
        while !round.is_full()
            && let Ok(request) = desk.try_recv()
        {
            round.request(request);
        }
        note_lateness(&owner, table.deadline());
        round.due(table.due(owner.now()));
        let last = round.last();
        let written = round.run(&owner, &mut table, &mut asides).await?;
        progress.advance(last, written, &asides);
        if progress.due <= Instant::now() {
            census.take(table.busy(), owner.now());
            progress.store(&owner).await?;
        }
    }
    progress.store(&owner).await
}

/// Notes by how much the first deadline has passed, if it has.
fn note_lateness(owner: &Owner, deadline: Option<Time>) {
    if let Some(deadline) = deadline.filter(|at| *at <= owner.now()) {
        let late = Duration::from_millis(owner.now().since(deadline));
        owner.metrics.loop_lag.observe(late.as_secs_f64());
    }
}

async fn sleep_until(owner: &Owner, deadline: Option<Time>) {
    match deadline {
        Some(at) => tokio::time::sleep(Duration::from_millis(at.since(owner.now()))).await,
        None => std::future::pending().await,
    }
}

/// The checkpoint, as it is stored and as it is by now.
pub(crate) struct Progress {
    pub(crate) checkpoint: Checkpoint,
    stored: Checkpoint,
    revision: u64,
    due: Instant,
}

impl Progress {
    pub(crate) fn new(checkpoint: Checkpoint, revision: u64) -> Self {
        let stored = checkpoint.clone();
        Self { checkpoint, stored, revision, due: Instant::now() + CHECKPOINT_EVERY }
    }

    /// Everything up to `last` is applied or set aside, and the effects of every write up to `written` are out.
    fn advance(&mut self, last: Option<Seq>, written: u64, asides: &Asides) {
        asides.store(&mut self.checkpoint);
        let Checkpoint { cursor, settled, .. } = &mut self.checkpoint;
        *cursor = last.unwrap_or_default().max(*cursor);
        *settled = written.max(*settled);
    }

    /// Stores the checkpoint if it has moved. Refused means that the partition has another owner. Unknown is nothing: the next
    /// one says the same or more, and until then a successor reads a little more of the log.
    async fn store(&mut self, owner: &Owner) -> anyhow::Result<()> {
        self.due = Instant::now() + CHECKPOINT_EVERY;
        if self.checkpoint == self.stored {
            return Ok(());
        }
        match write_checkpoint(owner, &self.checkpoint, self.revision).await {
            Ok(revision) => {
                self.revision = revision;
                self.stored = self.checkpoint.clone();
                Ok(())
            }
            Err(WriteError::Unknown | WriteError::TooLarge) => {
                if let Some((checkpoint, revision)) = takeover::read_checkpoint(owner).await?
                    && checkpoint.epoch == owner.epoch
                {
                    self.revision = revision;
                }
                Ok(())
            }
            Err(WriteError::Refused) => Err(Lost(owner.partition).into()),
        }
    }
}

async fn write_checkpoint(
    owner: &Owner,
    checkpoint: &Checkpoint,
    revision: u64,
) -> Result<u64, WriteError> {
    let subject = subject::bucket_subject(LEASES, &subject::checkpoint_key(owner.partition));
    let write = Write { expect: Some(revision), ..Write::default() };
    let written = owner.bus.write(subject, Bytes::from(codec::encode(checkpoint)), write).await?;
    Ok(written.sequence)
}
