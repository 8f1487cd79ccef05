//! What a turn is doing, kept by the turn and read by the heartbeat.

use std::sync::Arc;
use std::time::{Duration, Instant};

use proto::activity::{Activity, State};
use proto::id::Seq;
use tokio::sync::{Notify, watch};

/// The longest detail that is reported: it is for a line on a screen.
const DETAIL_BYTES_MAX: usize = 120;

#[derive(Clone, Debug)]
struct Now {
    state: State,
    detail: String,
    tool: Option<String>,
    advanced: Instant,
    deadline: Option<Instant>,
    calls: u32,
    budget_used: u32,
    /// Whether the agent says what it does.
    is_known: bool,
    seen: Vec<Seq>,
}

/// The turn's end: says what happens.
#[derive(Clone, Debug)]
pub(crate) struct Tracker {
    now: watch::Sender<Now>,
    /// Rung when something begins that no plain message may disturb: whoever decides that must know at once.
    bell: Arc<Notify>,
    /// The agent that this one works for, and its number there.
    above: Option<(Arc<Self>, u32)>,
}

/// The heartbeat's end: reads it.
#[derive(Clone, Debug)]
pub(crate) struct Gauge {
    now: watch::Receiver<Now>,
    max_iterations: u32,
}

impl Tracker {
    /// A turn that is being prepared.
    pub(crate) fn new(max_iterations: u32, bell: Arc<Notify>) -> (Self, Gauge) {
        let (sender, now) = watch::channel(Now {
            state: State::Preparing,
            detail: String::new(),
            tool: None,
            advanced: Instant::now(),
            deadline: None,
            calls: 0,
            budget_used: 0,
            is_known: true,
            seen: Vec::new(),
        });
        (Self { now: sender, bell, above: None }, Gauge { now, max_iterations })
    }

    /// The tracker of an agent that works for this one.
    pub(crate) fn child(&self, number: u32) -> Self {
        let now = self.now.borrow().clone();
        let above = Some((Arc::new(self.clone()), number));
        Self { now: watch::Sender::new(now), bell: Arc::clone(&self.bell), above }
    }

    /// The turn does something else from now on.
    pub(crate) fn enter(&self, state: State, detail: &str) {
        self.now.send_modify(|now| {
            // Being told to wait, and asking once more after that, is no progress.
            let waits = state == State::WaitingForQuota;
            let asks_again = (now.state, state) == (State::WaitingForQuota, State::WaitingForModel);
            now.state = state;
            now.detail = crate::text::start(detail, DETAIL_BYTES_MAX).to_owned();
            now.tool = None;
            now.deadline = None;
            if !waits && !asks_again {
                now.advanced = Instant::now();
            }
        });
        if let Some((above, number)) = &self.above {
            above.below(state, &format!("agent {number}: {}", words(state, detail)));
        } else if matches!(state, State::Compressing | State::Delegating) {
            self.bell.notify_one();
        }
    }

    /// One that works for this one does something else. Only a question to a person shows through as what it is.
    fn below(&self, state: State, detail: &str) {
        let shown = if state == State::WaitingForHuman { state } else { State::Delegating };
        self.now.send_modify(|now| {
            now.state = shown;
            now.detail = crate::text::start(detail, DETAIL_BYTES_MAX).to_owned();
            now.advanced = Instant::now();
        });
        if let Some((above, number)) = &self.above {
            above.below(state, &format!("agent {number}: {detail}"));
        }
    }

    /// A tool runs from now on, and stops by itself at its deadline.
    pub(crate) fn tool(&self, name: &str, detail: &str, deadline: Option<Duration>) {
        self.enter(State::RunningTool, detail);
        let deadline = deadline.map(|limit| Instant::now() + limit);
        self.now.send_modify(|now| {
            now.tool = Some(name.to_owned());
            now.deadline = deadline;
        });
        // Who waits for a tool of another is judged by that tool's deadline.
        let mut above = self.above.as_ref();
        while let Some((tracker, _)) = above {
            tracker.now.send_modify(|now| now.deadline = now.deadline.max(deadline));
            above = tracker.above.as_ref();
        }
    }

    /// The model is asked once more: so often by this agent, and so often in the turn.
    pub(crate) fn called(&self, calls: u32, budget_used: u32) {
        self.now.send_modify(|now| {
            now.calls = calls;
            now.budget_used = budget_used;
        });
        let mut above = self.above.as_ref();
        while let Some((tracker, _)) = above {
            tracker.now.send_modify(|now| now.budget_used = budget_used);
            above = tracker.above.as_ref();
        }
    }

    /// Nothing is known from now on of what the agent does, until it says something.
    pub(crate) fn unknown(&self) {
        self.now.send_modify(|now| now.is_known = false);
    }

    /// The agent says what it does after all.
    pub(crate) fn known(&self) {
        self.now.send_if_modified(|now| !std::mem::replace(&mut now.is_known, true));
    }

    /// The model has seen these hints.
    pub(crate) fn saw(&self, steers: &[Seq]) {
        self.now.send_modify(|now| now.seen = steers.to_vec());
    }

