//! What was measured, for programs and for people, and how it compares with what the broker takes for the same steps.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use super::decisions::Decisions;
use super::latency::Latency;
use super::raw::Raw;
use super::stats::{Percentiles, rounded};

/// The figures.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The broker by itself.
    pub raw: Raw,
    /// The scheduler alone, beside the broker's own rate.
    pub scheduler: Decisions,
    /// A message is accepted: its model call begins.
    pub dispatch_ms: Percentiles,
    /// A second message is accepted: the first one's model connection is closed.
    pub interrupt_ms: Percentiles,
    /// `/stop` is accepted: its acknowledgement is handed to the platform.
    pub stop_ack_ms: Percentiles,
    /// The model is done: the reply is handed to the platform.
    pub reply_ms: Percentiles,
    /// Turns per second by number of sessions.
    pub turns_per_s: BTreeMap<usize, f64>,
    /// Resident memory of a running turn.
    pub bytes_per_turn: f64,
    /// The figures compared with the broker's.
    pub ratios: Ratios,
}

/// How far the system is from what its broker allows; 1 would be perfect for the first two.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Ratios {
    /// [`DISPATCH`].
    pub dispatch_over_hops: f64,
    /// [`INTERRUPT`].
    pub interrupt_over_hops: f64,
    /// [`TURNS`].
    pub turns_over_publishes: f64,
}

/// How `dispatch_over_hops` is made. The message's own publish is over when the clock starts; `pull` is from publish to
/// delivery, so the order's publish is in it.
pub const DISPATCH: &str = "dispatch p50 / (pull [log] + publish_ack [lease: starting] + pull [order] + request_reply \
                            [claim] + publish_ack [lease: running])";
/// How `interrupt_over_hops` is made.
pub const INTERRUPT: &str =
    "interrupt p50 / (pull [log] + publish_ack [lease: stopping] + core_one_way [control])";
/// How `turns_over_publishes` is made. A turn needs about ten durable writes.
pub const TURNS: &str = "most turns per second / pipelined publishes per second";

impl Report {
    /// Puts the figures together.
    pub(super) fn new(
        raw: Raw,
        scheduler: Decisions,
        latency: &Latency,
        turns_per_s: BTreeMap<usize, f64>,
        bytes_per_turn: f64,
    ) -> Self {
        let [ack, request, one_way, pull] =
            [raw.publish_ack_us, raw.request_reply_us, raw.core_one_way_us, raw.pull_us]
                .map(|of| of.p50 / 1e3);
        let most = turns_per_s.values().copied().fold(0.0, f64::max);
        let over = |value: f64, hops: f64| if hops > 0.0 { rounded(value / hops) } else { 0.0 };
        let ratios = Ratios {
            dispatch_over_hops: over(latency.dispatch.p50, pull + ack + pull + request + ack),
            interrupt_over_hops: over(latency.interrupt.p50, pull + ack + one_way),
            turns_over_publishes: over(most, raw.pipelined_publish_per_s),
        };
        Self {
            raw,
            scheduler,
            dispatch_ms: latency.dispatch,
            interrupt_ms: latency.interrupt,
            stop_ack_ms: latency.stop_ack,
            reply_ms: latency.reply,
            turns_per_s,
            bytes_per_turn,
            ratios,
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = |f: &mut fmt::Formatter<'_>, what: &str, of: Percentiles, unit: &str| {
            writeln!(f, "  {what:<52} {:>10.3} {unit} p50 {:>10.3} {unit} p99", of.p50, of.p99)
        };
        writeln!(f, "The system")?;
        line(f, "message accepted -> model call begins", self.dispatch_ms, "ms")?;
        line(f, "model done -> reply handed to the platform", self.reply_ms, "ms")?;
        line(f, "second message accepted -> connection closed", self.interrupt_ms, "ms")?;
        line(f, "/stop accepted -> acknowledgement handed over", self.stop_ack_ms, "ms")?;
        for (sessions, turns) in &self.turns_per_s {
            writeln!(f, "  {:<52} {turns:>10.0} /s", format!("turns with {sessions} sessions"))?;
        }
        writeln!(f, "  {:<52} {:>10.0} bytes", "memory of a running turn", self.bytes_per_turn)?;
        let Decisions { inputs_per_s, kv_updates_per_s, ratio } = self.scheduler;
        writeln!(
            f,
            "  {:<52} {inputs_per_s:>10.0} /s",
            "inputs decided on by the scheduler alone"
        )?;
        writeln!(f, "\nThe broker by itself, in the same run")?;
        line(f, "publish, acknowledged", self.raw.publish_ack_us, "us")?;
        line(f, "request and reply", self.raw.request_reply_us, "us")?;
        line(f, "one way, past the streams", self.raw.core_one_way_us, "us")?;
        line(f, "publish to a stream -> pulled", self.raw.pull_us, "us")?;
        let publishes = self.raw.pipelined_publish_per_s;
        writeln!(f, "  {:<52} {publishes:>10.0} /s", "publishes, many in flight")?;
        writeln!(f, "  {:<52} {kv_updates_per_s:>10.0} /s", "compare-and-sets, many in flight")?;
        let Ratios { dispatch_over_hops, interrupt_over_hops, turns_over_publishes } = self.ratios;
        writeln!(f, "\nCompared (raw figures are p50)")?;
        writeln!(f, "  dispatch_over_hops   {dispatch_over_hops:>8.3} = {DISPATCH}")?;
        writeln!(f, "  interrupt_over_hops  {interrupt_over_hops:>8.3} = {INTERRUPT}")?;
        writeln!(f, "  turns_over_publishes {turns_over_publishes:>8.3} = {TURNS}")?;
        writeln!(f, "  scheduler.ratio      {ratio:>8.3} = inputs decided on / compare-and-sets")
    }
}
