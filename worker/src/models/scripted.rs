//! The model that needs no provider: deterministic, offline, word by word, so that the whole system can be tried and tested.

use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use proto::transcript::ToolCall;
use proto::turn::Usage;
use serde_json::{Value, json};

use super::{Answer, Calls, Message, Model, ModelError, Request, Words};
use crate::transcript::CALL_AGAIN;

const LONG_WORDS: usize = 200;
const LONG_WORDS_MAX: usize = 100_000;
const SLEEP_SECONDS: usize = 20;
/// A command that the danger rules ask about, and that does no harm when it is allowed.
const DANGEROUS: &str = "rm -rf ./talaria-demo";
/// What a long answer is made of.
const FILLER: [&str; 12] = [
    "one",
    "word",
    "after",
    "another",
    "so",
    "that",
    "there",
    "is",
    "time",
    "to",
    "interrupt",
    "me",
];

/// Answers by rule.
pub(super) struct Scripted {
    pace: Duration,
}

/// What to do about the last words of the person.
#[derive(Debug, PartialEq, Eq)]
enum Plan {
    Say(String),
    Call { say: &'static str, tool: String, arguments: String },
}

impl Scripted {
    /// `pace` is how long each word takes.
    pub(super) const fn new(pace: Duration) -> Self {
        Self { pace }
    }

    async fn answer(&self, request: Request<'_>, words: Words) -> Answer {
        let plan = plan(&request);
        let (text, calls) = match plan {
            Plan::Say(text) => (text, Vec::new()),
            Plan::Call { say, tool, arguments } => {
                let id = format!("scripted_{}", request.messages.len());
                let call = ToolCall { id, name: tool, arguments };
                (say.to_owned(), vec![call])
            }
        };
        for word in text.split_inclusive(' ') {
            if !self.pace.is_zero() {
                tokio::time::sleep(self.pace).await;
            }
            words.say(word);
        }
        let count = |text: &str| u64::try_from(text.split_whitespace().count()).unwrap_or(u64::MAX);
        let input = request.messages.iter().map(|message| count(content(message))).sum();
        let usage = Usage { input, output: count(&text) };
        Answer { text, calls, usage }
    }
}

impl Model for Scripted {
    fn call<'a>(
        &'a self,
        request: Request<'a>,
        words: Words,
    ) -> BoxFuture<'a, Result<Answer, ModelError>> {
        self.answer(request, words).map(Ok).boxed()
    }
}

const fn content<'a>(message: &Message<'a>) -> &'a str {
    match message {
        Message::System(text) | Message::User(text) | Message::Assistant { text, .. } => text,
        Message::Result { output, .. } => output,
    }
}

fn plan(request: &Request<'_>) -> Plan {
    let is_result = |message: &&Message<'_>| matches!(message, Message::Result { .. });
    let newest = request.messages.iter().rev();
    let results: Vec<&str> = newest.take_while(is_result).map(content).collect();
    if request.calls == Calls::Forbidden {
        return Plan::Say("I have used up my steps for this turn, so I stop here.".into());
    }
    if !results.is_empty() {
        let results: Vec<&str> = results.into_iter().rev().collect();
        if let Some(again) = again(request, &results) {
            return again;
        }
        return Plan::Say(about(&results.join("\n")));
    }
    let is_user = |message: &&Message<'_>| matches!(message, Message::User(_));
    by_words(request.messages.iter().rfind(is_user).map_or("", content))
}

/// The last call once more, if its worker was stopped before it was done.
fn again(request: &Request<'_>, results: &[&str]) -> Option<Plan> {
    let was_cut = results.iter().any(|result| result.ends_with(CALL_AGAIN));
    request.messages.iter().rev().filter(|_| was_cut).find_map(|message| match message {
        Message::Assistant { calls: [.., call], .. } => {
            Some(Plan::Call { say: "", tool: call.name.clone(), arguments: call.arguments.clone() })
        }
        Message::Assistant { .. }
        | Message::System(_)
        | Message::User(_)
        | Message::Result { .. } => None,
    })
}

/// How a tool call went, in a sentence or two.
fn about(result: &str) -> String {
    let shown = crate::text::shorten(result.trim().to_owned(), 600);
    if shown.is_empty() {
        return "The tool has finished, and had nothing to say.".into();
    }
    format!("The tool has finished. It said:\n{shown}")
}

fn call(say: &'static str, tool: &str, arguments: &Value) -> Plan {
    Plan::Call { say, tool: tool.into(), arguments: arguments.to_string() }
}

fn by_words(said: &str) -> Plan {
    let lower = said.to_lowercase();
    let tokens: Vec<&str> = lower
        .split(|c: char| !(c.is_alphanumeric() || c == '\''))
        .filter(|t| !t.is_empty())
        .collect();
    let number_after = |word: &str| {
        let at = tokens.iter().position(|token| *token == word)?;
        tokens.get(at + 1)?.parse::<usize>().ok()
    };
    let has = |word: &str| tokens.contains(&word);
    if has("approval") {
        let say = "I would like to remove a folder; that needs your approval.";
        return call(say, "terminal", &json!({ "command": DANGEROUS }));
    }
    if has("sleep") || (has("slow") && has("tool")) {
        let seconds =
            number_after("sleep").or_else(|| number_after("tool")).unwrap_or(SLEEP_SECONDS);
        return call(
            "I will run a slow command.",
            "terminal",
            &json!({ "command": format!("sleep {seconds} && echo slept {seconds} s") }),
        );
    }
    if has("long") {
        let count = number_after("long").unwrap_or(LONG_WORDS).clamp(1, LONG_WORDS_MAX);
        let words: Vec<&str> = FILLER.iter().copied().cycle().take(count).collect();
        return Plan::Say(words.join(" "));
    }
    if let Some(path) = word_after(said, "read") {
        return call("I will read it.", "read_file", &json!({ "path": path }));
    }
    if has("list") {
        return call("I will look.", "list_files", &json!({}));
    }
    Plan::Say(echo(said))
}

