//! `[ingress.slack.<name>]`: an app on Slack.

use serde::{Deserialize, Serialize};

use crate::settings::values::{Secret, Span};

/// `[ingress.slack.<name>]`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Slack {
    /// The bot's token, `xoxb-…`.
    pub bot_token: Secret,
    /// How events come.
    pub mode: SlackMode,
    /// The app's own token, `xapp-…` with the scope `connections:write`, for the mode `socket`.
    pub app_token: Secret,
    /// With what Slack signs its requests, for the mode `events`.
    pub signing_secret: Secret,
    /// Where the Web API is.
    pub base_url: String,
    /// Whether a message in a channel is answered in a thread below it, which then is a conversation of its own.
    pub reply_in_thread: bool,
    /// Whether the text of a running turn is shown as it grows.
    pub drafts: bool,
    /// How long a request may take.
    pub timeout: Span,
}

impl Default for Slack {
    fn default() -> Self {
        Self {
            bot_token: Secret::default(),
            mode: SlackMode::default(),
            app_token: Secret::default(),
            signing_secret: Secret::default(),
            base_url: "https://slack.com/api".into(),
            reply_in_thread: true,
            drafts: true,
            timeout: Span::seconds(20),
        }
    }
}

/// How an app's events come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SlackMode {
    /// Over a WebSocket that we open; no address of ours needs to be known outside.
    #[default]
    Socket,
    /// Slack posts them to our door.
    Events,
}
