//! Scheduled jobs: the clock that begins their runs, and the desk where they are made and changed. What is decided is decided
//! in `scheduler_core::jobs`.
//!
//! Every scheduler knows all jobs from a watch and looks after those of its own partitions. The watch is a hint: a run begins
//! with a compare-and-set on the record as the broker's leader has it, and its message is written to the log on the condition
//! that nothing has been written behind the place that the claim names. Two owners for a moment are harmless.

mod book;
mod clock;
mod desk;
mod metrics;
mod record;
mod run;

use std::sync::Arc;
use std::time::Duration;

use node::Node;
use node::bus::Bus;
use node::members::Members;
use node::settings::CronAccess;
use proto::id::ProcessId;
use scheduler_core::jobs::JobLimits;
use tokio::sync::watch;

pub(crate) use self::clock::keep_time;
pub(crate) use self::desk::{find_command, serve};
pub(crate) use self::metrics::Metrics;
pub(crate) use self::record::{ended, label};

/// The longest prompt of a job: it is part of the record.
const PROMPT_BYTES: usize = 8 * 1024;

/// What everything about jobs works with. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Jobs {
    bus: Bus,
    /// This process.
    id: ProcessId,
    limits: Arc<JobLimits>,
    who: CronAccess,
    label: bool,
    /// How long the record of a job is kept that never runs again.
    keep: Duration,
    members: watch::Receiver<Members>,
    metrics: Arc<Metrics>,
}

impl Jobs {
    pub(crate) fn new(
        node: &Node,
        members: watch::Receiver<Members>,
        metrics: Arc<Metrics>,
    ) -> Self {
        let settings = &node.settings.cron;
        let min_interval = settings.min_interval.get().as_millis();
        Self {
            bus: node.bus.clone(),
            id: node.id,
            limits: Arc::new(JobLimits {
                per_chat: settings.per_chat,
                min_interval_ms: u64::try_from(min_interval).unwrap_or(u64::MAX),
                prompt_bytes: PROMPT_BYTES,
                zone: settings.timezone.clone(),
            }),
            who: settings.who,
            label: settings.label,
            keep: node.settings.streams.inbox_retention.get(),
            members,
            metrics,
        }
    }
}
