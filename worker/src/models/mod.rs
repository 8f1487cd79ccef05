//! Models: what a turn asks them, what they answer, and which one is used.

mod anthropic;
mod chain;
mod choose;
mod client;
mod error;
mod known;
mod openai;
mod scripted;
mod stream;

#[cfg(test)]
mod fake;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use proto::transcript::ToolCall;
use proto::turn::Usage;
use serde_json::Value;
use tokio::sync::mpsc;

pub use self::choose::{choose, chosen};
pub use self::error::ModelError;

/// Something that continues a conversation.
///
/// A call is cancelled by dropping its future, and must then stop at once: whatever it has open (a connection, a stream)
/// belongs to the future and never to a task of its own.
pub trait Model: Send + Sync {
    /// Continues the conversation. Words are sent to `words` as they come; the answer holds all of them once more.
    fn call<'a>(
        &'a self,
        request: Request<'a>,
        words: Words,
    ) -> BoxFuture<'a, Result<Answer, ModelError>>;

    /// Who provides it, as OpenTelemetry's conventions name providers; our own where none does.
    fn provider(&self) -> &'static str {
        "talaria"
    }

    /// What the provider calls it.
    fn name(&self) -> &str {
        "scripted"
    }

    /// How many tokens it reads at most.
    fn context_tokens(&self) -> u64 {
        128_000
    }

    /// Whether it sees pictures.
    fn sees(&self) -> bool {
        false
    }

    /// Who answers in its place when it cannot.
    fn fallback(&self) -> Option<Arc<dyn Model>> {
        None
    }
}

/// A picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Its MIME type.
    pub mime: &'static str,
    /// Its bytes in Base64.
    pub data: String,
}

/// What a model is asked.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// The conversation: each call is followed by exactly one result.
    pub messages: Vec<Message<'a>>,
    /// What the person's words at a place in `messages` came with.
    pub images: BTreeMap<usize, Vec<Arc<Image>>>,
    /// The tools that there are.
    pub tools: &'a [ToolSpec],
    /// Whether it may call them now.
    pub calls: Calls,
    /// The longest answer, in tokens.
    pub max_tokens: u32,
}

/// Whether a model may call tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calls {
    /// As it likes.
    Allowed,
    /// It must answer with words.
    Forbidden,
}

/// One message of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// Instructions.
    System(&'a str),
    /// A person's words.
    User(&'a str),
    /// The model's words and calls; never both empty.
    Assistant {
        /// The words.
        text: &'a str,
        /// The calls.
        calls: &'a [ToolCall],
    },
    /// The result of a call.
    Result {
        /// The call's id.
        call: &'a str,
        /// What came out.
        output: &'a str,
    },
}

/// A tool as a model sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolSpec {
    /// Its name.
    pub name: Cow<'static, str>,
    /// What it does.
    pub description: String,
    /// The JSON schema of its arguments.
    pub parameters: Value,
}

/// What a model answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// All its words. What was sent as words before is the beginning of this.
    pub text: String,
    /// The calls that it wants made.
    pub calls: Vec<ToolCall>,
    /// What it cost, as far as the provider says.
    pub usage: Usage,
}

/// A sign of life of a streaming model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sign {
    /// Words for the person.
    Text(String),
    /// It advances without words: it reasons, or writes the arguments of a call.
    Busy,
}

/// Where a model sends its words while it answers. Its reader is the turn itself, in the same task.
#[derive(Clone, Debug)]
pub struct Words(mpsc::UnboundedSender<Sign>);

impl Words {
    /// A pair of ends.
    #[must_use]
    pub fn channel() -> (Self, mpsc::UnboundedReceiver<Sign>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Self(sender), receiver)
    }

    /// Sends words; nothing happens if no one listens.
    pub fn say(&self, text: &str) {
        if !text.is_empty() {
            let _ = self.0.send(Sign::Text(text.to_owned()));
        }
    }

    /// Says that the model advances without words.
    pub fn busy(&self) {
        let _ = self.0.send(Sign::Busy);
    }
}
