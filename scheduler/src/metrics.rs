//! What the scheduler counts.

use node::metric::Maker;
use prometheus::{Histogram, IntCounter, IntCounterVec, IntGauge, Registry};
use proto::lease::Effect;
use proto::outbound::Kind;
use proto::receipt::{Decided, End, Fact, Fate, QueueReason, Refusal, Stage};
use proto::turn::{ClaimReply, Outcome};
use scheduler_core::{Input, Signal};

/// The instruments. All series exist from the start, at 0.
#[derive(Debug)]
pub(crate) struct Metrics {
    /// Partitions that this process decides for.
    pub(crate) partitions_owned: IntGauge,
    /// Inputs of owned partitions that are in the log and not yet applied.
    pub(crate) log_lag: IntGauge,
    /// Inputs applied together.
    pub(crate) batch_size: Histogram,
    /// What waits because of leases that cannot be read.
    pub(crate) aside: Aside,
    /// Log entries that could not be read.
    pub(crate) poison: IntCounter,
    inputs: IntCounterVec,
    decisions: IntCounterVec,
    claims: IntCounterVec,
    writes: IntCounterVec,
    effects: IntCounterVec,
    ended: IntCounterVec,
    settled: IntCounterVec,
    retries: IntCounterVec,
    slow: IntCounterVec,
}

/// What waits because of leases that cannot be read.
#[derive(Debug)]
pub(crate) struct Aside {
    /// Sessions.
    pub(crate) sessions: IntGauge,
    /// Inputs, ever.
    pub(crate) inputs: IntCounter,
}

fn poison(make: &Maker<'_>) -> prometheus::Result<IntCounter> {
    make.counter("talaria_scheduler_poison_total", "Records and requests that could not be read")
}

fn slow(make: &Maker<'_>) -> prometheus::Result<IntCounterVec> {
    make.counters(
        "talaria_scheduler_slow_turns_total",
        "Long turns whose person was told that they still work, are warned of, or have timed out",
        "stage",
        SLOW,
    )
}

impl Aside {
    fn register(make: &Maker<'_>) -> prometheus::Result<Self> {
        Ok(Self {
            sessions: make.gauge(
                "talaria_scheduler_sessions_aside",
                "Sessions whose lease cannot be read, so that their inputs wait",
            )?,
            inputs: make.counter(
                "talaria_scheduler_inputs_aside_total",
                "Inputs that were set aside because their session's lease cannot be read",
            )?,
        })
    }
}

impl Metrics {
    pub(crate) fn register(registry: &Registry) -> prometheus::Result<Self> {
        let make = Maker(registry);
        let sizes = prometheus::exponential_buckets(1.0, 2.0, 10)?;
        Ok(Self {
            partitions_owned: make.gauge(
                "talaria_scheduler_partitions_owned",
                "Partitions that this process decides for",
            )?,
            log_lag: make.gauge(
                "talaria_scheduler_log_lag",
                "Inputs of owned partitions that are not applied yet",
            )?,
            batch_size: make.histogram(
                "talaria_scheduler_batch_inputs",
                "Inputs applied in one round",
                sizes,
            )?,
            aside: Aside::register(&make)?,
            poison: poison(&make)?,
            slow: slow(&make)?,
            inputs: make.counters(
                "talaria_scheduler_inputs_total",
                "Inputs applied",
                "kind",
                INPUTS,
            )?,
            decisions: make.counters(
                "talaria_scheduler_decisions_total",
                "Messages decided on",
                "decision",
                DECISIONS,
            )?,
            claims: make.counters(
                "talaria_scheduler_claims_total",
                "Claims answered",
                "answer",
                CLAIMS,
            )?,
            writes: make.counters(
                "talaria_scheduler_lease_writes_total",
                "Lease writes",
                "result",
                WRITES,
            )?,
            effects: make.counters(
                "talaria_scheduler_effects_total",
                "Effects published",
                "kind",
                EFFECTS,
            )?,
            ended: make.counters(
                "talaria_scheduler_turns_ended_total",
                "Turns ended",
                "end",
                ENDS,
            )?,
            settled: make.counters(
                "talaria_scheduler_messages_settled_total",
                "Messages that reached their end",
                "fate",
                FATES,
            )?,
            retries: make.counters(
                "talaria_scheduler_retries_total",
                "Attempts ordered again",
                "cause",
                RETRIES,
            )?,
        })
    }

    pub(crate) fn input(&self, input: &Input) {
        let kind = match input {
            Input::Message { .. } => "message",
            Input::Edit { .. } => "edit",
            Input::Withdrawal { .. } => "withdrawal",
            Input::Refused { .. } => "refused",
            Input::Report { .. } => "report",
            Input::Hangup { .. } => "hangup",
            Input::Unreadable { .. } => "unreadable",
            Input::Claim(_) => "claim",
            Input::Beat { .. } => "beat",
            Input::WorkerGone(_) => "worker_gone",
            Input::Adopt(_) => "adopt",
            Input::Tick => "tick",
        };
        self.inputs.with_label_values(&[kind]).inc();
    }

    pub(crate) fn signal(&self, signal: &Signal) {
        match signal {
            Signal::Claim(ClaimReply::Granted { .. }) => {
                self.claims.with_label_values(&["granted"]).inc()
            }
            Signal::Claim(ClaimReply::Denied { .. }) => {
                self.claims.with_label_values(&["denied"]).inc()
            }
            Signal::Fact(fact) => self.fact(fact),
            Signal::Beat { .. } | Signal::Tell { .. } => {}
        }
    }

