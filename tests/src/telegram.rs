//! A strict fake of Telegram's Bot API, written from its public reference: it keeps chats and their messages as Telegram would,
//! checks what bots send (limits, markup, fields), and can be told to be busy, to lose answers, or to refuse a token.

pub mod check;

use std::collections::{BTreeMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use crate::wait::watched;

/// The token that it knows.
pub const TOKEN: &str = "123456:TEST-token";
/// What the bot is called.
pub const BOT: &str = "talaria_test_bot";
/// The bot's id.
pub const BOT_ID: i64 = 123_456;

/// A message in a chat.
#[derive(Clone, Debug)]
pub struct Message {
    /// Its id.
    pub id: i64,
    /// The chat's.
    pub chat: i64,
    /// The topic's, if it was sent to one.
    pub thread: Option<i64>,
    /// The message it answers.
    pub reply_to: Option<i64>,
    /// What people read now.
    pub text: String,
    /// The texts that it had, the first one first.
    pub states: Vec<String>,
    /// As it was written, with its marks.
    pub markup: String,
    /// The data of its buttons.
    pub buttons: Vec<String>,
    /// Whether it was taken away.
    pub deleted: bool,
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
    /// What it was answered with: 200, or the code of the error.
    pub code: u16,
}

/// What the fake does to the next calls of a method, instead of what it would do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// 429 with a time to wait, in seconds; calls to the same chat before its end make it longer.
    Flood(u64),
    /// The call is carried out, and its answer is lost.
    Lost,
    /// The call is refused with a code and a description.
    Refused(u16, &'static str),
    /// The call is held until the fake is told otherwise.
    Held,
}

/// All that is known.
#[derive(Debug, Default)]
pub struct Telegram {
    /// The bot's messages.
    pub messages: Vec<Message>,
    /// All calls but `getUpdates`.
    pub calls: Vec<Call>,
    /// What a strict server would not have accepted; it was refused.
    pub faults: Vec<String>,
    /// How many calls came for a chat that had to be left in peace.
    pub floods: usize,
    updates: VecDeque<Value>,
    next_update: i64,
    next_message: i64,
    troubles: BTreeMap<String, VecDeque<Trouble>>,
    silence: BTreeMap<i64, Instant>,
    files: BTreeMap<String, Vec<u8>>,
    polls: usize,
    webhook: Option<Value>,
}

/// The server; it ends with its value.
#[derive(Debug)]
pub struct TelegramServer {
    address: SocketAddr,
    state: watch::Sender<Telegram>,
    _serving: AbortOnDropHandle<()>,
}

#[derive(Clone)]
struct Shared(watch::Sender<Telegram>);

impl TelegramServer {
    /// Starts one on a free port.
    ///
    /// # Panics
    /// When there is no free port.
    pub async fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let state = watch::Sender::new(Telegram {
            next_update: 1000,
            next_message: 1,
            ..Telegram::default()
        });
        let app = Router::new()
            .route("/{bot}/{method}", post(call))
            .route("/file/{bot}/{name}", get(file))
            .with_state(Shared(state.clone()));
        let serving = tokio::spawn(async move {
            axum::serve(listener, app).await.expect("the fake serves");
        });
        Self { address, state, _serving: AbortOnDropHandle::new(serving) }
    }

    /// Where it is.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Has a person do something: `kind` is the update's field, `what` its content. Returns the id of the update.
    pub fn update(&self, kind: &str, what: Value) -> i64 {
        let mut id = 0;
        self.state.send_modify(|state| {
            id = state.next_update;
            state.next_update += 1;
            let mut update = json!({ "update_id": id });
            update[kind] = what;
            state.updates.push_back(update);
        });
        id
    }

    /// The next id of a message.
    pub fn message_id(&self) -> i64 {
        let mut id = 0;
        self.state.send_modify(|state| {
            id = state.next_message;
            state.next_message += 1;
        });
        id
    }

    /// Has a person write in a private chat. Returns the message's id.
    pub fn say(&self, user: i64, text: &str) -> i64 {
        let message = self.message_id();
        self.update("message", private(message, user, text));
        message
    }

    /// Has a person press the button with this data under a message.
    pub fn press(&self, user: i64, message: &Message, data: &str) {
        let press = json!({
            "id": format!("press-{}-{user}", message.id),
            "from": person(user),
            "chat_instance": "1",
            "data": data,
            "message": {
                "message_id": message.id,
                "date": 1,
                "chat": { "id": message.chat, "type": if message.chat < 0 { "supergroup" } else { "private" } },
                "from": { "id": BOT_ID, "is_bot": true, "first_name": "Bot", "username": BOT },
                "text": message.text,
            },
        });
        self.update("callback_query", press);
    }

    /// Puts a file where the bot can fetch it.
    pub fn put_file(&self, id: &str, content: &[u8]) {
        self.state.send_modify(|state| drop(state.files.insert(id.to_owned(), content.to_vec())));
    }

    /// What happens to the next calls of a method, one after another.
    pub fn trouble(&self, method: &str, troubles: impl IntoIterator<Item = Trouble>) {
        let new: Vec<Trouble> = troubles.into_iter().collect();
        self.state.send_modify(|state| {
            state.troubles.entry(method.to_owned()).or_default().extend(new);
        });
    }

    /// Lets held calls end.
    pub fn release(&self, method: &str) {
        self.state.send_modify(|state| drop(state.troubles.remove(method)));
    }

    /// The messages of the bot in a chat that are there, in order.
    #[must_use]
    pub fn shown(&self, chat: i64) -> Vec<Message> {
        let state = self.state.borrow();
        state.messages.iter().filter(|m| m.chat == chat && !m.deleted).cloned().collect()
    }

    /// The calls of one method so far.
    #[must_use]
    pub fn calls(&self, method: &str) -> Vec<Call> {
        self.state.borrow().calls.iter().filter(|call| call.method == method).cloned().collect()
    }

    /// How many calls came for a chat that had to be left in peace.
    #[must_use]
    pub fn floods(&self) -> usize {
        self.state.borrow().floods
    }

    /// What was registered as webhook.
    #[must_use]
    pub fn webhook(&self) -> Option<Value> {
        self.state.borrow().webhook.clone()
    }

    /// Waits until there is an answer.
    pub async fn wait_for<T>(&self, what: &str, look: impl FnMut(&Telegram) -> Option<T>) -> T {
        watched(what, self.state.subscribe(), look).await
    }

    /// Waits until the bot's messages in a chat are these.
    pub async fn reads(&self, chat: i64, texts: &[&str]) -> Vec<Message> {
        let what = format!("the messages {texts:?} in {chat}");
        self.wait_for(&what, |state| {
            let there: Vec<Message> =
                state.messages.iter().filter(|m| m.chat == chat && !m.deleted).cloned().collect();
            let same = there.len() == texts.len()
                && there.iter().zip(texts).all(|(message, text)| message.text == *text);
            same.then_some(there)
        })
        .await
    }

    /// Fails if the bot sent anything that the real one would have refused.
    ///
    /// # Panics
    /// When it did.
    pub fn assert_strict(&self) {
        let faults = self.state.borrow().faults.clone();
        assert!(faults.is_empty(), "{faults:#?}");
    }
}

