//! How far a bot has come in its session of the gateway, kept for whoever connects next: a process that takes the bot over
//! resumes the session, and is told what came in between.

use std::time::Duration;

use node::bucket::{self, Found, PutError};
use node::bus::Bus;
use proto::account::Cursor;
use proto::subject;
use proto::topology::ACCOUNTS;
use tokio::time::{Instant, timeout};

use super::PLATFORM;

/// How often it is written at most. What lies between comes again, and is recognised.
const EVERY: Duration = Duration::from_secs(1);
/// How long reading or writing it may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// The place where it is kept. Best effort: without it a session begins anew.
#[derive(Debug)]
pub(super) struct Bookmark {
    bus: Bus,
    key: String,
    revision: u64,
    saved: Option<Cursor>,
    at: Option<Instant>,
}

impl Bookmark {
    /// Opens the one of a bot, and reads what is there.
    pub(super) async fn open(bus: Bus, token: &str) -> (Self, Option<Cursor>) {
        let key = subject::cursor_key(PLATFORM, token);
        let mut bookmark = Self { bus, key, revision: 0, saved: None, at: None };
        let found = bookmark.read().await;
        (bookmark, found)
    }

    /// Whether it is time to write it again.
    pub(super) fn is_due(&self) -> bool {
        self.at.is_none_or(|at| at.elapsed() >= EVERY)
    }

    /// Writes it, if it has changed.
    pub(super) async fn save(&mut self, cursor: Option<Cursor>) {
        let Some(cursor) = cursor.filter(|cursor| self.saved.as_ref() != Some(cursor)) else {
            return;
        };
        self.at = Some(Instant::now());
        let put = bucket::put(&self.bus, ACCOUNTS, &self.key, &cursor, self.revision, None);
        match timeout(PATIENCE, put).await {
            Ok(Ok(revision)) => {
                self.revision = revision;
                self.saved = Some(cursor);
            }
            Ok(Err(PutError::Overtaken)) => drop(self.read().await),
            Ok(Err(PutError::Unavailable { .. })) | Err(_) => {
                tracing::debug!("how far the bot has come is not written down");
            }
        }
    }

    async fn read(&mut self) -> Option<Cursor> {
        let read = bucket::read(&self.bus, ACCOUNTS, &self.key);
        let (found, revision) = timeout(PATIENCE, read).await.ok()?.ok()?;
        self.revision = revision;
        match found {
            Found::Record(cursor) => Some(cursor),
            Found::Nothing | Found::Unreadable => None,
        }
    }
}
