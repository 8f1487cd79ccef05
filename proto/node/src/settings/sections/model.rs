//! `[model]`: the model that answers.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::settings::values::{Secret, Span};

/// `[model]`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Model {
    /// `scripted`, `openai:NAME` or `anthropic:NAME`; empty chooses by the keys that are set.
    pub name: String,
    /// Who answers when that one cannot, in this order.
    pub fallbacks: Vec<String>,
    /// How many tokens the model reads at most; 0 means what is known of it by its name.
    pub context_tokens: u64,
    /// The address of an OpenAI-compatible API (also `OPENAI_BASE_URL`).
    pub openai_base_url: String,
    /// Its key (also `OPENAI_API_KEY`).
    pub openai_api_key: Secret,
    /// The address of the Anthropic API (also `ANTHROPIC_BASE_URL`).
    pub anthropic_base_url: String,
    /// Its key (also `ANTHROPIC_API_KEY`).
    pub anthropic_api_key: Secret,
    /// The longest answer, in tokens.
    pub max_tokens: u32,
    /// After how long without a byte a streaming answer counts as stalled; 0 means never.
    pub stall: Span,
    /// How long the scripted model takes for each word.
    pub scripted_pace: Span,
}

impl Default for Model {
    fn default() -> Self {
        Self {
            name: String::new(),
            fallbacks: Vec::new(),
            context_tokens: 0,
            openai_base_url: "https://api.openai.com/v1".into(),
            openai_api_key: Secret::default(),
            anthropic_base_url: "https://api.anthropic.com".into(),
            anthropic_api_key: Secret::default(),
            max_tokens: 8192,
            stall: Span::seconds(180),
            scripted_pace: Duration::from_millis(40).into(),
        }
    }
}
