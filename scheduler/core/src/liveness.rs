//! Two clocks: "the worker is alive" (a heartbeat came) and "the work advances" (its activity is young). Long is not stuck, and
//! stuck is not for ever. Everything here is by the owner's monotonic clock.

use proto::activity::{Activity, State};
use proto::id::{OutboundId, ProcessId};
use proto::lease::{Effect, Phase};
use proto::outbound::{Kind, Outbound};
use proto::turn::{BeatTurn, Control, StopReason};

use crate::bursts::window;
use crate::input::Signal;
use crate::policy::Policy;
use crate::session::{Session, Step};
use crate::time::Time;
use crate::wording;

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

    /// Since when the work has not advanced; none while the clock stands still.
    pub(crate) fn idle_since(&self) -> Option<Time> {
        let Some(activity) = &self.activity else { return Some(self.since) };
        if activity.state == State::WaitingForHuman {
            return None;
        }
        let idle = Time::from_ms(self.heard.ms().saturating_sub(activity.idle_ms)).max(self.since);
        // A tool with a deadline of its own is judged by that deadline.
        Some(activity.deadline_ms.map_or(idle, |left| self.heard.after(left).max(idle)))
    }
}

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
                let idle = self.live.idle_since().map(|idle| {
                    let warning =
                        policy.warning.filter(|_| policy.timeout.is_some() && !turn.warned);
                    [policy.timeout, warning]
                        .into_iter()
                        .flatten()
                        .map(move |limit| idle.after(limit))
                });
                let notice = policy
                    .notify
                    .map(|every| self.live.since.after(every * (u64::from(turn.notices) + 1)));
                idle.into_iter().flatten().chain(notice).chain([self.dead_at(policy)]).min()
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
        let Policy { timeout, warning, notify, .. } = *self.policy;
        let Phase::Running { turn, .. } = &mut self.session.lease.phase else { return };
        let live = &self.session.live;
        let idle = live.idle_since().map(|since| self.now.since(since));
        let activity = live.activity.clone().unwrap_or_default();
        if let (Some(idle), Some(limit)) = (idle, timeout)
            && idle >= limit
        {
            let (turn, text) = (turn.clone(), wording::timed_out(&activity, idle));
            self.say_of_turn(&turn, "timeout", Kind::Notice, text);
            self.stop_turn(StopReason::Timeout);
            return;
        }
        if let (Some(idle), Some(warning), Some(limit)) = (idle, warning, timeout)
            && idle >= warning
            && !turn.warned
        {
            turn.warned = true;
            let (turn, text) = (turn.clone(), wording::warning(&activity, idle, limit));
            self.say_of_turn(&turn, "warning", Kind::Notice, text);
            return;
        }
        if let Some(every) = notify {
            let running = self.now.since(live.since);
            if running >= every * (u64::from(turn.notices) + 1) {
                let before = turn.notices;
                turn.notices = u32::try_from(running / every.max(1)).unwrap_or(u32::MAX);
                let turn = turn.clone();
                let what = |number| format!("working-{}-{number}", turn.attempt.get());
                // Where the platform can, it is one message that is edited.
                let replaces = (before > 0).then(|| OutboundId::of_turn(turn.id, &what(before)));
                let text = wording::still_working(&activity, running);
                let outbound =
                    self.outbound_of_turn(&turn, &what(turn.notices), Kind::Notice, text);
                let outbound = Outbound { replaces, ..outbound };
                self.lease().effects.push(Effect::Send { outbound });
            }
        }
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
        if beat.activity.idle_ms < self.now.since(self.session.live.heard) {
            // It advanced since the last beat: a later standstill deserves a warning of its own.
            turn.warned = false;
        }
        for steer in &seen {
            self.steer_seen(of_turn.as_ref().expect("what was seen is of this turn"), steer);
        }
        self.session.live.heard = self.now;
        self.session.live.activity = Some(beat.activity.clone());
        self.signals.push(Signal::Beat { kept: true, controls });
    }
}
