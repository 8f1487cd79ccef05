//! `[access]`: who may talk to the agent, and how it behaves in company.

use std::collections::BTreeMap;

use proto::event::BusyMode;
use proto::session::Isolation;
use serde::{Deserialize, Serialize};

use crate::settings::values::list;

/// `[access]`: nobody, unless something here says otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Access {
    /// Whether everyone on every platform may talk to the agent.
    pub allow_all: bool,
    /// The people who may, on whichever platform, by the platform's id; `*` is everyone.
    #[serde(deserialize_with = "list")]
    pub allowed_users: Vec<String>,
    /// Whether logs, metrics and prompts show hashes instead of the ids of people and chats.
    pub redact_pii: bool,
    /// What holds for one platform (`telegram`), or for one of its accounts (`telegram/main`), which then goes before.
    pub platform: BTreeMap<String, PlatformAccess>,
}

/// `[access.platform.<name>]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PlatformAccess {
    /// Whether everyone on the platform may talk to the agent.
    pub allow_all: bool,
    /// The people who may, by the platform's stable id; `*` is everyone.
    #[serde(deserialize_with = "list")]
    pub allowed_users: Vec<String>,
    /// The groups in which everyone may, by the chat's id.
    #[serde(deserialize_with = "list")]
    pub allowed_groups: Vec<String>,
    /// The roles whose holders may, by the platform's id.
    #[serde(deserialize_with = "list")]
    pub allowed_roles: Vec<String>,
    /// Whether other bots are listened to.
    pub allow_bots: Bots,
    /// What someone unknown gets who writes in private: a pairing code, or nothing.
    pub unauthorized_dm: Option<UnauthorizedDm>,
    /// The people who may use every command; empty means that all may use all but those for administrators.
    #[serde(deserialize_with = "list")]
    pub admins: Vec<String>,
    /// The commands that the others may use where there are administrators, beside `help` and `whoami`.
    #[serde(deserialize_with = "list")]
    pub user_commands: Vec<String>,
    /// The same as `admins`, for groups; empty means as in private.
    #[serde(deserialize_with = "list")]
    pub group_admins: Vec<String>,
    /// The same as `user_commands`, for groups; empty means as in private.
    #[serde(deserialize_with = "list")]
    pub group_user_commands: Vec<String>,
    /// Whether a message in a group must mention the agent or answer it.
    pub require_mention: bool,
    /// Whether that also holds in threads in which the agent has already taken part.
    pub thread_require_mention: bool,
    /// Words that count as a mention, as regular expressions, without regard to case.
    #[serde(deserialize_with = "list")]
    pub mention_patterns: Vec<String>,
    /// The channels in which every message is for the agent, by id; for one topic `<chat>/<thread>`.
    #[serde(deserialize_with = "list")]
    pub free_channels: Vec<String>,
    /// The channels in which nothing is.
    #[serde(deserialize_with = "list")]
    pub ignored_channels: Vec<String>,
    /// The only groups that are listened to; empty means all.
    #[serde(deserialize_with = "list")]
    pub only_channels: Vec<String>,
    /// Whether each person in a group has a conversation of their own.
    pub group_sessions_per_user: bool,
    /// Whether each person in a thread has one too.
    pub thread_sessions_per_user: bool,
    /// What a message does to a running turn; none means as `[agent]` says.
    pub busy_mode: Option<BusyMode>,
    /// What holds for one channel, by its id; for one topic `<chat>/<thread>`.
    pub channel: BTreeMap<String, ChannelAccess>,
}

impl Default for PlatformAccess {
    fn default() -> Self {
        Self {
            allow_all: false,
            allowed_users: Vec::new(),
            allowed_groups: Vec::new(),
            allowed_roles: Vec::new(),
            allow_bots: Bots::None,
            unauthorized_dm: None,
            admins: Vec::new(),
            user_commands: Vec::new(),
            group_admins: Vec::new(),
            group_user_commands: Vec::new(),
            require_mention: true,
            thread_require_mention: false,
            mention_patterns: Vec::new(),
            free_channels: Vec::new(),
            ignored_channels: Vec::new(),
            only_channels: Vec::new(),
            group_sessions_per_user: true,
            thread_sessions_per_user: false,
            busy_mode: None,
            channel: BTreeMap::new(),
        }
    }
}

impl PlatformAccess {
    /// Who shares a session.
    #[must_use]
    pub const fn isolation(&self) -> Isolation {
        Isolation {
            per_user_in_groups: self.group_sessions_per_user,
            per_user_in_threads: self.thread_sessions_per_user,
        }
    }
}

/// `[access.platform.<name>.channel.<id>]`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ChannelAccess {
    /// What the agent is told about the channel when a conversation begins there.
    pub prompt: Option<String>,
    /// The model that answers there, unless its people choose one.
    pub model: Option<String>,
    /// What a message does to a running turn.
    pub busy_mode: Option<BusyMode>,
}

/// Whether other bots are listened to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bots {
    /// Never: two bots can talk to each other for ever.
    #[default]
    None,
    /// Where they mention the agent.
    Mentions,
    /// Like people. They must be allowed like people, too.
    All,
}

/// What someone unknown gets who writes in private.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnauthorizedDm {
    /// A code that an operator can approve.
    #[default]
    Pair,
    /// Nothing.
    Ignore,
}

impl Access {
    /// What holds for one account.
    #[must_use]
    pub fn of(&self, platform: &str, account: &str) -> PlatformAccess {
        let own = self.platform.get(&format!("{platform}/{account}"));
        own.or_else(|| self.platform.get(platform)).cloned().unwrap_or_default()
    }
}
