//! `session_search`: what was said before in this session, also in conversations that were set aside.

use proto::codec;
use proto::transcript::{Body, Entry};
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::work::Work;
use super::object;
use crate::tools::{Output, arguments};
use crate::transcript::past;

/// How many places are shown.
const FOUND_MAX: usize = 20;
/// How much of each is shown, bytes.
const SHOWN_BYTES: usize = 400;

#[derive(Deserialize)]
struct Call {
    query: String,
}

pub(super) fn schema() -> (&'static str, Value) {
    let about = "Searches everything that was said in this chat, also in earlier conversations. Finds what contains all the words.";
    (about, object(&["query"], json!({ "query": { "type": "string" } })))
}

/// The place in a text around the first of the words, if it has all of them.
fn found(text: &str, words: &[String]) -> Option<String> {
    let lower = text.to_lowercase();
    if words.is_empty() || !words.iter().all(|word| lower.contains(word)) {
        return None;
    }
    let at = lower.find(&words[0]).unwrap_or_default().saturating_sub(SHOWN_BYTES / 2);
    let from = text.ceil_char_boundary(at.min(text.len()));
    Some(crate::text::start(&text[from..], SHOWN_BYTES).trim().to_owned())
}

fn line(entry: &Entry, words: &[String]) -> Option<String> {
    let (who, text) = if let Body::User { text, .. } = &entry.body {
        ("person", text)
    } else if let Body::Assistant { text, .. } = &entry.body {
        ("you", text)
    } else {
        return None;
    };
    found(text, words).map(|text| format!("[turn {}] {who}: {text}", entry.turn))
}

impl Work<'_> {
    /// Searches the session's conversations.
    pub(super) async fn look_back(&self, call: &Value) -> Output {
        let Call { query } = match arguments(call) {
            Ok(call) => call,
            Err(output) => return output,
        };
        let words: Vec<String> =
            query.to_lowercase().split_whitespace().map(str::to_owned).collect();
        let search = async {
            let bus = &self.turn.shared.node.bus;
            let payloads = match past(bus, self.turn.order.of.sid).await {
                Ok(payloads) => payloads,
                Err(error) => return Output::failed(error),
            };
            let entries =
                payloads.iter().rev().filter_map(|payload| codec::decode::<Entry>(payload).ok());
            let lines: Vec<String> =
                entries.filter_map(|entry| line(&entry, &words)).take(FOUND_MAX).collect();
            Output::done(if lines.is_empty() {
                "[nothing found]".into()
            } else {
                lines.join("\n\n")
            })
        };
        self.effort().until_cut(search).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_words_must_be_there_and_the_place_is_shown() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let text = format!("{} The Red House {}", "é".repeat(500), "b".repeat(500));
        let shown = found(&text, &words("house red")).unwrap();
        assert!(shown.contains("The Red House") && shown.len() <= SHOWN_BYTES);
        assert_eq!(found(&text, &words("house blue")), None);
        assert_eq!(found(&text, &[]), None);
    }
}
