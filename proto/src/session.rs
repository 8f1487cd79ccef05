//! Session keys: which messages belong to one conversation. Made once, here, and collision-free for any ids.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::id::Sid;

/// What sort of place a chat is.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum ChatKind {
    /// Between one person and the agent.
    #[default]
    Dm,
    /// Several people.
    Group,
    /// A broadcast or team channel.
    Channel,
    /// A thread or topic that is a chat of its own.
    Thread,
}

impl fmt::Display for ChatKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Dm => "dm",
            Self::Group => "group",
            Self::Channel => "channel",
            Self::Thread => "thread",
        })
    }
}

/// The readable name of a session, `platform:kind:chat[:thread[:participant]]`, each part escaped so that two different
/// sessions can never have one name. It travels inside payloads; subjects and keys carry its [`Sid`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SessionKey(String);

/// The parts that make a session; `None` and `Some("")` are different.
#[derive(Clone, Copy, Debug)]
pub struct SessionParts<'a> {
    /// The platform's name, and for platforms with several bots its account.
    pub platform: &'a str,
    /// What sort of chat it is.
    pub kind: ChatKind,
    /// The platform's id of the chat.
    pub chat: &'a str,
    /// The thread or topic inside the chat.
    pub thread: Option<&'a str>,
    /// The person, where people in one chat have sessions of their own.
    pub participant: Option<&'a str>,
}

impl SessionKey {
    /// Builds the key of a session from its parts.
    #[must_use]
    pub fn new(parts: SessionParts<'_>) -> Self {
        let mut key = format!("{}:{}:{}", escaped(parts.platform), parts.kind, escaped(parts.chat));
        match (parts.thread, parts.participant) {
            (None, None) => {}
            (Some(thread), None) => key += &format!(":{}", escaped(thread)),
            // A marker that no escaped part can contain keeps "no thread" apart from a thread of any name.
            (None, Some(person)) => key += &format!(":@:{}", escaped(person)),
            (Some(thread), Some(person)) => {
                key += &format!(":{}:{}", escaped(thread), escaped(person))
            }
        }
        Self(key)
    }

    /// The session that `/background` at `seq` begins: named after this one, and no chat can have its name.
    #[must_use]
    pub fn background(&self, seq: crate::id::Seq) -> Self {
        Self(format!("{}:@background:{}", self.0, seq.get()))
    }

    /// The wire form: safe as a subject token and a bucket key, and hides the platform's ids.
    #[must_use]
    pub fn sid(&self) -> Sid {
        let digest = Sha256::digest(self.0.as_bytes());
        let mut half = [0; 16];
        half.copy_from_slice(&digest[..16]);
        Sid::new(u128::from_be_bytes(half))
    }
}

impl fmt::Display for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Percent-escapes what would make a key ambiguous or unreadable: the separator, the escape itself, `@` and control characters.
fn escaped(part: &str) -> String {
    let mut out = String::with_capacity(part.len());
    for c in part.chars() {
        if matches!(c, ':' | '%' | '@') || c.is_control() {
            let mut utf8 = [0; 4];
            for byte in c.encode_utf8(&mut utf8).bytes() {
                out += &format!("%{byte:02X}");
            }
        } else {
            out.push(c);
        }
    }
    out
}
