//! What the `INBOX` stream holds: everything that changes a session, in the order in which it will be applied.

use serde::{Deserialize, Serialize};

use crate::event::{MessageEvent, User};
use crate::session::SessionKey;
use crate::turn::TurnReport;

/// One input of a session.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Inbox {
    /// A person wrote.
    Message(Box<MessageEvent>),
    /// A person wrote a command that a hook of the operator does not allow.
    Refused {
        /// What they wrote.
        event: Box<MessageEvent>,
        /// What they are told.
        text: String,
    },
    /// A person changed what they wrote; the id is that of the message it replaces.
    Edit(Box<MessageEvent>),
    /// A person took a message back.
    Withdrawal {
        /// The session's readable key.
        session: SessionKey,
        /// The id of the message.
        message: String,
        /// Who takes it back: only its author may.
        user: User,
    },
    /// A worker reports.
    Report(TurnReport),
    /// The client that waited for the answer to a message hung up.
    Hangup {
        /// The session's readable key.
        session: SessionKey,
        /// The id of the message that it waited for.
        message: String,
    },
}
