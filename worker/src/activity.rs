//! What a turn is doing, kept by the turn and read by the heartbeat.

use std::time::{Duration, Instant};

use proto::activity::{Activity, State};
use tokio::sync::watch;

/// The longest detail that is reported: it is for a line on a screen.
const DETAIL_BYTES_MAX: usize = 120;

#[derive(Clone, Debug)]
struct Now {
    state: State,
    detail: String,
    tool: Option<String>,
    advanced: Instant,
    deadline: Option<Instant>,
    iteration: u32,
}

/// The turn's end: says what happens.
#[derive(Clone, Debug)]
pub(crate) struct Tracker(watch::Sender<Now>);

/// The heartbeat's end: reads it.
#[derive(Clone, Debug)]
pub(crate) struct Gauge {
    now: watch::Receiver<Now>,
    max_iterations: u32,
}

impl Tracker {
    /// A turn that is being prepared.
    pub(crate) fn new(max_iterations: u32) -> (Self, Gauge) {
        let (sender, now) = watch::channel(Now {
            state: State::Preparing,
            detail: String::new(),
            tool: None,
            advanced: Instant::now(),
            deadline: None,
            iteration: 0,
        });
        (Self(sender), Gauge { now, max_iterations })
    }

    /// The turn does something else from now on.
    pub(crate) fn enter(&self, state: State, detail: &str) {
        self.0.send_modify(|now| {
            now.state = state;
            now.detail = crate::text::start(detail, DETAIL_BYTES_MAX).to_owned();
            now.tool = None;
            now.deadline = None;
            now.advanced = Instant::now();
        });
    }

    /// A tool runs from now on, and stops by itself at its deadline.
    pub(crate) fn tool(&self, name: &str, detail: &str, deadline: Option<Duration>) {
        self.enter(State::RunningTool, detail);
        self.0.send_modify(|now| {
            now.tool = Some(name.to_owned());
            now.deadline = deadline.map(|limit| Instant::now() + limit);
        });
    }

    /// The model is asked once more.
    pub(crate) fn iteration(&self, iteration: u32) {
        self.0.send_modify(|now| now.iteration = iteration);
    }

    /// The work advanced.
    pub(crate) fn touch(&self) {
        self.0.send_modify(|now| now.advanced = Instant::now());
    }

    /// The model has begun to answer.
    pub(crate) fn streaming(&self) {
        self.0.send_modify(|now| {
            now.state = State::Streaming;
            now.advanced = Instant::now();
        });
    }
}

impl Gauge {
    /// The summary, with ages as of this moment.
    pub(crate) fn read(&self) -> Activity {
        let now = self.now.borrow();
        let millis = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        let left = |deadline: Instant| millis(deadline.saturating_duration_since(Instant::now()));
        Activity {
            state: now.state,
            detail: now.detail.clone(),
            tool: now.tool.clone(),
            idle_ms: millis(now.advanced.elapsed()),
            deadline_ms: now.deadline.map(left),
            iteration: now.iteration,
            max_iterations: self.max_iterations,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_reported_with_what_is_left_of_its_time() {
        let (tracker, gauge) = Tracker::new(90);
        tracker.iteration(2);
        tracker.tool("terminal", "make", Some(Duration::from_secs(600)));
        let seen = gauge.read();
        assert_eq!((seen.state, seen.tool.as_deref()), (State::RunningTool, Some("terminal")));
        assert!(seen.deadline_ms.is_some_and(|left| (590_000..=600_000).contains(&left)));
        assert_eq!((seen.iteration, seen.max_iterations), (2, 90));
        tracker.enter(State::WaitingForModel, "");
        assert_eq!(gauge.read().deadline_ms, None);
    }
}
