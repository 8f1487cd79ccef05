//! `clarify`: asks the person and waits for what they say.

use std::fmt::Write as _;

use proto::transcript::CallStatus;
use proto::turn::Decision;
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::agent::Agent;
use super::super::approval::Heard;
use super::super::{Halt, Stop};
use super::object;
use crate::tools::{Output, arguments};

/// The longest question.
const QUESTION_BYTES_MAX: usize = 2000;
/// How many answers can be offered.
const OPTIONS_MAX: usize = 6;

#[derive(Deserialize)]
struct Call {
    question: String,
    #[serde(default)]
    options: Vec<String>,
}

pub(super) fn schema() -> (&'static str, Value) {
    let properties = json!({
        "question": { "type": "string" },
        "options": { "type": "array", "items": { "type": "string" }, "description": "answers to offer, at most 6" },
    });
    let about = "Asks the person and waits for the answer. Only for what you cannot find out or decide yourself.";
    (about, object(&["question"], properties))
}

fn text(call: &Call) -> String {
    let mut text = crate::text::start(&call.question, QUESTION_BYTES_MAX).to_owned();
    for (at, option) in call.options.iter().take(OPTIONS_MAX).enumerate() {
        let _ = write!(text, "\n{}. {option}", at + 1);
    }
    text += "\n\nReply /approve for yes, or /deny with your own words.";
    text
}

impl Agent<'_> {
    /// Asks, and returns what the person said.
    pub(super) async fn clarify(&self, call: &Value) -> Output {
        let call: Call = match arguments(call) {
            Ok(call) => call,
            Err(output) => return output,
        };
        match self.ask(&call.question, text(&call)).await {
            Ok(heard) => answer(heard),
            // The turn is over: no one reads this.
            Err(Halt::Lost | Halt::TooLarge) => Output::failed("the question could not be put"),
        }
    }
}

fn answer(heard: Heard) -> Output {
    match heard {
        Heard::Decision(Decision::Approved) => Output::done("They said yes."),
        Heard::Decision(Decision::Denied { reason: Some(words) }) => {
            Output::done(format!("They answered: {words}"))
        }
        Heard::Decision(Decision::Denied { reason: None }) => Output::done("They said no."),
        Heard::Stop(Stop::Interrupt(_) | Stop::HandBack) => {
            Output::new(CallStatus::Interrupted, "[interrupted] before they answered.")
        }
        Heard::Nothing => Output::new(
            CallStatus::Failed,
            "No one answered in time. Decide yourself what is safe, and say what you assumed.",
        ),
    }
}
