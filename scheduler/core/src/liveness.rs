//! Two clocks: "the worker is alive" (a heartbeat came) and "the work advances" (its activity is young). Long is not stuck, and
//! stuck is not for ever. Everything here is by the owner's monotonic clock.

use proto::activity::{Activity, State};
use proto::id::{OutboundId, ProcessId};
use proto::lease::{Effect, Phase, Turn};
use proto::outbound::Kind;
use proto::receipt::{Fact, Stage};
use proto::turn::{BeatTurn, Control, StopReason};

use crate::bursts::window;
use crate::input::Signal;
use crate::policy::Policy;
use crate::session::{Session, Step};
use crate::time::Time;
use crate::wording;

/// The longest time that a turn can be given at once, minutes.
const EXTEND_MAX: u64 = 24 * 60;

/// What the owner of a session knows beside its lease. A new owner begins with none of it, and waits for everything anew.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Live {
    /// When the phase began, for this owner.
    since: Time,
    /// When the worker was last heard of.
    heard: Time,
    /// What it said then.
    activity: Option<Activity>,
    /// When the person was last told something unasked.
    acknowledged: Option<Time>,
}

impl Live {
    pub(crate) const fn new(now: Time) -> Self {
        Self { since: now, heard: now, activity: None, acknowledged: None }
    }

    /// A turn is ordered or claimed.
    pub(crate) fn begin(&mut self, now: Time) {
        *self = Self { acknowledged: self.acknowledged, ..Self::new(now) };
    }

    /// More has come of what is being collected.
    pub(crate) const fn arrived(&mut self, now: Time) {
        self.heard = now;
    }

    /// A stop was asked for.
    pub(crate) const fn stopping(&mut self, now: Time) {
        self.since = now;
    }

    /// Nothing runs any more.
    pub(crate) fn rest(&mut self) {
        self.acknowledged = None;
        self.activity = None;
    }

    pub(crate) fn doing(&self) -> Option<State> {
        self.activity.as_ref().map(|activity| activity.state)
    }

    pub(crate) const fn activity(&self) -> Option<&Activity> {
        self.activity.as_ref()
    }

    pub(crate) fn may_acknowledge(&mut self, now: Time, interval: u64) -> bool {
        let may = self.acknowledged.is_none_or(|last| now.since(last) >= interval);
        if may {
            self.acknowledged = Some(now);
        }
        may
    }

    /// How long the work has not advanced; none if its worker says nothing of it.
    pub(crate) fn idle(&self, now: Time) -> Option<u64> {
        let activity = self.activity.as_ref()?;
        Some(now.since(self.heard).saturating_add(activity.since_activity_ms))
    }

    /// What the running turn is judged by at the moment; nothing while it waits for a person.
    fn patience(&self, policy: &Policy, extended: u64) -> Option<Patience> {
        let longer = |limit: u64| limit.saturating_add(extended);
        let timeout = policy.timeout.map(longer);
        let Some(activity) = &self.activity else {
            // Nothing is known of its progress: it is judged by how long it runs, and has much more of that.
            let limit = policy.timeout.map(|limit| longer((limit * 10).max(WALL_MIN)))?;
            return Some(Patience { since: self.since, limit, warning: None });
        };
        let limit = match activity.state {
            State::WaitingForHuman => None,
            State::Preparing => [policy.setup.map(longer), timeout].into_iter().flatten().min(),
            State::WaitingForModel
            | State::Streaming
            | State::RunningTool
            | State::WaitingForQuota
            | State::Compressing
            | State::Delegating => timeout,
        }?;
        let heard = self.heard.ms();
        let idle = Time::from_ms(heard.saturating_sub(activity.since_activity_ms)).max(self.since);
        // A tool with a deadline of its own is judged by that deadline.
        let since = activity.deadline_ms.map_or(idle, |left| self.heard.after(left).max(idle));
        let warning = policy.warning.map(longer).filter(|warning| *warning < limit);
        Some(Patience { since, limit, warning })
    }
}