    fn fact(&self, fact: &Fact) {
        match fact {
            Fact::Decided { decision, .. } => {
                self.decisions.with_label_values(&[decision_name(*decision)]).inc()
            }
            Fact::Ended { end, .. } => self.ended.with_label_values(&[end_name(*end)]).inc(),
            Fact::Slow { stage, .. } => {
                let stage = match stage {
                    Stage::StillWorking => "still_working",
                    Stage::Warned => "warned",
                    Stage::TimedOut => "timed_out",
                };
                self.slow.with_label_values(&[stage]).inc();
            }
            Fact::Retried { handed_back, .. } => {
                self.retries
                    .with_label_values(&[if *handed_back { "handed_back" } else { "crash" }])
                    .inc();
            }
            Fact::Settled { fate, .. } => self.settled.with_label_values(&[fate_name(*fate)]).inc(),
            Fact::State { .. } | Fact::Claimed { .. } => {}
        }
    }

    pub(crate) fn effect(&self, effect: &Effect) {
        let kind = match effect {
            Effect::Order => "order",
            Effect::Reply { .. } => "reply",
            Effect::Spawn { .. } => "spawn",
            Effect::Roster { .. } | Effect::Restart { .. } => "notice",
            Effect::Send { outbound } => match outbound.kind {
                Kind::Reply => "reply",
                Kind::Notice => "notice",
                Kind::Ack => "ack",
                Kind::Question => "question",
                Kind::Closed => "closed",
            },
        };
        self.effects.with_label_values(&[kind]).inc();
    }

    pub(crate) fn write(&self, result: &'static str) {
        self.writes.with_label_values(&[result]).inc();
    }
}

const INPUTS: &[&str] = &[
    "message",
    "edit",
    "withdrawal",
    "report",
    "hangup",
    "unreadable",
    "claim",
    "beat",
    "worker_gone",
    "adopt",
    "tick",
];
const DECISIONS: &[&str] = &[
    "started",
    "interrupted",
    "steered",
    "answering",
    "done",
    "rolled_back",
    "merged",
    "collecting",
    "background",
    "edited",
    "withdrawn",
    "too_late",
    "refused_full",
    "refused_busy",
    "refused_not_now",
    "refused_not_yours",
    "queued_not_steered",
    "queued_burst",
    "queued_asked",
    "queued_starting",
    "queued_stopping",
    "queued_depth",
    "queued_delegating",
    "queued_compressing",
    "queued_asking",
];
const CLAIMS: &[&str] = &["granted", "denied"];
const WRITES: &[&str] = &["done", "refused", "unknown"];
const EFFECTS: &[&str] = &["order", "spawn", "reply", "notice", "ack", "question", "closed"];
const ENDS: &[&str] = &["completed", "interrupted", "failed", "released", "withdrawn", "parked"];
const FATES: &[&str] = &[
    "answered",
    "interrupted",
    "merged",
    "steered",
    "cleared",
    "withdrawn",
    "refused",
    "done",
    "parked",
];
const SLOW: &[&str] = &["still_working", "warned", "timed_out"];
const RETRIES: &[&str] = &["crash", "handed_back"];

const fn decision_name(decision: Decided) -> &'static str {
    match decision {
        Decided::Started => "started",
        Decided::Interrupted => "interrupted",
        Decided::Steered => "steered",
        Decided::Answering => "answering",
        Decided::Done => "done",
        Decided::RolledBack => "rolled_back",
        Decided::Merged => "merged",
        Decided::Collecting => "collecting",
        Decided::Background => "background",
        Decided::Edited => "edited",
        Decided::Withdrawn => "withdrawn",
        Decided::TooLate => "too_late",
        Decided::Refused { reason: Refusal::Full } => "refused_full",
        Decided::Refused { reason: Refusal::Busy } => "refused_busy",
        Decided::Refused { reason: Refusal::NotNow } => "refused_not_now",
        Decided::Refused { reason: Refusal::NotYours } => "refused_not_yours",
        Decided::Refused { reason: Refusal::Forbidden } => "refused_forbidden",
        Decided::Queued { reason } => match reason {
            QueueReason::Asked => "queued_asked",
            QueueReason::Starting => "queued_starting",
            QueueReason::Stopping => "queued_stopping",
            QueueReason::Depth => "queued_depth",
            QueueReason::Delegating => "queued_delegating",
            QueueReason::Compressing => "queued_compressing",
            QueueReason::Asking => "queued_asking",
            QueueReason::NotSteered => "queued_not_steered",
            QueueReason::Burst => "queued_burst",
        },
    }
}

const fn end_name(end: End) -> &'static str {
    match end {
        End::Reported { outcome: Outcome::Completed } => "completed",
        End::Reported { outcome: Outcome::Interrupted } => "interrupted",
        End::Reported { outcome: Outcome::Refused } => "refused",
        End::Reported { outcome: Outcome::Failed } => "failed",
        End::Released { .. } => "released",
        End::Withdrawn => "withdrawn",
        End::Parked => "parked",
    }
}

const fn fate_name(fate: Fate) -> &'static str {
    match fate {
        Fate::Answered => "answered",
        Fate::Interrupted => "interrupted",
        Fate::Merged => "merged",
        Fate::Steered => "steered",
        Fate::Cleared => "cleared",
        Fate::Withdrawn => "withdrawn",
        Fate::Refused => "refused",
        Fate::Done => "done",
        Fate::Parked => "parked",
    }
}
