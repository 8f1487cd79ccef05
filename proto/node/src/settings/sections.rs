//! The settings themselves: what an operator can choose, section by section, with the defaults.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use proto::event::BusyMode;
use proto::topology::Retentions;
use serde::{Deserialize, Serialize};

use super::values::{Secret, Span};

/// Everything that can be set.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// How to reach the broker.
    pub nats: Nats,
    /// The streams; fixed when they are created.
    pub streams: Streams,
    /// Leases and deadlines.
    pub scheduler: Scheduler,
    /// How the agent behaves.
    pub agent: Agent,
    /// The model that answers.
    pub model: Model,
    /// The processes that run turns.
    pub worker: Worker,
    /// The front door.
    pub ingress: Ingress,
    /// Logs and traces.
    pub telemetry: Telemetry,
}

/// `[nats]`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Nats {
    /// Where the broker is; several addresses of one cluster are separated by commas.
    pub url: String,
    /// A credentials file (`.creds`), if the broker asks for one.
    pub credentials: Option<PathBuf>,
    /// A user name, if the broker asks for one.
    pub user: String,
    /// Its password.
    pub password: Secret,
    /// A file with the certificates of the authorities to trust, for TLS with a private authority.
    pub ca_file: Option<PathBuf>,
}

impl Default for Nats {
    fn default() -> Self {
        Self {
            url: "nats://127.0.0.1:4222".into(),
            credentials: None,
            user: String::new(),
            password: Secret::default(),
            ca_file: None,
        }
    }
}

/// `[streams]`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Streams {
    /// On how many brokers each message is stored: 3 in production.
    pub replicas: usize,
    /// Into how many parts the sessions are divided; the largest useful number of schedulers.
    pub partitions: u16,
    /// How long inputs are kept, and with them the memory of what was applied.
    pub inbox_retention: Span,
    /// How long a message id is remembered: a repetition within it is refused as a duplicate.
    pub duplicate_window: Span,
    /// How long receipts are kept.
    pub events_retention: Span,
}

impl Default for Streams {
    fn default() -> Self {
        Self {
            replicas: 1,
            partitions: 64,
            inbox_retention: Span::seconds(72 * 3600),
            duplicate_window: Span::seconds(2 * 3600),
            events_retention: Span::seconds(7 * 24 * 3600),
        }
    }
}

impl Streams {
    /// The chosen retentions.
    #[must_use]
    pub const fn retentions(&self) -> Retentions {
        Retentions {
            inbox: self.inbox_retention.get(),
            duplicate_window: self.duplicate_window.get(),
            events: self.events_retention.get(),
        }
    }
}

/// `[scheduler]`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Scheduler {
    /// How often a worker beats.
    pub beat: Span,
    /// After what silence a worker's turns are given to another.
    pub lease_ttl: Span,
    /// How long a worker may take to confirm a stop before the session goes on without it.
    pub stop_deadline: Span,
    /// How many messages may wait in one session.
    pub queue_limit: usize,
    /// How many turns in a row may be interrupted before messages wait instead.
    pub interrupt_depth: u8,
    /// How many attempts of a turn may die with their worker before it is given up.
    pub attempts: u8,
    /// How long it must be quiet before the pictures of an album, or pictures in a row, become a turn.
    pub album_quiet: Span,
    /// How long they are waited for at most.
    pub album_most: Span,
    /// How long it must be quiet before messages in the mode `collect` become a turn.
    pub collect_quiet: Span,
    /// How long they are waited for at most.
    pub collect_most: Span,
}

impl Default for Scheduler {
    fn default() -> Self {
        Self {
            beat: Span::seconds(2),
            lease_ttl: Span::seconds(15),
            stop_deadline: Span::seconds(5),
            queue_limit: 32,
            interrupt_depth: 3,
            attempts: 3,
            album_quiet: Duration::from_millis(800).into(),
            album_most: Span::seconds(5),
            collect_quiet: Duration::from_millis(350).into(),
            collect_most: Span::seconds(1),
        }
    }
}

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
    /// The senders who may use the commands of administrators, by id.
    pub admins: Vec<String>,
    /// Whether partial text is posted too.
    pub drafts: bool,
    /// What a message does to a running turn; none means as `[agent]` says.
    pub busy_mode: Option<BusyMode>,
}

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
