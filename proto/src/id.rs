//! Identifiers and counters: opaque, ordered, cheap to copy, and the same text in logs, on the wire and in subjects.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest, Sha256};

/// Text that is not an identifier of the expected form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a valid {what}: {text:?}")]
pub struct IdError {
    /// What was expected, for example `session id`.
    pub what: &'static str,
    /// What was found.
    pub text: String,
}

macro_rules! counter {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(u64);

        impl $name {
            /// Wraps a number that came from outside (a stream sequence, a stored record).
            #[must_use]
            pub const fn new(value: u64) -> Self {
                Self(value)
            }

            /// The bare number, for an API that wants one.
            #[must_use]
            pub const fn get(self) -> u64 {
                self.0
            }

            /// The one after this.
            #[must_use]
            pub const fn next(self) -> Self {
                Self(self.0 + 1)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    };
}

counter!(
    /// The place of an input in the `INBOX` stream; 0 stands before the first.
    Seq, "i"
);
counter!(
    /// A turn, named by the `INBOX` sequence of the input that leads it: an input leads at most one turn.
    TurnId, "t"
);
counter!(
    /// Which try at a turn this is: 1 is the first. Only grows; the fence of everything a worker writes.
    Attempt, "a"
);
counter!(
    /// Which owner of a partition wrote this: raised by each new owner. Only grows.
    Epoch, "e"
);
counter!(
    /// A conversation of a session, named by the turn that began it.
    ConversationId, "c"
);

impl Attempt {
    /// The first try.
    pub const FIRST: Self = Self(1);
}

impl From<Seq> for TurnId {
    fn from(seq: Seq) -> Self {
        Self(seq.0)
    }
}

impl From<TurnId> for ConversationId {
    fn from(turn: TurnId) -> Self {
        Self(turn.0)
    }
}

macro_rules! hex_id {
    ($(#[$doc:meta])* $name:ident, $repr:ty, $digits:literal, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name($repr);

        impl $name {
            /// Wraps the bits of an identifier made elsewhere (a hash, a random source).
            #[must_use]
            pub const fn new(bits: $repr) -> Self {
                Self(bits)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!("{:0", $digits, "x}"), self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                let lower = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
                let error = || IdError { what: $what, text: text.to_owned() };
                if text.len().to_string() != $digits || !text.bytes().all(lower) {
                    return Err(error());
                }
                <$repr>::from_str_radix(text, 16).map(Self).map_err(|_| error())
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                text.parse().map_err(de::Error::custom)
            }
        }
    };
}

hex_id!(
    /// A session on the wire: 128 bits of the SHA-256 of its readable key, as 32 lowercase hex digits.
    Sid, u128, "32", "session id"
);
hex_id!(
    /// One process of ours, new with each start: 64 random bits as 16 lowercase hex digits.
    ProcessId, u64, "16", "process id"
);

hex_id!(
    /// A scheduled job, unique within its chat: 32 bits as 8 lowercase hex digits, short enough to be typed.
    JobId, u32, "8", "job id"
);

impl JobId {
    /// The id of the job that a request makes: derived from what names the request, so that a repetition gives the same.
    #[must_use]
    pub fn of_request(request: &str) -> Self {
        let mut head = [0; 4];
        head.copy_from_slice(&Sha256::digest(request.as_bytes())[..4]);
        Self(u32::from_be_bytes(head))
    }
}

/// One of the P parts of the session space; its scheduler decides for all sessions in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Partition(u16);

impl Partition {
    /// Wraps a number below the partition count.
    #[must_use]
    pub const fn new(index: u16) -> Self {
        Self(index)
    }

    /// The partition of a session: FNV-1a 32 of the hex session id modulo `count`, as the broker's `partition()` computes it.
    #[must_use]
    pub fn of(sid: Sid, count: u16) -> Self {
        let mut hash: u32 = 0x811c_9dc5;
        for byte in sid.to_string().bytes() {
            hash = (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
        }
        let index = hash % u32::from(count.max(1));
        Self(u16::try_from(index).unwrap_or_default())
    }

    /// All partitions of a system with `count` of them.
    pub fn all(count: u16) -> impl Iterator<Item = Self> {
        (0..count).map(Self)
    }
}

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A question of a turn to a person: which one, of which attempt. A new attempt closes the asks of the earlier one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AskId {
    /// The turn that asks.
    pub turn: TurnId,
    /// Its attempt.
    pub attempt: Attempt,
    /// Counts the asks of the attempt from 1.
    pub number: u32,
}

impl fmt::Display for AskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.turn.get(), self.attempt.get(), self.number)
    }
}

impl fmt::Debug for AskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for AskId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let mut parts = text.splitn(3, '-').map(str::parse::<u64>);
        match (parts.next(), parts.next(), parts.next()) {
            (Some(Ok(turn)), Some(Ok(attempt)), Some(Ok(number))) => Ok(Self {
                turn: TurnId::new(turn),
                attempt: Attempt::new(attempt),
                number: u32::try_from(number)
                    .map_err(|_| IdError { what: "ask id", text: text.to_owned() })?,
            }),
            _ => Err(IdError { what: "ask id", text: text.to_owned() }),
        }
    }
}

impl Serialize for AskId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for AskId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

/// One thing to deliver: derived from what caused it, so that producing it again gives the same id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OutboundId(String);

impl OutboundId {
    /// What an input caused directly (an acknowledgement, a refusal, an answer to a command).
    #[must_use]
    pub fn of_input(seq: Seq, what: &str) -> Self {
        Self(format!("m{}-{what}", seq.get()))
    }

    /// What follows something that was said before.
    #[must_use]
    pub fn following(first: &Self, what: &str) -> Self {
        Self(format!("{}-{what}", first.0))
    }

    /// What something caused that came to the gate and is no input: `arrival` names it among everything that comes there.
    #[must_use]
    pub fn of_arrival(arrival: &str, what: &str) -> Self {
        Self(format!("a{arrival}-{what}"))
    }

    /// What a turn caused (its reply, a notice, a question).
    #[must_use]
    pub fn of_turn(turn: TurnId, what: &str) -> Self {
        Self(format!("t{}-{what}", turn.get()))
    }
}

impl fmt::Display for OutboundId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
