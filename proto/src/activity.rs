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

impl State {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Preparing,
        Self::WaitingForModel,
        Self::Streaming,
        Self::RunningTool,
        Self::WaitingForHuman,
        Self::WaitingForQuota,
        Self::Compressing,
        Self::Delegating,
    ];

    /// Its name, as it is written on the wire and in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Preparing => "preparing",
            Self::WaitingForModel => "waiting_for_model",
            Self::Streaming => "streaming",
            Self::RunningTool => "running_tool",
            Self::WaitingForHuman => "waiting_for_human",
            Self::WaitingForQuota => "waiting_for_quota",
            Self::Compressing => "compressing",
            Self::Delegating => "delegating",
        }
    }
}

/// The summary of a turn's progress. Ages are durations, so that no two machines' clocks are ever compared; the one time of day is
/// for people to read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Activity {
    /// What it is busy with.
    pub state: State,
    /// A few words on what it did last, for people.
    #[serde(default)]
    pub last_activity_desc: String,
    /// When the work last advanced, milliseconds since 1970, by the worker's clock: for people to read, never to decide by.
    #[serde(default)]
    pub last_activity_at_ms: u64,
    /// How long ago that was, milliseconds, by a clock that stands still while the machine sleeps.
    pub since_activity_ms: u64,
    /// The tool that runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_tool: Option<String>,
    /// How long the running tool may still take by its own deadline, milliseconds; it is not judged idle before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
    /// Model calls of the turn's own agent so far.
    pub api_call_count: u32,
    /// How many it may make.
    pub max_iterations: u32,
    /// Model calls so far, those of sub-agents and of earlier attempts too.
    #[serde(default)]
    pub budget_used: u32,
    /// How many all of them may make.
    #[serde(default)]
    pub budget_max: u32,
}
