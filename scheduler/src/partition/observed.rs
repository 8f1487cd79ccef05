//! What an owner remembers of its sessions in order to measure them. None of it decides anything, and a new owner begins without
//! it.

use std::sync::Arc;
use std::time::Duration;

use prometheus::IntGauge;
use proto::id::{Attempt, TurnId};
use proto::receipt::{Fact, StateName};
use proto::turn::{Control, TurnRef};
use scheduler_core::{Input, Session, Signal, Time};

use crate::metrics::{Metrics, Step};

/// What is remembered of one session.
#[derive(Debug, Default)]
pub(crate) struct Observed {
    /// When the message was accepted that asked the running turn to stop (milliseconds since 1970), and which turn that was.
    stop: Option<(TurnId, u64)>,
    /// When the last heartbeat came, and for which turn.
    beat: Option<(TurnRef, Time)>,
    /// Which turn was ordered last, and when.
    order: Option<(TurnId, Time)>,
}

/// What time it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// By the owner's own clock.
    pub(crate) now: Time,
    /// By the clock on the wall, milliseconds since 1970.
    pub(crate) wall_ms: u64,
}

impl Observed {
    /// A heartbeat has come; one that was due more than two intervals of `beat` ago is late.
    pub(crate) fn beat(&mut self, of: TurnRef, now: Time, beat: Duration, metrics: &Metrics) {
        let gap = self.beat.filter(|(turn, _)| *turn == of).map(|(_, last)| now.since(last));
        if gap.is_some_and(|gap| Duration::from_millis(gap) > beat * 2) {
            metrics.beats_late.inc();
        }
        self.beat = Some((of, now));
    }

    /// Something was said because of `input`.
    pub(crate) fn said(
        &mut self,
        signal: &Signal,
        input: &Input,
        session: &Session,
        Times { now, wall_ms }: Times,
        metrics: &Metrics,
    ) {
        match signal {
            Signal::Tell { control: Control::Interrupt { of, .. }, .. } => {
                let Some(since) = accepted(input) else { return };
                metrics.interrupt(Step::Sent, seconds(wall_ms, since));
                self.stop.get_or_insert((of.turn, since));
            }
            Signal::Fact(Fact::State { state: StateName::Starting, turn: Some(turn), .. }) => {
                self.order = Some((*turn, now));
            }
            Signal::Fact(Fact::Claimed { turn, attempt, .. }) => {
                if let Some((_, ordered)) = self.order.take().filter(|(of, _)| of == turn) {
                    let waited = Duration::from_millis(now.since(ordered));
                    metrics.dispatch.observe(waited.as_secs_f64());
                }
                if *attempt != Attempt::FIRST {
                    return;
                }
                let running = session.lease.phase.turn().filter(|running| running.id == *turn);
                if let Some(running) = running {
                    metrics.queue_wait.observe(seconds(wall_ms, running.accepted_at_ms));
                }
            }
            Signal::Fact(Fact::Ended { turn, .. }) => {
                if let Some((stopped, since)) = self.stop.take()
                    && stopped == *turn
                {
                    metrics.interrupt(Step::Stopped, seconds(wall_ms, since));
                }
            }
            Signal::Fact(_) | Signal::Tell { .. } | Signal::Claim(_) | Signal::Beat { .. } => {}
        }
    }
}

/// When a message was accepted, milliseconds since 1970; none for other inputs.
pub(crate) fn accepted(input: &Input) -> Option<u64> {
    if let Input::Message { event, .. } = input { Some(event.accepted_at_ms) } else { None }
}

fn seconds(now_ms: u64, since_ms: u64) -> f64 {
    Duration::from_millis(now_ms.saturating_sub(since_ms)).as_secs_f64()
}

/// One partition's part of the gauges that show how many there are of something; it is taken out when the partition is released.
pub(crate) struct Census {
    metrics: Arc<Metrics>,
    counted: Vec<(IntGauge, i64)>,
}

impl Census {
    pub(crate) const fn new(metrics: Arc<Metrics>) -> Self {
        Self { metrics, counted: Vec::new() }
    }

    /// Counts anew.
    pub(crate) fn take<'a>(&mut self, sessions: impl Iterator<Item = &'a Session>, now: Time) {
        let mut counted = Vec::new();
        for session in sessions {
            counted.extend(self.metrics.sessions_in(&session.lease.phase).map(|gauge| (gauge, 1)));
            let queued = i64::try_from(session.lease.queue.len()).unwrap_or(i64::MAX);
            counted.push((self.metrics.queued.clone(), queued));
            if let Some((state, idle_ms)) = session.progress(now) {
                counted.push((self.metrics.turns_at(state, idle_ms), 1));
            }
        }
        counted.iter().for_each(|(gauge, count)| gauge.add(*count));
        self.forget();
        self.counted = counted;
    }

    fn forget(&mut self) {
        self.counted.drain(..).for_each(|(gauge, count)| gauge.sub(count));
    }
}

impl Drop for Census {
    fn drop(&mut self) {
        self.forget();
    }
}
