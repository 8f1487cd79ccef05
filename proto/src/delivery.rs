//! What the `deliveries` bucket holds: what was tried of each thing to deliver, and what the platform answered.

use serde::{Deserialize, Serialize};

use crate::outbound::Outbound;

/// How a delivery ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The platform has it.
    Delivered,
    /// Given up.
    Dead,
}

/// A message on the platform.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shown {
    /// The platform's id of it.
    pub id: String,
    /// A hash of what it shows; empty when that is not known.
    #[serde(default)]
    pub content: String,
}

/// One line, under the id of what is delivered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// How it ended; none while it is in hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<End>,
    /// The platform.
    pub platform: String,
    /// The account.
    pub account: String,
    /// When it was written, milliseconds since 1970; for people to read.
    pub at_ms: u64,
    /// How often it was tried by the process that wrote this.
    #[serde(default)]
    pub tries: u32,
    /// Why it is dead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// What is dead, so that it can be looked at and sent again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outbound: Option<Outbound>,
    /// The messages that show it, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<Shown>,
    /// The key under which the next message is being sent: it may have arrived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<String>,
}
