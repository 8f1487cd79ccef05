//! What came from a platform and could not be read: set aside for a person, so that what comes later can pass.

use serde::{Deserialize, Serialize};

/// One such thing (`poison` bucket, key `<platform>.<account>.<hash>`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Poison {
    /// The platform.
    pub platform: String,
    /// The account that received it.
    pub account: String,
    /// What is wrong with it.
    pub why: String,
    /// What came, as text, cut if it is long.
    pub what: String,
    /// Its whole size, bytes.
    pub size: usize,
    /// When it came, milliseconds since 1970; for people to read.
    pub at_ms: u64,
}
