//! `[streams]`: what is fixed when the streams are created.

use proto::topology::Retentions;
use serde::{Deserialize, Serialize};

use crate::settings::values::Span;

/// `[streams]`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Streams {
    /// Whether a service creates the streams that are missing. Off where its user may not: it waits for `talaria init`.
    pub create: bool,
    /// On how many brokers each message is stored: 3 in production.
    pub replicas: usize,
    /// Into how many parts the sessions are divided; the largest useful number of schedulers.
    pub partitions: u16,
    /// How long inputs are kept, and with them the memory of what was applied.
    pub inbox_retention: Span,
    /// How long a message id is remembered: a repetition within it is refused as a duplicate.
    pub duplicate_window: Span,
    /// How long receipts are kept.
    pub events_retention: Span,
}

impl Default for Streams {
    fn default() -> Self {
        Self {
            create: true,
            replicas: 1,
            partitions: 64,
            inbox_retention: Span::seconds(72 * 3600),
            duplicate_window: Span::seconds(2 * 3600),
            events_retention: Span::seconds(7 * 24 * 3600),
        }
    }
}

impl Streams {
    /// The chosen retentions.
    #[must_use]
    pub const fn retentions(&self) -> Retentions {
        Retentions {
            inbox: self.inbox_retention.get(),
            duplicate_window: self.duplicate_window.get(),
            events: self.events_retention.get(),
        }
    }
}
