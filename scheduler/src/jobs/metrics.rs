//! What is counted about jobs.

use std::time::Duration;

use node::metric::Maker;
use prometheus::{Histogram, IntCounter, IntCounterVec, IntGauge, Registry};
use proto::job::JobEnd;

/// The instruments. All series exist from the start, at 0.
#[derive(Debug)]
pub(crate) struct Metrics {
    /// Jobs of this process's partitions that may still run.
    pub(crate) jobs: IntGauge,
    /// Runs that this process began.
    pub(crate) fired: IntCounter,
    /// Due times that had passed unnoticed and were merged into a later run.
    pub(crate) missed: IntCounter,
    /// Due times that were skipped because the run before was still in progress.
    pub(crate) skipped: IntCounter,
    ended: IntCounterVec,
    late: Histogram,
}

impl Metrics {
    pub(crate) fn register(registry: &Registry) -> prometheus::Result<Self> {
        let make = Maker(registry);
        let ends: Vec<_> = JobEnd::ALL.into_iter().map(JobEnd::name).collect();
        Ok(Self {
            jobs: make.gauge(
                "talaria_scheduler_jobs",
                "Scheduled jobs of owned partitions that may still run",
            )?,
            fired: make.counter("talaria_scheduler_jobs_fired_total", "Runs of jobs begun")?,
            missed: make.counter(
                "talaria_scheduler_jobs_missed_total",
                "Due times that passed unnoticed and were merged into a later run",
            )?,
            skipped: make.counter(
                "talaria_scheduler_jobs_skipped_total",
                "Due times skipped because the run before was still in progress",
            )?,
            ended: make.counters(
                "talaria_scheduler_jobs_ended_total",
                "Runs of jobs that ended",
                "end",
                &ends,
            )?,
            late: make.histogram(
                "talaria_scheduler_jobs_late_seconds",
                "How long after its due time a run began",
                vec![0.05, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 60.0, 600.0, 3600.0],
            )?,
        })
    }

    pub(crate) fn ended(&self, end: JobEnd) {
        self.ended.with_label_values(&[end.name()]).inc();
    }

    pub(crate) fn late(&self, ms: u64) {
        self.late.observe(Duration::from_millis(ms).as_secs_f64());
    }
}
