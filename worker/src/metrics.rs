//! What a worker counts, registered under `talaria_worker_…`; every series exists from the start.

use std::time::Duration;

use node::metric::{Maker, doubling};
use prometheus::{
    Histogram, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Registry,
};

use proto::activity::State;
use proto::turn::BeatTurn;

use crate::tools::sandbox::Held;

/// How a turn ended here, as the label of [`Metrics::turns`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// With an answer.
    Completed,
    /// It was told to stop.
    Interrupted,
    /// With an error that the person was told of.
    Failed,
    /// Its people may not talk to the agent any more.
    Refused,
    /// Given back because the worker stops.
    HandedBack,
    /// No longer ours.
    Lost,
}

impl Ended {
    const ALL: [Self; 6] = [
        Self::Completed,
        Self::Interrupted,
        Self::Failed,
        Self::Refused,
        Self::HandedBack,
        Self::Lost,
    ];

    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Interrupted => "interrupted",
            Self::Failed => "failed",
            Self::Refused => "refused",
            Self::HandedBack => "handed_back",
            Self::Lost => "lost",
        }
    }
}

/// The instruments.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    /// Turns that this worker can run at once.
    pub(crate) capacity: IntGauge,
    /// Turns that run now.
    pub(crate) running: IntGauge,
    /// Whether it takes no more turns, because it stops: 1 or 0.
    pub(crate) draining: IntGauge,
    /// Turns that ended, by how.
    turns: IntCounterVec,
    /// How long turns took, by how they ended, seconds.
    turn: HistogramVec,
    /// How long after its message an interrupt reached the turn, seconds.
    pub(crate) interrupt_seen: Histogram,
    /// How long model calls take, seconds.
    pub(crate) model_call: Histogram,
    /// How long the first word takes, seconds.
    pub(crate) first_token: Histogram,
    /// Model calls that failed, by why.
    pub(crate) model_errors: IntCounterVec,
    /// Calls that another model had to take over.
    pub(crate) fallbacks: IntCounter,
    /// Conversations that were made shorter, by how.
    pub(crate) compressions: IntCounterVec,
    /// How long tools run, by tool, seconds.
    pub(crate) tool: HistogramVec,
    /// Claims that were refused.
    pub(crate) claims_denied: IntCounter,
    /// Heartbeats, by whether they were answered.
    pub(crate) beats: IntCounterVec,
    /// Effects that the fence held back.
    pub(crate) fence_refusals: IntCounter,
    /// Messages that could not be read.
    pub(crate) poison: IntCounter,
    /// Tokens, by direction.
    pub(crate) tokens: IntCounterVec,
    /// Questions to people.
    pub(crate) asks: IntCounter,
    /// How far commands are kept in: 1 for what holds.
    pub(crate) sandbox: IntGaugeVec,
    /// What the turns that run are doing.
    doing: IntGaugeVec,
    /// The longest that one of them has made no progress, seconds.
    idle: IntGaugeVec,
    /// Conversations found in memory or not.
    pub(crate) conversations: IntCounterVec,
}

