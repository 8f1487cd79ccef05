//! `[network]`: how hosts outside are reached.

use serde::{Deserialize, Serialize};

/// `[network]`
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Network {
    /// Whether only IPv4 is used, for hosts with a broken IPv6.
    pub force_ipv4: bool,
}
