//! What the operator's hooks are told of a turn and of its session. A later attempt tells it again, under its number.

use proto::event::MessageEvent;
use proto::id::ConversationId;
use serde_json::{Value, json};

use super::Turn;

/// The most of a message or a reply that hooks are told, characters.
const CHARS_MAX: usize = 500;

fn shortened(text: &str) -> String {
    text.chars().take(CHARS_MAX).collect()
}

impl Turn {
    fn about(&self) -> Value {
        let (of, address) = (self.order.of, &self.order.address);
        json!({
            "platform": address.platform,
            "account": address.account,
            "chat_id": address.chat,
            "thread_id": address.thread,
            "chat_type": address.kind,
            "session_key": self.order.session,
            "session_id": of.sid,
            "turn": of.turn,
            "attempt": of.attempt,
        })
    }

    fn tell(&self, event: &str, more: impl FnOnce() -> Value) {
        self.shared.node.hooks.tell(event, || {
            // Once the agent has started, it is known whom it answers.
            let mut about = self.speaker.get().cloned().unwrap_or_else(|| self.about());
            if let (Some(about), Value::Object(more)) = (about.as_object_mut(), more()) {
                about.extend(more);
            }
            about
        });
    }

    /// A conversation begins.
    pub(super) fn tell_session_start(&self, conversation: ConversationId, first: &MessageEvent) {
        self.tell(
            "session:start",
            || json!({ "conversation": conversation.to_string(), "user_id": first.user.id }),
        );
    }

    /// A conversation is set aside for a fresh one.
    pub(super) fn tell_session_reset(&self, before: Option<ConversationId>, now: ConversationId) {
        if let Some(before) = before {
            self.tell("session:end", || json!({ "conversation": before.to_string() }));
        }
        self.tell("session:reset", || json!({ "conversation": now.to_string() }));
    }

    /// The agent sets to work.
    pub(super) fn tell_agent_start(&self, first: &MessageEvent) {
        let mut about = self.about();
        about["user_id"] = first.user.id.as_str().into();
        about["user_name"] = first.user.name.clone().into();
        about["message"] = shortened(first.prompt()).into();
        // An attempt starts once.
        let _ = self.speaker.set(about);
        self.tell("agent:start", || json!({}));
    }

    /// The agent has called tools.
    pub(super) fn tell_agent_step(&self, iteration: u32, tools: &[String]) {
        self.tell("agent:step", || json!({ "iteration": iteration, "tool_names": tools }));
    }

    /// The agent has ended, if it ever started.
    pub(super) fn tell_agent_end(&self, outcome: &str, reply: &str) {
        if self.speaker.get().is_some() {
            self.tell("agent:end", || json!({ "outcome": outcome, "response": shortened(reply) }));
        }
    }
}
