//! OpenAI-compatible chat completions, streamed.

use std::sync::Arc;

use eventsource_stream::Event;
use reqwest::RequestBuilder;
use serde_json::{Value, json};

use super::choose::Access;
use super::client::{Form, SoFar};
use super::stream::error_of;
use super::{Calls, Image, Message, ModelError, Request, stream};

/// The official API calls the limit by a new name, which compatible servers do not know.
const OFFICIAL: &str = "https://api.openai.com/";

/// `POST /chat/completions`.
#[derive(Default)]
pub(super) struct ChatCompletions {
    finished: bool,
}

impl ChatCompletions {
    fn body(access: &Access, request: &Request<'_>) -> Value {
        let with_images = |(at, said)| match request.images.get(&at) {
            Some(images) => with_images(message(said), images),
            None => message(said),
        };
        let messages: Vec<Value> = request.messages.iter().enumerate().map(with_images).collect();
        let mut body = json!({
            "model": access.model,
            "messages": messages,
            "stream": true,
            "stream_options": { "include_usage": true },
        });
        let limit = if access.base_url.starts_with(OFFICIAL) {
            "max_completion_tokens"
        } else {
            "max_tokens"
        };
        body[limit] = request.max_tokens.into();
        if !request.tools.is_empty() {
            body["tools"] = request
                .tools
                .iter()
                .map(|tool| {
                    json!({ "type": "function", "function": {
                        "name": tool.name,
                        "description": tool.description,
                        "parameters": tool.parameters,
                    }})
                })
                .collect();
            if request.calls == Calls::Forbidden {
                body["tool_choice"] = "none".into();
            }
        }
        body
    }
}

impl Form for ChatCompletions {
    const PROVIDER: &'static str = "openai";

    fn request(access: &Access, request: &Request<'_>) -> RequestBuilder {
        let http = access.http.post(format!("{}/chat/completions", access.base_url));
        let http = http.json(&Self::body(access, request));
        match access.key.given() {
            Some(key) => http.bearer_auth(key),
            None => http,
        }
    }

    fn event(&mut self, event: &Event, so_far: &mut SoFar<'_>) -> Result<bool, ModelError> {
        if event.data.trim() == "[DONE]" {
            return Ok(true);
        }
        self.chunk(&stream::json(event)?, so_far)?;
        Ok(false)
    }

    // Some servers close without `[DONE]`; the reason for finishing is what proves that nothing is missing.
    fn is_whole(&self) -> bool {
        self.finished
    }
}

impl ChatCompletions {
    fn chunk(&mut self, chunk: &Value, so_far: &mut SoFar<'_>) -> Result<(), ModelError> {
        if chunk["error"].is_object() {
            let (kind, message) = error_of(&chunk["error"]);
            return Err(ModelError::of_response(None, kind, message, None));
        }
        if let Some(usage) = chunk["usage"].as_object() {
            let count = |key: &str| usage.get(key).and_then(Value::as_u64).unwrap_or_default();
            so_far.answer.usage.input = count("prompt_tokens");
            so_far.answer.usage.output = count("completion_tokens");
        }
        let choice = &chunk["choices"][0];
        let delta = &choice["delta"];
        so_far.say(delta["content"].as_str().unwrap_or_default());
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            piece_of_call(call, so_far);
        }
        match choice["finish_reason"].as_str() {
            Some("content_filter") => return Err(ModelError::Declined),
            Some(_) => self.finished = true,
            None => {}
        }
        Ok(())
    }
}

/// A piece of a call. Pieces with one number belong together; servers that send no numbers send whole calls.
fn piece_of_call(piece: &Value, so_far: &mut SoFar<'_>) {
    let number = piece["index"].as_u64().unwrap_or_else(|| so_far.calls());
    let call = so_far.call(number);
    if let Some(id) = piece["id"].as_str().filter(|id| !id.is_empty()) {
        id.clone_into(&mut call.id);
    }
    let function = &piece["function"];
    call.name += function["name"].as_str().unwrap_or_default();
    match &function["arguments"] {
        Value::String(text) => call.arguments += text,
        Value::Null => {}
        whole @ (Value::Object(_) | Value::Array(_) | Value::Bool(_) | Value::Number(_)) => {
            call.arguments += &whole.to_string();
        }
    }
}

fn message(message: &Message<'_>) -> Value {
    match message {
        Message::System(text) => json!({ "role": "system", "content": text }),
        Message::User(text) => json!({ "role": "user", "content": text }),
        Message::Assistant { text, calls: [] } => json!({ "role": "assistant", "content": text }),
        Message::Assistant { text, calls } => {
            let calls: Vec<Value> = calls
                .iter()
                .map(|call| {
                    json!({ "id": call.id, "type": "function", "function": {
                        "name": call.name, "arguments": call.arguments,
                    }})
                })
                .collect();
            let content = (!text.is_empty()).then_some(text);
            json!({ "role": "assistant", "content": content, "tool_calls": calls })
        }
        Message::Result { call, output } => {
            json!({ "role": "tool", "tool_call_id": call, "content": output })
        }
    }
}

