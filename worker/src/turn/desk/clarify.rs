//! `clarify`: asks the person and waits for what they say.

use std::fmt::Write as _;

use proto::transcript::CallStatus;
use proto::turn::{AskKind, Decision};
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::approval::{Heard, Question};
use super::super::work::Work;
use super::super::{Halt, Stop, prompt};
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
    text += if call.options.is_empty() {
        "\n\nYour next message is the answer."
    } else {
        "\n\nYour next message is the answer: a number, or your own words."
    };
    text
}

impl Work<'_> {
    /// Asks, and returns what the person said.
    pub(super) async fn clarify(&self, call: &Value) -> Output {
        let call: Call = match arguments(call) {
            Ok(call) => call,
            Err(output) => return output,
        };
        let question = Question {
            about: &call.question,
            kind: AskKind::Question,
            text: text(&call),
            rule: None,
        };
        let heard = match self.ask(question).await {
            Ok(heard) => heard,
            // The turn is over: no one reads this.
            Err(Halt::Lost | Halt::TooLarge) => {
                return Output::failed("the question could not be put");
            }
        };
        match heard {
            Heard::Decision(Decision::Answered { seq }) => match self.turn.input(seq).await {
                Ok(Some(event)) => {
                    let answer = chosen(&call.options, event.prompt()).map_or_else(
                        || prompt::words(&event),
                        |option| format!("{option} (option {})", event.prompt().trim()),
                    );
                    Output { heard: Some(seq), ..Output::done(format!("They answered: {answer}")) }
                }
                Ok(None) | Err(_) => Output::failed("the answer is no longer stored"),
            },
            heard @ (Heard::Decision(_) | Heard::Stop(_) | Heard::Nothing) => without_words(heard),
        }
    }
}

/// The option that is named by its number.
fn chosen<'a>(options: &'a [String], answer: &str) -> Option<&'a str> {
    let number: usize = answer.trim().trim_end_matches('.').parse().ok()?;
    let offered = options.iter().take(OPTIONS_MAX);
    offered.enumerate().find(|(at, _)| at + 1 == number).map(|(_, option)| option.as_str())
}

fn without_words(heard: Heard) -> Output {
    match heard {
        Heard::Decision(Decision::Approved | Decision::ApprovedFor { .. }) => {
            Output::done("They said yes.")
        }
        Heard::Decision(Decision::Denied { reason: Some(words) }) => {
            Output::done(format!("They declined, and said: {words}"))
        }
        Heard::Decision(Decision::Denied { reason: None }) => {
            Output::done("They declined to answer, or said no.")
        }
        Heard::Stop(Stop::Interrupt(_) | Stop::HandBack) => {
            Output::new(CallStatus::Interrupted, "[interrupted] before they answered.")
        }
        Heard::Decision(Decision::Answered { .. }) | Heard::Nothing => Output::new(
            CallStatus::Failed,
            "No one answered in time. Decide yourself what is safe, and say what you assumed.",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_is_chosen_by_its_number_and_anything_else_is_words() {
        let options = ["red".to_owned(), "blue".to_owned()];
        assert_eq!(chosen(&options, " 2. "), Some("blue"));
        for words in ["0", "3", "blue", "2 of them", ""] {
            assert_eq!(chosen(&options, words), None, "{words}");
        }
    }
}
