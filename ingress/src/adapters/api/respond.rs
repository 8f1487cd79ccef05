//! Completions and chunks on the wire, and the waiting for them.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use axum::Json;
use axum::http::{StatusCode, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use node::bus::Bus;
use node::clock;
use proto::codec;
use proto::id::{Seq, TurnId};
use proto::inbox::Inbox;
use proto::session::SessionKey;
use proto::subject;
use proto::topology::INBOX;
use proto::turn::{News as Report, Usage};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::answer::{Answer, End, News};
use super::request::ApiError;
use crate::metrics::{Metrics, OpenStream};
use crate::publish::Publisher;

/// How often a waiting stream says that it is there.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// Hangs up for a client that goes away before its answer is complete.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) publisher: Publisher,
    pub(crate) session: SessionKey,
    pub(crate) message: String,
    /// Stopping is our doing, not the client's: its turn goes on, and its session has the answer.
    pub(crate) stop: CancellationToken,
    pub(crate) open: bool,
}

impl Drop for Line {
    fn drop(&mut self) {
        if !self.open || self.stop.is_cancelled() {
            return;
        }
        let (publisher, session) = (self.publisher.clone(), self.session.clone());
        let message = std::mem::take(&mut self.message);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { publisher.hangup(session, message).await });
        }
    }
}

/// A request whose message is stored, waiting for its answer.
pub(crate) struct Waiting {
    pub(crate) answer: Answer,
    pub(crate) news: mpsc::Receiver<News>,
    pub(crate) line: Line,
    pub(crate) bus: Bus,
    pub(crate) seq: Seq,
    pub(crate) model: String,
    pub(crate) id: String,
    pub(crate) stop: CancellationToken,
}

impl Waiting {
    /// The next news; none when there will be no more.
    async fn next(&mut self) -> Option<News> {
        tokio::select! {
            news = self.news.recv() => news,
            () = self.stop.cancelled() => None,
        }
    }

    /// The answer as one object.
    pub(crate) async fn whole(mut self) -> Response {
        let mut text = String::new();
        while let Some(news) = self.next().await {
            let heard = self.answer.hear(&news);
            text += &heard.text;
            let Some(end) = heard.end else { continue };
            self.line.open = false;
            if end == End::Interrupted && !self.answer.spoke() {
                return interrupted().into_response();
            }
            let usage = self.usage().await;
            let message = json!({ "role": "assistant", "content": text, "refusal": null });
            let choice = json!({
                "index": 0, "message": message, "finish_reason": "stop", "logprobs": null,
            });
            let body = self.object("chat.completion", &json!([choice]), Some(usage));
            return Json(body).into_response();
        }
        cut_off().into_response()
    }

    /// The answer as chunks.
    pub(crate) fn stream(self, metrics: &Metrics, usage: bool) -> Response {
        let mut first = VecDeque::new();
        let delta = json!({ "role": "assistant", "content": "", "refusal": null });
        first.push_back(self.chunk(&delta, None));
        let state = Streaming {
            waiting: self,
            ready: first,
            usage,
            done: false,
            _open: OpenStream::new(metrics),
        };
        let events = stream::unfold(state, |mut state| async move {
            let data = state.next().await?;
            Some((Ok::<_, Infallible>(Event::default().data(data)), state))
        });
        let headers = [(header::CACHE_CONTROL, "no-store")];
        let heartbeat = KeepAlive::new().interval(HEARTBEAT);
        (headers, Sse::new(events).keep_alive(heartbeat)).into_response()
    }

    fn chunk(&self, delta: &Value, finish: Option<&str>) -> String {
        let choice =
            json!({ "index": 0, "delta": delta, "finish_reason": finish, "logprobs": null });
        self.object("chat.completion.chunk", &json!([choice]), None).to_string()
    }

    fn object(&self, object: &str, choices: &Value, usage: Option<Usage>) -> Value {
        let mut value = json!({
            "id": self.id,
            "object": object,
            "created": clock::wall_ms() / 1000,
            "model": self.model,
            "choices": choices,
            "system_fingerprint": null,
        });
        if let Some(Usage { input, output }) = usage {
            value["usage"] = json!({
                "prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output,
            });
        }
        value
    }

    /// What the turn cost: its report is the session's last input, unless more has come since; then it is not known.
    async fn usage(&self) -> Usage {
        let own = || (self.line.session.sid(), TurnId::from(self.seq));
        let (sid, turn) = self.answer.turn().unwrap_or_else(own);
        let subject = subject::inbox(self.bus.partition_of(sid), sid);
        let Ok(Some(stored)) = self.bus.last_nearby(INBOX, &subject).await else {
            return Usage::default();
        };
        match codec::decode::<Inbox>(&stored.payload) {
            Ok(Inbox::Report(report)) if report.of.turn == turn => match report.news {
                Report::Finished { usage, .. } => usage,
                Report::Asked { .. }
                | Report::Said { .. }
                | Report::AskClosed { .. }
                | Report::HandedBack => Usage::default(),
            },
            Ok(
                Inbox::Report(_)
                | Inbox::Message(_)
                | Inbox::Edit(_)
                | Inbox::Withdrawal { .. }
                | Inbox::Refused { .. }
                | Inbox::Hangup { .. },
            )
            | Err(_) => Usage::default(),
        }
    }
}

struct Streaming {
    waiting: Waiting,
    ready: VecDeque<String>,
    usage: bool,
    done: bool,
    _open: OpenStream,
}

impl Streaming {
    async fn next(&mut self) -> Option<String> {
        loop {
            if let Some(data) = self.ready.pop_front() {
                return Some(data);
            }
            if self.done {
                return None;
            }
            match self.waiting.next().await {
                Some(news) => self.hear(&news).await,
                None => {
                    self.done = true;
                    self.ready.push_back(cut_off().json().to_string());
                }
            }
        }
    }

    async fn hear(&mut self, news: &News) {
        let heard = self.waiting.answer.hear(news);
        if !heard.text.is_empty() {
            let delta = json!({ "content": heard.text });
            self.ready.push_back(self.waiting.chunk(&delta, None));
        }
        if heard.end.is_none() {
            return;
        }
        self.waiting.line.open = false;
        self.done = true;
        self.ready.push_back(self.waiting.chunk(&json!({}), Some("stop")));
        if self.usage {
            let usage = self.waiting.usage().await;
            let last = self.waiting.object("chat.completion.chunk", &json!([]), Some(usage));
            self.ready.push_back(last.to_string());
        }
        self.ready.push_back("[DONE]".into());
    }
}

fn interrupted() -> ApiError {
    let message = "the turn was interrupted by another message or a stop before it said anything";
    ApiError::new(StatusCode::CONFLICT, "conflict_error", message).code("interrupted")
}

fn cut_off() -> ApiError {
    let message = "the server stops before the answer is complete; send the request again";
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "server_error", message).code("unavailable")
}
