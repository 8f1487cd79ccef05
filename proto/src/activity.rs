//! What a turn is doing right now, as its worker reports it with each heartbeat.

use serde::{Deserialize, Serialize};

/// What the agent loop is busy with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Loading the conversation, fetching media.
    #[default]
    Preparing,
    /// A model request is out and nothing has come back yet.
    WaitingForModel,
    /// The model is answering.
    Streaming,
    /// A tool runs.
    RunningTool,
    /// Someone was asked and has not answered: the idle clock stands still.
    WaitingForHuman,
    /// The provider said to come back later.
    WaitingForQuota,
    /// The conversation is being compressed; not to be interrupted.
    Compressing,
    /// Sub-agents work; a plain message does not disturb them.
    Delegating,
}

/// The summary of a turn's progress. Ages are durations, so that no two machines' clocks are ever compared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Activity {
    /// What it is busy with.
    pub state: State,
    /// A few words on it, for people.
    #[serde(default)]
    pub detail: String,
    /// The tool that runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// How long ago the work last advanced, milliseconds.
    pub idle_ms: u64,
    /// How long the running tool may still take by its own deadline, milliseconds; it is not judged idle before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
    /// Model calls so far.
    pub iteration: u32,
    /// Model calls allowed.
    pub max_iterations: u32,
}
