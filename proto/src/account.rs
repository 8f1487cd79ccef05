//! Who holds an account of a platform: one process in the cluster polls it and delivers for it (`accounts` bucket).

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
