//! The way in: a message is durable before anyone is told that it was taken, and taken once however often it comes.

use std::time::{Duration, Instant};

use node::bus::{Bus, Write, WriteError};
use proto::codec;
use proto::event::MessageEvent;
use proto::id::Seq;
use proto::inbox::Inbox;
use proto::session::SessionKey;
use proto::subject;
use sha2::{Digest, Sha256};
use tracing::Instrument;

use crate::metrics::{Arrival, Metrics};

/// How long a message is tried to be stored before its sender is told to come back. Long enough for a new leader of the
/// stream, short enough for the patience of platforms.
const STORE: Duration = Duration::from_secs(5);
/// What a sender is told to wait before it comes back.
pub const RETRY_AFTER: Duration = Duration::from_secs(5);

/// A message that is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// It is new.
    Stored {
        /// Its place in the inbox.
        seq: Seq,
    },
    /// It was stored before under this id, and nothing was changed.
    Duplicate {
        /// The place of the first one.
        seq: Seq,
    },
}

impl Accepted {
    /// The message's place in the inbox.
    #[must_use]
    pub const fn seq(self) -> Seq {
        match self {
            Self::Stored { seq } | Self::Duplicate { seq } => seq,
        }
    }
}

/// A message that is not stored, as far as is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AcceptError {
    /// The broker does not acknowledge it. Sending it again is safe, since its id is remembered.
    #[error("the message cannot be stored at the moment; send it again in a few seconds")]
    Unavailable,
    /// It is larger than the broker takes.
    #[error("the message is too large")]
    TooLarge,
}

/// Puts messages into the inbox. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Publisher {
    bus: Bus,
    metrics: Metrics,
}

impl Publisher {
    /// A publisher over a connection.
    #[must_use]
    pub const fn new(bus: Bus, metrics: Metrics) -> Self {
        Self { bus, metrics }
    }

    /// Stores a message; returns only after the broker has acknowledged it. The message's trace begins here.
    ///
    /// # Errors
    /// When it is too large, or the broker does not acknowledge it in time.
    pub async fn accept(&self, event: MessageEvent) -> Result<Accepted, AcceptError> {
        let span = tracing::info_span!(
            "ingress",
            platform = %event.address.platform,
            session = %event.session.sid(),
        );
        let began = Instant::now();
        let platform = event.address.platform.clone();
        let outcome = self.store(event).instrument(span).await;
        self.metrics.accept.observe(began.elapsed().as_secs_f64());
        self.metrics.arrived(
            &platform,
            match outcome {
                Ok(Accepted::Stored { .. }) => Arrival::Accepted,
                Ok(Accepted::Duplicate { .. }) => Arrival::Duplicate,
                Err(AcceptError::TooLarge) => Arrival::Invalid,
                Err(AcceptError::Unavailable) => Arrival::Unavailable,
            },
        );
        outcome
    }

    async fn store(&self, event: MessageEvent) -> Result<Accepted, AcceptError> {
        let sid = event.session.sid();
        let subject = subject::inbox(self.bus.partition_of(sid), sid);
        let id = message_id(&event);
        let payload = codec::encode(&Inbox::Message(Box::new(event)));
        if payload.len() > self.bus.payload_limit() {
            return Err(AcceptError::TooLarge);
        }
        match self.bus.write_until(&subject, payload.into(), &id, STORE).await {
            Ok(written) if written.duplicate => {
                Ok(Accepted::Duplicate { seq: Seq::new(written.sequence) })
            }
            Ok(written) => Ok(Accepted::Stored { seq: Seq::new(written.sequence) }),
            Err(WriteError::TooLarge) => Err(AcceptError::TooLarge),
            Err(error @ (WriteError::Unknown | WriteError::Refused)) => {
                tracing::warn!(%error, "a message could not be stored");
                Err(AcceptError::Unavailable)
            }
        }
    }

    /// Says that the client that waited for the answer to a message is gone. Best effort: nobody waits for this.
    pub async fn hangup(&self, session: SessionKey, message: String) {
        let sid = session.sid();
        let subject = subject::inbox(self.bus.partition_of(sid), sid);
        let payload = codec::encode(&Inbox::Hangup { session, message });
        if let Err(error) = self.bus.write(subject, payload.into(), Write::default()).await {
            tracing::debug!(%error, "a hang-up was not stored");
        }
    }
}

/// The id by which a repeated message is recognised: a hash of what identifies it on its platform. Each part is preceded by
/// its length, so that no two messages have the same one.
fn message_id(event: &MessageEvent) -> String {
    let mut hash = Sha256::new();
    let address = &event.address;
    for part in [&address.platform, &address.account, &address.chat, &event.id] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    hex::encode(hash.finalize())
}

#[cfg(test)]
mod tests {
    use proto::event::{Address, User};
    use proto::session::{ChatKind, SessionParts};

    use super::*;

    fn event(platform: &str, account: &str, chat: &str, id: &str) -> MessageEvent {
        let parts =
            SessionParts { platform, kind: ChatKind::Dm, chat, thread: None, participant: None };
        MessageEvent {
            id: id.into(),
            session: SessionKey::new(parts),
            address: Address {
                platform: platform.into(),
                account: account.into(),
                chat: chat.into(),
                kind: ChatKind::Dm,
                thread: None,
            },
            user: User { id: "u".into(), name: None },
            text: String::new(),
            media: Vec::new(),
            reply_to: None,
            mode: None,
            history: Vec::new(),
            accepted_at_ms: 0,
        }
    }

    #[test]
    fn ids_depend_on_what_identifies_a_message_and_on_nothing_else() {
        let first = event("webhook", "a", "c", "1");
        let again = MessageEvent { text: "again".into(), accepted_at_ms: 9, ..first.clone() };
        assert_eq!(message_id(&first), message_id(&again));
        assert_eq!(message_id(&first).len(), 64);
    }

    #[test]
    fn parts_do_not_run_into_each_other() {
        let all = [
            event("webhook", "a", "c", "1"),
            event("webhook", "ac", "", "1"),
            event("webhook", "a", "c1", ""),
            event("webhook", "", "ac", "1"),
            event("webhooka", "", "c", "1"),
        ];
        let mut ids: Vec<_> = all.iter().map(message_id).collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), all.len());
    }
}