/// What a turn is judged by.
struct Patience {
    /// Since when it has made no progress.
    since: Time,
    /// How long it may.
    limit: u64,
    /// After how long its person is warned.
    warning: Option<u64>,
}

/// The least time that a turn may run of whose progress nothing is known, milliseconds.
const WALL_MIN: u64 = 2 * 3600 * 1000;

impl Session {
    /// When to call [`Session::step`] again even if nothing happens.
    #[must_use]
    pub fn deadline(&self, policy: &Policy) -> Option<Time> {
        match &self.lease.phase {
            Phase::Idle => None,
            Phase::Collecting { waiting } => {
                Some(window(policy, &waiting.burst, self.live.since, self.live.heard))
            }
            Phase::Starting { .. } => Some(self.live.since.after(policy.reorder)),
            Phase::Stopping { .. } => {
                Some(self.live.since.after(policy.stop_deadline).min(self.dead_at(policy)))
            }
            Phase::Running { turn, .. } => {
                let patience = self.live.patience(policy, turn.extended_ms);
                let judged = patience.map(|Patience { since, limit, warning }| {
                    let warning = warning.filter(|_| !turn.warned);
                    since.after(warning.map_or(limit, |warning| warning.min(limit)))
                });
                let notice = policy
                    .notify
                    .map(|every| self.live.since.after(every * (u64::from(turn.notices) + 1)));
                judged.into_iter().chain(notice).chain([self.dead_at(policy)]).min()
            }
        }
    }

    const fn dead_at(&self, policy: &Policy) -> Time {
        self.live.heard.after(policy.lease_ttl)
    }
}

