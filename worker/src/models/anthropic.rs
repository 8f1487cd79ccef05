//! The Anthropic Messages API, streamed.

use eventsource_stream::Event;
use proto::transcript::ToolCall;
use reqwest::RequestBuilder;
use serde_json::{Map, Value, json};

use super::choose::Access;
use super::client::{Form, SoFar};
use super::stream::error_of;
use super::{Calls, Image, Message, ModelError, Request, stream};

const VERSION: &str = "2023-06-01";

/// `POST /v1/messages`.
#[derive(Default)]
pub(super) struct Messages;

impl Messages {
    fn body(access: &Access, request: &Request<'_>) -> Value {
        let mut body = json!({
            "model": access.model,
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
}

impl Form for Messages {
    const PROVIDER: &'static str = "anthropic";

    fn request(access: &Access, request: &Request<'_>) -> RequestBuilder {
        let http = access.http.post(format!("{}/v1/messages", access.base_url));
        http.header("x-api-key", access.key.expose())
            .header("anthropic-version", VERSION)
            .json(&Self::body(access, request))
    }

    fn event(&mut self, event: &Event, so_far: &mut SoFar<'_>) -> Result<bool, ModelError> {
        match event.event.as_str() {
            "message_stop" => Ok(true),
            // It shows that the connection lives, not that the work advances.
            "ping" => Ok(false),
            _ => take_in(&stream::json(event)?, so_far).map(|()| false),
        }
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

fn take_in(event: &Value, so_far: &mut SoFar<'_>) -> Result<(), ModelError> {
    match event["type"].as_str().unwrap_or_default() {
        "message_start" => usage(&event["message"]["usage"], so_far),
        "content_block_start" => block(event, so_far),
        "content_block_delta" => delta(event, so_far),
        "message_delta" => {
            usage(&event["usage"], so_far);
            if event["delta"]["stop_reason"] == "refusal" {
                return Err(ModelError::Declined);
            }
        }
        "error" => {
            let (kind, message) = error_of(&event["error"]);
            return Err(ModelError::of_response(None, kind, message, None));
        }
        _ => so_far.busy(),
    }
    Ok(())
}

fn usage(usage: &Value, so_far: &mut SoFar<'_>) {
    let count = |key: &str| usage[key].as_u64().unwrap_or_default();
    let input = count("input_tokens")
        + count("cache_read_input_tokens")
        + count("cache_creation_input_tokens");
    let total = &mut so_far.answer.usage;
    total.input = total.input.max(input);
    total.output = total.output.max(count("output_tokens"));
}

fn number(event: &Value) -> u64 {
    event["index"].as_u64().unwrap_or_default()
}

fn block(event: &Value, so_far: &mut SoFar<'_>) {
    let block = &event["content_block"];
    let text = |key: &str| block[key].as_str().unwrap_or_default();
    if block["type"] == "tool_use" {
        let call = so_far.call(number(event));
        text("id").clone_into(&mut call.id);
        text("name").clone_into(&mut call.name);
    }
    so_far.say(text("text"));
}

fn delta(event: &Value, so_far: &mut SoFar<'_>) {
    let delta = &event["delta"];
    match delta["type"].as_str().unwrap_or_default() {
        "text_delta" => so_far.say(delta["text"].as_str().unwrap_or_default()),
        "input_json_delta" => {
            so_far.busy();
            let piece = delta["partial_json"].as_str().unwrap_or_default();
            so_far.call(number(event)).arguments += piece;
        }
        _ => so_far.busy(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;
    use std::time::Duration;

    use super::super::client::Client;
    use super::super::fake::{self, Then};
    use super::super::{Model, Words};
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
            let model = Client::<Messages>::new(fake.access());
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
            let model = Client::<Messages>::new(fake.access());
            let error = model.call(fake::request(&[]), Words::channel().0).await.unwrap_err();
            assert_eq!(error.label(), "network");
        });
        fake::run(START.to_owned(), Then::Hang, |fake| async move {
            let model = Client::<Messages>::new(fake.access());
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
