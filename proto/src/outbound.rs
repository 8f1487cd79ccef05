//! What goes back to people: replies, notices and questions through `OUTBOX`, and drafts while a turn runs.

use serde::{Deserialize, Serialize};

use crate::event::Address;
use crate::id::{AskId, Attempt, OutboundId, TurnId};
use crate::session::SessionKey;
use crate::turn::TurnRef;

/// What sort of thing is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The answer of a turn.
    Reply,
    /// Something the person should know.
    Notice,
    /// What became of a message or command.
    Ack,
    /// A question that waits for a decision.
    Question,
    /// The message gets no answer of its own: what was streamed for it stays as it is. The words, if any, say why to whoever
    /// waits for one; adapters where nobody waits ignore it.
    Closed,
}

/// One thing to deliver (`outbox.<platform>.<account>.<sid>`).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Outbound {
    /// The same whenever it is produced again.
    pub id: OutboundId,
    /// The session's readable key.
    pub session: SessionKey,
    /// Where it goes.
    pub address: Address,
    /// The message it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<String>,
    /// The turn it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// The attempt that produced it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<Attempt>,
    /// What sort of thing it is.
    pub kind: Kind,
    /// The words.
    #[serde(default)]
    pub text: String,
    /// The ask that it puts, for buttons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask: Option<AskId>,
    /// What was delivered before and now says this instead: a platform that can edit shows one message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<OutboundId>,
}

/// A piece of streamed text (`draft.<platform>.<account>`). Drafts may be lost: the reply has the whole text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Draft {
    /// Which attempt speaks.
    pub of: TurnRef,
    /// The session's readable key.
    pub session: SessionKey,
    /// Where it is shown.
    pub address: Address,
    /// The message it answers.
    pub reply_to: String,
    /// How many bytes of the attempt's text came before this piece.
    pub offset: u64,
    /// The piece.
    pub text: String,
}

impl Draft {
    /// The offset of a draft that has no text, and says only that the turn works.
    pub const SIGN_OF_LIFE: u64 = u64::MAX;

    /// Whether it says only that the turn works.
    #[must_use]
    pub const fn is_sign_of_life(&self) -> bool {
        self.offset == Self::SIGN_OF_LIFE
    }
}
