//! What the scheduler counts. All series exist from the start, at 0.

mod labels;

use node::metric::{Maker, doubling};
use prometheus::{
    Histogram, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Registry,
};
use proto::activity::State;
use proto::id::Attempt;
use proto::lease::{Effect, Phase};
use proto::receipt::Fact;
use proto::turn::ClaimReply;
use scheduler_core::{Input, Signal};

/// The instruments.
#[derive(Debug)]
pub(crate) struct Metrics {
    /// Partitions that there are.
    pub(crate) partitions: IntGauge,
    /// Partitions that this process decides for.
    pub(crate) partitions_owned: IntGauge,
    /// How long taking a partition over took, seconds.
    pub(crate) takeover: Histogram,
    /// Inputs of owned partitions that are in the log and not yet applied.
    pub(crate) log_lag: IntGauge,
    /// Inputs applied together.
    pub(crate) batch_size: Histogram,
    /// What waits because of leases that cannot be read.
    pub(crate) aside: Aside,
    /// How long a round took, seconds.
    pub(crate) round: Histogram,
    /// How late a deadline was noticed, seconds.
    pub(crate) loop_lag: Histogram,
    /// Log entries that could not be read.
    pub(crate) poison: IntCounter,
    /// Messages that wait for their turn.
    pub(crate) queued: IntGauge,
    /// How long a message waited until a worker had its turn, seconds.
    pub(crate) queue_wait: Histogram,
    /// How long an ordered turn waited for a worker, seconds.
    pub(crate) dispatch: Histogram,
    /// Effects that could not be published.
    pub(crate) effects_failed: IntCounter,
    /// Heartbeats that came late.
    pub(crate) beats_late: IntCounter,
    sessions: IntGaugeVec,
    turns: IntGaugeVec,
    interrupts: HistogramVec,
    attempts: Histogram,
    releases: IntCounterVec,
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

fn slow(make: Maker<'_>) -> prometheus::Result<IntCounterVec> {
    make.counters(
        "talaria_scheduler_slow_turns_total",
        "Long turns whose person was told that they still work, are warned of, or have timed out",
        "stage",
        labels::STAGES,
    )
}

impl Aside {
    fn register(make: Maker<'_>) -> prometheus::Result<Self> {
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

/// A step of an interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The worker was told.
    Sent,
    /// The turn has ended.
    Stopped,
}

/// Why a partition is no longer decided for here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Release {
    /// Another scheduler should have it.
    HandedOver,
    /// The same, and the batch in hand hung.
    CutOff,
    /// Another one had taken it.
    Lost,
    /// Something went wrong; it is taken up again.
    Failed,
}

impl Metrics {
    pub(crate) fn register(registry: &Registry) -> prometheus::Result<Self> {
        let make = Maker(registry);
        let times = || doubling(0.001, 16);
        Ok(Self {
            partitions: make.gauge("talaria_scheduler_partitions", "Partitions that the sessions are divided into")?,
            partitions_owned: make.gauge("talaria_scheduler_partitions_owned", "Partitions that this process decides for")?,
            takeover: make.histogram("talaria_scheduler_takeover_seconds", "Time from beginning to take a partition over until its inputs are applied", times()?)?,
            releases: make.counters("talaria_scheduler_partitions_released_total", "Partitions that this process no longer decides for, by why", "cause", labels::RELEASES)?,
            log_lag: make.gauge("talaria_scheduler_log_lag", "Inputs of owned partitions that are in the log and not applied yet")?,
            batch_size: make.histogram("talaria_scheduler_batch_inputs", "Inputs applied in one round", doubling(1.0, 10)?)?,
            aside: Aside::register(make)?,
            round: make.histogram("talaria_scheduler_round_seconds", "Time that one round took: deciding, writing the leases, sending what follows", times()?)?,
            loop_lag: make.histogram("talaria_scheduler_loop_lag_seconds", "How late a partition's loop noticed that a deadline had passed", times()?)?,
            poison: make.counter("talaria_scheduler_poison_total", "Records and requests that could not be read; each is kept where it is, for a person")?,
            sessions: make.gauges("talaria_scheduler_sessions", "Sessions in which something is going on, by what", &[("phase", labels::PHASES)])?,
            queued: make.gauge("talaria_scheduler_queued_messages", "Messages that wait in their session for a turn")?,
            queue_wait: make.histogram("talaria_scheduler_queue_wait_seconds", "Time from a message's acceptance until a worker has its turn, by the clocks of ingress and scheduler", doubling(0.002, 20)?)?,
            dispatch: make.histogram(
                "talaria_scheduler_dispatch_seconds",
                "Time from ordering a turn until a worker has it",
                doubling(0.001, 18)?,
            )?,
            effects_failed: make.counter(
                "talaria_scheduler_effects_failed_total",
                "Effects that the broker will never take; what they would have said is lost",
            )?,
            slow: slow(make)?,
            turns: make.gauges("talaria_scheduler_turns_running", "Turns that workers run, by what they are busy with and for how long they have not advanced (at least so long, less than the next value)", &[("state", &labels::states()), ("idle", labels::IDLE)])?,
            interrupts: make.histograms("talaria_scheduler_interrupt_seconds", "Time from the acceptance of a message that interrupts: until the worker was told (sent), until the turn had ended (stopped)", doubling(0.001, 18)?, "step", labels::STEPS)?,
            beats_late: make.counter("talaria_scheduler_heartbeats_late_total", "Heartbeats that came more than two intervals after the one before")?,
            attempts: make.histogram("talaria_scheduler_turn_attempts", "Attempts that ended turns took", vec![1.0, 2.0, 3.0, 4.0, 6.0, 10.0])?,
            inputs: make.counters("talaria_scheduler_inputs_total", "Inputs applied, by kind", "kind", labels::INPUTS)?,
            decisions: decisions(make)?,
            claims: make.counters("talaria_scheduler_claims_total", "Claims answered", "answer", labels::CLAIMS)?,
            writes: make.counters("talaria_scheduler_lease_writes_total", "Lease writes, by what the broker said; each refused one means that another owner wrote", "result", labels::WRITES)?,
            effects: make.counters("talaria_scheduler_effects_total", "Effects published, by kind: turn orders, and what is to be delivered", "kind", labels::EFFECTS)?,
            ended: make.counters("talaria_scheduler_turns_ended_total", "Turns ended, by how: as reported, released (the stop was not confirmed), withdrawn before a worker had it, parked (too many attempts)", "end", labels::ENDS)?,
            settled: make.counters("talaria_scheduler_messages_settled_total", "Messages that reached their one end, by which", "fate", labels::FATES)?,
            retries: make.counters("talaria_scheduler_retries_total", "Attempts ordered again: evicted (the worker is gone) or handed back by a worker that stops", "cause", labels::RETRIES)?,
        })
    }

