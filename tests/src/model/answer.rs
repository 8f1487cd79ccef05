//! A streamed answer, and the record of how it ended: to the end, or because the client hung up.

use std::collections::{BTreeSet, VecDeque};
use std::convert::Infallible;
use std::time::{Duration, Instant};

use futures_util::Stream;
use futures_util::stream::unfold;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::{Call, Progress, Step};

/// The entry of one call; dropped before its end, it says that the client hung up.
#[derive(Debug)]
pub(super) struct Record {
    calls: watch::Sender<Vec<Call>>,
    index: usize,
    ended: bool,
}

impl Record {
    pub(super) fn begin(
        calls: &watch::Sender<Vec<Call>>,
        user: String,
        messages: Vec<Value>,
    ) -> Self {
        let mut index = 0;
        calls.send_modify(|calls| {
            index = calls.len();
            calls.push(Call {
                user,
                messages,
                progress: Progress::Open,
                began: Instant::now(),
                ended: None,
                refusal: None,
            });
        });
        Self { calls: calls.clone(), index, ended: false }
    }

    pub(super) fn refuse(mut self, why: Option<String>) {
        self.end(Progress::Refused, why);
    }

    fn end(&mut self, progress: Progress, refusal: Option<String>) {
        self.ended = true;
        self.calls.send_modify(|calls| {
            let call = &mut calls[self.index];
            call.progress = progress;
            call.ended = Some(Instant::now());
            call.refusal = refusal;
        });
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        if !self.ended {
            self.end(Progress::Closed, None);
        }
    }
}

/// How often a model that reasons gives a sign of life.
const PACE: Duration = Duration::from_millis(50);

enum Piece {
    Send(String),
    Pause(Duration),
    Hold,
}

struct Answer {
    pieces: VecDeque<Piece>,
    key: String,
    released: watch::Receiver<BTreeSet<String>>,
    record: Record,
}

/// The body of an answer. A held one goes on when `key` is released.
pub(super) fn stream(
    record: Record,
    step: &Step,
    key: String,
    released: watch::Receiver<BTreeSet<String>>,
) -> impl Stream<Item = Result<String, Infallible>> + use<> {
    let answer = Answer { pieces: pieces(step), key, released, record };
    unfold(answer, |mut answer| async move {
        loop {
            match answer.pieces.pop_front() {
                Some(Piece::Send(text)) => return Some((Ok(text), answer)),
                Some(Piece::Pause(pause)) => tokio::time::sleep(pause).await,
                Some(Piece::Hold) => {
                    let key = answer.key.clone();
                    // Without anyone left to release it, the test is over.
                    answer.released.wait_for(|keys| keys.contains(&key)).await.ok()?;
                }
                None => {
                    answer.record.end(Progress::Done, None);
                    return None;
                }
            }
        }
    })
}

fn pieces(step: &Step) -> VecDeque<Piece> {
    let mut pieces = VecDeque::from([chunk(json!({ "role": "assistant", "content": "" }), None)]);
    match step {
        Step::Say(text) => {
            pieces.extend(words(text));
            pieces.push_back(chunk(json!({}), Some("stop")));
        }
        Step::Hold(text) => {
            pieces.extend(words(text));
            pieces.push_back(Piece::Hold);
            pieces.push_back(chunk(json!({}), Some("stop")));
        }
        Step::Slow(text, pause) => {
            for piece in words(text) {
                pieces.extend([piece, Piece::Pause(*pause)]);
            }
            pieces.push_back(chunk(json!({}), Some("stop")));
        }
        Step::Call { name, arguments } => {
            pieces.push_back(call(0, name, arguments));
            pieces.push_back(chunk(json!({}), Some("tool_calls")));
        }
        Step::Calls { text, calls } => {
            pieces.extend(words(text));
            let calls = calls.iter().enumerate();
            pieces.extend(calls.map(|(index, (name, arguments))| call(index, name, arguments)));
            pieces.push_back(chunk(json!({}), Some("tool_calls")));
        }
        Step::Think { lasts, then } => {
            for _ in 0..lasts.as_millis() / PACE.as_millis() {
                pieces.push_back(chunk(json!({ "reasoning_content": "hm" }), None));
                pieces.push_back(Piece::Pause(PACE));
            }
            pieces.extend(words(then));
            pieces.push_back(chunk(json!({}), Some("stop")));
        }
        Step::Fail(_) => {}
    }
    pieces.push_back(event(&json!({
        "object": "chat.completion.chunk",
        "choices": [],
        "usage": { "prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2 },
    })));
    pieces.push_back(Piece::Send("data: [DONE]\n\n".into()));
    pieces
}

fn call(index: usize, name: &str, arguments: &Value) -> Piece {
    let id = format!("call_{:016x}", u64::from_be_bytes(node::process::random()));
    let function = json!({ "name": name, "arguments": arguments.to_string() });
    let call = json!({ "index": index, "id": id, "type": "function", "function": function });
    chunk(json!({ "tool_calls": [call] }), None)
}

fn words(text: &str) -> impl Iterator<Item = Piece> {
    text.split_inclusive(' ').map(|word| chunk(json!({ "content": word }), None))
}

fn chunk(delta: Value, finish: Option<&str>) -> Piece {
    event(&json!({
        "id": "chatcmpl-fake",
        "object": "chat.completion.chunk",
        "created": 0,
        "model": "fake",
        "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }],
    }))
}

fn event(data: &Value) -> Piece {
    Piece::Send(format!("data: {data}\n\n"))
}