    /// The work advanced.
    pub(crate) fn touch(&self) {
        self.now.send_modify(|now| now.advanced = Instant::now());
        if let Some((above, _)) = &self.above {
            above.touch();
        }
    }

    /// Whether nothing goes on until a person has decided.
    pub(crate) fn waits_for_a_person(&self) -> bool {
        self.now.borrow().state == State::WaitingForHuman
    }

    /// The model has begun to answer.
    pub(crate) fn streaming(&self) {
        self.now.send_modify(|now| {
            now.state = State::Streaming;
            now.advanced = Instant::now();
        });
        if let Some((above, _)) = &self.above {
            above.touch();
        }
    }
}

/// What an agent does, in a word or two.
fn words(state: State, detail: &str) -> &str {
    match state {
        State::WaitingForModel | State::Streaming => "asks its model",
        State::Preparing => "prepares",
        State::Compressing => "compresses",
        State::WaitingForQuota => "waits for its provider",
        State::RunningTool | State::WaitingForHuman | State::Delegating => detail,
    }
}

impl Gauge {
    /// The hints that the model has seen.
    pub(crate) fn seen(&self) -> Vec<Seq> {
        self.now.borrow().seen.clone()
    }

    /// The summary, if the agent says what it does.
    pub(crate) fn known(&self) -> Option<Activity> {
        let is_known = self.now.borrow().is_known;
        is_known.then(|| self.read())
    }

    /// The summary, with ages as of this moment.
    pub(crate) fn read(&self) -> Activity {
        let now = self.now.borrow();
        let millis = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        let left = |deadline: Instant| millis(deadline.saturating_duration_since(Instant::now()));
        let since = now.advanced.elapsed();
        Activity {
            state: now.state,
            last_activity_desc: now.detail.clone(),
            last_activity_at_ms: node::clock::wall_ms().saturating_sub(millis(since)),
            since_activity_ms: millis(since),
            current_tool: now.tool.clone(),
            deadline_ms: now.deadline.map(left),
            api_call_count: now.calls,
            max_iterations: self.max_iterations,
            budget_used: now.budget_used,
            budget_max: self.max_iterations,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_reported_with_what_is_left_of_its_time() {
        let (tracker, gauge) = Tracker::new(90, Arc::default());
        tracker.called(2, 5);
        tracker.tool("terminal", "make", Some(Duration::from_secs(600)));
        let seen = gauge.read();
        assert_eq!(
            (seen.state, seen.current_tool.as_deref()),
            (State::RunningTool, Some("terminal"))
        );
        assert!(seen.deadline_ms.is_some_and(|left| (590_000..=600_000).contains(&left)));
        assert_eq!((seen.api_call_count, seen.max_iterations), (2, 90));
        assert_eq!((seen.budget_used, seen.budget_max), (5, 90));
        tracker.enter(State::WaitingForModel, "");
        assert_eq!(gauge.read().deadline_ms, None);
    }

    /// CASES B14: what a sub-agent does keeps the one above fresh, and a silent tool of it is judged by its deadline.
    #[test]
    fn a_child_shows_through() {
        let (tracker, gauge) = Tracker::new(90, Arc::default());
        tracker.enter(State::Delegating, "2 tasks");
        let grandchild = tracker.child(1).child(2);
        grandchild.tool("terminal", "make", Some(Duration::from_secs(600)));
        let seen = gauge.read();
        assert_eq!(
            (seen.state, seen.last_activity_desc.as_str()),
            (State::Delegating, "agent 1: agent 2: make")
        );
        assert!(seen.deadline_ms.is_some_and(|left| left > 590_000));
        grandchild.enter(State::WaitingForHuman, "may I?");
        assert_eq!(gauge.read().state, State::WaitingForHuman);
        grandchild.enter(State::WaitingForModel, "");
        assert_eq!(gauge.read().state, State::Delegating);
    }

    #[tokio::test]
    async fn waiting_for_a_quota_and_asking_again_is_no_progress() {
        let (tracker, gauge) = Tracker::new(90, Arc::default());
        tracker.enter(State::WaitingForModel, "");
        tokio::time::sleep(Duration::from_millis(30)).await;
        for _ in 0..3 {
            tracker.enter(State::WaitingForQuota, "429");
            tracker.enter(State::WaitingForModel, "");
        }
        assert!(gauge.read().since_activity_ms >= 30);
        tracker.streaming();
        assert!(gauge.read().since_activity_ms < 30);
    }

    #[test]
    fn what_says_nothing_of_itself_has_no_summary() {
        let (tracker, gauge) = Tracker::new(90, Arc::default());
        tracker.unknown();
        assert_eq!(gauge.known(), None);
        tracker.known();
        assert!(gauge.known().is_some());
    }

    #[tokio::test]
    async fn the_bell_rings_for_what_must_not_be_disturbed() {
        let bell = Arc::new(Notify::new());
        let (tracker, _gauge) = Tracker::new(90, Arc::clone(&bell));
        tracker.enter(State::Delegating, "");
        bell.notified().await;
    }
}