    pub(crate) fn input(&self, input: &Input) {
        self.inputs.with_label_values(&[labels::input(input)]).inc();
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
                self.decisions.with_label_values(&labels::decision(*decision)).inc()
            }
            Fact::Ended { attempt, end, .. } => {
                self.ended.with_label_values(&[labels::end(*end)]).inc();
                self.attempts.observe(number(*attempt));
            }
            Fact::Retried { handed_back, .. } => {
                let cause = if *handed_back { "handed_back" } else { "evicted" };
                self.retries.with_label_values(&[cause]).inc();
            }
            Fact::Settled { fate, .. } => {
                self.settled.with_label_values(&[labels::fate(*fate)]).inc()
            }
            Fact::Slow { stage, .. } => self.slow.with_label_values(&[labels::stage(*stage)]).inc(),
            Fact::State { .. } | Fact::Claimed { .. } => {}
        }
    }

    pub(crate) fn effect(&self, effect: &Effect) {
        self.effects.with_label_values(&[labels::effect(effect)]).inc();
    }

    pub(crate) fn write(&self, result: &'static str) {
        self.writes.with_label_values(&[result]).inc();
    }

    /// An interrupt has come so far, `seconds` after it was accepted.
    pub(crate) fn interrupt(&self, step: Step, seconds: f64) {
        let step = match step {
            Step::Sent => "sent",
            Step::Stopped => "stopped",
        };
        self.interrupts.with_label_values(&[step]).observe(seconds);
    }

    pub(crate) fn released(&self, why: Release) {
        let cause = match why {
            Release::HandedOver => "handed_over",
            Release::CutOff => "cut_off",
            Release::Lost => "lost",
            Release::Failed => "failed",
        };
        self.releases.with_label_values(&[cause]).inc();
    }

    /// The gauge of sessions in a phase; none for those that are idle.
    pub(crate) fn sessions_in(&self, phase: &Phase) -> Option<IntGauge> {
        labels::phase(phase).map(|phase| self.sessions.with_label_values(&[phase]))
    }

    /// The gauge of turns that are busy with something and have not advanced for so long.
    pub(crate) fn turns_at(&self, state: State, idle_ms: u64) -> IntGauge {
        self.turns.with_label_values(&[state.name(), labels::idle(idle_ms)])
    }
}

fn decisions(make: Maker<'_>) -> prometheus::Result<IntCounterVec> {
    let help = "Messages decided on, by what and why";
    let opts = prometheus::Opts::new("talaria_scheduler_decisions_total", help);
    let vec = IntCounterVec::new(opts, &["decision", "reason"])?;
    for (decision, reasons) in labels::DECISIONS {
        for reason in *reasons {
            vec.get_metric_with_label_values(&[decision, reason])?;
        }
    }
    make.made(vec)
}

fn number(attempt: Attempt) -> f64 {
    f64::from(u32::try_from(attempt.get()).unwrap_or(u32::MAX))
}
