//! `[telemetry]`: logs and traces.

use serde::{Deserialize, Serialize};

/// `[telemetry]`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Telemetry {
    /// What is logged: a level, or directives such as `info,talaria_scheduler=debug`.
    pub log: String,
    /// `text` or `json`.
    pub log_format: LogFormat,
}

impl Default for Telemetry {
    fn default() -> Self {
        Self { log: "info,async_nats=warn".into(), log_format: LogFormat::Text }
    }
}

/// How log lines are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// For programs, one object a line.
    Json,
}
