//! A strict fake of Slack, written from the public references of its Web API, Events API and Socket Mode: it keeps channels and
//! their messages, checks what apps send, sends events until they are acknowledged, and can be told to be busy, to lose
//! answers, or to cut its sockets.

mod check;
mod socket;

use std::collections::{BTreeMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant, SystemTime};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use crate::wait::watched;

/// The bot's token.
pub const BOT_TOKEN: &str = "xoxb-test";
/// The app's token.
pub const APP_TOKEN: &str = "xapp-test";
/// What requests are signed with.
pub const SECRET: &str = "test-signing-secret";
/// The bot's user.
pub const BOT: &str = "U0BOT";
/// The bot itself.
pub const BOT_ID: &str = "B0BOT";

/// A message of the app.
#[derive(Clone, Debug)]
pub struct Message {
    /// In which channel.
    pub channel: String,
    /// Its id.
    pub ts: String,
    /// The thread's, if it was sent to one.
    pub thread: Option<String>,
    /// What it says now, in mrkdwn.
    pub text: String,
    /// What it said, the first first.
    pub states: Vec<String>,
    /// Its blocks.
    pub blocks: Value,
    /// What it carries for programs.
    pub metadata: Value,
    /// Whether it was taken away.
    pub deleted: bool,
}

impl Message {
    /// Whether people read this; what keeps marks apart is not seen.
    #[must_use]
    pub fn reads(&self, text: &str) -> bool {
        self.text.replace('\u{200b}', "") == text
    }

    /// What its buttons hold.
    #[must_use]
    pub fn buttons(&self) -> Vec<String> {
        let blocks = self.blocks.as_array().into_iter().flatten();
        let elements = blocks.filter_map(|block| block["elements"].as_array()).flatten();
        elements.filter_map(|button| button["value"].as_str()).map(str::to_owned).collect()
    }
}

/// One call of a method.
#[derive(Clone, Debug)]
pub struct Call {
    /// Which method.
    pub method: String,
    /// Its arguments.
    pub arguments: Value,
    /// When it came.
    pub at: Instant,
    /// Whether it was carried out.
    pub ok: bool,
}

/// What the fake does to the next calls of a method, instead of what it would do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// 429 with a time to wait, in seconds.
    Flood(u64),
    /// The call is carried out, and its answer is lost.
    Lost,
    /// The call is refused with a code.
    Refused(&'static str),
}

/// All that is known.
#[derive(Debug, Default)]
pub struct Slack {
    /// The app's messages.
    pub messages: Vec<Message>,
    /// All calls.
    pub calls: Vec<Call>,
    /// What a strict server would not have accepted; it was refused.
    pub faults: Vec<String>,
    /// How many calls came although quiet was wanted.
    pub floods: usize,
    /// What was acknowledged over sockets.
    pub receipts: Vec<Value>,
    /// How many sockets were opened.
    pub sockets: usize,
    /// The content of files, by id.
    pub files: BTreeMap<String, Vec<u8>>,
    envelopes: VecDeque<Value>,
    next: u64,
    troubles: BTreeMap<String, VecDeque<Trouble>>,
    quiet: BTreeMap<String, Instant>,
    /// How often all sockets were cut, and whether Slack said so before.
    cuts: usize,
    politely: bool,
    /// Whether receipts are lost.
    deaf: bool,
    address: String,
    socket_address: String,
}

impl Slack {
    fn next_ts(&mut self) -> String {
        self.next += 1;
        format!("1700000000.{:06}", self.next)
    }
}

/// The server; it ends with its value.
#[derive(Debug)]
pub struct SlackServer {
    state: watch::Sender<Slack>,
    url: String,
    _serving: [AbortOnDropHandle<()>; 2],
}

#[derive(Clone)]
struct Shared(watch::Sender<Slack>);

impl SlackServer {
    /// Starts one on free ports.
    ///
    /// # Panics
    /// When there are none.
    pub async fn start() -> Self {
        let bind = async || {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
            let address = listener.local_addr().expect("a bound socket has an address");
            (listener, address)
        };
        let (listener, address) = bind().await;
        let (sockets, socket_address) = bind().await;
        let state = watch::Sender::new(Slack {
            address: format!("http://{address}"),
            socket_address: format!("ws://{socket_address}"),
            ..Slack::default()
        });
        let app = Router::new()
            .route("/api/{method}", post(call))
            .route("/files/{id}", get(file).post(upload))
            .with_state(Shared(state.clone()));
        let serving = tokio::spawn(async move {
            axum::serve(listener, app).await.expect("the fake serves");
        });
        let links = state.clone();
        let linking = tokio::spawn(async move {
            while let Ok((stream, _)) = sockets.accept().await {
                tokio::spawn(socket::link(stream, links.clone()));
            }
        });
        let serving = [AbortOnDropHandle::new(serving), AbortOnDropHandle::new(linking)];
        Self { state, url: format!("http://{address}/api"), _serving: serving }
    }

