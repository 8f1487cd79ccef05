//! `[ingress.discord.<name>]`: a bot on Discord.

use serde::{Deserialize, Serialize};

use crate::settings::values::{Secret, Span};

/// `[ingress.discord.<name>]`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Discord {
    /// The bot's token.
    pub token: Secret,
    /// The application's public key, in hex: with it, buttons and commands may come to `/discord/<name>` on our door instead of
    /// over the gateway. Empty turns the address off.
    pub public_key: String,
    /// Where the API is, with its version.
    pub base_url: String,
    /// Whether the text of a running turn is shown as it grows.
    pub drafts: bool,
    /// How long a request may take.
    pub timeout: Span,
}

impl Default for Discord {
    fn default() -> Self {
        Self {
            token: Secret::default(),
            public_key: String::new(),
            base_url: "https://discord.com/api/v10".into(),
            drafts: true,
            timeout: Span::seconds(20),
        }
    }
}
