//! What people send: one message, command or button press of a platform, as ingress shapes it.

use serde::{Deserialize, Serialize};

use crate::access::Admission;
use crate::command::{self, Parsed};
use crate::session::{ChatKind, SessionKey};

/// Where a message came from, and where what it causes must go.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Address {
    /// The adapter's name, for example `telegram` or `webhook`.
    pub platform: String,
    /// Which bot, hook or ingress process of that platform: the one that holds the connection.
    pub account: String,
    /// The platform's id of the chat.
    pub chat: String,
    /// What sort of chat it is.
    #[serde(default)]
    pub kind: ChatKind,
    /// The thread or topic inside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
}

/// A person, by the platform's stable id.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct User {
    /// The platform's id: the only thing that authorisation looks at.
    pub id: String,
    /// A name to show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// What sort of file an attachment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MediaKind {
    /// A picture.
    Photo,
    /// A voice note.
    Voice,
    /// Any other sound.
    Audio,
    /// A film.
    Video,
    /// Any other file.
    Document,
}

/// An attachment, by reference: it is fetched when a turn needs it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Media {
    /// Where it can be fetched.
    pub url: String,
    /// What it is.
    pub kind: MediaKind,
    /// Its MIME type, when the platform says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime: Option<String>,
    /// Its file name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The album it belongs to: parts of one album are one turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
}

/// The message that a message answers.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Quote {
    /// The platform's id of the quoted message.
    pub id: String,
    /// Its text, when known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// Who said a line of a history that a client brought along.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Speaker {
    /// Instructions of the client.
    System,
    /// The person.
    User,
    /// The agent.
    Assistant,
}

/// One line of a history that a client brought along (an API request without a session).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Line {
    /// Who said it.
    pub speaker: Speaker,
    /// What was said.
    pub text: String,
}

/// What an ordinary message does to a running turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BusyMode {
    /// Stops the turn; the message becomes the next one.
    #[default]
    Interrupt,
    /// Waits for the turn to end.
    Queue,
    /// Is given to the turn as a hint; waits where it cannot be.
    Steer,
    /// Waits for more, and for the turn to end; then all become one turn.
    Collect,
    /// Is not taken, and said so.
    Reject,
    /// Stops the turn as if it had never been: the conversation forgets it.
    Rollback,
}

impl BusyMode {
    /// All modes.
    pub const ALL: [Self; 6] =
        [Self::Interrupt, Self::Queue, Self::Steer, Self::Collect, Self::Reject, Self::Rollback];

    /// Its name, as it is written in settings and commands.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Interrupt => "interrupt",
            Self::Queue => "queue",
            Self::Steer => "steer",
            Self::Collect => "collect",
            Self::Reject => "reject",
            Self::Rollback => "rollback",
        }
    }

    /// The mode of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name().eq_ignore_ascii_case(name))
    }
}

/// One message of a person: a scheduling event first, and text second.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct MessageEvent {
    /// The platform's id of the message, stable over redeliveries.
    pub id: String,
    /// The session it belongs to.
    pub session: SessionKey,
    /// Where it came from.
    pub address: Address,
    /// Who sent it.
    pub user: User,
    /// What was written, as it was written.
    #[serde(default)]
    pub text: String,
    /// What was attached.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub media: Vec<Media>,
    /// What it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<Quote>,
    /// The channel's or platform's busy mode; none means the system's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<BusyMode>,
    /// The conversation so far, when the client keeps it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<Line>,
    /// What the gate noted when it let the message in.
    #[serde(default, skip_serializing_if = "Admission::is_plain")]
    pub admission: Admission,
    /// When ingress accepted it, milliseconds since 1970; for people to read, never to decide by.
    pub accepted_at_ms: u64,
}

impl MessageEvent {
    /// Whether it is a picture or part of an album, which people send in bursts, and with it the album's name.
    #[must_use]
    pub fn burst(&self) -> Option<Option<&str>> {
        let group = self.media.iter().find_map(|media| media.group.as_deref());
        let photos =
            !self.media.is_empty() && self.media.iter().all(|media| media.kind == MediaKind::Photo);
        (group.is_some() || photos).then_some(group)
    }

    /// What the text means: a command of ours, or words for the agent.
    #[must_use]
    pub fn parsed(&self) -> Parsed<'_> {
        command::parse(&self.text)
    }

    /// The words for the agent: the text without a scheduling command in front (`/queue fix it` says "fix it").
    #[must_use]
    pub fn prompt(&self) -> &str {
        match self.parsed() {
            Parsed::Command(command) if command.spec.takes_prompt() => command.args,
            Parsed::Command(_) | Parsed::Text => &self.text,
        }
    }
}
