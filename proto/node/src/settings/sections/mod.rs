//! The settings themselves: what an operator can choose, a file for each section, with the defaults.

mod access;
mod agent;
mod cron;
mod discord;
mod hooks;
mod ingress;
mod model;
mod nats;
mod network;
mod scheduler;
mod slack;
mod streams;
mod telemetry;
mod worker;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use self::access::{Access, Bots, ChannelAccess, PlatformAccess, UnauthorizedDm};
pub use self::agent::{Acp, Agent, Edits, Limits};
pub use self::cron::{Cron, CronAccess};
pub use self::discord::Discord;
pub use self::hooks::{Hook, OnError};
pub use self::ingress::{Duplicates, Ingress, Telegram, TelegramMode, Webhook};
pub use self::model::Model;
pub use self::nats::Nats;
pub use self::network::Network;
pub use self::scheduler::Scheduler;
pub use self::slack::{Slack, SlackMode};
pub use self::streams::Streams;
pub use self::telemetry::{LogFormat, Telemetry};
pub use self::worker::{Mcp, SandboxMode, SearchKind, Speech, WebSearch, Worker};

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
    /// Scheduled jobs.
    pub cron: Cron,
    /// The model that answers.
    pub model: Model,
    /// The processes that run turns.
    pub worker: Worker,
    /// The front door.
    pub ingress: Ingress,
    /// Who may talk to the agent.
    pub access: Access,
    /// Programs and addresses that hear of what happens, by name.
    pub hooks: BTreeMap<String, Hook>,
    /// How other hosts are reached.
    pub network: Network,
    /// Logs and traces.
    pub telemetry: Telemetry,
}
