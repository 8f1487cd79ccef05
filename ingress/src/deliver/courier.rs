//! Hands one parcel to its adapter, and tries again for as long as that can help.

use std::sync::Arc;
use std::time::Duration;

use proto::outbound::{Draft, Kind, Outbound};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::adapter::{Adapter, Binding, DeliverError};
use crate::deliver::ledger::Ledger;
use crate::deliver::messenger::Messenger;
use crate::deliver::pace::Pace;
use crate::metrics::{Departure, Metrics};

/// The pause after the first failed try; it doubles with each.
const PAUSE_MIN: Duration = Duration::from_millis(500);
/// The longest pause between two tries, unless the platform asks for a longer one.
const PAUSE_MAX: Duration = Duration::from_secs(120);

/// How a delivery ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It ended; the parcel can be acknowledged.
    Ended(Departure),
    /// It ended, because its chat is gone.
    Gone(String),
    /// The process stops: the parcel stays in the stream.
    Left,
}

/// What deliveries of one account share.
#[derive(Clone)]
pub(crate) struct Courier {
    pub(crate) adapter: Arc<dyn Adapter>,
    /// What shows messages; none for a platform that takes our things as they are.
    pub(crate) messenger: Option<Messenger>,
    pub(crate) ledger: Ledger,
    pub(crate) metrics: Metrics,
    /// How long a parcel is tried; none means for ever.
    pub(crate) limit: Option<Duration>,
    pub(crate) stop: CancellationToken,
}

impl Courier {
    /// Shows the text so far of a running turn.
    pub(crate) async fn draft(&self, draft: &Draft, chat: &Pace) -> Result<(), DeliverError> {
        match &self.messenger {
            Some(messenger) => messenger.draft(draft, chat).await,
            None => self.adapter.draft(draft).await,
        }
    }

    /// Takes a parcel out of the way whose chat is gone, unless an operator has sent it again.
    pub(crate) async fn skip(
        &self,
        outbound: &Outbound,
        age: Duration,
        chat: &Pace,
        why: String,
    ) -> Verdict {
        let line = self.ledger.line(&outbound.id).await.ok().flatten();
        if line.is_some_and(|line| line.end.is_none() && line.outbound.is_some()) {
            return self.deliver(outbound, age, None, chat).await;
        }
        let why = format!("skipped, the chat is gone: {why}");
        tracing::error!(id = %outbound.id, "a delivery is dead: {why}");
        self.ledger.end(outbound, 0, Some(why)).await;
        Verdict::Ended(Departure::Dead)
    }

    /// Delivers one parcel, not before `quiet` has passed.
    pub(crate) async fn deliver(
        &self,
        outbound: &Outbound,
        age: Duration,
        quiet: Option<Instant>,
        chat: &Pace,
    ) -> Verdict {
        if let Some(until) = quiet
            && self.stopped_before(until).await
        {
            return Verdict::Left;
        }
        // That a message is closed shows nothing, so saying it twice does no harm.
        let bound = self.adapter.capabilities().binding == Binding::Account;
        let recorded = bound && outbound.kind != Kind::Closed;
        if recorded {
            match self.known(outbound).await {
                None => return Verdict::Left,
                Some(true) => return Verdict::Ended(Departure::Repeated),
                Some(false) => {}
            }
        }
        let (tries, why, gone) = match self.attempt(outbound, age, chat).await {
            Attempts::Left => return Verdict::Left,
            Attempts::Delivered { tries } => {
                // A messenger has recorded it, with the messages that show it.
                if recorded && self.messenger.is_none() {
                    self.ledger.end(outbound, tries, None).await;
                }
                return Verdict::Ended(Departure::Delivered);
            }
            Attempts::Dead { tries, why } => (tries, why, false),
            Attempts::Gone { tries, why } => (tries, why, true),
        };
        tracing::error!(id = %outbound.id, tries, "a delivery is dead: {why}");
        if recorded {
            self.ledger.end(outbound, tries, Some(why.clone())).await;
        }
        if gone { Verdict::Gone(why) } else { Verdict::Ended(Departure::Dead) }
    }

    /// Whether the ledger has it already; none if we were told to stop before it answered.
    async fn known(&self, outbound: &Outbound) -> Option<bool> {
        let mut pause = PAUSE_MIN;
        loop {
            match self.ledger.line(&outbound.id).await {
                Ok(line) => return Some(line.is_some_and(|line| line.end.is_some())),
                Err(error) => tracing::debug!(%error, "the ledger does not answer"),
            }
            if self.stopped_before(Instant::now() + pause).await {
                return None;
            }
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    async fn attempt(&self, outbound: &Outbound, age: Duration, chat: &Pace) -> Attempts {
        let began = Instant::now();
        let mut pause = PAUSE_MIN;
        let mut tries = 0;
        loop {
            tries += 1;
            let handed = match &self.messenger {
                Some(messenger) => messenger.deliver(outbound, tries, chat).await,
                None => self.adapter.deliver(outbound).await,
            };
            let (after, why) = match handed {
                Ok(()) => return Attempts::Delivered { tries },
                Err(DeliverError::Dead { why }) => return Attempts::Dead { tries, why },
                Err(DeliverError::Gone { why }) => return Attempts::Gone { tries, why },
                Err(DeliverError::Retry { after, why }) => (after, why),
            };
            self.metrics.retried(self.adapter.platform(), after.is_some());
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
    Gone { tries: u32, why: String },
    Left,
}

/// Between three quarters of a pause and all of it, so that many chats do not come back at one moment.
fn jittered(pause: Duration) -> Duration {
    let [random] = node::process::random::<1>();
    pause.mul_f64(0.75 + f64::from(random) / 1024.0)
}
