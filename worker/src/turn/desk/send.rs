//! `send_message`: says something in another chat, by name. The words go through the log to the scheduler, which alone sends, so that
//! a worker that has lost the turn says nothing.

use proto::transcript::CallStatus;
use proto::turn::News;
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::work::Work;
use super::object;
use crate::tools::danger::Danger;
use crate::tools::{Output, arguments};

/// The longest message.
const TEXT_BYTES_MAX: usize = 32 * 1024;

#[derive(Deserialize)]
struct Call {
    to: String,
    text: String,
}

pub(super) fn schema() -> (&'static str, Value) {
    let properties = json!({
        "to": {
            "type": "string",
            "description": "platform:chat or platform:chat:thread, by id or name; a platform alone is its home channel",
        },
        "text": { "type": "string" },
    });
    let about = "Sends a message to another chat. What is said here is not for this: it is the answer to the person.";
    (about, object(&["to", "text"], properties))
}

/// Someone else will read it.
pub(super) const fn danger() -> Danger {
    Danger { why: "sends a message to another chat" }
}

impl Work<'_> {
    /// Sends.
    pub(super) async fn send(&self, call: &Value) -> Output {
        let call: Call = match arguments(call) {
            Ok(call) => call,
            Err(output) => return output,
        };
        if call.text.trim().is_empty() || call.text.len() > TEXT_BYTES_MAX {
            return Output::failed(format_args!("a text of 1 to {TEXT_BYTES_MAX} bytes"));
        }
        let turn = self.turn;
        let found = tokio::select! {
            biased;
            () = self.cut.cancelled() => return Output::new(CallStatus::Interrupted, "[interrupted]"),
            found = node::channels::find(&turn.shared.node.bus, &call.to) => found,
        };
        let address = match found {
            Ok(address) => address,
            Err(error) => return Output::failed(error),
        };
        let number = turn.counts.said();
        let news = News::Said { number, address, text: call.text };
        match turn.send(news, &format!("said-{number}")).await {
            Ok(Ok(())) => Output::done(format!("On its way to {}.", call.to)),
            Ok(Err(error)) => Output::failed(error),
            // The turn is over: no one reads this.
            Err(lost) => Output::failed(lost),
        }
    }
}
