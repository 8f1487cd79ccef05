//! Hands one parcel to its adapter, and tries again for as long as that can help.

use std::sync::Arc;
use std::time::Duration;

use node::bus::Bus;
use proto::outbound::{Kind, Outbound};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::adapter::{Adapter, DeliverError};
use crate::deliver::ledger::{self, End};
use crate::metrics::{Departure, Metrics};

/// The pause after the first failed try; it doubles with each.
const PAUSE_MIN: Duration = Duration::from_millis(500);
/// The longest pause between two tries, unless the platform asks for a longer one.
const PAUSE_MAX: Duration = Duration::from_secs(120);

/// How a delivery ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It ended; the parcel can be acknowledged.
    Ended(Departure),
    /// The process stops: the parcel stays in the stream.
    Left,
}

/// What deliveries of one account share.
#[derive(Clone)]
pub(crate) struct Courier {
    pub(crate) adapter: Arc<dyn Adapter>,
    pub(crate) bus: Bus,
    pub(crate) metrics: Metrics,
    /// How long a parcel is tried; none means for ever.
    pub(crate) limit: Option<Duration>,
    pub(crate) stop: CancellationToken,
}

impl Courier {
    /// Delivers one parcel, not before `quiet` has passed.
    pub(crate) async fn deliver(
        &self,
        outbound: &Outbound,
        age: Duration,
        quiet: Option<Instant>,
    ) -> Verdict {
        if let Some(until) = quiet
            && self.stopped_before(until).await
        {
            return Verdict::Left;
        }
        // That a message is closed shows nothing, so saying it twice does no harm.
        let recorded = !self.adapter.connection_bound() && outbound.kind != Kind::Closed;
        if recorded {
            match self.known(outbound).await {
                None => return Verdict::Left,
                Some(true) => return Verdict::Ended(Departure::Repeated),
                Some(false) => {}
            }
        }
        let (tries, dead) = match self.attempt(outbound, age).await {
            Attempts::Left => return Verdict::Left,
            Attempts::Delivered { tries } => (tries, None),
            Attempts::Dead { tries, why } => (tries, Some(why)),
        };
        let departure = if dead.is_some() { Departure::Dead } else { Departure::Delivered };
        if let Some(why) = &dead {
            tracing::error!(id = %outbound.id, tries, "a delivery is dead: {why}");
        }
        if recorded {
            ledger::record(&self.bus, outbound, tries, dead).await;
        }
        Verdict::Ended(departure)
    }

    /// Whether the ledger has it already; none if we were told to stop before it answered.
    async fn known(&self, outbound: &Outbound) -> Option<bool> {
        let mut pause = PAUSE_MIN;
        loop {
            match ledger::look_up(&self.bus, &outbound.id).await {
                Ok(end) => return Some(matches!(end, Some(End::Delivered | End::Dead))),
                Err(error) => tracing::debug!(%error, "the ledger does not answer"),
            }
            if self.stopped_before(Instant::now() + pause).await {
                return None;
            }
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    async fn attempt(&self, outbound: &Outbound, age: Duration) -> Attempts {
        let began = Instant::now();
        let mut pause = PAUSE_MIN;
        let mut tries = 0;
        loop {
            tries += 1;
            let (after, why) = match self.adapter.deliver(outbound).await {
                Ok(()) => return Attempts::Delivered { tries },
                Err(DeliverError::Dead { why }) => return Attempts::Dead { tries, why },
                Err(DeliverError::Retry { after, why }) => (after, why),
            };
            self.metrics.retried(self.adapter.platform());
            let wait = after.unwrap_or_else(|| jittered(pause));
            if self.limit.is_some_and(|limit| age + began.elapsed() + wait > limit) {
                return Attempts::Dead { tries, why: format!("given up: {why}") };
            }
            tracing::warn!(id = %outbound.id, tries, ?wait, "a delivery failed: {why}");
            if self.stopped_before(Instant::now() + wait).await {
                return Attempts::Left;
            }
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// Waits; true if we were told to stop before the time came.
    async fn stopped_before(&self, time: Instant) -> bool {
        tokio::select! {
            () = tokio::time::sleep_until(time) => false,
            () = self.stop.cancelled() => true,
        }
    }
}

enum Attempts {
    Delivered { tries: u32 },
    Dead { tries: u32, why: String },
    Left,
}

/// Between three quarters of a pause and all of it, so that many chats do not come back at one moment.
fn jittered(pause: Duration) -> Duration {
    let [random] = node::process::random::<1>();
    pause.mul_f64(0.75 + f64::from(random) / 1024.0)
}