impl Step<'_> {
    /// Lets happen what is due.
    pub(crate) fn expire(&mut self) {
        let due = |at: Time| at <= self.now;
        let (live, dead) = (&self.session.live, self.session.dead_at(self.policy));
        match &self.session.lease.phase {
            Phase::Idle => {}
            Phase::Collecting { waiting } => {
                if due(window(self.policy, &waiting.burst, live.since, live.heard)) {
                    self.burst_is_over();
                }
            }
            Phase::Starting { .. } => {
                if due(live.since.after(self.policy.reorder)) {
                    self.reorder();
                }
            }
            Phase::Stopping { turn, why, .. } => {
                if due(dead) || due(live.since.after(self.policy.stop_deadline)) {
                    let (turn, why) = (turn.clone(), *why);
                    self.release(&turn, why);
                }
            }
            Phase::Running { turn, .. } => {
                if due(dead) {
                    let turn = turn.clone();
                    self.evict(turn);
                } else {
                    self.judge_progress();
                }
            }
        }
    }

    /// Notices, the warning, and the timeout of a turn whose worker is alive.
    fn judge_progress(&mut self) {
        let Phase::Running { turn, .. } = &mut self.session.lease.phase else { return };
        let live = &self.session.live;
        let activity = live.activity.clone();
        if let Some(Patience { since, limit, warning }) =
            live.patience(self.policy, turn.extended_ms)
        {
            let idle = self.now.since(since);
            if idle >= limit {
                let (turn, policy) = (turn.clone(), self.policy);
                let text = wording::timed_out(activity.as_ref(), idle, policy.timeout_setting);
                self.slow(&turn, Stage::TimedOut);
                self.say_of_turn(&turn, "timeout", Kind::Notice, text);
                self.stop_turn(StopReason::Timeout);
                return;
            }
            if !turn.warned && warning.is_some_and(|warning| idle >= warning) {
                turn.warned = true;
                let (turn, text) = (turn.clone(), wording::warning(activity.as_ref(), idle, limit));
                self.slow(&turn, Stage::Warned);
                let what = format!("warning-{}-{}", turn.attempt.get(), self.now.ms());
                self.say_of_turn(&turn, &what, Kind::Notice, text);
                return;
            }
        }
        if let Some(every) = self.policy.notify {
            self.say_that_it_works(every.max(1), activity.as_ref());
        }
    }

    /// Says once in a while that a long turn still works: one message, whose words are replaced.
    fn say_that_it_works(&mut self, every: u64, activity: Option<&Activity>) {
        let running = self.now.since(self.session.live.since);
        let Phase::Running { turn, .. } = &mut self.session.lease.phase else { return };
        if running < every * (u64::from(turn.notices) + 1) {
            return;
        }
        let is_first = turn.notices == 0;
        turn.notices = u32::try_from(running / every).unwrap_or(u32::MAX);
        let turn = turn.clone();
        self.slow(&turn, Stage::StillWorking);
        let first = format!("working-{}", turn.attempt.get());
        let what = if is_first { first.clone() } else { format!("{first}-{}", turn.notices) };
        let text = wording::still_working(activity, running);
        let mut outbound = self.outbound_of_turn(&turn, &what, Kind::Notice, text);
        outbound.replaces = (!is_first).then(|| OutboundId::of_turn(turn.id, &first));
        self.lease().effects.push(Effect::Send { outbound });
    }

    fn slow(&mut self, turn: &Turn, stage: Stage) {
        self.fact(Fact::Slow { turn: turn.id, attempt: turn.attempt, stage });
    }

    /// `/extend <minutes>`: how much longer the running turn may be without progress.
    pub(crate) fn extend(&mut self, args: &str) -> String {
        let Ok(minutes) = args.trim().trim_end_matches(" min").parse::<u32>() else {
            return wording::usage_of("extend");
        };
        let minutes = u64::from(minutes).min(EXTEND_MAX);
        let Some(turn) = self.session.lease.phase.turn_mut() else {
            return wording::nothing_runs();
        };
        let Some(timeout) = self.policy.timeout else { return wording::no_timeout() };
        turn.extended_ms = minutes * 60_000;
        turn.warned = false;
        wording::extended(minutes, timeout + minutes * 60_000)
    }

    /// A heartbeat: renews the worker's right, or says that it is lost; and repeats what was not applied.
    pub(crate) fn beat(&mut self, worker: ProcessId, beat: &BeatTurn) {
        let (turn, why) = match &mut self.session.lease.phase {
            Phase::Running { turn, worker: holder } if *holder == worker => (turn, None),
            Phase::Stopping { turn, worker: holder, why } if *holder == worker => {
                (turn, Some(*why))
            }
            Phase::Idle
            | Phase::Collecting { .. }
            | Phase::Starting { .. }
            | Phase::Running { .. }
            | Phase::Stopping { .. } => {
                return self.signals.push(Signal::Beat { kept: false, controls: Vec::new() });
            }
        };
        if (turn.id, turn.attempt) != (beat.of.turn, beat.of.attempt) {
            return self.signals.push(Signal::Beat { kept: false, controls: Vec::new() });
        }
        turn.answers.retain(|(ask, _)| !beat.answers.contains(ask));
        let seen: Vec<_> =
            turn.steers.extract_if(.., |steer| beat.seen.contains(&steer.seq)).collect();
        let of_turn = (!seen.is_empty()).then(|| turn.clone());
        let of = beat.of;
        let mut controls = Vec::new();
        if let Some(reason) = why {
            controls.push(Control::Interrupt { of, reason });
        }
        let unknown = turn.steers.iter().filter(|steer| !beat.steers.contains(&steer.seq));
        controls.extend(unknown.map(|steer| Control::Steer { of, seq: steer.seq }));
        let answers = turn.answers.iter().cloned();
        controls.extend(answers.map(|(ask, decision)| Control::Answer { of, ask, decision }));
        let since = self.session.live.heard;
        if beat.activity.as_ref().is_some_and(|now| now.since_activity_ms < self.now.since(since)) {
            // It advanced since the last beat: a later standstill deserves a warning of its own.
            turn.warned = false;
        }
        for steer in &seen {
            self.steer_seen(of_turn.as_ref().expect("what was seen is of this turn"), steer);
        }
        self.session.live.heard = self.now;
        self.session.live.activity.clone_from(&beat.activity);
        self.signals.push(Signal::Beat { kept: true, controls });
    }
}
