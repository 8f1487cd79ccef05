//! `[worker]`: the processes that run turns, and what their tools may do.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::settings::values::{Secret, Span};

/// `[worker]`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Worker {
    /// Which orders it takes.
    pub pool: String,
    /// How many turns it runs at once.
    pub capacity: usize,
    /// Where the terminal and file tools work.
    pub workspace: PathBuf,
    /// How long running turns may take to reach a step boundary when the worker is told to stop.
    pub drain: Span,
    /// After how long a terminal command is stopped.
    pub tool_timeout: Span,
    /// Whether `/stop` and `/new` also end what the session runs in the background.
    pub stop_ends_background: bool,
    /// Whether terminal commands are kept in by Landlock: `auto` (where the system can), `required` or `off`.
    pub sandbox: SandboxMode,
    /// What commands may read beside the system and the workspace.
    pub sandbox_read: Vec<PathBuf>,
    /// The largest file that a command may write, megabytes.
    pub file_limit_mb: u64,
    /// How much memory each process of a command may map, megabytes; 0 means no limit.
    pub memory_limit_mb: u64,
    /// The MCP servers whose tools the agent has, by name.
    pub mcp: BTreeMap<String, Mcp>,
    /// The service that `web_search` asks.
    pub search: WebSearch,
    /// The service that turns sound into words, and words into sound.
    pub speech: Speech,
    /// The model that looks at pictures for one that cannot see: `openai:NAME` or `anthropic:NAME`; empty means none does.
    pub vision_model: String,
    /// Whether `web_fetch` may reach this machine and private networks.
    pub fetch_private: bool,
    /// The place the process runs in (a pod's name): a new process in the same slot proves that the one before is dead.
    pub slot: String,
}

impl Default for Worker {
    fn default() -> Self {
        Self {
            pool: "default".into(),
            capacity: 256,
            workspace: PathBuf::from(".talaria/workspace"),
            drain: Span::seconds(10),
            tool_timeout: Span::seconds(600),
            stop_ends_background: true,
            sandbox: SandboxMode::Auto,
            sandbox_read: Vec::new(),
            file_limit_mb: 4096,
            memory_limit_mb: 0,
            mcp: BTreeMap::new(),
            search: WebSearch::default(),
            speech: Speech::default(),
            vision_model: String::new(),
            fetch_private: false,
            slot: String::new(),
        }
    }
}

/// How much is asked of the sandbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxMode {
    /// What the system can do.
    #[default]
    Auto,
    /// All of it, or the worker does not start.
    Required,
    /// Nothing.
    Off,
}

/// `[worker.mcp.<name>]`: a server that is started (`command`) or reached over HTTP (`url`).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Mcp {
    /// The program.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its environment, beside the few harmless variables that every command gets.
    pub env: BTreeMap<String, Secret>,
    /// The address, for a server that runs elsewhere.
    pub url: String,
    /// A bearer token for it.
    pub token: Secret,
    /// How long connecting may take.
    pub connect: Span,
    /// How long a call may take; 0 means no limit.
    pub timeout: Span,
    /// Whether its tools change nothing, so that several calls may run at once.
    pub read_only: bool,
}

impl Default for Mcp {
    fn default() -> Self {
        Self {
            command: String::new(),
            args: Vec::new(),
            env: BTreeMap::new(),
            url: String::new(),
            token: Secret::default(),
            connect: Span::seconds(10),
            timeout: Span::seconds(300),
            read_only: false,
        }
    }
}

/// `[worker.speech]`: a service with the OpenAI form of `/audio/transcriptions` and `/audio/speech`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Speech {
    /// Its address, up to `/audio`; empty means that there is no such service.
    pub url: String,
    /// Its key.
    pub key: Secret,
    /// The model that listens; empty means that none does.
    pub listen_model: String,
    /// The model that speaks; empty means that none does.
    pub speak_model: String,
    /// The voice that it speaks with.
    pub voice: String,
    /// How long one request may take.
    pub timeout: Span,
}

impl Default for Speech {
    fn default() -> Self {
        Self {
            url: String::new(),
            key: Secret::default(),
            listen_model: "whisper-1".into(),
            speak_model: "gpt-4o-mini-tts".into(),
            voice: "alloy".into(),
            timeout: Span::seconds(60),
        }
    }
}

/// `[worker.search]`: without an address or a key there is no `web_search`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct WebSearch {
    /// Which service: `searxng` (by its address), `brave` or `tavily` (by a key).
    pub kind: SearchKind,
    /// Its address; empty means the service's usual one.
    pub url: String,
    /// Its key.
    pub key: Secret,
}

/// A service that searches the web.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchKind {
    /// A SearXNG of one's own.
    #[default]
    Searxng,
    /// Brave Search.
    Brave,
    /// Tavily.
    Tavily,
}
