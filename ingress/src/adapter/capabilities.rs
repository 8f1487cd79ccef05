//! What platforms can do and want, as data: delivery follows it, the table in the documentation is made from it, and the
//! conformance suite holds every adapter to it.

use std::time::Duration;

use crate::markup::Dialect;

/// How an adapter wants the text of a running turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drafts {
    /// Not at all.
    None,
    /// Piece by piece, each as it comes: the other end puts them together.
    Pieces,
    /// The whole text so far (offset 0), in order with the chat's deliveries.
    Whole {
        /// The least time between two states of one turn's text.
        every: Duration,
        /// How many characters must have come since the last state.
        growth: usize,
    },
}

/// Whether what an adapter delivers outlives the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    /// It goes to an account of a platform: one process at a time delivers it, any can, and it is recorded that it was.
    Account,
    /// It goes to a connection that this process holds: without one, it is delivered by being kept as history.
    Connection,
}

/// How what people do reaches us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// They come to our door.
    Http,
    /// We ask again and again, each request waiting at the platform.
    LongPolling,
    /// The platform posts to our door.
    Webhook,
    /// A WebSocket that we open.
    WebSocket,
    /// A mailbox that we watch.
    Imap,
}

impl Transport {
    /// Its name, for people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http => "HTTP",
            Self::LongPolling => "long polling",
            Self::Webhook => "webhook",
            Self::WebSocket => "WebSocket",
            Self::Imap => "IMAP",
        }
    }
}

/// What a text is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// UTF-16 code units.
    Utf16,
    /// UTF-8 bytes.
    Bytes,
    /// Unicode scalar values.
    Chars,
}

impl Unit {
    /// How many of them a text has.
    #[must_use]
    pub fn count(self, text: &str) -> usize {
        match self {
            Self::Utf16 => text.encode_utf16().count(),
            Self::Bytes => text.len(),
            Self::Chars => text.chars().count(),
        }
    }

    /// Its name, for people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Utf16 => "UTF-16 units",
            Self::Bytes => "bytes",
            Self::Chars => "characters",
        }
    }
}

/// How long a message may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextLimit {
    /// So many units.
    pub max: usize,
    /// Counted in these.
    pub unit: Unit,
    /// Whether the marks of the dialect are counted, or only what people read.
    pub counts_markup: bool,
}

/// So many calls in a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// So many calls.
    pub calls: u32,
    /// In this time.
    pub per: Duration,
}

impl Rate {
    /// So many calls a second.
    #[must_use]
    pub const fn per_second(calls: u32) -> Self {
        Self { calls, per: Duration::from_secs(1) }
    }

    /// The pause between two calls that come evenly.
    #[must_use]
    pub fn every(self) -> Duration {
        self.per / self.calls.max(1)
    }
}

/// What the platform bears, beside what it says at the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rates {
    /// To one person.
    pub direct: Rate,
    /// To one group or channel.
    pub group: Rate,
    /// From one account.
    pub account: Rate,
}

/// How it is found out whether a send happened whose answer was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeats {
    /// The platform recognises the key: sending again is harmless.
    Key,
    /// The message can be looked for by its key.
    LookUp,
    /// Not at all: it is sent again, and says that it may be a duplicate (see `ingress.duplicates`).
    Never,
}

/// What a platform can do that shows messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Messages {
    /// How long one may be.
    pub text: TextLimit,
    /// How text is marked up.
    pub dialect: Dialect,
    /// Whether ours can be changed.
    pub edit: bool,
    /// Whether ours can be taken away.
    pub delete: bool,
    /// Whether emojis can be put under them.
    pub react: bool,
    /// For how long one "is typing" is shown; none if there is no such thing.
    pub typing: Option<Duration>,
    /// Whether they can have buttons.
    pub buttons: bool,
    /// Whether chats have threads or topics.
    pub threads: bool,
    /// Whether one can answer another.
    pub replies: bool,
    /// Whether people can send files to us, and how large at most, in bytes.
    pub media_in: Option<usize>,
    /// Whether we can send files, and how large at most, in bytes.
    pub media_out: Option<usize>,
    /// What becomes of a send whose answer was lost.
    pub repeats: Repeats,
    /// How many calls it bears.
    pub rates: Rates,
}

/// What a platform can do and wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// What people call it.
    pub name: &'static str,
    /// How what people do reaches us.
    pub transports: &'static [Transport],
    /// How it wants drafts.
    pub drafts: Drafts,
    /// Where its deliveries go.
    pub binding: Binding,
    /// What its messages can do; none for one that takes our things as they are, and shows them itself.
    pub messages: Option<Messages>,
    /// What the adapter is tested against.
    pub tested: &'static str,
}
