//! `[ingress]`: the front door.

use std::collections::BTreeMap;

use proto::event::BusyMode;
use serde::{Deserialize, Serialize};

use super::{Discord, Slack};
use crate::settings::values::{Secret, Span};

/// `[ingress]`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Ingress {
    /// Who may use the chat page and the API: whoever has this token. Empty turns both off.
    pub token: Secret,
    /// The largest request body, in bytes.
    pub body_limit: usize,
    /// How long a delivery is tried before it is given up as dead.
    pub delivery_limit: Span,
    /// What is done with a message that may have arrived, where the platform cannot tell.
    pub duplicates: Duplicates,
    /// The generic webhooks, by name.
    pub webhook: BTreeMap<String, Webhook>,
    /// The bots on Telegram, by name.
    pub telegram: BTreeMap<String, Telegram>,
    /// The apps on Slack, by name.
    pub slack: BTreeMap<String, Slack>,
    /// The bots on Discord, by name.
    pub discord: BTreeMap<String, Discord>,
}

/// What is done with a message that may have arrived: its answer was lost, and the platform cannot be asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Duplicates {
    /// It is sent again, and says that it may be a duplicate.
    #[default]
    Label,
    /// It is sent again as it is.
    Repeat,
    /// It is not sent again, and listed as not delivered.
    Withhold,
}

impl Default for Ingress {
    fn default() -> Self {
        Self {
            token: Secret::default(),
            body_limit: 512 * 1024,
            delivery_limit: Span::seconds(24 * 3600),
            duplicates: Duplicates::default(),
            webhook: BTreeMap::new(),
            telegram: BTreeMap::new(),
            slack: BTreeMap::new(),
            discord: BTreeMap::new(),
        }
    }
}

/// `[ingress.webhook.<name>]`
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Webhook {
    /// The shared secret that signs both ways.
    pub secret: Secret,
    /// Where replies are posted.
    pub callback_url: String,
    /// Whether any sender may talk to the agent.
    pub allow_all: bool,
    /// The senders who may, by id.
    pub allowed_users: Vec<String>,
    /// Whether someone else who writes in private gets a pairing code, through the callback.
    pub pair: bool,
    /// The senders who may use the commands of administrators, by id.
    pub admins: Vec<String>,
    /// Whether partial text is posted too.
    pub drafts: bool,
    /// What a message does to a running turn; none means as `[agent]` says.
    pub busy_mode: Option<BusyMode>,
}

/// `[ingress.telegram.<name>]`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Telegram {
    /// The bot's token, from its maker on Telegram.
    pub token: Secret,
    /// How updates come.
    pub mode: TelegramMode,
    /// Where Telegram reaches our door, for the mode `webhook`: `https://example.org`.
    pub public_url: String,
    /// What Telegram proves itself with, for the mode `webhook`: 1 to 256 letters, digits, `-` and `_`.
    pub webhook_secret: Secret,
    /// Where the Bot API is, for a server of one's own.
    pub base_url: String,
    /// Whether the text of a running turn is shown as it grows.
    pub drafts: bool,
    /// How long one request waits for updates.
    pub poll: Span,
    /// How long any other request may take.
    pub timeout: Span,
}

impl Default for Telegram {
    fn default() -> Self {
        Self {
            token: Secret::default(),
            mode: TelegramMode::default(),
            public_url: String::new(),
            webhook_secret: Secret::default(),
            base_url: "https://api.telegram.org".into(),
            drafts: true,
            poll: Span::seconds(30),
            timeout: Span::seconds(20),
        }
    }
}

/// How a bot's updates come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TelegramMode {
    /// We ask for them.
    #[default]
    Polling,
    /// Telegram posts them to us.
    Webhook,
}
