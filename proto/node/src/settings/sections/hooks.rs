//! `[hooks.<name>]`: programs and addresses that hear of what happens, and may judge commands.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::settings::values::{Secret, Span};

/// `[hooks.<name>]`: a program (`command`) or an address (`url`) that gets each event as JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Hook {
    /// What it hears of: names of events, or all of a kind (`session:*`, `command:*`, `*`).
    pub events: Vec<String>,
    /// The program; the event is its standard input.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its environment, beside the few harmless variables that every command gets.
    pub env: BTreeMap<String, Secret>,
    /// The address; the event is posted to it.
    pub url: String,
    /// A bearer token for it.
    pub token: Secret,
    /// How long one event may take.
    pub timeout: Span,
    /// What becomes of a command when the hook that is asked about it fails: `allow` or `deny`.
    pub on_error: OnError,
}

impl Default for Hook {
    fn default() -> Self {
        Self {
            events: Vec::new(),
            command: String::new(),
            args: Vec::new(),
            env: BTreeMap::new(),
            url: String::new(),
            token: Secret::default(),
            timeout: Span::seconds(5),
            on_error: OnError::Allow,
        }
    }
}

/// What becomes of a command whose hook fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnError {
    /// It is carried out.
    #[default]
    Allow,
    /// It is refused.
    Deny,
}
