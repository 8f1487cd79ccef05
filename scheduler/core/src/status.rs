//! What `/status` says.

use proto::lease::Phase;

use crate::session::Session;
use crate::wording;

impl Session {
    /// The session in a few lines. `now_ms` is the time of day of the question, to say how long ago things were.
    #[must_use]
    pub fn status(&self, now_ms: u64) -> String {
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
        if let Some(activity) = self.live.activity() {
            lines.push(wording::activity(activity));
        }
        if !turn.asks.is_empty() {
            lines.push(wording::open_asks(&turn.asks));
        }
        lines.push(format!("{} queued", lease.queue.len()));
        lines.join("\n")
    }
}