/// The words of a message, and pictures.
fn with_images(mut message: Value, images: &[Arc<Image>]) -> Value {
    let text = json!({ "type": "text", "text": message["content"].take() });
    let image = |image: &Arc<Image>| {
        let url = format!("data:{};base64,{}", image.mime, image.data);
        json!({ "type": "image_url", "image_url": { "url": url } })
    };
    message["content"] = std::iter::once(text).chain(images.iter().map(image)).collect();
    message
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proto::transcript::ToolCall;

    use super::super::client::Client;
    use super::super::fake::{self, Then};
    use super::super::{Model, ToolSpec, Words};
    use super::*;

    const HELLO: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"Hel\"}}]}\n\n\
        data: {\"choices\":[{\"index\":0,\"delta\":{\"reasoning_content\":\"hm\"}}]}\n\n\
        : keep-alive\n\n\
        data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"lo\"}}]}\n\n";
    const CALLS: &str = "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"type\":\"function\",\
        \"function\":{\"name\":\"read_file\",\"arguments\":\"\"}}]}}]}\n\n\
        data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"{\\\"path\\\"\"}}]}}]}\n\n\
        data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\":\\\"x\\\"}\"}},\
        {\"index\":1,\"function\":{\"name\":\"list_files\",\"arguments\":\"{}\"}}]}}]}\n\n\
        data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n\
        data: {\"choices\":[],\"usage\":{\"prompt_tokens\":11,\"completion_tokens\":7}}\n\ndata: [DONE]\n\n";

    fn tools() -> Vec<ToolSpec> {
        vec![ToolSpec { name: "t".into(), description: "d".into(), parameters: json!({}) }]
    }

    #[test]
    fn words_calls_and_usage_come_together() {
        fake::run(HELLO.to_owned() + CALLS, Then::Close, |fake| async move {
            let model = Client::<ChatCompletions>::new(fake.access());
            let (words, mut signs) = Words::channel();
            let tools = tools();
            let answer = model.call(fake::request(&tools), words).await.unwrap();
            assert_eq!(answer.text, "Hello");
            assert_eq!((answer.usage.input, answer.usage.output), (11, 7));
            let calls: Vec<_> = answer
                .calls
                .iter()
                .map(|call| (call.id.as_str(), call.name.as_str(), call.arguments.as_str()))
                .collect();
            let (first, second) =
                (("a", "read_file", "{\"path\":\"x\"}"), ("call_2_1", "list_files", "{}"));
            assert_eq!(calls, [first, second]);
            assert_eq!(fake::texts(&mut signs), "Hello");
            let sent = fake.sent().await;
            assert_eq!(sent["stream_options"]["include_usage"], true);
            assert_eq!(sent["max_tokens"], 99);
            assert_eq!(sent["tools"][0]["function"]["name"], "t");
            assert_eq!(sent["messages"][1], json!({ "role": "user", "content": "hi" }));
        });
    }

    #[test]
    fn a_stream_that_is_cut_is_an_error_with_its_words_already_said() {
        fake::run(HELLO.to_owned(), Then::Close, |fake| async move {
            let model = Client::<ChatCompletions>::new(fake.access());
            let (words, mut signs) = Words::channel();
            let error = model.call(fake::request(&[]), words).await.unwrap_err();
            assert_eq!(error.label(), "network");
            assert_eq!(fake::texts(&mut signs), "Hello");
        });
    }

    #[test]
    fn dropping_the_call_closes_the_connection_at_once() {
        fake::run(HELLO.to_owned(), Then::Hang, |fake| async move {
            let model = Client::<ChatCompletions>::new(fake.access());
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
    fn silence_is_noticed() {
        fake::run(HELLO.to_owned(), Then::Hang, |fake| async move {
            let stall = Some(Duration::from_millis(50));
            let model = Client::<ChatCompletions>::new(Access { stall, ..fake.access() });
            let (words, _signs) = Words::channel();
            let error = model.call(fake::request(&[]), words).await.unwrap_err();
            assert_eq!(error.label(), "stalled");
        });
    }

    #[test]
    fn pictures_follow_the_words_that_they_came_with() {
        let image = Arc::new(Image { mime: "image/png", data: "AA==".into() });
        let sent = with_images(message(&Message::User("look")), &[image]);
        assert_eq!(sent["content"][0]["text"], "look");
        assert_eq!(sent["content"][1]["image_url"]["url"], "data:image/png;base64,AA==");
    }

    #[test]
    fn calls_and_results_are_sent_in_the_form_of_the_api() {
        let calls = [ToolCall { id: "a".into(), name: "t".into(), arguments: "{}".into() }];
        let said = message(&Message::Assistant { text: "", calls: &calls });
        assert_eq!(said["content"], Value::Null);
        assert_eq!(said["tool_calls"][0]["id"], "a");
        let result = message(&Message::Result { call: "a", output: "o" });
        assert_eq!(result, json!({ "role": "tool", "tool_call_id": "a", "content": "o" }));
    }
}
