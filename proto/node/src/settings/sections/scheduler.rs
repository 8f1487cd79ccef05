//! `[scheduler]`: leases and deadlines.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::settings::values::Span;

/// `[scheduler]`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Scheduler {
    /// How often a worker beats.
    pub beat: Span,
    /// After what silence a worker's turns are given to another.
    pub lease_ttl: Span,
    /// How long a worker may take to confirm a stop before the session goes on without it.
    pub stop_deadline: Span,
    /// How many messages may wait in one session.
    pub queue_limit: usize,
    /// How many turns in a row may be interrupted before messages wait instead.
    pub interrupt_depth: u8,
    /// How many attempts of a turn may die with their worker before it is given up.
    pub attempts: u8,
    /// How long it must be quiet before the pictures of an album, or pictures in a row, become a turn.
    pub album_quiet: Span,
    /// How long they are waited for at most.
    pub album_most: Span,
    /// How long it must be quiet before messages in the mode `collect` become a turn.
    pub collect_quiet: Span,
    /// How long they are waited for at most.
    pub collect_most: Span,
}

impl Default for Scheduler {
    fn default() -> Self {
        Self {
            beat: Span::seconds(2),
            lease_ttl: Span::seconds(15),
            stop_deadline: Span::seconds(5),
            queue_limit: 32,
            interrupt_depth: 3,
            attempts: 3,
            album_quiet: Duration::from_millis(800).into(),
            album_most: Span::seconds(5),
            collect_quiet: Duration::from_millis(350).into(),
            collect_most: Span::seconds(1),
        }
    }
}
