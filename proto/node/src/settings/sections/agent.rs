//! `[agent]`: how the agent behaves.

use std::collections::BTreeMap;

use proto::event::BusyMode;
use serde::{Deserialize, Serialize};

use crate::settings::values::{Secret, Span};

/// `[agent]`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Agent {
    /// What a message does to a running turn: `interrupt`, `queue`, `steer`, `collect`, `reject` or `rollback`.
    pub busy_mode: BusyMode,
    /// What the change of a message does whose turn runs: `ignore`, `steer` or `interrupt`.
    pub edits: Edits,
    /// Whether `/stop` sets the conversation aside, so that the next message begins a fresh one.
    pub stop_suspends: bool,
    /// After how long without progress a turn is stopped; 0 means never.
    pub timeout: Span,
    /// After how long without progress the person is warned; 0 means never.
    pub timeout_warning: Span,
    /// How often the person is told that a long turn still works; 0 means never.
    pub notify_interval: Span,
    /// How many model calls a turn may make.
    pub max_iterations: u32,
    /// How full the model's context may become during a turn before the conversation is compressed, percent.
    pub compress_percent: u8,
    /// How full it may be before a turn, percent.
    pub compress_before_percent: u8,
    /// Another agent that carries the turns out.
    pub acp: Acp,
    /// How many sub-agents one call may put to work.
    pub delegates: usize,
    /// How many levels of sub-agents there may be; 0 means none.
    pub delegate_depth: u8,
    /// How many model calls a sub-agent may make, out of the turn's.
    pub delegate_iterations: u32,
    /// How long an approval is waited for.
    pub approval_timeout: Span,
    /// What no one is asked about, by the reason that would be given: `"changes the firewall"`.
    pub approved: Vec<String>,
    /// The instructions that each conversation begins with.
    pub system_prompt: String,
}

impl Default for Agent {
    fn default() -> Self {
        Self {
            busy_mode: BusyMode::Interrupt,
            edits: Edits::Ignore,
            stop_suspends: true,
            timeout: Span::seconds(1800),
            timeout_warning: Span::seconds(900),
            notify_interval: Span::seconds(600),
            max_iterations: 90,
            compress_percent: 50,
            compress_before_percent: 85,
            acp: Acp::default(),
            delegates: 3,
            delegate_depth: 2,
            delegate_iterations: 50,
            approval_timeout: Span::seconds(300),
            approved: Vec::new(),
            system_prompt: "You are a helpful assistant that people talk to in a chat. Answer briefly. Use the tools \
                            when they help, and say what you did."
                .into(),
        }
    }
}

/// What the change of a message does to the turn that it leads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Edits {
    /// Nothing: the turn has begun with what was written.
    #[default]
    Ignore,
    /// The turn hears of it as a hint.
    Steer,
    /// The turn is stopped, and the new words are next.
    Interrupt,
}

/// `[agent.acp]`: a program that speaks the Agent Client Protocol; without a command the built-in agent answers.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Acp {
    /// The program.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its environment, beside the few harmless variables that every command gets.
    pub env: BTreeMap<String, Secret>,
}