impl Telegram {
    /// How many updates have not been confirmed.
    #[must_use]
    pub fn unconfirmed(&self) -> usize {
        self.updates.len()
    }
}

/// A person.
#[must_use]
pub fn person(id: i64) -> Value {
    json!({ "id": id, "is_bot": false, "first_name": format!("User{id}"), "language_code": "en" })
}

/// A message in a private chat.
#[must_use]
pub fn private(message: i64, user: i64, text: &str) -> Value {
    let mut chat = person(user);
    chat["type"] = "private".into();
    json!({ "message_id": message, "date": 1, "chat": chat, "from": person(user), "text": text })
}

/// A message in a group.
#[must_use]
pub fn in_group(message: i64, chat: i64, user: i64, text: &str) -> Value {
    let mut said = private(message, user, text);
    said["chat"] = json!({ "id": chat, "type": "supergroup", "title": "A group" });
    said
}

async fn file(
    State(Shared(state)): State<Shared>,
    Path((bot, name)): Path<(String, String)>,
) -> Response {
    let found = state.borrow().files.get(&name).cloned();
    match found {
        Some(bytes) if bot == format!("bot{TOKEN}") => bytes.into_response(),
        Some(_) | None => StatusCode::NOT_FOUND.into_response(),
    }
}

fn refused(code: u16, description: &str, parameters: Value) -> (u16, Value) {
    let mut body = json!({ "ok": false, "error_code": code, "description": description });
    if !parameters.is_null() {
        body["parameters"] = parameters;
    }
    (code, body)
}

