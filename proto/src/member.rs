//! Who is alive: each process keeps one key in the `members` bucket fresh (`<role>.<id>`).

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::id::ProcessId;

/// What a process does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Talks to platforms.
    Ingress,
    /// Decides.
    Scheduler,
    /// Runs turns.
    Worker,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ingress => "ingress",
            Self::Scheduler => "scheduler",
            Self::Worker => "worker",
        })
    }
}

/// A live process.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Member {
    /// What it does.
    pub role: Role,
    /// Its id, new with each start.
    pub id: ProcessId,
    /// The place it runs in (pod or host name). A new process in the same slot proves that the one before is dead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot: Option<String>,
    /// How many turns it runs.
    #[serde(default)]
    pub turns: u32,
}
