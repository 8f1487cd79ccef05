//! Who holds an account of a platform: one process in the cluster polls it and delivers for it (`accounts` bucket). And how far
//! that process has come.

use serde::{Deserialize, Serialize};

use crate::id::ProcessId;

/// The holder of an account. It writes this again and again; whoever sees it unchanged for long enough takes its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The process.
    pub process: ProcessId,
    /// The platform.
    pub platform: String,
    /// What the account is called there. Two names for one identity are a mistake of the settings.
    pub account: String,
    /// Counts the times that it was written: each is a sign of life.
    pub beat: u64,
}

/// How far the connection of an account has come (`accounts` bucket), for whoever makes it next: where a platform tells what
/// happens only to who listens, but again to who goes on with an earlier session of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cursor {
    /// The platform's id of the session.
    pub session: String,
    /// Where it goes on.
    pub url: String,
    /// The last event that is stored, by its number in the session.
    pub seq: u64,
}
