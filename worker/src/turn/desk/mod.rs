//! The tools that belong to a turn rather than to the worker: they ask its person, read its past, or put other agents to work.

mod clarify;
mod cron;
mod delegate;
mod look;
mod memory;
mod past;
mod send;
mod todo;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

pub(super) use self::memory::{known_of, person};
use super::work::Work;
use crate::models::ToolSpec;
use crate::tools::Output;
use crate::tools::danger::Danger;

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Desk {
    /// The list of what is to be done.
    Todo,
    /// What is to be known of the person for good.
    Memory,
    /// What was said before.
    Past,
    /// A question to the person.
    Clarify,
    /// Agents that work for this one.
    Delegate,
    /// A look at a picture.
    Look,
    /// A message to another chat.
    Send,
    /// What is to be done at set times.
    Cron,
}

impl Desk {
    /// All of them.
    pub(crate) const ALL: [Self; 8] = [
        Self::Todo,
        Self::Memory,
        Self::Past,
        Self::Clarify,
        Self::Delegate,
        Self::Look,
        Self::Send,
        Self::Cron,
    ];

    /// How a model calls it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Todo => "todo",
            Self::Memory => "memory",
            Self::Past => "session_search",
            Self::Clarify => "clarify",
            Self::Delegate => "delegate",
            Self::Look => "look_at_picture",
            Self::Send => "send_message",
            Self::Cron => "cron",
        }
    }

    /// Whether an agent at this depth has it; `deepest` is where no one delegates any more.
    pub(crate) const fn is_for(self, depth: u8, deepest: u8) -> bool {
        match self {
            Self::Todo | Self::Past | Self::Look => true,
            // The person talks with the turn's own agent.
            Self::Memory | Self::Clarify | Self::Send | Self::Cron => depth == 0,
            Self::Delegate => depth < deepest,
        }
    }

    /// Whether several calls may run at once.
    pub(super) const fn is_parallel(self) -> bool {
        match self {
            Self::Past | Self::Delegate | Self::Look => true,
            Self::Todo | Self::Memory | Self::Clarify | Self::Send | Self::Cron => false,
        }
    }

    /// What a call does, in a few words for people.
    pub(super) fn summary(self, arguments: &Value) -> String {
        let text = |key: &str| arguments[key].as_str().unwrap_or_default().to_owned();
        match self {
            Self::Todo => "the list".into(),
            Self::Memory | Self::Cron => text("action"),
            Self::Past => text("query"),
            Self::Clarify => text("question"),
            Self::Look => text("picture"),
            Self::Send => format!("to {}: {}", text("to"), text("text")),
            Self::Delegate => {
                let count = arguments["tasks"].as_array().map_or(0, Vec::len);
                format!("{count} tasks")
            }
        }
    }

    /// Why a person should be asked first, if they should.
    pub(super) const fn danger(self) -> Option<Danger> {
        match self {
            Self::Send => Some(send::danger()),
            Self::Todo
            | Self::Memory
            | Self::Past
            | Self::Clarify
            | Self::Delegate
            | Self::Look
            | Self::Cron => None,
        }
    }

    /// How a model sees it.
    pub(crate) fn spec(self) -> ToolSpec {
        let (description, parameters) = match self {
            Self::Todo => todo::schema(),
            Self::Memory => memory::schema(),
            Self::Past => past::schema(),
            Self::Clarify => clarify::schema(),
            Self::Delegate => delegate::schema(),
            Self::Look => look::schema(),
            Self::Send => send::schema(),
            Self::Cron => cron::schema(),
        };
        ToolSpec { name: self.name().into(), description: description.into(), parameters }
    }
}

/// The schema of an object.
fn object(required: &[&str], properties: Value) -> Value {
    let mut schema = json!({ "type": "object", "properties": properties });
    if !required.is_empty() {
        schema["required"] = required.into();
    }
    schema
}

impl Work<'_> {
    /// Runs a call. The type is written out because agents run calls that run agents.
    pub(super) fn at_desk<'a>(&'a self, desk: Desk, call: &'a Value) -> BoxFuture<'a, Output> {
        match desk {
            Desk::Todo => async move { todo::write(call) }.boxed(),
            Desk::Memory => self.remember(call).boxed(),
            Desk::Past => self.look_back(call).boxed(),
            Desk::Clarify => self.clarify(call).boxed(),
            Desk::Delegate => self.delegate(call).boxed(),
            Desk::Look => self.look(call).boxed(),
            Desk::Send => self.send(call).boxed(),
            Desk::Cron => self.cron(call).boxed(),
        }
    }
}
