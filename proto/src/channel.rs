//! What the `channels` bucket holds: the chats that were seen, by name; home channels; and chats that have moved.

use serde::{Deserialize, Serialize};

use crate::event::Address;

/// A chat or thread that a message was taken from (key `chat.<platform>.<account>.<hash of chat and thread>`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Channel {
    /// Where it is.
    pub address: Address,
    /// What people call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// When it was first seen under this name, milliseconds since 1970; for people to read.
    pub since_ms: u64,
}

/// Where a platform's messages go that name no chat (key `home.<platform>`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Home {
    /// Where it is.
    pub address: Address,
    /// What people call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The id of the person who chose it.
    pub by: String,
    /// When, milliseconds since 1970; for people to read.
    pub since_ms: u64,
}

/// A chat that has a new id on its platform (key `moved.<platform>.<account>.<hash of the new id>`): its sessions keep the old
/// one in their keys, and with it their history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moved {
    /// The id that it had first.
    pub from: String,
    /// The id that it has now.
    pub to: String,
}
