//! The way in: a message is durable before anyone is told that it was taken, and taken once however often it comes.

use std::time::{Duration, Instant};

use node::bus::{Bus, Write, WriteError};
use node::hooks::{Hooks, Verdict};
use proto::codec;
use proto::command::{Parsed, Who};
use proto::event::{Address, MessageEvent, User};
use proto::id::{Seq, Sid};
use proto::inbox::Inbox;
use proto::session::SessionKey;
use proto::subject;
use serde_json::json;
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
    /// It is a command that only administrators may use, and the sender is none.
    #[error("only an administrator may use this command")]
    NotAllowed,
}

/// What a sender may do beside talking to the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rank {
    /// Nothing.
    Member,
    /// The commands of administrators.
    Admin,
}

impl Rank {
    fn may(self, event: &MessageEvent) -> bool {
        match event.parsed() {
            Parsed::Command(command) => self == Self::Admin || command.spec.who == Who::Anyone,
            Parsed::Text => true,
        }
    }
}

/// Puts messages into the inbox. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Publisher {
    bus: Bus,
    metrics: Metrics,
    hooks: Hooks,
}

impl Publisher {
    /// A publisher over a connection.
    #[must_use]
    pub fn new(bus: Bus, metrics: Metrics) -> Self {
        Self { bus, metrics, hooks: Hooks::default() }
    }

    /// The same, where hooks judge commands.
    #[must_use]
    pub fn with_hooks(self, hooks: Hooks) -> Self {
        Self { hooks, ..self }
    }

    /// Stores a message; returns only after the broker has acknowledged it. The message's trace begins here.
    ///
    /// # Errors
    /// When it is too large, a command that the sender may not use, or not acknowledged by the broker in time.
    pub async fn accept(&self, event: MessageEvent, rank: Rank) -> Result<Accepted, AcceptError> {
        if !rank.may(&event) {
            self.metrics.arrived(&event.address.platform, Arrival::Refused);
            return Err(AcceptError::NotAllowed);
        }
        let (id, address, session) = (event.id.clone(), event.address.clone(), event.session.sid());
        let input = self.judged(event).await;
        if let Inbox::Message(event) = &input
            && !rank.may(event)
        {
            // What a hook has made of it is for administrators only.
            self.metrics.arrived(&address.platform, Arrival::Refused);
            return Err(AcceptError::NotAllowed);
        }
        self.store(&id, &address, session, input).await
    }

    /// A message as the hooks leave it: they may refuse a command, or put another one in its place.
    async fn judged(&self, event: MessageEvent) -> Inbox {
        let mut event = Box::new(event);
        let Parsed::Command(command) = event.parsed() else { return Inbox::Message(event) };
        let word = command.spec.words[0];
        if !self.hooks.hear(&format!("command:{word}")) {
            return Inbox::Message(event);
        }
        let about = json!({
            "platform": event.address.platform,
            "chat_id": event.address.chat,
            "thread_id": event.address.thread,
            "chat_type": event.address.kind,
            "user_id": event.user.id,
            "user_name": event.user.name,
            "session_key": event.session,
            "session_id": event.session.sid(),
            "command": word,
            "args": command.args,
        });
        match self.hooks.judge(word, event.text.clone(), &about).await {
            Verdict::Allowed { text } => {
                event.text = text;
                Inbox::Message(event)
            }
            Verdict::Denied { message } => Inbox::Refused { event, text: message },
        }
    }

    /// The same for a change of a message: `event` says what it says now, under the id of the message that it replaces. The
    /// change itself is known by `id`.
    ///
    /// # Errors
    /// As for a message.
    pub async fn edit(&self, id: &str, event: MessageEvent) -> Result<Accepted, AcceptError> {
        let (address, session) = (event.address.clone(), event.session.sid());
        self.store(id, &address, session, Inbox::Edit(Box::new(event))).await
    }

    /// The same for a message that is taken back. The event of taking it back is known by `id`.
    ///
    /// # Errors
    /// As for a message.
    pub async fn withdraw(
        &self,
        id: &str,
        address: &Address,
        session: SessionKey,
        (message, user): (String, User),
    ) -> Result<Accepted, AcceptError> {
        let sid = session.sid();
        self.store(id, address, sid, Inbox::Withdrawal { session, message, user }).await
    }

    /// Stores what a person did, in its trace, and counts it.
    async fn store(
        &self,
        id: &str,
        address: &Address,
        sid: Sid,
        input: Inbox,
    ) -> Result<Accepted, AcceptError> {
        let trace_id = tracing::field::Empty;
        let span =
            tracing::info_span!("ingress", platform = %address.platform, session = %sid, trace_id);
        node::trace::show_id(&span);
        let began = Instant::now();
        let outcome = self.write(&message_id(address, id), sid, input).instrument(span).await;
        self.metrics.accept.observe(began.elapsed().as_secs_f64());
        self.metrics.arrived(
            &address.platform,
            match outcome {
                Ok(Accepted::Stored { .. }) => Arrival::Accepted,
                Ok(Accepted::Duplicate { .. }) => Arrival::Duplicate,
                Err(AcceptError::TooLarge) => Arrival::Invalid,
                Err(AcceptError::NotAllowed) => Arrival::Refused,
                Err(AcceptError::Unavailable) => Arrival::Unavailable,
            },
        );
        outcome
    }

    async fn write(&self, id: &str, sid: Sid, input: Inbox) -> Result<Accepted, AcceptError> {
        let subject = subject::inbox(self.bus.partition_of(sid), sid);
        let payload = codec::encode(&input);
        if payload.len() > self.bus.payload_limit() {
            return Err(AcceptError::TooLarge);
        }
        match self.bus.write_until(&subject, payload.into(), id, STORE).await {
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

/// The id by which a repeated event is recognised: a hash of what identifies it on its platform. Each part is preceded by its
/// length, so that no two events have the same one.
pub(crate) fn message_id(address: &Address, id: &str) -> String {
    let mut hash = Sha256::new();
    for part in [address.platform.as_str(), &address.account, &address.chat, id] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    hex::encode(hash.finalize())
}

#[cfg(test)]
mod tests {
    use proto::session::ChatKind;

    use super::*;

    fn id(platform: &str, account: &str, chat: &str, id: &str) -> String {
        let address = Address {
            platform: platform.into(),
            account: account.into(),
            chat: chat.into(),
            kind: ChatKind::Dm,
            thread: None,
        };
        message_id(&address, id)
    }

    #[test]
    fn parts_do_not_run_into_each_other() {
        let mut ids = [
            id("webhook", "a", "c", "1"),
            id("webhook", "ac", "", "1"),
            id("webhook", "a", "c1", ""),
            id("webhook", "", "ac", "1"),
            id("webhooka", "", "c", "1"),
        ];
        assert_eq!(ids[0], id("webhook", "a", "c", "1"));
        assert!(ids.iter().all(|id| id.len() == 64));
        ids.sort();
        assert!(ids.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
