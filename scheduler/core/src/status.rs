//! What `/status` says.

use proto::activity::{Activity, State};
use proto::lease::Phase;

use crate::session::Session;
use crate::time::Time;
use crate::wording;

impl Session {
    /// What the turn that a worker runs is busy with, and for how many milliseconds its work has not advanced; none if no worker
    /// runs one. Of a turn whose worker says nothing it is as if it were being prepared.
    #[must_use]
    pub fn progress(&self, now: Time) -> Option<(State, u64)> {
        let Phase::Running { .. } = self.lease.phase else { return None };
        Some((self.live.doing().unwrap_or_default(), self.live.idle(now).unwrap_or_default()))
    }

    /// The session in a few lines. `now_ms` is the time of day of the question, to say how long ago things were; `asked` is what
    /// the turn does, as its worker says when it is asked, where this owner has not heard of it.
    #[must_use]
    pub fn status(&self, now: Time, now_ms: u64, asked: Option<&Activity>) -> String {
        let lease = &self.lease;
        let (state, turn) = match &lease.phase {
            Phase::Idle => return wording::status_idle(lease.suspended),
            Phase::Collecting { waiting } => {
                return wording::status_collecting(waiting.more.len() + 1);
            }
            Phase::Starting { turn } => ("starting", turn),
            Phase::Running { turn, .. } => ("running", turn),
            Phase::Stopping { turn, .. } => ("stopping", turn),
        };
        let mut lines = vec![format!(
            "{state}, since {}; turn {}, attempt {}",
            wording::duration(now_ms.saturating_sub(turn.accepted_at_ms)),
            turn.id,
            turn.attempt.get(),
        )];
        if let Some(activity) = asked {
            lines.push(wording::summary(activity, activity.since_activity_ms));
        } else if let (Some(activity), Some(idle)) = (self.live.activity(), self.live.idle(now)) {
            lines.push(wording::summary(activity, idle));
        }
        if turn.extended_ms > 0 {
            lines.push(wording::is_extended(turn.extended_ms));
        }
        if !turn.asks.is_empty() {
            lines.push(wording::open_asks(&turn.asks));
        }
        lines.push(format!("{} queued", lease.queue.len()));
        lines.join("\n")
    }
}
