//! OpenAI-compatible chat completions, streamed.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use proto::transcript::ToolCall;
use serde_json::{Value, json};

use super::choose::Access;
use super::stream::{Events, cut_off, error_of};
use super::{Answer, Calls, Image, Message, Model, ModelError, Request, Words, stream};

/// The official API calls the limit by a new name, which compatible servers do not know.
const OFFICIAL: &str = "https://api.openai.com/";

/// A model behind `POST /chat/completions`.
pub(super) struct OpenAi {
    access: Access,
}

impl OpenAi {
    pub(super) const fn new(access: Access) -> Self {
        Self { access }
    }

    fn body(&self, request: &Request<'_>) -> Value {
        let with_images = |(at, said)| match request.images.get(&at) {
            Some(images) => with_images(message(said), images),
            None => message(said),
        };
        let messages: Vec<Value> = request.messages.iter().enumerate().map(with_images).collect();
        let mut body = json!({
            "model": self.access.model,
            "messages": messages,
            "stream": true,
            "stream_options": { "include_usage": true },
        });
        let limit = if self.access.base_url.starts_with(OFFICIAL) {
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

    async fn stream(&self, request: Request<'_>, words: Words) -> Result<Answer, ModelError> {
        let url = format!("{}/chat/completions", self.access.base_url);
        let mut http = self.access.http.post(url).json(&self.body(&request));
        if let Some(key) = self.access.key.given() {
            http = http.bearer_auth(key);
        }
        let prefix = format!("call_{}", request.messages.len());
        let mut events = Events::open(http, self.access.stall).await?;
        let mut reading = Reading { prefix, ..Reading::default() };
        while let Some(event) = events.next().await? {
            if event.data.trim() == "[DONE]" {
                return Ok(reading.answer);
            }
            reading.chunk(&stream::json(&event)?, &words)?;
        }
        // Some servers close without `[DONE]`; the reason for finishing is what proves that nothing is missing.
        if reading.finished { Ok(reading.answer) } else { Err(cut_off()) }
    }
}

impl Model for OpenAi {
    fn call<'a>(
        &'a self,
        request: Request<'a>,
        words: Words,
    ) -> BoxFuture<'a, Result<Answer, ModelError>> {
        self.stream(request, words).boxed()
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

/// The answer as far as it has come.
#[derive(Default)]
struct Reading {
    answer: Answer,
    /// The provider's number of each call in `answer`.
    numbers: Vec<u64>,
    /// Begins the ids of calls to which the server gives none.
    prefix: String,
    finished: bool,
}

impl Reading {
    fn chunk(&mut self, chunk: &Value, words: &Words) -> Result<(), ModelError> {
        if chunk["error"].is_object() {
            let (kind, message) = error_of(&chunk["error"]);
            return Err(ModelError::of_response(None, kind, message, None));
        }
        if let Some(usage) = chunk["usage"].as_object() {
            let count = |key: &str| usage.get(key).and_then(Value::as_u64).unwrap_or_default();
            self.answer.usage.input = count("prompt_tokens");
            self.answer.usage.output = count("completion_tokens");
        }
        let choice = &chunk["choices"][0];
        let delta = &choice["delta"];
        match delta["content"].as_str() {
            Some(text) if !text.is_empty() => {
                self.answer.text += text;
                words.say(text);
            }
            _ => words.busy(),
        }
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            self.call(call);
        }
        match choice["finish_reason"].as_str() {
            Some("content_filter") => return Err(ModelError::Declined),
            Some(_) => self.finished = true,
            None => {}
        }
        Ok(())
    }

    /// A piece of a call. Pieces with one number belong together; servers that send no numbers send whole calls.
    fn call(&mut self, piece: &Value) {
        let fallback = u64::try_from(self.numbers.len()).unwrap_or_default();
        let number = piece["index"].as_u64().unwrap_or(fallback);
        let at = self.numbers.iter().position(|known| *known == number).unwrap_or_else(|| {
            self.numbers.push(number);
            let id = format!("{}_{number}", self.prefix);
            self.answer.calls.push(ToolCall { id, name: String::new(), arguments: String::new() });
            self.numbers.len() - 1
        });
        let call = &mut self.answer.calls[at];
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
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::ToolSpec;
    use super::super::fake::{self, Then};
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
            let model = OpenAi::new(fake.access());
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
            let model = OpenAi::new(fake.access());
            let (words, mut signs) = Words::channel();
            let error = model.call(fake::request(&[]), words).await.unwrap_err();
            assert_eq!(error.label(), "network");
            assert_eq!(fake::texts(&mut signs), "Hello");
        });
    }

    #[test]
    fn dropping_the_call_closes_the_connection_at_once() {
        fake::run(HELLO.to_owned(), Then::Hang, |fake| async move {
            let model = OpenAi::new(fake.access());
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
            let model = OpenAi::new(Access { stall, ..fake.access() });
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
