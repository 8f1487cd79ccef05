//! What the `identities` bucket holds: people who were approved or shut out, and requests to be approved.

use serde::{Deserialize, Serialize};

use crate::access::Standing;
use crate::event::Address;
use crate::session::SessionKey;

/// What an operator decided about a person (key `person.<platform>.<hash of the id>`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Person {
    /// The platform.
    pub platform: String,
    /// The platform's id of the person, in normal form.
    pub id: String,
    /// A name to show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What was decided.
    pub standing: Standing,
    /// When, milliseconds since 1970; for people to read.
    pub since_ms: u64,
}

/// Someone unknown wrote (key `request.<platform>.<hash of the id>`). It expires by itself, and as long as it stands its person
/// gets no further answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// The platform.
    pub platform: String,
    /// The platform's id of the person, in normal form.
    pub id: String,
    /// A name to show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Where they wrote, to tell them.
    pub address: Address,
    /// The session's readable key.
    pub session: SessionKey,
    /// When they were answered, milliseconds since 1970; for people to read.
    pub asked_at_ms: u64,
    /// The code that they were given; none where too many others waited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<HiddenCode>,
}

/// A code that cannot be read back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HiddenCode {
    /// 16 random bytes, as hex.
    pub salt: String,
    /// SHA-256 of salt, platform, person and code, as hex.
    pub hash: String,
}

/// How often wrong codes were entered for a platform (key `failures.<platform>`). It expires by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failures {
    /// How many in a row.
    pub count: u32,
}
