//! What a worker counts, registered under `talaria_worker_…`; every series exists from the start.

use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts,
    Registry, core::Collector, exponential_buckets,
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
    /// Turns that run now.
    pub(crate) running: IntGauge,
    /// Turns that ended, by how.
    pub(crate) turns: IntCounterVec,
    /// How long model calls take.
    pub(crate) model_call: Histogram,
    /// How long the first word takes.
    pub(crate) first_token: Histogram,
    /// Model calls that failed, by why.
    pub(crate) model_errors: IntCounterVec,
    /// Calls that another model had to take over.
    pub(crate) fallbacks: IntCounter,
    /// Conversations that were made shorter, by how.
    pub(crate) compressions: IntCounterVec,
    /// How long tools run, by tool.
    pub(crate) tool: HistogramVec,
    /// Claims that were refused.
    pub(crate) claims_denied: IntCounter,
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
        let metrics = Self {
            running: running()?,
            turns: turns()?,
            model_call: model_call()?,
            first_token: first_token()?,
            model_errors: model_errors()?,
            fallbacks: counter(
                "fallbacks_total",
                "Model calls that another model had to take over.",
            )?,
            compressions: vec(
                "compressions_total",
                "Conversations that were made shorter, by whether a model wrote the summary.",
                "by",
                &["model", "rule"],
            )?,
            tool: tool(tools)?,
            claims_denied: counter("claims_denied_total", "Claims that a scheduler refused.")?,
            fence_refusals: counter(
                "fence_refusals_total",
                "Effects held back because the turn was no longer ours.",
            )?,
            poison: counter("poison_total", "Orders and inputs that could not be read.")?,
            tokens: vec("tokens_total", "Tokens used.", "direction", &["input", "output"])?,
            asks: counter("asks_total", "Approvals that people were asked for.")?,
            sandbox: sandbox()?,
            doing: states("turns_by_state", "Turns that run now, by what they do.")?,
            idle: states(
                "turns_idle_seconds_max",
                "The longest time without progress of a turn that runs now, by what it does.",
            )?,
            conversations: vec(
                "conversation_loads_total",
                "Conversations opened, by whether they were in memory.",
                "from",
                &["memory", "stream"],
            )?,
        };
        for collector in metrics.collectors() {
            match registry.register(collector) {
                // A second worker in one process (a test) counts for itself.
                Ok(()) | Err(prometheus::Error::AlreadyReg) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(metrics)
    }

    /// Counts the end of a turn.
    pub(crate) fn ended(&self, how: Ended) {
        self.turns.with_label_values(&[how.label()]).inc();
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

    fn collectors(&self) -> Vec<Box<dyn Collector>> {
        vec![
            Box::new(self.running.clone()),
            Box::new(self.turns.clone()),
            Box::new(self.model_call.clone()),
            Box::new(self.first_token.clone()),
            Box::new(self.model_errors.clone()),
            Box::new(self.fallbacks.clone()),
            Box::new(self.compressions.clone()),
            Box::new(self.tool.clone()),
            Box::new(self.claims_denied.clone()),
            Box::new(self.fence_refusals.clone()),
            Box::new(self.poison.clone()),
            Box::new(self.tokens.clone()),
            Box::new(self.asks.clone()),
            Box::new(self.sandbox.clone()),
            Box::new(self.doing.clone()),
            Box::new(self.idle.clone()),
            Box::new(self.conversations.clone()),
        ]
    }
}

fn name(short: &str) -> String {
    format!("talaria_worker_{short}")
}

fn counter(short: &str, help: &str) -> prometheus::Result<IntCounter> {
    IntCounter::new(name(short), help)
}

fn vec(short: &str, help: &str, label: &str, all: &[&str]) -> prometheus::Result<IntCounterVec> {
    let vec = IntCounterVec::new(Opts::new(name(short), help), &[label])?;
    all.iter().for_each(|value| drop(vec.with_label_values(&[value])));
    Ok(vec)
}

fn sandbox() -> prometheus::Result<IntGaugeVec> {
    let help = "How far terminal commands are kept in by Landlock: 1 for what holds.";
    let vec = IntGaugeVec::new(Opts::new(name("sandbox_info"), help), &["landlock"])?;
    Held::ALL.iter().for_each(|held| drop(vec.with_label_values(&[held.label()])));
    Ok(vec)
}

/// What a turn can be doing.
const STATES: [State; 8] = State::ALL;

fn states(short: &str, help: &str) -> prometheus::Result<IntGaugeVec> {
    let vec = IntGaugeVec::new(Opts::new(name(short), help), &["state"])?;
    STATES.iter().for_each(|state| vec.with_label_values(&[state.name()]).set(0));
    Ok(vec)
}

fn running() -> prometheus::Result<IntGauge> {
    IntGauge::new(name("turns_running"), "Turns that run now.")
}

fn turns() -> prometheus::Result<IntCounterVec> {
    vec("turns_total", "Turns that ended here.", "outcome", &Ended::ALL.map(Ended::label))
}

/// From 50 ms to about 27 minutes.
fn model_call() -> prometheus::Result<Histogram> {
    let help = "Model calls, from the request to the last word.";
    let buckets = exponential_buckets(0.05, 2.0, 16)?;
    Histogram::with_opts(HistogramOpts::new(name("model_call_seconds"), help).buckets(buckets))
}

/// From 10 ms to about 5 minutes.
fn first_token() -> prometheus::Result<Histogram> {
    let help = "Model calls, from the request to the first word.";
    let buckets = exponential_buckets(0.01, 2.0, 15)?;
    let options = HistogramOpts::new(name("time_to_first_token_seconds"), help).buckets(buckets);
    Histogram::with_opts(options)
}

fn model_errors() -> prometheus::Result<IntCounterVec> {
    let all = crate::models::ModelError::LABELS;
    vec("model_errors_total", "Model calls that failed.", "reason", &all)
}

/// From 10 ms to about 5 minutes; a longer run is in the last bucket.
fn tool(tools: &[&str]) -> prometheus::Result<HistogramVec> {
    let options = HistogramOpts::new(name("tool_seconds"), "Tool calls.")
        .buckets(exponential_buckets(0.01, 2.0, 15)?);
    let vec = HistogramVec::new(options, &["tool"])?;
    tools.iter().for_each(|tool| drop(vec.with_label_values(&[tool])));
    Ok(vec)
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
