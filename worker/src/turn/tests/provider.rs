//! A strict provider in this process, in both forms. What it answers depends on the conversation only, so that it can be asked
//! again from anywhere; each thing that it does is an event that a test can act on.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};

use super::events::Events;
use super::strict;

/// One answer: words, and calls with their arguments.
#[derive(Clone, Debug, Default)]
pub(super) struct Step {
    pub(super) words: Vec<&'static str>,
    pub(super) calls: Vec<(&'static str, Value)>,
}

/// The form of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    OpenAi,
    Anthropic,
}

/// Answers by the last words of a person, and by how many answers with calls came since.
pub(super) type Script = dyn Fn(&str, usize) -> Step + Send + Sync;

#[derive(Clone)]
struct Inside {
    script: Arc<Script>,
    events: Events,
    refusals: Arc<Mutex<Vec<String>>>,
    requests: Arc<Mutex<Vec<Value>>>,
}

pub(super) struct Provider {
    pub(super) base_url: String,
    inside: Inside,
}

impl Provider {
    pub(super) async fn start(script: Arc<Script>, events: Events) -> Self {
        let inside = Inside { script, events, refusals: Arc::default(), requests: Arc::default() };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base_url = format!("http://{}", listener.local_addr().unwrap());
        let app = Router::new().fallback(answer).with_state(inside.clone());
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { base_url, inside }
    }

    /// What it refused.
    pub(super) fn refusals(&self) -> Vec<String> {
        self.inside.refusals.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What it was asked.
    pub(super) fn requests(&self) -> Vec<Value> {
        self.inside.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn answer(State(inside): State<Inside>, uri: Uri, body: Bytes) -> Response {
    let form = if uri.path().ends_with("/messages") { Form::Anthropic } else { Form::OpenAi };
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let checked = match form {
        Form::OpenAi => strict::openai(&body),
        Form::Anthropic => strict::anthropic(&body),
    };
    inside.requests.lock().unwrap_or_else(PoisonError::into_inner).push(body.clone());
    if let Err(why) = checked {
        let answer = json!({ "error": { "type": "invalid_request_error", "message": why } });
        inside
            .refusals
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(format!("{why}: {body}"));
        return (StatusCode::BAD_REQUEST, axum::Json(answer)).into_response();
    }
    inside.events.happen("asked");
    let (said, calls) = place(&body);
    let step = (inside.script)(&said, calls);
    let size = body["messages"].to_string().len() / 4;
    let chunks = match form {
        Form::OpenAi => openai(&step, calls, size),
        Form::Anthropic => anthropic(&step, calls, size),
    };
    let events = inside.events;
    let body = stream::iter(chunks).then(move |chunk| {
        let events = events.clone();
        async move {
            // Whoever reads gets each chunk before the next event.
            tokio::task::yield_now().await;
            events.happen("chunk");
            Ok::<_, Infallible>(Bytes::from(chunk))
        }
    });
    ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(body)).into_response()
}

/// The last words of a person, and how many answers with calls came after them.
fn place(body: &Value) -> (String, usize) {
    let (mut said, mut calls) = (String::new(), 0);
    for message in body["messages"].as_array().into_iter().flatten() {
        let blocks = message["content"].as_array().into_iter().flatten();
        let of_blocks = blocks.filter_map(|block| block["text"].as_str()).next_back();
        let text = message["content"].as_str().or(of_blocks);
        let made = message["content"].to_string().contains("\"tool_use\"")
            || message["tool_calls"].is_array();
        match (message["role"].as_str(), text) {
            (Some("user"), Some(text)) => (said, calls) = (text.to_owned(), 0),
            (Some("assistant"), _) if made => calls += 1,
            _ => {}
        }
    }
    (said, calls)
}

fn data(value: &Value) -> String {
    format!("data: {value}\n\n")
}

fn openai(step: &Step, number: usize, size: usize) -> Vec<String> {
    let delta = |delta: Value| data(&json!({ "choices": [{ "index": 0, "delta": delta }] }));
    let mut out = vec![delta(json!({ "role": "assistant", "content": "" }))];
    out.push(delta(json!({ "reasoning_content": "let me see" })));
    out.extend(step.words.iter().map(|words| delta(json!({ "content": words }))));
    for (at, (name, arguments)) in step.calls.iter().enumerate() {
        let id = format!("call_{number}_{at}");
        out.push(delta(json!({ "tool_calls": [{ "index": at, "id": id, "type": "function",
            "function": { "name": name, "arguments": "" } }] })));
        out.push(delta(json!({ "tool_calls": [{ "index": at, "function": { "arguments": arguments.to_string() } }] })));
    }
    let reason = if step.calls.is_empty() { "stop" } else { "tool_calls" };
    out.push(data(&json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }] })));
    out.push(data(
        &json!({ "choices": [], "usage": { "prompt_tokens": size, "completion_tokens": 5 } }),
    ));
    out.push("data: [DONE]\n\n".into());
    out
}

fn anthropic(step: &Step, number: usize, size: usize) -> Vec<String> {
    let mut out = vec![data(
        &json!({ "type": "message_start", "message": { "usage": { "input_tokens": size } } }),
    )];
    let start = |at: usize, block: Value| {
        data(&json!({ "type": "content_block_start", "index": at, "content_block": block }))
    };
    let delta = |at: usize, delta: Value| {
        data(&json!({ "type": "content_block_delta", "index": at, "delta": delta }))
    };
    if !step.words.is_empty() {
        out.push(start(0, json!({ "type": "text", "text": "" })));
        out.extend(
            step.words.iter().map(|words| delta(0, json!({ "type": "text_delta", "text": words }))),
        );
    }
    for (at, (name, arguments)) in step.calls.iter().enumerate() {
        let id = format!("toolu_{number}_{at}");
        out.push(start(at + 1, json!({ "type": "tool_use", "id": id, "name": name, "input": {} })));
        out.push(delta(
            at + 1,
            json!({ "type": "input_json_delta", "partial_json": arguments.to_string() }),
        ));
    }
    out.push(data(&json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" }, "usage": { "output_tokens": 5 } })));
    out.push(format!("event: message_stop\n{}", data(&json!({ "type": "message_stop" }))));
    out
}
