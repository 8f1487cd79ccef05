//! A fake model provider: an OpenAI-compatible server that only streams, answers by script, and refuses what a strict
//! provider refuses. It remembers what it was asked and how each call ended.

mod answer;
mod strict;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use self::answer::Record;
use crate::wait::watched;

/// What the model does when it is asked.
#[derive(Clone, Debug)]
pub enum Step {
    /// Streams these words and is done.
    Say(String),
    /// Streams these words, then keeps the answer open until it is released or the client hangs up.
    Hold(String),
    /// The same as the first, with this pause between two words.
    Slow(String, Duration),
    /// Calls a tool.
    Call {
        /// Its name.
        name: String,
        /// Its arguments.
        arguments: Value,
    },
    /// Says something and calls several tools at once.
    Calls {
        /// What it says.
        text: String,
        /// The tools, with their arguments.
        calls: Vec<(String, Value)>,
    },
    /// Reasons for so long, with a sign of life every now and then, and then says this.
    Think {
        /// For how long.
        lasts: Duration,
        /// What it says at last.
        then: String,
    },
    /// Refuses with this status.
    Fail(u16),
}

impl Step {
    /// A call of the terminal.
    #[must_use]
    pub fn terminal(command: &str) -> Self {
        Self::Call { name: "terminal".into(), arguments: json!({ "command": command }) }
    }
}

/// How far a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It is being answered.
    Open,
    /// It was answered to the end.
    Done,
    /// The client hung up.
    Closed,
    /// It was refused.
    Refused,
}

/// One call.
#[derive(Clone, Debug)]
pub struct Call {
    /// The last thing a person said in it.
    pub user: String,
    /// Everything that was sent.
    pub messages: Vec<Value>,
    /// How far it is.
    pub progress: Progress,
    /// When it came.
    pub began: Instant,
    /// When it ended.
    pub ended: Option<Instant>,
    /// Why it was refused.
    pub refusal: Option<String>,
}

#[derive(Clone, Debug)]
struct Shared {
    calls: watch::Sender<Vec<Call>>,
    script: watch::Receiver<BTreeMap<String, Vec<Step>>>,
    released: watch::Receiver<BTreeSet<String>>,
}

/// The server; it ends with its value.
#[derive(Debug)]
pub struct FakeModel {
    address: SocketAddr,
    calls: watch::Receiver<Vec<Call>>,
    script: watch::Sender<BTreeMap<String, Vec<Step>>>,
    released: watch::Sender<BTreeSet<String>>,
    _serving: AbortOnDropHandle<()>,
}

impl FakeModel {
    /// Starts one on a free port. What it has no script for it repeats.
    ///
    /// # Panics
    /// When there is no free port.
    pub async fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let (sender, calls) = watch::channel(Vec::new());
        let (script, scripts) = watch::channel(BTreeMap::new());
        let (released, releases) = watch::channel(BTreeSet::new());
        let shared = Shared { calls: sender, script: scripts, released: releases };
        let app = Router::new().route("/v1/chat/completions", post(complete)).with_state(shared);
        let serving = tokio::spawn(async move {
            axum::serve(listener, app).await.expect("the fake model serves");
        });
        Self { address, calls, script, released, _serving: AbortOnDropHandle::new(serving) }
    }

    /// The base address of its API.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// What to do when a person's last words contain `text`: one step a model call, the last one for all further calls. The
    /// longest text that is contained decides.
    pub fn on(&self, text: &str, steps: impl IntoIterator<Item = Step>) {
        let steps = steps.into_iter().collect();
        self.script.send_modify(|script| {
            script.insert(text.to_owned(), steps);
        });
    }

    /// Lets held answers to this text end.
    pub fn release(&self, text: &str) {
        self.released.send_modify(|released| {
            released.insert(text.to_owned());
        });
    }

    /// All calls so far.
    #[must_use]
    pub fn calls(&self) -> Vec<Call> {
        self.calls.borrow().clone()
    }

    /// How many calls had these last words in them.
    #[must_use]
    pub fn count(&self, text: &str) -> usize {
        self.calls.borrow().iter().filter(|call| call.user.contains(text)).count()
    }

    /// Waits until the calls have an answer.
    pub async fn wait_for<T>(&self, what: &str, look: impl FnMut(&Vec<Call>) -> Option<T>) -> T {
        watched(what, self.calls.clone(), look).await
    }

    /// Waits for the `nth` call (from 1) with these last words to get this far.
    pub async fn call(&self, text: &str, nth: usize, progress: Progress) -> Call {
        self.wait_for(&format!("call {nth} for {text:?} is {progress:?}"), |calls| {
            let mut of = calls.iter().filter(|call| call.user.contains(text));
            of.nth(nth - 1).filter(|call| call.progress == progress).cloned()
        })
        .await
    }

    /// Checks that no call was refused for what it contained.
    ///
    /// # Panics
    /// When one was.
    #[track_caller]
    pub fn assert_strict(&self) {
        let refusals: Vec<String> = self.calls().into_iter().filter_map(|c| c.refusal).collect();
        assert!(refusals.is_empty(), "a strict provider refused: {refusals:?}");
    }
}

async fn complete(State(shared): State<Shared>, Json(request): Json<Value>) -> Response {
    let messages = request["messages"].as_array().cloned().unwrap_or_default();
    let user = last_user(&messages);
    let record = Record::begin(&shared.calls, user.clone(), messages.clone());
    if let Err(why) = strict::check(&request) {
        record.refuse(Some(why.clone()));
        return refusal(StatusCode::BAD_REQUEST, &why);
    }
    let (key, step) = step(&shared.script.borrow(), &user, &messages);
    if let Step::Fail(status) = step {
        record.refuse(None);
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        return refusal(status, "as the script says");
    }
    let stream = answer::stream(record, &step, key, shared.released);
    ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(stream)).into_response()
}

fn refusal(status: StatusCode, why: &str) -> Response {
    (status, Json(json!({ "error": { "message": why, "type": "invalid_request_error" } })))
        .into_response()
}

fn last_user(messages: &[Value]) -> String {
    let last = messages.iter().rev().find(|message| message["role"] == "user");
    last.map(|message| text(&message["content"])).unwrap_or_default()
}

/// The text of a message's content, which is a string or a list of parts.
fn text(content: &Value) -> String {
    let parts = content.as_array().into_iter().flatten();
    content.as_str().map_or_else(
        || parts.filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n"),
        str::to_owned,
    )
}

/// What to do: how often the model has called tools since the person spoke says which step it is at.
fn step(script: &BTreeMap<String, Vec<Step>>, user: &str, messages: &[Value]) -> (String, Step) {
    let of = script.iter().filter(|(key, _)| user.contains(key.as_str()));
    let Some((key, steps)) = of.max_by_key(|(key, _)| key.len()) else {
        return (user.to_owned(), Step::Say(format!("you said: {user}")));
    };
    let spoke = messages.iter().rposition(|message| message["role"] == "user").unwrap_or(0);
    let rounds =
        messages[spoke..].iter().filter(|message| message["tool_calls"].is_array()).count();
    let step = steps.get(rounds).or(steps.last()).cloned();
    (key.clone(), step.unwrap_or_else(|| Step::Say(String::new())))
}