impl Metrics {
    /// Registers everything. `tools` are the names that calls can have.
    ///
    /// # Errors
    /// When an instrument is not valid.
    pub(crate) fn register(registry: &Registry, tools: &[&str]) -> prometheus::Result<Self> {
        let make = Maker(registry);
        let ends = Ended::ALL.map(Ended::label);
        Ok(Self {
            capacity: make.gauge("talaria_worker_capacity", "Turns that this worker can run at once")?,
            running: make.gauge("talaria_worker_turns_running", "Turns that run now")?,
            draining: make.gauge("talaria_worker_draining", "Whether this worker takes no more turns because it stops: 1 or 0")?,
            turns: make.counters("talaria_worker_turns_total", "Turns that ended here, by how: handed back when the worker stops, lost when the right to them was", "outcome", &ends)?,
            turn: make.histograms("talaria_worker_turn_seconds", "Time that turns took here, from the granted claim to the report", doubling(0.05, 18)?, "outcome", &ends)?,
            interrupt_seen: make.histogram("talaria_worker_interrupt_seen_seconds", "Time from the acceptance of a message that interrupts until the turn's worker knew, by the clocks of ingress and worker", doubling(0.001, 18)?)?,
            model_call: make.histogram("talaria_worker_model_call_seconds", "Model calls, from the request to the last word", doubling(0.05, 16)?)?,
            first_token: make.histogram("talaria_worker_time_to_first_token_seconds", "Model calls, from the request to the first word", doubling(0.01, 15)?)?,
            model_errors: make.counters("talaria_worker_model_errors_total", "Model calls that failed, by why", "reason", &crate::models::ModelError::LABELS)?,
            fallbacks: make.counter("talaria_worker_fallbacks_total", "Model calls that another model had to take over")?,
            compressions: make.counters("talaria_worker_compressions_total", "Conversations that were made shorter, by whether a model wrote the summary", "by", &["model", "rule"])?,
            tool: make.histograms("talaria_worker_tool_seconds", "Tool calls, by tool", doubling(0.01, 15)?, "tool", tools)?,
            claims_denied: make.counter("talaria_worker_claims_denied_total", "Claims that a scheduler refused")?,
            beats: make.counters("talaria_worker_heartbeats_total", "Heartbeats, by whether the partition's scheduler answered", "result", &["answered", "unanswered"])?,
            fence_refusals: make.counter("talaria_worker_fence_refusals_total", "Effects held back because the turn was no longer ours")?,
            poison: make.counter("talaria_worker_poison_total", "Orders and inputs that could not be read; each is kept where it is, for a person")?,
            tokens: make.counters("talaria_worker_tokens_total", "Tokens used, as far as providers say", "direction", &["input", "output"])?,
            asks: make.counter("talaria_worker_asks_total", "Approvals that people were asked for")?,
            sandbox: make.gauges("talaria_worker_sandbox_info", "How far terminal commands are kept in by Landlock: 1 for what holds", &[("landlock", &Held::ALL.map(Held::label))])?,
            doing: states(make, "talaria_worker_turns_by_state", "Turns that run now, by what they do")?,
            idle: states(make, "talaria_worker_turns_idle_seconds_max", "The longest time without progress of a turn that runs now, by what it does")?,
            conversations: make.counters("talaria_worker_conversation_loads_total", "Conversations opened, by whether they were in memory", "from", &["memory", "stream"])?,
        })
    }

    /// Counts the end of a turn that took so long.
    pub(crate) fn ended(&self, how: Ended, took: Duration) {
        self.turns.with_label_values(&[how.label()]).inc();
        self.turn.with_label_values(&[how.label()]).observe(took.as_secs_f64());
    }

    /// Shows what the turns that run are doing.
    pub(crate) fn doing(&self, turns: impl Iterator<Item = BeatTurn>) {
        let mut seen = STATES.map(|state| (state, 0, 0));
        for activity in turns.filter_map(|turn| turn.activity) {
            let idle = i64::try_from(activity.since_activity_ms / 1000).unwrap_or(i64::MAX);
            for (state, count, longest) in &mut seen {
                if *state == activity.state {
                    *count += 1;
                    *longest = idle.max(*longest);
                }
            }
        }
        for (state, count, longest) in seen {
            self.doing.with_label_values(&[state.name()]).set(count);
            self.idle.with_label_values(&[state.name()]).set(longest);
        }
    }
}

/// What a turn can be doing.
const STATES: [State; 8] = State::ALL;

fn states(make: Maker<'_>, name: &str, help: &str) -> prometheus::Result<IntGaugeVec> {
    make.gauges(name, help, &[("state", &STATES.map(State::name))])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_series_exists_from_the_start() {
        let registry = Registry::new();
        Metrics::register(&registry, &["terminal"]).unwrap();
        let text = prometheus::TextEncoder::new().encode_to_string(&registry.gather()).unwrap();
        for series in [
            "talaria_worker_turns_running 0",
            "talaria_worker_turns_total{outcome=\"handed_back\"} 0",
            "talaria_worker_tool_seconds_count{tool=\"terminal\"} 0",
            "talaria_worker_tokens_total{direction=\"input\"} 0",
            "talaria_worker_fence_refusals_total 0",
            "talaria_worker_model_errors_total{reason=\"auth\"} 0",
        ] {
            assert!(text.contains(series), "{series} in\n{text}");
        }
    }
}