async fn call(
    State(Shared(state)): State<Shared>,
    Path((bot, method)): Path<(String, String)>,
    body: Bytes,
) -> Response {
    if bot != format!("bot{TOKEN}") {
        return answer(refused(401, "Unauthorized", Value::Null));
    }
    let arguments: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
    if method == "getUpdates" {
        return answer(updates(&state, &arguments).await);
    }
    let mut trouble = None;
    state.send_modify(|state| {
        let waiting = state.troubles.get_mut(&method);
        trouble = waiting.and_then(|waiting| match waiting.front() {
            Some(Trouble::Held) => Some(Trouble::Held),
            _ => waiting.pop_front(),
        });
    });
    if trouble == Some(Trouble::Held) {
        let mut watch = state.subscribe();
        let held = |state: &Telegram| !state.troubles.contains_key(&method);
        let _ = watch.wait_for(held).await;
        trouble = None;
    }
    let mut outcome = (200, Value::Null);
    let at = Instant::now();
    state.send_modify(|state| {
        outcome = match (&trouble, state.in_silence(&arguments, &method)) {
            (_, Some(left)) => flood(left),
            (Some(Trouble::Flood(seconds)), None) => {
                if let Some(chat) = arguments["chat_id"].as_i64() {
                    state.silence.insert(chat, at + Duration::from_secs(*seconds));
                }
                flood(*seconds)
            }
            (Some(Trouble::Refused(code, why)), None) => refused(*code, why, Value::Null),
            _ => state.carry_out(&method, &arguments),
        };
        let code = outcome.0;
        state.calls.push(Call { method: method.clone(), arguments: arguments.clone(), at, code });
    });
    if trouble == Some(Trouble::Lost) {
        // The connection breaks before the answer: a body that ends too soon.
        let broken = futures_util::stream::iter([Err::<Bytes, _>(std::io::Error::other("lost"))]);
        return Response::new(axum::body::Body::from_stream(broken));
    }
    answer(outcome)
}

fn flood(seconds: u64) -> (u16, Value) {
    let why = format!("Too Many Requests: retry after {seconds}");
    refused(429, &why, json!({ "retry_after": seconds }))
}

fn answer((code, body): (u16, Value)) -> Response {
    let status = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, axum::Json(body)).into_response()
}

/// The long poll: confirms what is below the offset, waits for more, and allows one poll at a time.
async fn updates(state: &watch::Sender<Telegram>, arguments: &Value) -> (u16, Value) {
    let offset = arguments["offset"].as_i64().unwrap_or(0);
    let limit = usize::try_from(arguments["limit"].as_u64().unwrap_or(100)).unwrap_or(100);
    let mut poll = 0;
    state.send_modify(|state| {
        state.polls += 1;
        poll = state.polls;
        state.updates.retain(|update| update["update_id"].as_i64().unwrap_or(0) >= offset);
    });
    let wait = Duration::from_secs(arguments["timeout"].as_u64().unwrap_or(0));
    let mut watch = state.subscribe();
    let ready = watch.wait_for(|state| !state.updates.is_empty() || state.polls != poll);
    let _ = tokio::time::timeout(wait, ready).await;
    let state = state.borrow();
    if state.polls != poll {
        let why = "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running";
        return refused(409, why, Value::Null);
    }
    if state.webhook.is_some() {
        let why = "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first";
        return refused(409, why, Value::Null);
    }
    let batch: Vec<Value> = state.updates.iter().take(limit).cloned().collect();
    (200, json!({ "ok": true, "result": batch }))
}
