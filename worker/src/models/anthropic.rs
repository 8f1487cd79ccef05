//! The Anthropic Messages API, streamed.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use proto::transcript::ToolCall;
use serde_json::{Map, Value, json};

use super::choose::Access;
use super::stream::{Events, cut_off, error_of};
use super::{Answer, Calls, Image, Message, Model, ModelError, Request, Words, stream};

const VERSION: &str = "2023-06-01";

/// A model behind `POST /v1/messages`.
pub(super) struct Anthropic {
    access: Access,
}

impl Anthropic {
    pub(super) const fn new(access: Access) -> Self {
        Self { access }
    }

    fn body(&self, request: &Request<'_>) -> Value {
        let mut body = json!({
            "model": self.access.model,
            "max_tokens": request.max_tokens,
            "messages": messages(request),
            "stream": true,
        });
        let system: Vec<&str> = request.messages.iter().filter_map(instructions).collect();
        if !system.is_empty() {
            // Everything up to a mark is cached: the instructions alone, and the conversation so far.
            body["system"] =
                json!([marked(json!({ "type": "text", "text": system.join("\n\n") }))]);
        }
        if !request.tools.is_empty() {
            body["tools"] = request
                .tools
                .iter()
                .map(|tool| {
                    json!({
                        "name": tool.name,
                        "description": tool.description,
                        "input_schema": tool.parameters,
                    })
                })
                .collect();
            if request.calls == Calls::Forbidden {
                body["tool_choice"] = json!({ "type": "none" });
            }
        }
        body
    }

    async fn stream(&self, request: Request<'_>, words: Words) -> Result<Answer, ModelError> {
        let url = format!("{}/v1/messages", self.access.base_url);
        let http = self
            .access
            .http
            .post(url)
            .header("x-api-key", self.access.key.expose())
            .header("anthropic-version", VERSION)
            .json(&self.body(&request));
        let mut events = Events::open(http, self.access.stall).await?;
        let mut reading = Reading::default();
        while let Some(event) = events.next().await? {
            if event.event == "message_stop" {
                return Ok(reading.answer);
            }
            // A ping shows that the connection lives, not that the work advances.
            if event.event != "ping" {
                reading.event(&stream::json(&event)?, &words)?;
            }
        }
        Err(cut_off())
    }
}

impl Model for Anthropic {
    fn call<'a>(
        &'a self,
        request: Request<'a>,
        words: Words,
    ) -> BoxFuture<'a, Result<Answer, ModelError>> {
        self.stream(request, words).boxed()
    }
}

const fn instructions<'a>(message: &Message<'a>) -> Option<&'a str> {
    match message {
        Message::System(text) => Some(text),
        Message::User(_) | Message::Assistant { .. } | Message::Result { .. } => None,
    }
}

/// The conversation in the form of the API: roles alternate, beginning with the user, and results are the user's.
fn messages(request: &Request<'_>) -> Vec<Value> {
    let mut turns: Vec<(&str, Vec<Value>)> = Vec::new();
    for (at, message) in request.messages.iter().enumerate() {
        let (role, blocks) = match message {
            Message::System(_) => continue,
            Message::User(text) => {
                let images = request.images.get(&at).into_iter().flatten().map(|seen| image(seen));
                ("user", images.chain(text_block(text)).collect())
            }
            Message::Assistant { text, calls } => {
                ("assistant", text_block(text).into_iter().chain(calls.iter().map(call)).collect())
            }
            Message::Result { call, output } => (
                "user",
                vec![json!({ "type": "tool_result", "tool_use_id": call, "content": output })],
            ),
        };
        match turns.last_mut() {
            Some((last, content)) if *last == role => content.extend(blocks),
            Some(_) => turns.push((role, blocks)),
            None if role == "assistant" => {
                turns.push(("user", text_block("(the conversation so far)").into_iter().collect()));
                turns.push((role, blocks));
            }
            None => turns.push((role, blocks)),
        }
    }
    // The end of this request, and that of the one before, which the provider has in its cache.
    for (_, content) in turns.iter_mut().rev().filter(|(role, _)| *role == "user").take(2) {
        if let Some(last) = content.last_mut() {
            *last = marked(last.take());
        }
    }
    turns.into_iter().map(|(role, content)| json!({ "role": role, "content": content })).collect()
}

/// Empty text is refused by the API.
fn text_block(text: &str) -> Option<Value> {
    (!text.trim().is_empty()).then(|| json!({ "type": "text", "text": text }))
}

fn image(image: &Image) -> Value {
    json!({ "type": "image", "source": { "type": "base64", "media_type": image.mime, "data": image.data } })
}

fn call(call: &ToolCall) -> Value {
    // A model may write arguments that are no JSON object; the result says so, and the API wants an object here.
    let input: Map<String, Value> = serde_json::from_str(&call.arguments).unwrap_or_default();
    json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": input })
}

fn marked(mut block: Value) -> Value {
    block["cache_control"] = json!({ "type": "ephemeral" });
    block
}

/// The answer as far as it has come.
#[derive(Default)]
struct Reading {
    answer: Answer,
    /// The provider's number of each call in `answer`.
    numbers: Vec<u64>,
}

impl Reading {
    fn event(&mut self, event: &Value, words: &Words) -> Result<(), ModelError> {
        match event["type"].as_str().unwrap_or_default() {
            "message_start" => self.usage(&event["message"]["usage"]),
            "content_block_start" => self.block(event, words),
            "content_block_delta" => self.delta(event, words),
            "message_delta" => {
                self.usage(&event["usage"]);
                if event["delta"]["stop_reason"] == "refusal" {
                    return Err(ModelError::Declined);
                }
            }
            "error" => {
                let (kind, message) = error_of(&event["error"]);
                return Err(ModelError::of_response(None, kind, message, None));
            }
            _ => words.busy(),
        }
        Ok(())
    }

