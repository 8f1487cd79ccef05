//! Session keys: which messages belong to one conversation. Made once, here, and collision-free for any ids.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::access::masked;
use crate::id::{JobId, Sid};

/// What stands between a chat's session and one that runs beside it. No part of a key can contain it: `@` is escaped.
const BACKGROUND: &str = ":@background:";
/// The same for the runs of a scheduled job.
const JOB: &str = ":@cron:";

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

impl ChatKind {
    /// The sort of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        [Self::Dm, Self::Group, Self::Channel, Self::Thread]
            .into_iter()
            .find(|kind| kind.to_string() == name)
    }
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

/// Where someone speaks, as far as it decides which session they speak in.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The platform's name, and for platforms with several bots its account.
    pub platform: &'a str,
    /// What sort of chat it is.
    pub kind: ChatKind,
    /// The platform's id of the chat; empty where it has none for direct chats.
    pub chat: &'a str,
    /// The thread or topic inside the chat.
    pub thread: Option<&'a str>,
    /// The person, by the platform's stable id; none where it does not say who speaks.
    pub person: Option<&'a str>,
}

/// Who has a session of their own in company.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Isolation {
    /// Each person in a group.
    pub per_user_in_groups: bool,
    /// Each person in a thread of a group, if also each person in a group.
    pub per_user_in_threads: bool,
}

impl Default for Isolation {
    fn default() -> Self {
        Self { per_user_in_groups: true, per_user_in_threads: false }
    }
}

impl<'a> Source<'a> {
    /// The parts of the session's key.
    #[must_use]
    pub fn parts(self, isolation: Isolation) -> SessionParts<'a> {
        let Self { platform, kind, chat, thread, person } = self;
        let alone = match kind {
            // A direct chat has one person; without an id of its own it is named by theirs.
            ChatKind::Dm => chat.is_empty(),
            ChatKind::Group | ChatKind::Channel if thread.is_none() => isolation.per_user_in_groups,
            ChatKind::Group | ChatKind::Channel | ChatKind::Thread => {
                isolation.per_user_in_groups && isolation.per_user_in_threads
            }
        };
        SessionParts { platform, kind, chat, thread, participant: person.filter(|_| alone) }
    }
}

impl SessionParts<'_> {
    /// Whether several people speak in the session.
    #[must_use]
    pub fn are_shared(&self) -> bool {
        self.kind != ChatKind::Dm && self.participant.is_none()
    }
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

    /// The name of its platform, and with it the account where a platform has several: as the key begins, unescaped names only.
    #[must_use]
    pub fn platform(&self) -> &str {
        self.0.split(':').next().unwrap_or_default()
    }

    /// A key as people type it from what `/whoami` shows; none if it is not one of a chat.
    #[must_use]
    pub fn typed(text: &str) -> Option<Self> {
        let key = Self(text.to_owned());
        key.place().is_some().then_some(key)
    }

    /// Where the session's chat is; none for a session that runs beside one.
    #[must_use]
    pub fn place(&self) -> Option<Place> {
        let mut parts = self.0.split(':');
        let platform = strictly_unescaped(parts.next()?)?;
        let kind = ChatKind::named(parts.next()?)?;
        let chat = strictly_unescaped(parts.next()?)?;
        let thread = match parts.next() {
            None | Some("@") => None,
            Some(thread) => Some(strictly_unescaped(thread)?),
        };
        let participant = parts.next().map(strictly_unescaped);
        if parts.next().is_some() || participant == Some(None) {
            return None;
        }
        Some(Place { platform, kind, chat, thread, participant: participant.flatten() })
    }

    /// The session that `/background` at `seq` begins: named after this one, and no chat can have its name.
    #[must_use]
    pub fn background(&self, seq: crate::id::Seq) -> Self {
        Self(format!("{}{BACKGROUND}{}", self.0, seq.get()))
    }

    /// The session in which the runs of a scheduled job take place, beside this one; no chat can have its name.
    #[must_use]
    pub fn of_job(&self, job: JobId) -> Self {
        Self(format!("{}{JOB}{job}", self.0))
    }

    /// The job whose runs take place here, with the session that it was made in; none for any other session.
    #[must_use]
    pub fn job(&self) -> Option<(Self, JobId)> {
        let (chat, job) = self.0.rsplit_once(JOB)?;
        Some((Self(chat.to_owned()), job.parse().ok()?))
    }

    /// The session of the chat that this one runs beside; itself if it is one.
    #[must_use]
    pub fn chat(&self) -> Self {
        let beside = [JOB, BACKGROUND].iter().filter_map(|mark| self.0.find(mark)).min();
        beside.map_or_else(|| self.clone(), |at| Self(self.0[..at].to_owned()))
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

/// A session's name for logs: as it is, or with hashes instead of the ids in it.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a> {
    key: &'a SessionKey,
    masked: bool,
}

impl SessionKey {
    /// The name for logs, with hashes instead of ids where they are not to be seen.
    #[must_use]
    pub const fn shown(&self, masked: bool) -> Shown<'_> {
        Shown { key: self, masked }
    }
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.masked {
            return f.write_str(&self.key.0);
        }
        let mut is_number = false;
        for (place, part) in self.key.0.split(':').enumerate() {
            if place > 0 {
                f.write_str(":")?;
            }
            // Platform, kind and markers are no ids, and neither is the number of a background session.
            if place < 2 || part.is_empty() || part.starts_with('@') || is_number {
                f.write_str(part)?;
            } else {
                f.write_str(&masked(&unescaped(part)))?;
            }
            is_number = part == "@background";
        }
        Ok(())
    }
}

impl fmt::Display for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The id that a part was made of.
fn unescaped(part: &str) -> String {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let hex = tail.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) if *first == b'%' => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            Some(_) | None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Where a session's chat is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The platform's name, and for platforms with several bots its account behind a `/`.
    pub platform: String,
    /// What sort of chat it is.
    pub kind: ChatKind,
    /// The platform's id of the chat.
    pub chat: String,
    /// The thread or topic inside the chat.
    pub thread: Option<String>,
    /// The person, where people in one chat have sessions of their own.
    pub participant: Option<String>,
}

/// What [`escaped`] was made of; none if it was not made by it.
fn strictly_unescaped(part: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'@' => return None,
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                let value = digit(rest.next())? * 16 + digit(rest.next())?;
                bytes.push(u8::try_from(value).ok()?);
            }
            _ => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).ok()
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
