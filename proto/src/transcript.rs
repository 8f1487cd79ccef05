//! The conversation as it is stored (`transcript.<sid>.<conversation>`), one entry a message, always valid for a strict provider:
//! each tool call is followed by exactly one result.

use serde::{Deserialize, Serialize};

use crate::event::Media;
use crate::id::{Attempt, Seq, TurnId};

/// One entry of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The turn that wrote it.
    pub turn: TurnId,
    /// Its attempt.
    pub attempt: Attempt,
    /// What it says.
    pub body: Body,
}

/// What an entry says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Body {
    /// The instructions, rendered once per conversation.
    System {
        /// The words.
        text: String,
    },
    /// A person's words.
    User {
        /// The inputs that they came from.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        inputs: Vec<Seq>,
        /// The words.
        text: String,
    },
    /// The model's words and calls.
    Assistant {
        /// The words.
        #[serde(default)]
        text: String,
        /// The calls.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<ToolCall>,
        /// Whether it was cut off by an interrupt.
        #[serde(default)]
        partial: bool,
    },
    /// The result of a call.
    Result {
        /// The call.
        call: String,
        /// What came out.
        output: String,
        /// How it went.
        status: CallStatus,
        /// The places in `INBOX` of the messages whose words are in it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        inputs: Vec<Seq>,
    },
    /// A new attempt goes on from here; shuts out what an earlier one might still write.
    Resumed,
    /// What came along with the person's words that follow.
    Attached {
        /// The files, by reference.
        media: Vec<Media>,
    },
    /// A turn is forgotten: its entries count no more.
    Withdrawn {
        /// The turn.
        turn: TurnId,
        /// The inputs that it answered, for whoever answers them again.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        inputs: Vec<Seq>,
    },
    /// The conversation so far in a shorter form: for a model these entries stand in place of all before this one.
    Compressed {
        /// The beginning, a summary, and the newest part as it was.
        entries: Vec<Entry>,
    },
}

/// A tool call of the model.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ToolCall {
    /// The model's id of it.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments, as the model wrote them: JSON, one hopes.
    pub arguments: String,
}

/// How a tool call went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallStatus {
    /// It returned.
    Done,
    /// It failed.
    Failed,
    /// It was stopped.
    Interrupted,
    /// It was never started.
    Skipped,
    /// Its worker died: it may or may not have happened.
    Unknown,
}

/// What is known of a session beside its conversation (`sessions` bucket, key `<sid>`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile {
    /// The current conversation.
    pub conversation: crate::id::ConversationId,
    /// The turn that wrote this last: an older one may not.
    pub turn: TurnId,
    /// Its attempt.
    pub attempt: Attempt,
    /// The conversation that was set aside for the current one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<crate::id::ConversationId>,
    /// The model that was chosen for this session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The session of an external agent that knows the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external: Option<External>,
}

/// A session that an external agent keeps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct External {
    /// The agent, as it is started.
    pub agent: String,
    /// The agent's id of the session.
    pub session: String,
    /// The conversation that it knows.
    pub conversation: crate::id::ConversationId,
    /// The last turn that it knows: if others came after it, it no longer knows the conversation.
    pub turn: TurnId,
}
