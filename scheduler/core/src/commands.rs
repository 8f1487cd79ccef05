//! The commands that take a session in hand: `/stop`, `/new`, and a client that hangs up.

use proto::job::JobEnd;
use proto::lease::{Phase, Waiting};
use proto::outbound::Kind;
use proto::receipt::{Decided, End, Fate};
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
            Phase::Collecting { .. } | Phase::Starting { .. } => {
                self.withdraw(Fate::Cleared);
                self.session.lease.phase = Phase::Idle;
                wording::stopped(dropped, self.session.lease.suspended)
            }
            Phase::Running { .. } | Phase::Stopping { .. } => {
                self.stop_turn(StopReason::Stop);
                self.session.lease.suspended = self.policy.stop_suspends;
                wording::stopped(dropped, self.policy.stop_suspends)
            }
        };
        self.answer(waiting, text)
    }

    /// `/new`: drops what runs and waits, then begins a fresh conversation in a turn of its own.
    pub(crate) fn reset(&mut self, waiting: Waiting) -> Decided {
        self.clear_queue();
        // What was approved was approved for what is set aside now.
        self.lease().choices.approved.clear();
        self.lease().choices.yolo = false;
        match &self.session.lease.phase {
            Phase::Idle => self.start(waiting, 0),
            Phase::Collecting { .. } | Phase::Starting { .. } => {
                self.withdraw(Fate::Cleared);
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
        if !self.take_back(message)
            && self.leads(message)
            && matches!(self.session.lease.phase, Phase::Running { .. })
        {
            self.stop_turn(StopReason::Hangup);
        }
    }

    /// Ends what has not begun: a turn that no worker has claimed (its order, wherever it is, will be denied), or a burst that
    /// is still being collected.
    pub(crate) fn withdraw(&mut self, fate: Fate) {
        if let Phase::Collecting { waiting } = &self.session.lease.phase {
            let waiting = waiting.clone();
            self.drop_waiting(&waiting, fate);
        }
        if let Some(turn) = self.session.lease.phase.turn().cloned() {
            self.forget_order();
            // The conversation that it was to leave behind is still to be left behind.
            self.session.lease.suspended |= turn.fresh;
            self.still_forget(&turn, false);
            self.close_turn(&turn);
            // An earlier attempt may have left hints behind.
            self.put_first(turn.steers.clone(), fate == Fate::Cleared);
            self.job_ended(&turn, JobEnd::Stopped);
            self.ended(&turn, End::Withdrawn, fate);
        }
    }

    /// Empties the queue and ends what each message in it may still wait for. Returns how many there were.
    fn clear_queue(&mut self) -> usize {
        let cleared = std::mem::take(&mut self.lease().queue);
        for waiting in &cleared {
            self.drop_waiting(waiting, Fate::Cleared);
        }
        cleared.len()
    }

    fn drop_waiting(&mut self, waiting: &Waiting, fate: Fate) {
        self.close(waiting.seq, &waiting.origin);
        self.settled(&waiting.origin.message, fate);
        for more in &waiting.more {
            self.close(more.seq, &more.origin(&waiting.origin));
            self.settled(&more.message, fate);
        }
    }
}
