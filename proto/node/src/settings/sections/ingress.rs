//! `[ingress]`: the front door.

use std::collections::BTreeMap;

use proto::event::BusyMode;
use serde::{Deserialize, Serialize};

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
    /// The generic webhooks, by name.
    pub webhook: BTreeMap<String, Webhook>,
}

impl Default for Ingress {
    fn default() -> Self {
        Self {
            token: Secret::default(),
            body_limit: 512 * 1024,
            delivery_limit: Span::seconds(24 * 3600),
            webhook: BTreeMap::new(),
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
