//! Who holds an account: one key in the `accounts` bucket, written by compare-and-set. Its holder writes it again and again; a
//! process that sees it unchanged for long enough, by its own clock, takes its place. A holder that cannot write gives up before
//! that. Two machines' clocks are never compared.

use std::time::Duration;

use node::bus::{Bus, Write, WriteError};
use proto::account::Holder;
use proto::codec;
use proto::id::ProcessId;
use proto::subject;
use proto::topology::ACCOUNTS;
use tokio::time::{Instant, sleep};

/// How often the holder writes, and the others look.
const BEAT: Duration = Duration::from_millis(500);
/// After what silence a holder counts as dead.
const DEAD: Duration = Duration::from_millis(3500);
/// After what time without a write a holder stops: well before others count it as dead.
const LAPSED: Duration = Duration::from_millis(2500);

/// A claim to an account.
#[derive(Debug)]
pub(crate) struct Lease {
    bus: Bus,
    key: String,
    me: Holder,
    /// The revision of our last write; none while we do not hold it.
    held: Option<u64>,
    written: Instant,
    /// The revision that was seen last, and since when.
    seen: Option<(u64, Instant)>,
}

/// What a look at the key says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// We hold it.
    Ours,
    /// Another one does.
    Theirs(Holder),
    /// The broker does not answer.
    Unknown,
}

impl Lease {
    pub(crate) fn new(
        bus: Bus,
        process: ProcessId,
        platform: &str,
        account: &str,
        identity: &str,
    ) -> Self {
        let key = subject::bucket_subject(ACCOUNTS, &subject::holder_key(platform, identity));
        let me = Holder { process, platform: platform.into(), account: account.into(), beat: 0 };
        Self { bus, key, me, held: None, written: Instant::now(), seen: None }
    }

    /// Looks once, and takes the account if it is free.
    pub(crate) async fn try_take(&mut self) -> Seen {
        let Ok(stored) = self.bus.last(&format!("KV_{ACCOUNTS}"), &self.key).await else {
            return Seen::Unknown;
        };
        let now = Instant::now();
        let revision = stored.as_ref().map_or(0, |stored| stored.sequence);
        let holder = stored
            .filter(node::bus::Stored::is_value)
            .and_then(|stored| codec::decode::<Holder>(&stored.payload).ok());
        if let Some(holder) = holder.filter(|holder| holder.process != self.me.process) {
            let since = match self.seen {
                Some((seen, since)) if seen == revision => since,
                Some(_) | None => now,
            };
            self.seen = Some((revision, since));
            if now.duration_since(since) < DEAD {
                return Seen::Theirs(holder);
            }
        }
        if self.write(revision, now).await == Ok(()) { Seen::Ours } else { Seen::Unknown }
    }

    /// Keeps the account until it is lost, to another process or because the broker does not answer for too long.
    pub(crate) async fn keep(&mut self) {
        while let Some(revision) = self.held {
            sleep(BEAT).await;
            let left = LAPSED.saturating_sub(self.written.elapsed());
            let now = Instant::now();
            match tokio::time::timeout(left, self.write(revision, now)).await {
                Ok(Err(WriteError::Refused | WriteError::TooLarge)) => self.reclaim().await,
                Ok(Ok(()) | Err(WriteError::Unknown)) => {}
                Err(_) => self.held = None,
            }
            if self.written.elapsed() >= LAPSED {
                self.held = None;
            }
        }
    }

    /// Gives the account back, so that another process has it at once.
    pub(crate) async fn release(&mut self) {
        let Some(expect) = self.held.take() else { return };
        let write = Write { expect: Some(expect), ..Write::default() };
        // An empty value is nobody. Without this the next one waits until we count as dead.
        let _ = self.bus.write(self.key.clone(), bytes::Bytes::new(), write).await;
    }

    /// After a refused write: it may have been our own earlier one whose answer was lost.
    async fn reclaim(&mut self) {
        self.held = None;
        let Ok(Some(stored)) = self.bus.last(&format!("KV_{ACCOUNTS}"), &self.key).await else {
            return;
        };
        let holder = codec::decode::<Holder>(&stored.payload).ok();
        if stored.is_value() && holder.is_some_and(|holder| holder.process == self.me.process) {
            self.held = Some(stored.sequence);
        }
    }

    async fn write(&mut self, expect: u64, now: Instant) -> Result<(), WriteError> {
        self.me.beat += 1;
        let write = Write { expect: Some(expect), ..Write::default() };
        let payload = codec::encode(&self.me).into();
        let written = self.bus.write(self.key.clone(), payload, write).await?;
        self.held = Some(written.sequence);
        // Counted from before the write: the others count from when they see it.
        self.written = now;
        Ok(())
    }
}

/// How long to wait between two looks.
pub(crate) async fn pause() {
    sleep(BEAT).await;
}
