//! The commands that take a session in hand: `/stop`, `/new`, and a client that hangs up.

use proto::lease::{Phase, Waiting};
use proto::outbound::Kind;
use proto::receipt::{Decided, End};
use proto::turn::StopReason;

use crate::session::Step;
use crate::wording;

impl Step<'_> {
    /// `/stop`: frees the session whatever the worker does, and says what was dropped.
    pub(crate) fn stop(&mut self, waiting: &Waiting) -> Decided {
        let dropped = self.clear_queue();
        let text = match &self.session.lease.phase {
            Phase::Idle => wording::nothing_runs(),
            Phase::Stopping { why: StopReason::Stop, .. } => wording::already_stopping(dropped),
            Phase::Starting { .. } => {
                self.withdraw();
                self.session.lease.phase = Phase::Idle;
                wording::stopped(dropped)
            }
            Phase::Running { .. } | Phase::Stopping { .. } => {
                self.stop_turn(StopReason::Stop);
                wording::stopped(dropped)
            }
        };
        self.answer(waiting, text)
    }

    /// `/new`: drops what runs and waits, then begins a fresh conversation in a turn of its own.
    pub(crate) fn reset(&mut self, waiting: Waiting) -> Decided {
        self.clear_queue();
        match &self.session.lease.phase {
            Phase::Idle => self.start(waiting, 0),
            Phase::Starting { .. } => {
                self.withdraw();
                self.start(waiting, 0);
            }
            Phase::Running { .. } | Phase::Stopping { .. } => {
                let (seq, origin) = (waiting.seq, waiting.origin.clone());
                self.lease().queue.push(waiting);
                self.stop_turn(StopReason::Reset);
                self.say(seq, Kind::Ack, &origin, wording::resetting());
                return Decided::Interrupted;
            }
        }
        Decided::Started
    }

    /// Whoever waited for the answer to `message` is gone: there is no one to work for.
    pub(crate) fn hangup(&mut self, message: &str) {
        self.lease().queue.retain(|waiting| waiting.origin.message != message);
        let leads =
            self.session.lease.phase.turn().is_some_and(|turn| turn.origin.message == message);
        match &self.session.lease.phase {
            Phase::Running { .. } if leads => self.stop_turn(StopReason::Hangup),
            Phase::Starting { .. } if leads => {
                self.withdraw();
                self.next(0);
            }
            Phase::Idle
            | Phase::Starting { .. }
            | Phase::Running { .. }
            | Phase::Stopping { .. } => {}
        }
    }

    /// Ends a turn that no worker has claimed: its order, wherever it is, will be denied.
    fn withdraw(&mut self) {
        if let Some(turn) = self.session.lease.phase.turn().cloned() {
            self.forget_order();
            self.close_turn(&turn);
            self.ended(&turn, End::Withdrawn);
        }
    }

    /// Empties the queue and ends what each message in it may still wait for. Returns how many there were.
    fn clear_queue(&mut self) -> usize {
        let cleared = std::mem::take(&mut self.lease().queue);
        for waiting in &cleared {
            self.close(waiting.seq, &waiting.origin);
        }
        cleared.len()
    }
}