    fn usage(&mut self, usage: &Value) {
        let count = |key: &str| usage[key].as_u64().unwrap_or_default();
        let input = count("input_tokens")
            + count("cache_read_input_tokens")
            + count("cache_creation_input_tokens");
        self.answer.usage.input = self.answer.usage.input.max(input);
        self.answer.usage.output = self.answer.usage.output.max(count("output_tokens"));
    }

    fn block(&mut self, event: &Value, words: &Words) {
        let block = &event["content_block"];
        let text = |key: &str| block[key].as_str().unwrap_or_default().to_owned();
        if block["type"] == "tool_use" {
            self.numbers.push(event["index"].as_u64().unwrap_or_default());
            self.answer.calls.push(ToolCall {
                id: text("id"),
                name: text("name"),
                arguments: String::new(),
            });
        }
        self.say(&text("text"), words);
    }

    fn delta(&mut self, event: &Value, words: &Words) {
        let delta = &event["delta"];
        match delta["type"].as_str().unwrap_or_default() {
            "text_delta" => self.say(delta["text"].as_str().unwrap_or_default(), words),
            "input_json_delta" => {
                words.busy();
                let number = event["index"].as_u64().unwrap_or_default();
                if let Some(at) = self.numbers.iter().position(|known| *known == number) {
                    let piece = delta["partial_json"].as_str().unwrap_or_default();
                    self.answer.calls[at].arguments += piece;
                }
            }
            _ => words.busy(),
        }
    }

    fn say(&mut self, text: &str, words: &Words) {
        if text.is_empty() {
            words.busy();
        } else {
            self.answer.text += text;
            words.say(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;
    use std::time::Duration;

    use super::super::fake::{self, Then};
    use super::*;

    const START: &str = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":5,\
        \"cache_read_input_tokens\":20,\"output_tokens\":1}}}\n\n\
        event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n\
        event: ping\ndata: {\"type\": \"ping\"}\n\n\
        event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Well\"}}\n\n\
        event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n";
    const REST: &str = "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":\
        {\"type\":\"tool_use\",\"id\":\"toolu_1\",\"name\":\"terminal\",\"input\":{}}}\n\n\
        event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"command\\\":\"}}\n\n\
        event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"\\\"ls\\\"}\"}}\n\n\
        event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"},\"usage\":{\"output_tokens\":9}}\n\n\
        event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";

    #[test]
    fn words_calls_and_usage_come_together() {
        fake::run(START.to_owned() + REST, Then::Close, |fake| async move {
            let model = Anthropic::new(fake.access());
            let (words, mut signs) = Words::channel();
            let answer = model.call(fake::request(&[]), words).await.unwrap();
            assert_eq!((answer.text.as_str(), fake::texts(&mut signs).as_str()), ("Well", "Well"));
            assert_eq!((answer.usage.input, answer.usage.output), (25, 9));
            let expected = ToolCall {
                id: "toolu_1".into(),
                name: "terminal".into(),
                arguments: "{\"command\":\"ls\"}".into(),
            };
            assert_eq!(answer.calls, [expected]);
            let sent = fake.sent().await;
            assert_eq!(sent["system"][0]["cache_control"]["type"], "ephemeral");
            assert_eq!(sent["messages"][0]["content"][0]["text"], "hi");
        });
    }

    #[test]
    fn a_cut_stream_and_a_dropped_call_are_noticed() {
        fake::run(START.to_owned(), Then::Close, |fake| async move {
            let model = Anthropic::new(fake.access());
            let error = model.call(fake::request(&[]), Words::channel().0).await.unwrap_err();
            assert_eq!(error.label(), "network");
        });
        fake::run(START.to_owned(), Then::Hang, |fake| async move {
            let model = Anthropic::new(fake.access());
            let (words, mut signs) = Words::channel();
            let mut call = model.call(fake::request(&[]), words);
            tokio::select! {
                _ = &mut call => panic!("the fake never ends its answer"),
                sign = signs.recv() => assert!(sign.is_some()),
            }
            drop(call);
            tokio::time::timeout(Duration::from_secs(1), fake.closed()).await.unwrap();
        });
    }

    #[test]
    fn roles_alternate_and_results_come_before_words() {
        let calls = [ToolCall { id: "a".into(), name: "t".into(), arguments: "not json".into() }];
        let image = Arc::new(Image { mime: "image/png", data: "AA==".into() });
        let messages = vec![
            Message::System("s"),
            Message::Assistant { text: "hello", calls: &[] },
            Message::User("one"),
            Message::User("two"),
            Message::Assistant { text: "", calls: &calls },
            Message::Result { call: "a", output: "o" },
            Message::User("steer"),
        ];
        let images = BTreeMap::from([(3, vec![image])]);
        let request =
            Request { messages, images, tools: &[], calls: Calls::Allowed, max_tokens: 1 };
        let sent = super::messages(&request);
        let roles: Vec<_> = sent.iter().filter_map(|message| message["role"].as_str()).collect();
        assert_eq!(roles, ["user", "assistant", "user", "assistant", "user"]);
        assert_eq!(sent[2]["content"].as_array().map(Vec::len), Some(3));
        assert_eq!(sent[2]["content"][1]["source"]["media_type"], "image/png");
        assert_eq!(sent[2]["content"][2]["cache_control"]["type"], "ephemeral");
        assert_eq!(sent[3]["content"][0]["input"], json!({}));
        assert_eq!(sent[4]["content"][0]["type"], "tool_result");
        assert_eq!(sent[4]["content"][1]["cache_control"]["type"], "ephemeral");
    }
}
