//! Messages that are changed or taken back by the people who wrote them.

use proto::event::MessageEvent;
use proto::id::Seq;
use proto::lease::{Lease, Phase, Waiting};
use proto::receipt::{Decided, Fact, Fate};
use proto::turn::StopReason;

use crate::messages::waiting;
use crate::policy::Edits;
use crate::session::Step;

impl Step<'_> {
    /// What waits is replaced in its place. What runs already goes on, hears of it, or is stopped, as the operator chose.
    pub(crate) fn edit(&mut self, seq: Seq, event: &MessageEvent) {
        let decision = if self.replace(seq, &event.id) {
            Decided::Edited
        } else if self.leads(&event.id) {
            self.edit_of_turn(waiting(seq, event))
        } else {
            Decided::TooLate
        };
        self.fact(Fact::Decided { seq, message: event.id.clone(), decision });
    }

    fn replace(&mut self, seq: Seq, message: &str) -> bool {
        for waiting in held(self.lease()) {
            if waiting.origin.message == message {
                waiting.edited = Some(seq);
                return true;
            }
            if let Some(more) = waiting.more.iter_mut().find(|more| more.message == message) {
                more.seq = seq;
                return true;
            }
        }
        false
    }

    /// The running turn is about what was edited.
    fn edit_of_turn(&mut self, edit: Waiting) -> Decided {
        let Phase::Running { turn, .. } = &mut self.session.lease.phase else {
            return Decided::TooLate;
        };
        match self.policy.edits {
            Edits::Ignore => Decided::TooLate,
            Edits::Steer if turn.steers.len() < self.policy.queue_limit => {
                let seq = edit.seq;
                turn.steers.push(edit);
                self.tell_of_steer(seq);
                Decided::Steered
            }
            Edits::Steer => Decided::TooLate,
            Edits::Interrupt => match self.push(edit) {
                Ok(()) => {
                    self.stop_turn(StopReason::Message);
                    Decided::Interrupted
                }
                Err(refused) => refused,
            },
        }
    }

    /// A message is taken back: it leaves the queue; a turn that it leads is stopped only if the operator chose so.
    pub(crate) fn withdrawal(&mut self, seq: Seq, message: &str) {
        let decision = if self.take_back(message) {
            Decided::Withdrawn
        } else if self.leads(message) && self.policy.edits == Edits::Interrupt {
            self.stop_turn(StopReason::Withdrawn);
            Decided::Withdrawn
        } else {
            Decided::TooLate
        };
        self.fact(Fact::Decided { seq, message: message.to_owned(), decision });
    }

    /// Takes a message out of what waits, or ends a turn that has not begun. Says whether there was one.
    pub(crate) fn take_back(&mut self, message: &str) -> bool {
        if let Some(at) =
            self.lease().queue.iter().position(|waiting| waiting.origin.message == message)
        {
            let taken = self.lease().queue.remove(at);
            self.close(taken.seq, &taken.origin);
            self.settled(message, Fate::Withdrawn);
            return true;
        }
        let leads_collecting = matches!(
            &self.session.lease.phase,
            Phase::Collecting { waiting } if waiting.origin.message == message
        );
        if leads_collecting
            || (self.leads(message) && matches!(self.session.lease.phase, Phase::Starting { .. }))
        {
            self.withdraw(Fate::Withdrawn);
            self.next(0);
            return true;
        }
        self.leave_out(message)
    }

    /// Takes a message out of what it belongs to.
    fn leave_out(&mut self, message: &str) -> bool {
        let mut found = false;
        for waiting in held(self.lease()) {
            let before = waiting.more.len();
            waiting.more.retain(|more| more.message != message);
            found |= waiting.more.len() < before;
        }
        if found {
            self.settled(message, Fate::Withdrawn);
        }
        found
    }

    /// Whether the turn in progress is about a message.
    pub(crate) fn leads(&self, message: &str) -> bool {
        self.session.lease.phase.turn().is_some_and(|turn| turn.origin.message == message)
    }
}

/// Everything that waits: what is being collected, and the queue.
fn held(lease: &mut Lease) -> impl Iterator<Item = &mut Waiting> {
    let collecting = match &mut lease.phase {
        Phase::Collecting { waiting } => Some(waiting),
        Phase::Idle | Phase::Starting { .. } | Phase::Running { .. } | Phase::Stopping { .. } => {
            None
        }
    };
    collecting.into_iter().chain(&mut lease.queue)
}