    /// Where its Web API is.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// A new message's id.
    pub fn ts(&self) -> String {
        let mut ts = String::new();
        self.state.send_modify(|state| ts = state.next_ts());
        ts
    }

    /// A person's message as an event, not sent yet.
    #[must_use]
    pub fn message(&self, channel: &str, user: &str, text: &str) -> Value {
        let ts = self.ts();
        json!({
            "type": "message", "channel": channel, "user": user, "text": text, "ts": ts,
            "event_ts": ts, "team": "T0", "client_msg_id": format!("msg-{ts}"),
            "channel_type": if channel.starts_with('D') { "im" } else { "channel" },
        })
    }

    /// Sends something over the socket, again and again until it is acknowledged. Returns the envelope's id.
    pub fn envelope(&self, kind: &str, payload: Value) -> String {
        let mut id = String::new();
        self.state.send_modify(|state| {
            id = format!("envelope-{}", state.next_ts());
            let accepts = kind != "events_api";
            state.envelopes.push_back(json!({
                "type": kind, "envelope_id": id, "payload": payload,
                "accepts_response_payload": accepts, "retry_attempt": 0, "retry_reason": "",
            }));
        });
        id
    }

    /// Has a person write, over the socket. Returns the message's id.
    pub fn say(&self, channel: &str, user: &str, text: &str) -> String {
        let event = self.message(channel, user, text);
        self.envelope("events_api", callback(&event));
        event["ts"].as_str().unwrap_or_default().to_owned()
    }

    /// A press of a button, as Slack describes it.
    #[must_use]
    pub fn press(&self, user: &str, message: &Message, value: &str) -> Value {
        let ts = self.ts();
        json!({
            "type": "block_actions", "api_app_id": "A0", "trigger_id": format!("trigger-{ts}"),
            "user": { "id": user, "username": user, "name": user, "team_id": "T0" },
            "container": {
                "type": "message", "message_ts": message.ts, "channel_id": message.channel,
                "thread_ts": message.thread, "is_ephemeral": false,
            },
            "channel": { "id": message.channel, "name": "somewhere" },
            "message": {
                "type": "message", "ts": message.ts, "text": message.text,
                "blocks": message.blocks, "bot_id": BOT_ID, "user": BOT,
            },
            "actions": [{
                "type": "button", "action_id": "any", "block_id": "b", "value": value,
                "action_ts": ts, "text": { "type": "plain_text", "text": "any" },
            }],
        })
    }

    /// Posts something to an app's door, signed as if it was `age` old. Returns the status and the body.
    ///
    /// # Panics
    /// When nothing is there.
    pub async fn post(
        &self,
        door: SocketAddr,
        (kind, body): (&str, String),
        (secret, age): (&str, Duration),
    ) -> (u16, String) {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
        let time = (now - age).as_secs();
        let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("any key will do");
        mac.update(format!("v0:{time}:{body}").as_bytes());
        let signature = format!("v0={}", hex::encode(mac.finalize().into_bytes()));
        let answer = crate::http::client()
            .post(format!("http://{door}/slack/app"))
            .header(header::CONTENT_TYPE, kind)
            .header("x-slack-request-timestamp", time.to_string())
            .header("x-slack-signature", signature)
            .body(body)
            .send()
            .await
            .expect("an answer");
        (answer.status().as_u16(), answer.text().await.expect("a body"))
    }

    /// What happens to the next calls of a method, one after another.
    pub fn trouble(&self, method: &str, troubles: impl IntoIterator<Item = Trouble>) {
        let new: Vec<Trouble> = troubles.into_iter().collect();
        self.state.send_modify(|state| {
            state.troubles.entry(method.to_owned()).or_default().extend(new);
        });
    }

    /// Puts a file where the app can fetch it.
    pub fn put_file(&self, id: &str, content: &[u8]) {
        self.state.send_modify(|state| drop(state.files.insert(id.to_owned(), content.to_vec())));
    }

    /// Cuts all sockets; politely means that Slack asks for a new one before.
    pub fn cut(&self, politely: bool) {
        self.state.send_modify(|state| {
            state.cuts += 1;
            state.politely = politely;
            state.deaf = false;
        });
    }

    /// From now on receipts get lost, until the next cut.
    pub fn lose_receipts(&self) {
        self.state.send_modify(|state| state.deaf = true);
    }

    /// The calls of one method so far.
    #[must_use]
    pub fn calls(&self, method: &str) -> Vec<Call> {
        self.state.borrow().calls.iter().filter(|call| call.method == method).cloned().collect()
    }

    /// The app's messages in a channel that are there.
    #[must_use]
    pub fn shown(&self, channel: &str) -> Vec<Message> {
        shown(&self.state.borrow(), channel)
    }

    /// Waits until there is an answer.
    pub async fn wait_for<T>(&self, what: &str, look: impl FnMut(&Slack) -> Option<T>) -> T {
        watched(what, self.state.subscribe(), look).await
    }

