//! The right to run a turn, as this process knows it: renewed by answered claims and heartbeats, lapsing by our own monotonic
//! clock, and asked for before every effect. A process that was frozen finds on waking that it may say nothing more.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use node::clock::SleepClock;
use prometheus::IntCounter;
use tokio_util::sync::CancellationToken;

/// How often at least it is looked whether a right has lapsed.
const LOOK: Duration = Duration::from_secs(1);

/// The right is gone: do nothing more for this turn, and say nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the turn is no longer ours")]
pub(crate) struct Lost;

/// One turn's right. Cheap to clone; all clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Fence(Arc<Right>);

#[derive(Debug)]
struct Right {
    clock: SleepClock,
    /// How long one renewal lasts, milliseconds.
    lasts_ms: u64,
    /// When it lapses, by `clock`. Only grows.
    lapses_ms: AtomicU64,
    lost: CancellationToken,
    refusals: IntCounter,
}

impl Fence {
    /// A right that was asked for at `asked_ms` and lasts so long without renewal.
    pub(crate) fn new(
        clock: SleepClock,
        lasts: Duration,
        asked_ms: u64,
        refusals: IntCounter,
    ) -> Self {
        let lasts_ms = u64::try_from(lasts.as_millis()).unwrap_or(u64::MAX / 2);
        let lapses_ms = AtomicU64::new(asked_ms.saturating_add(lasts_ms));
        Self(Arc::new(Right {
            clock,
            lasts_ms,
            lapses_ms,
            lost: CancellationToken::new(),
            refusals,
        }))
    }

    /// The right was confirmed by an answer to what was sent at `sent_ms`. A right that is lost stays lost.
    pub(crate) fn renew(&self, sent_ms: u64) {
        self.0.lapses_ms.fetch_max(sent_ms.saturating_add(self.0.lasts_ms), Ordering::AcqRel);
    }

    /// The right is gone: someone else said so.
    pub(crate) fn lose(&self) {
        self.0.lost.cancel();
    }

    /// To be asked after every await and before every effect.
    pub(crate) fn check(&self) -> Result<(), Lost> {
        if !self.0.lost.is_cancelled() && self.remaining().is_some() {
            return Ok(());
        }
        self.0.lost.cancel();
        self.0.refusals.inc();
        Err(Lost)
    }

    /// Returns when the right is gone, for whatever reason.
    pub(crate) async fn lost(&self) {
        while let Some(left) = self.remaining() {
            tokio::select! {
                () = self.0.lost.cancelled() => return,
                // The timer stands still while the machine sleeps, and the right does not.
                () = tokio::time::sleep(left.min(LOOK)) => {}
            }
        }
        self.0.lost.cancel();
    }

    /// How long the right still lasts, if it does.
    fn remaining(&self) -> Option<Duration> {
        let left = self.0.lapses_ms.load(Ordering::Acquire).saturating_sub(self.0.clock.now_ms());
        (left > 0).then(|| Duration::from_millis(left))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A right that lasts as long as any test.
    pub(crate) fn lasting() -> Fence {
        let refusals = IntCounter::new("refusals", "in a test").unwrap();
        Fence::new(SleepClock::start(), Duration::from_secs(3600), 0, refusals)
    }

    #[test]
    fn a_right_that_was_asked_for_too_long_ago_is_gone_and_stays_gone() {
        let refusals = IntCounter::new("refusals", "in a test").unwrap();
        let fence = Fence::new(SleepClock::start(), Duration::ZERO, 0, refusals.clone());
        assert_eq!(fence.check(), Err(Lost));
        fence.renew(60_000);
        assert_eq!(fence.check(), Err(Lost));
        assert_eq!(refusals.get(), 2);
    }

    #[test]
    fn a_renewal_counts_from_when_it_was_sent_and_never_shortens() {
        let refusals = IntCounter::new("refusals", "in a test").unwrap();
        let fence = Fence::new(SleepClock::start(), Duration::from_secs(100), 50_000, refusals);
        fence.renew(0);
        assert!(fence.remaining().unwrap() > Duration::from_secs(149));
        assert_eq!(fence.check(), Ok(()));
        fence.lose();
        assert_eq!(fence.check(), Err(Lost));
    }

    #[tokio::test]
    async fn whoever_waits_is_told_when_the_right_lapses() {
        let refusals = IntCounter::new("refusals", "in a test").unwrap();
        Fence::new(SleepClock::start(), Duration::from_millis(20), 0, refusals).lost().await;
        let fence = lasting();
        tokio::join!(fence.lost(), async { fence.lose() });
    }
}
