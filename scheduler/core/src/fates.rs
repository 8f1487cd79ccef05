//! Each message reaches exactly one end, also one that was edited and so is known to the session in two places for a while.

use proto::lease::{Phase, Waiting};
use proto::receipt::Fact;

use crate::input::Signal;
use crate::session::Session;

impl Session {
    /// Whether a message is still part of anything here.
    pub(crate) fn holds(&self, message: &str) -> bool {
        let of = |waiting: &Waiting| {
            waiting.origin.message == message
                || waiting.more.iter().any(|more| more.message == message)
        };
        let phase = &self.lease.phase;
        let collecting =
            if let Phase::Collecting { waiting } = phase { of(waiting) } else { false };
        collecting
            || self.lease.queue.iter().any(of)
            || phase.turn().is_some_and(|turn| {
                turn.origin.message == message
                    || turn.more.iter().any(|more| more.message == message)
                    || turn.steers.iter().any(of)
            })
    }

    /// Whether a message that is held was written by a person: what belongs together has one author.
    pub(crate) fn is_by(&self, message: &str, user: &str) -> bool {
        let of = |waiting: &Waiting| {
            waiting.origin.user.id == user
                && (waiting.origin.message == message
                    || waiting.more.iter().any(|more| more.message == message))
        };
        let phase = &self.lease.phase;
        let collecting =
            if let Phase::Collecting { waiting } = phase { of(waiting) } else { false };
        collecting
            || self.lease.queue.iter().any(of)
            || phase.turn().is_some_and(|turn| {
                turn.steers.iter().any(of)
                    || (turn.origin.user.id == user
                        && (turn.origin.message == message
                            || turn.more.iter().any(|more| more.message == message)))
            })
    }

    /// Of the ends that one step names, leaves those of messages that are gone, and of each message the last: a message that is
    /// still held has not reached its end.
    pub(crate) fn one_fate_each(&self, signals: &mut Vec<Signal>, first: usize) {
        let mut settled: Vec<String> = Vec::new();
        for at in (first..signals.len()).rev() {
            let Signal::Fact(Fact::Settled { message, .. }) = &signals[at] else { continue };
            if settled.contains(message) || self.holds(message) {
                signals.remove(at);
            } else {
                settled.push(message.clone());
            }
        }
    }
}