    /// Waits until the app's messages in a channel are these.
    pub async fn reads(&self, channel: &str, texts: &[&str]) -> Vec<Message> {
        self.wait_for(&format!("the messages {texts:?} in {channel}"), |state| {
            let there = shown(state, channel);
            let same = there.len() == texts.len()
                && there.iter().zip(texts).all(|(message, text)| message.reads(text));
            same.then_some(there)
        })
        .await
    }

    /// Waits until everything that was sent over sockets is acknowledged.
    pub async fn all_acknowledged(&self) {
        let done = |state: &Slack| state.envelopes.is_empty().then_some(());
        self.wait_for("all receipts", done).await;
    }

    /// Fails if the app sent anything that the real one would have refused.
    ///
    /// # Panics
    /// When it did.
    #[track_caller]
    pub fn assert_strict(&self) {
        let state = self.state.borrow();
        assert!(state.faults.is_empty(), "{:#?}", state.faults);
        assert_eq!(state.floods, 0, "quiet was kept");
    }
}

/// An event in its outside.
#[must_use]
pub fn callback(event: &Value) -> Value {
    json!({
        "type": "event_callback", "token": "old", "team_id": "T0", "api_app_id": "A0",
        "event": event, "event_id": format!("Ev-{}", event["event_ts"]), "event_time": 1_700_000_000,
        "authorizations": [{ "team_id": "T0", "user_id": BOT, "is_bot": true }],
    })
}

fn shown(state: &Slack, channel: &str) -> Vec<Message> {
    let there = state.messages.iter().filter(|m| m.channel == channel && !m.deleted);
    there.cloned().collect()
}

async fn file(
    State(Shared(state)): State<Shared>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Response {
    let found = state.borrow().files.get(&id).cloned();
    let allowed = check::bearer(&headers) == Some(BOT_TOKEN);
    match found {
        Some(bytes) if allowed => bytes.into_response(),
        // The real one leads to a page for signing in.
        Some(_) | None => {
            (StatusCode::FOUND, [(header::LOCATION, "https://slack.com")]).into_response()
        }
    }
}

async fn upload(
    State(Shared(state)): State<Shared>,
    Path(id): Path<String>,
    body: Bytes,
) -> Response {
    state.send_modify(|state| drop(state.files.insert(id, body.to_vec())));
    "OK".into_response()
}

async fn call(
    State(Shared(state)): State<Shared>,
    Path(method): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let mut answer = (StatusCode::OK, Value::Null, None, false);
    state.send_modify(|state| answer = state.answer(&method, &headers, &body));
    let (status, value, after, lost) = answer;
    if lost {
        // The connection breaks before the answer: a body that ends too soon.
        let broken = futures_util::stream::iter([Err::<Bytes, _>(std::io::Error::other("lost"))]);
        return Response::new(axum::body::Body::from_stream(broken));
    }
    let mut response = (status, axum::Json(value)).into_response();
    if let Some(after) = after {
        response.headers_mut().insert(header::RETRY_AFTER, after.into());
    }
    response
}

impl Slack {
    fn answer(
        &mut self,
        method: &str,
        headers: &HeaderMap,
        body: &[u8],
    ) -> (StatusCode, Value, Option<u64>, bool) {
        let arguments = match check::arguments(method, headers, body) {
            Ok(arguments) => arguments,
            Err(why) => {
                if why != "invalid_auth" {
                    self.faults.push(format!("{method}: {why}"));
                }
                return (StatusCode::OK, json!({ "ok": false, "error": why }), None, false);
            }
        };
        let trouble = self.troubles.get_mut(method).and_then(VecDeque::pop_front);
        let now = Instant::now();
        // Messages are counted by channel, everything else by method.
        let channel = arguments["channel"].as_str().filter(|_| method == "chat.postMessage");
        let scope = format!("{method} {}", channel.unwrap_or_default());
        let asked = self.quiet.get(&scope).filter(|until| now < **until).copied();
        self.floods += usize::from(asked.is_some());
        let record =
            |ok| Call { method: method.to_owned(), arguments: arguments.clone(), at: now, ok };
        if let (Some(_), _) | (None, Some(Trouble::Flood(_))) = (asked, &trouble) {
            let seconds = if let Some(Trouble::Flood(seconds)) = trouble { seconds } else { 1 };
            self.quiet.entry(scope).or_insert(now + Duration::from_secs(seconds));
            self.calls.push(record(false));
            let value = json!({ "ok": false, "error": "ratelimited" });
            return (StatusCode::TOO_MANY_REQUESTS, value, Some(seconds), false);
        }
        if let Some(Trouble::Refused(why)) = trouble {
            self.calls.push(record(false));
            return (StatusCode::OK, json!({ "ok": false, "error": why }), None, false);
        }
        let done = self.carry_out(method, &arguments);
        self.calls.push(record(done.is_ok()));
        let value = match done {
            Ok(mut value) => {
                value["ok"] = true.into();
                value
            }
            Err(why) => {
                if why != "message_not_found" {
                    self.faults.push(format!("{method}: {why}: {arguments}"));
                }
                json!({ "ok": false, "error": why })
            }
        };
        (StatusCode::OK, value, None, trouble == Some(Trouble::Lost))
    }
}
