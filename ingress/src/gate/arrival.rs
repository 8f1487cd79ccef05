//! What an adapter hands to the gate: something that came from its platform, in words that all platforms share.

use proto::event::{Line, Media, Quote};
use proto::session::ChatKind;

/// Something that came from a platform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// By what it is recognised when it comes again: within the duplicate window (two hours unless set otherwise) it is taken
    /// once, by whichever replica, before or after a restart. For a message it must name the message itself (with its chat, which
    /// the gate adds), never the event that brought it: a mention and the plain message beside it have one id. For an edit it
    /// names that version (the message's id with the time of the edit), for a button the press.
    pub id: String,
    /// What its sender did.
    pub deed: Deed,
    /// Where.
    pub place: Place,
    /// Who.
    pub sender: Sender,
    /// Whether it is meant for the agent.
    pub attention: Attention,
    /// The words, with the agent's own name behind a command removed (see [`proto::command::addressed`]); for a button the
    /// command that it stands for.
    pub text: String,
    /// What was attached, by reference.
    pub media: Vec<Media>,
    /// What it answers.
    pub reply_to: Option<Quote>,
    /// The conversation so far, when the client keeps it.
    pub history: Vec<Line>,
}

/// What its sender did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deed {
    /// They wrote a message, whose id is the arrival's.
    Wrote,
    /// They pressed a button of ours, or chose a command in the platform's own menu.
    Pressed,
    /// They changed a message: the text says what it says now.
    Edited {
        /// The message's id.
        message: String,
    },
    /// They took a message back.
    Withdrew {
        /// The message's id.
        message: String,
    },
}

/// Where something came from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The platform's id of the chat; empty where a platform has none for direct chats.
    pub chat: String,
    /// What sort of chat it is.
    pub kind: ChatKind,
    /// The thread or topic inside it.
    pub thread: Option<String>,
    /// The channel that a thread belongs to, where a thread is a chat of its own: its settings hold for the thread.
    pub parent: Option<String>,
    /// What people call the chat.
    pub name: Option<String>,
}

/// Who did something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sender {
    /// The platform's stable id of the person; empty if it does not say who it was. Where a platform has several (Signal's
    /// number and UUID, WhatsApp's JID and LID) the one that stays.
    pub id: String,
    /// The others.
    pub aliases: Vec<String>,
    /// What they call themselves: shown, never trusted.
    pub name: Option<String>,
    /// Whether it is a program.
    pub is_bot: bool,
    /// Their roles on the platform, by id.
    pub roles: Vec<String>,
}

/// Whether something in a group is meant for the agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attention {
    /// It mentions the agent.
    pub mentioned: bool,
    /// It answers a message of the agent.
    pub replied: bool,
}
