//! The stored conversation of a running turn. Each append expects the last sequence that we know, so that whoever comes second is
//! refused; and an append whose answer was lost is read back before anything else happens.

use std::sync::Arc;
use std::time::Duration;

use node::bus::{Bus, ReadError, Write, WriteError};
use proto::codec;
use proto::id::{ConversationId, ProcessId};
use proto::lease::{Lease, Phase};
use proto::subject;
use proto::topology::{LEASES, TRANSCRIPT};
use proto::transcript::{Body, Entry};
use proto::turn::TurnRef;

use super::load;
use crate::fence::{Fence, Lost};

/// The first and the longest pause between two tries.
const PAUSE: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(500));

/// An append that did not happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AppendError {
    /// The turn is no longer ours.
    #[error(transparent)]
    Lost(#[from] Lost),
    /// A straggler wrote first; what it wrote is part of the log now.
    #[error("someone else wrote first")]
    Overtaken,
    /// The broker does not take anything so large.
    #[error("too large to be stored")]
    TooLarge,
}

/// The conversation.
pub(crate) struct Log {
    bus: Bus,
    fence: Fence,
    of: TurnRef,
    worker: ProcessId,
    subject: String,
    /// The session's conversation, also in a side conversation.
    stem: String,
    last: u64,
    entries: Vec<Arc<Entry>>,
}

impl Log {
    /// The conversation as it is known: its entries, and the sequence of the last one.
    pub(crate) fn known(
        bus: &Bus,
        fence: &Fence,
        (of, worker): (TurnRef, ProcessId),
        conversation: ConversationId,
        (last, entries): (u64, Vec<Arc<Entry>>),
    ) -> Self {
        let subject = subject::transcript(of.sid, conversation);
        let stem = subject.clone();
        Self { bus: bus.clone(), fence: fence.clone(), of, worker, subject, stem, last, entries }
    }

    /// A fresh conversation beside this one, of an attempt's sub-agent.
    pub(crate) fn branch(&self, number: u32) -> Self {
        let (turn, attempt) = (self.of.turn.get(), self.of.attempt.get());
        Self {
            bus: self.bus.clone(),
            fence: self.fence.clone(),
            of: self.of,
            worker: self.worker,
            subject: format!("{}-{turn}-{attempt}-{number}", self.stem),
            stem: self.stem.clone(),
            last: 0,
            entries: Vec::new(),
        }
    }

    /// The entries, oldest first.
    pub(crate) fn entries(&self) -> &[Arc<Entry>] {
        &self.entries
    }

    /// The sequence of the last entry, and all of them, to be kept.
    pub(crate) fn into_parts(self) -> (u64, Vec<Arc<Entry>>) {
        (self.last, self.entries)
    }

    /// Appends an entry.
    ///
    /// # Errors
    /// When the turn is lost, when someone else wrote first, or when the entry is too large.
    pub(crate) async fn append(&mut self, body: Body) -> Result<(), AppendError> {
        let entry = Arc::new(Entry { turn: self.of.turn, attempt: self.of.attempt, body });
        let payload: bytes::Bytes = codec::encode(&*entry).into();
        let mut pause = PAUSE.0;
        loop {
            self.fence.check()?;
            let write = Write { expect: Some(self.last), ..Write::default() };
            match self.bus.write(self.subject.clone(), payload.clone(), write).await {
                Ok(written) => {
                    self.last = written.sequence;
                    self.take(entry);
                    return Ok(());
                }
                Err(WriteError::TooLarge) => return Err(AppendError::TooLarge),
                Err(error @ (WriteError::Refused | WriteError::Unknown)) => {
                    tracing::debug!(%error, "an append is read back");
                }
            }
            let came = self.catch_up().await?;
            let stored = came.first() == Some(&entry);
            let foreign = came.iter().any(|other| !self.is_ours(other));
            if foreign && !self.is_rightful().await? {
                self.fence.lose();
                return Err(Lost.into());
            }
            match (stored, foreign) {
                (true, _) => return Ok(()),
                (false, true) => return Err(AppendError::Overtaken),
                // Nothing came: either it was not stored, or the replica that answered is a moment behind.
                (false, false) => tokio::time::sleep(pause).await,
            }
            pause = (pause * 2).min(PAUSE.1);
        }
    }

    /// Reads what was written since the last known entry, and returns it.
    ///
    /// # Errors
    /// When the turn is lost before the broker answers.
    pub(crate) async fn catch_up(&mut self) -> Result<Vec<Arc<Entry>>, Lost> {
        let mut came = Vec::new();
        let found =
            patiently(&self.fence, || load::after(&self.bus, TRANSCRIPT, &self.subject, self.last))
                .await?;
        for (sequence, payload) in found {
            self.last = sequence;
            match codec::decode(&payload) {
                Ok(entry) => {
                    let entry = Arc::new(entry);
                    self.take(Arc::clone(&entry));
                    came.push(entry);
                }
                Err(error) => tracing::error!(%error, sequence, "an unreadable entry is left out"),
            }
        }
        Ok(came)
    }

    /// One more entry. A compressed conversation takes the place of all that came before.
    fn take(&mut self, entry: Arc<Entry>) {
        match &entry.body {
            Body::Compressed { entries } => {
                self.entries = entries.iter().cloned().map(Arc::new).collect();
            }
            Body::Withdrawn { turn, .. } => {
                self.entries.retain(|earlier| earlier.turn != *turn);
                self.entries.push(entry);
            }
            Body::System { .. }
            | Body::User { .. }
            | Body::Assistant { .. }
            | Body::Result { .. }
            | Body::Resumed
            | Body::Attached { .. } => self.entries.push(entry),
        }
    }

    fn is_ours(&self, entry: &Entry) -> bool {
        (entry.turn, entry.attempt) == (self.of.turn, self.of.attempt)
    }

    async fn is_rightful(&self) -> Result<bool, Lost> {
        patiently(&self.fence, || rightful(&self.bus, self.of, self.worker)).await
    }
}

/// Whether the session's lease says that this worker runs this turn: the last word, for the rare case that someone else was
/// found to have written. Turn ids alone cannot tell who is newer, because a queued message may start after a later one.
///
/// # Errors
/// When the broker does not answer.
pub(crate) async fn rightful(bus: &Bus, of: TurnRef, worker: ProcessId) -> Result<bool, ReadError> {
    let key = subject::lease_key(bus.partition_of(of.sid), of.sid);
    let stored = bus.last(&format!("KV_{LEASES}"), &subject::bucket_subject(LEASES, &key)).await?;
    let lease = stored.filter(|stored| stored.is_value());
    let lease = lease.and_then(|stored| codec::decode::<Lease>(&stored.payload).ok());
    let wanted = (of.turn, of.attempt, worker);
    Ok(lease.is_some_and(|lease| {
        if let Phase::Running { turn, worker } | Phase::Stopping { turn, worker, .. } = lease.phase
        {
            (turn.id, turn.attempt, worker) == wanted
        } else {
            false
        }
    }))
}

/// Reads until there is an answer or the right is gone.
pub(crate) async fn patiently<T, F: Future<Output = Result<T, ReadError>>>(
    fence: &Fence,
    mut read: impl FnMut() -> F,
) -> Result<T, Lost> {
    let mut pause = PAUSE.0;
    loop {
        fence.check()?;
        match read().await {
            Ok(found) => return Ok(found),
            Err(error) => tracing::debug!(%error, "reading again"),
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSE.1);
    }
}
