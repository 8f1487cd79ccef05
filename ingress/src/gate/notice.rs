//! What is said to people at the gate: through `OUTBOX`, like everything that is said to them.

use std::time::Duration;

use node::bus::WriteError;
use proto::codec;
use proto::event::MessageEvent;
use proto::id::OutboundId;
use proto::outbound::{Kind, Outbound};
use proto::subject;

use super::Inner;
use crate::publish::{AcceptError, message_id};

/// How long a notice is tried to be stored.
const STORE: Duration = Duration::from_secs(5);

/// Someone unknown gets a code.
pub(super) fn code(platform: &str, code: &str) -> String {
    format!(
        "I do not know you yet. Your code is {code}, for 10 minutes: ask whoever runs this system to enter\n`talaria pair \
         approve {platform} {code}`\nand then write again."
    )
}

/// Someone unknown gets no code.
pub(super) fn too_many() -> String {
    "I do not know you yet, and too many others wait to be let in. Please write again in 10 minutes.".into()
}

/// `/sethome` was carried out.
pub(super) fn home(platform: &str) -> String {
    format!(
        "This chat is now the home channel of {platform}: what is sent to no particular chat comes here."
    )
}

impl Inner {
    /// Says something to whoever sent a message. `id` is the arrival's, so that the same is not said twice.
    pub(super) async fn say(
        &self,
        id: &str,
        event: &MessageEvent,
        what: &str,
        text: String,
    ) -> Result<(), AcceptError> {
        let outbound = Outbound {
            id: OutboundId::of_arrival(&message_id(&event.address, id), what),
            session: event.session.clone(),
            address: event.address.clone(),
            reply_to: Some(event.id.clone()),
            turn: None,
            attempt: None,
            kind: Kind::Notice,
            text,
            ask: None,
            replaces: None,
        };
        let subject = subject::outbox(&outbound.address, event.session.sid());
        let id = outbound.id.to_string();
        let payload = codec::encode(&outbound).into();
        match self.node.bus.write_until(&subject, payload, &id, STORE).await {
            Ok(_) => Ok(()),
            Err(WriteError::TooLarge) => Err(AcceptError::TooLarge),
            Err(error @ (WriteError::Unknown | WriteError::Refused)) => {
                tracing::warn!(%error, "a notice could not be stored");
                Err(AcceptError::Unavailable)
            }
        }
    }
}
