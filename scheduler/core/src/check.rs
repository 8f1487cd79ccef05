//! The invariants of a session, as one readable function.

use std::collections::BTreeSet;

use proto::lease::{Effect, Phase};

use crate::policy::Policy;
use crate::session::Session;

impl Session {
    /// Says which invariant does not hold.
    ///
    /// # Errors
    /// The invariant, in words.
    pub fn check(&self, policy: &Policy) -> Result<(), &'static str> {
        let lease = &self.lease;
        let mut places: Vec<_> = lease.queue.iter().map(|waiting| waiting.seq).collect();
        places.extend(
            lease.queue.iter().flat_map(|waiting| waiting.more.iter().map(|more| more.seq)),
        );
        if let Phase::Collecting { waiting } = &lease.phase {
            places.push(waiting.seq);
            places.extend(waiting.more.iter().map(|more| more.seq));
        }
        if let Some(turn) = lease.phase.turn() {
            places.extend(&turn.inputs);
            places.extend(turn.steers.iter().map(|steer| steer.seq));
        }
        let orders = lease.effects.iter().filter(|effect| **effect == Effect::Order).count();
        let rules = [
            (!self.is_idle() || lease.queue.is_empty(), "an idle session has no queue"),
            (lease.queue.len() <= policy.queue_limit * 2, "the queue is bounded"),
            (
                places.iter().collect::<BTreeSet<_>>().len() == places.len(),
                "each input is in one place",
            ),
            (
                orders == 0 || matches!(lease.phase, Phase::Starting { .. }),
                "an order is sent only for a turn that waits for a worker",
            ),
            (orders <= 1, "one order at a time"),
            (
                lease.phase.turn().is_none_or(|turn| {
                    turn.asks
                        .iter()
                        .all(|ask| (ask.id.turn, ask.id.attempt) == (turn.id, turn.attempt))
                }),
                "an open ask belongs to the current attempt",
            ),
            (
                lease.phase.turn().is_none_or(|turn| turn.crashes < policy.attempts.max(1)),
                "a turn that has used up its attempts is parked",
            ),
        ];
        rules.into_iter().find(|(holds, _)| !holds).map_or(Ok(()), |(_, rule)| Err(rule))
    }
}
