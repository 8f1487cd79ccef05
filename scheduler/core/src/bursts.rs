//! Messages that belong together: the parts of an album, pictures sent one after the other, and what is collected on purpose.
//! Their place is that of the first; a window only delays the order, never the log.

use proto::lease::{Burst, More, Origin, Phase, Waiting};
use proto::receipt::{Decided, QueueReason};

use crate::policy::{Policy, Window};
use crate::session::Step;
use crate::time::Time;

impl Step<'_> {
    /// Joins what it belongs to, or begins it. Silent: nothing is interrupted, and nothing is said.
    pub(crate) fn burst(&mut self, waiting: Waiting) -> Decided {
        match &mut self.session.lease.phase {
            Phase::Idle => {
                self.session.live.begin(self.now);
                self.session.lease.phase = Phase::Collecting { waiting };
                return Decided::Collecting;
            }
            Phase::Collecting { waiting: first } if belongs(first, &waiting) => {
                join(first, waiting);
                self.session.live.arrived(self.now);
                return Decided::Merged;
            }
            Phase::Collecting { .. }
            | Phase::Starting { .. }
            | Phase::Running { .. }
            | Phase::Stopping { .. } => {}
        }
        if let Some(last) = place(&mut self.lease().queue, &waiting) {
            join(last, waiting);
            return Decided::Merged;
        }
        match self.push(waiting) {
            Ok(()) => Decided::Queued { reason: QueueReason::Burst },
            Err(refused) => refused,
        }
    }

    /// Nothing more has come for a while: what was collected is ordered.
    pub(crate) fn burst_is_over(&mut self) {
        if let Phase::Collecting { waiting } = &self.session.lease.phase {
            let waiting = waiting.clone();
            self.start(waiting, 0);
        }
    }
}

/// Until when more is waited for.
pub(crate) fn window(policy: &Policy, burst: &Burst, first: Time, last: Time) -> Time {
    let Window { quiet, most } = match burst {
        Burst::Collected => policy.collect,
        Burst::Single | Burst::Photos | Burst::Album(_) => policy.album,
    };
    last.after(quiet).min(first.after(most))
}

/// What in the queue it joins: its album wherever that waits, anything else only if it follows directly on what its sender sent
/// last, since nobody's words are to change their order.
fn place<'a>(queue: &'a mut [Waiting], next: &Waiting) -> Option<&'a mut Waiting> {
    let sender = &next.origin.user.id;
    let mut theirs = queue.iter_mut().rev().filter(|queued| queued.origin.user.id == *sender);
    match next.burst {
        Burst::Album(_) => theirs.find(|queued| belongs(queued, next)),
        Burst::Single | Burst::Photos | Burst::Collected => {
            theirs.next().filter(|queued| belongs(queued, next))
        }
    }
}

/// Whether a message belongs to one before it: of the same kind and the same sender. What stands alone never does.
fn belongs(first: &Waiting, next: &Waiting) -> bool {
    first.burst == next.burst
        && first.burst != Burst::Single
        && first.origin.user.id == next.origin.user.id
        && first.more.len() < MORE_MAX
}

/// At most how many messages become one turn.
const MORE_MAX: usize = 32;

fn join(first: &mut Waiting, next: Waiting) {
    let Origin { address, message, .. } = next.origin;
    let address = (address != first.origin.address).then_some(address);
    first.more.push(More { seq: next.seq, message, address });
}