/// The word after another, as it was written, for file names.
fn word_after<'a>(said: &'a str, word: &str) -> Option<&'a str> {
    let mut words = said.split_whitespace();
    words.find(|candidate| candidate.eq_ignore_ascii_case(word))?;
    words.next().map(|path| path.trim_matches(['"', '\'', '`', ',']))
}

fn echo(said: &str) -> String {
    let said = crate::text::start(said.trim(), 400);
    format!(
        "You said: {said}\n\nI am the scripted model, which answers by rule so that Talaria can be tried offline. Ask me for \
         a long answer, to sleep 20, for an approval, to list files or to read a file. For a real model set \
         OPENAI_API_KEY or ANTHROPIC_API_KEY, or choose one with --model."
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::{Sign, ToolSpec};
    use super::*;

    fn tools() -> Vec<ToolSpec> {
        vec![ToolSpec {
            name: "terminal".into(),
            description: String::new(),
            parameters: json!({}),
        }]
    }

    fn planned(said: &str) -> Plan {
        let tools = tools();
        plan(&Request {
            messages: vec![Message::User(said)],
            images: BTreeMap::new(),
            tools: &tools,
            calls: Calls::Allowed,
            max_tokens: 1,
        })
    }

    #[test]
    fn words_choose_what_happens() {
        let Plan::Say(long) = planned("a LONG 7 answer please") else { panic!("words") };
        assert_eq!(long.split(' ').count(), 7);
        let Plan::Say(long) = planned("long") else { panic!("words") };
        assert_eq!(long.split(' ').count(), LONG_WORDS);
        for (said, expected) in [
            ("sleep 3", "sleep 3 &&"),
            ("use the slow tool 5", "sleep 5 &&"),
            ("a slow tool please", "sleep 20 &&"),
            ("ask for Approval", DANGEROUS),
            ("Read notes/A.txt", "notes/A.txt"),
        ] {
            let Plan::Call { arguments, .. } = planned(said) else { panic!("a call: {said}") };
            assert!(arguments.to_string().contains(expected), "{said}: {arguments}");
        }
        let Plan::Call { tool, .. } = planned("list the files") else { panic!("a call") };
        assert_eq!(tool, "list_files");
        let Plan::Say(echo) = planned("along came a spider") else { panic!("words") };
        assert!(echo.contains("along came a spider") && echo.contains("OPENAI_API_KEY"), "{echo}");
    }

    #[tokio::test]
    async fn words_stream_one_by_one_and_results_are_answered() {
        let tools = tools();
        let calls = [ToolCall { id: "c".into(), name: "t".into(), arguments: "{}".into() }];
        let messages = vec![
            Message::User("sleep 1"),
            Message::Assistant { text: "", calls: &calls },
            Message::Result { call: "c", output: "slept 1 s" },
        ];
        let (words, mut signs) = Words::channel();
        let request = Request {
            messages,
            images: BTreeMap::new(),
            tools: &tools,
            calls: Calls::Allowed,
            max_tokens: 1,
        };
        let answer = Scripted::new(Duration::ZERO).call(request, words).await.unwrap();
        assert!(answer.text.contains("slept 1 s") && answer.calls.is_empty());
        let mut streamed = String::new();
        let mut count = 0;
        while let Ok(Sign::Text(text)) = signs.try_recv() {
            streamed += &text;
            count += 1;
        }
        assert_eq!(streamed, answer.text);
        assert!(count > 5, "{count} pieces");
    }

    #[test]
    fn a_call_that_was_cut_by_a_stopped_worker_is_made_again() {
        let calls = [ToolCall { id: "c".into(), name: "t".into(), arguments: "{}".into() }];
        let output = format!("[interrupted] {CALL_AGAIN}");
        let messages = vec![
            Message::User("sleep 9"),
            Message::Assistant { text: "x", calls: &calls },
            Message::Result { call: "c", output: &output },
        ];
        let request = Request {
            messages,
            images: BTreeMap::new(),
            tools: &[],
            calls: Calls::Allowed,
            max_tokens: 1,
        };
        let again = Plan::Call { say: "", tool: "t".into(), arguments: "{}".into() };
        assert_eq!(plan(&request), again);
    }

    #[test]
    fn without_calls_it_sums_up() {
        let request = Request {
            messages: vec![Message::User("sleep")],
            images: BTreeMap::new(),
            tools: &[],
            calls: Calls::Forbidden,
            max_tokens: 1,
        };
        assert!(matches!(plan(&request), Plan::Say(_)));
    }
}
