//! A strict fake of Discord, written from the public references of its gateway and its REST API: it keeps channels and their
//! messages, checks what bots send, gives each session its events in order and again when it is resumed, and can be told to be
//! busy, to lose answers, or to end connections.

mod gateway;
mod rest;

use std::collections::{BTreeMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant, SystemTime};

use axum::Router;
use ed25519_dalek::{Signer, SigningKey};
use reqwest::header;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use crate::wait::watched;

/// The bot's token.
pub const TOKEN: &str = "test.bot.token";
/// The bot's id.
pub const BOT: &str = "9000";
/// A server.
pub const SERVER: &str = "3000";

/// A message of the bot.
#[derive(Clone, Debug)]
pub struct Message {
    /// In which channel.
    pub channel: String,
    /// Its id.
    pub id: String,
    /// What it answers.
    pub reply_to: Option<String>,
    /// What it says now, as it was written.
    pub content: String,
    /// What it said, the first first.
    pub states: Vec<String>,
    /// Its buttons.
    pub components: Value,
    /// By what a repetition is recognised.
    pub nonce: Option<String>,
    /// Whether it was taken away.
    pub deleted: bool,
}

impl Message {
    /// Whether people read this; what keeps marks apart is not seen.
    #[must_use]
    pub fn reads(&self, text: &str) -> bool {
        self.content.replace('\u{200b}', "") == text
    }

    /// What its buttons hold.
    #[must_use]
    pub fn buttons(&self) -> Vec<String> {
        let rows = self.components.as_array().into_iter().flatten();
        let buttons = rows.filter_map(|row| row["components"].as_array()).flatten();
        buttons.filter_map(|button| button["custom_id"].as_str()).map(str::to_owned).collect()
    }
}

/// One call.
#[derive(Clone, Debug)]
pub struct Call {
    /// Its method and path.
    pub what: String,
    /// What came along.
    pub arguments: Value,
    /// When it came.
    pub at: Instant,
    /// With what it was answered.
    pub status: u16,
}

/// What the fake does to the next messages that are sent, instead of what it would do.
#[derive(Clone, Debug, PartialEq)]
pub enum Trouble {
    /// 429: so many seconds, in this channel or everywhere.
    Flood {
        /// Seconds.
        after: f64,
        /// Everywhere.
        global: bool,
    },
    /// The call is carried out, and its answer is lost.
    Lost,
    /// The call is refused with a status and a code.
    Refused(u16, u32),
}

/// How connections end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Without a word.
    Silently,
    /// The gateway asks for a new connection.
    Reconnect,
    /// With a close code.
    Closed(u16),
    /// The session is no longer valid, and cannot be resumed.
    Invalid,
}

/// All that is known.
#[derive(Debug, Default)]
pub struct Discord {
    /// The bot's messages.
    pub messages: Vec<Message>,
    /// All calls.
    pub calls: Vec<Call>,
    /// What a strict server would not have accepted; it was refused.
    pub faults: Vec<String>,
    /// How many calls came although quiet was wanted.
    pub floods: usize,
    /// How many sessions were begun, and how many resumed.
    pub begun: usize,
    /// How many sessions were resumed.
    pub resumed: usize,
    /// How many heartbeats came.
    pub beats: usize,
    /// The answers to interactions, by their ids.
    pub answers: BTreeMap<String, Value>,
    /// The bot's commands.
    pub commands: Vec<Value>,
    /// People's messages with files, by id, and the files' content.
    pub uploads: BTreeMap<String, (Value, Vec<u8>)>,
    pressed: BTreeMap<String, String>,
    channels: BTreeMap<String, Value>,
    log: Vec<Value>,
    next: u64,
    troubles: VecDeque<Trouble>,
    quiet: BTreeMap<String, Instant>,
    cuts: usize,
    cut: Option<Cut>,
    address: String,
    gateway: String,
}

impl Discord {
    fn id(&mut self) -> String {
        self.next += 1;
        format!("1{:06}", self.next)
    }
}

/// The server; it ends with its value.
#[derive(Debug)]
pub struct DiscordServer {
    state: watch::Sender<Discord>,
    url: String,
    key: SigningKey,
    _serving: [AbortOnDropHandle<()>; 2],
}

impl DiscordServer {
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
        let (sockets, gateway) = bind().await;
        let state = watch::Sender::new(Discord {
            address: format!("http://{address}"),
            gateway: format!("ws://{gateway}"),
            ..Discord::default()
        });
        let app = Router::new().fallback(rest::call).with_state(state.clone());
        let serving = tokio::spawn(async move {
            axum::serve(listener, app).await.expect("the fake serves");
        });
        let links = state.clone();
        let linking = tokio::spawn(async move {
            while let Ok((stream, _)) = sockets.accept().await {
                tokio::spawn(gateway::link(stream, links.clone()));
            }
        });
        let serving = [AbortOnDropHandle::new(serving), AbortOnDropHandle::new(linking)];
        let key = SigningKey::from_bytes(&node::process::random());
        Self { state, url: format!("http://{address}/api/v10"), key, _serving: serving }
    }

    /// Where its API is.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// With what its requests are proven.
    #[must_use]
    pub fn public_key(&self) -> String {
        hex::encode(self.key.verifying_key().to_bytes())
    }

    /// Waits until the bot has a session: what happens before is not told to it.
    pub async fn connected(&self) {
        self.wait_for("a session", |state| (state.begun > 0).then_some(())).await;
    }

    /// A new id.
    #[must_use]
    pub fn id(&self) -> String {
        let mut id = String::new();
        self.state.send_modify(|state| id = state.id());
        id
    }

    /// Makes a channel of the server.
    pub fn channel(&self, id: &str, kind: u8, parent: Option<&str>) {
        let channel = json!({ "id": id, "type": kind, "name": format!("channel-{id}"), "guild_id": SERVER, "parent_id": parent });
        self.state.send_modify(|state| drop(state.channels.insert(id.to_owned(), channel)));
    }

    /// A person's message; in a channel of the server if there is one of that id.
    #[must_use]
    pub fn message(&self, channel: &str, user: &str, content: &str) -> Value {
        let mut message = json!({
            "id": self.id(), "channel_id": channel, "type": 0, "content": content, "flags": 0,
            "author": { "id": user, "username": format!("user{user}"), "discriminator": "0", "bot": false },
            "timestamp": "2026-01-01T00:00:00.000000+00:00", "edited_timestamp": null,
            "mentions": [], "mention_roles": [], "attachments": [], "embeds": [], "pinned": false, "tts": false,
        });
        if content.contains(&format!("<@{BOT}>")) {
            message["mentions"] = json!([{ "id": BOT, "username": "talaria", "bot": true }]);
        }
        if self.state.borrow().channels.contains_key(channel) {
            message["guild_id"] = SERVER.into();
            message["member"] = json!({ "nick": format!("nick{user}"), "roles": ["7000"] });
        }
        message
    }

    /// Adds a text file to a person's message. The address in the message is stale, as it is after a day: only one that is asked
    /// for again leads to the file.
    #[must_use]
    pub fn attach(&self, mut message: Value, name: &str, content: &[u8]) -> Value {
        let id = message["id"].as_str().unwrap_or_default().to_owned();
        self.state.send_modify(|state| {
            message["attachments"] = json!([{
                "id": state.id(), "filename": name, "content_type": "text/plain; charset=utf-8",
                "size": content.len(), "url": format!("{}/files/{id}", state.address),
            }]);
            state.uploads.insert(id.clone(), (message.clone(), content.to_vec()));
            message["attachments"][0]["url"] = format!("{}/stale", state.address).into();
        });
        message
    }

    /// Tells the bot that something happened.
    pub fn dispatch(&self, name: &str, data: Value) {
        self.state.send_modify(|state| {
            let seq = state.log.len() as u64 + 1;
            state.log.push(json!({ "op": 0, "t": name, "s": seq, "d": data }));
        });
    }

    /// Has a person write. Returns the message's id.
    pub fn say(&self, channel: &str, user: &str, content: &str) -> String {
        let message = self.message(channel, user, content);
        let id = message["id"].as_str().unwrap_or_default().to_owned();
        self.dispatch("MESSAGE_CREATE", message);
        id
    }

    /// A press of a button under a message, not told yet.
    #[must_use]
    pub fn press(&self, user: &str, message: &Message, custom_id: &str) -> Value {
        let id = self.id();
        self.state.send_modify(|state| {
            state.pressed.insert(id.clone(), message.id.clone());
        });
        let mut press = self.interaction(&id, &message.channel, user);
        press["type"] = 3.into();
        press["data"] = json!({ "custom_id": custom_id, "component_type": 2 });
        press["message"] =
            json!({ "id": message.id, "channel_id": message.channel, "content": message.content });
        press
    }

    /// A command that is chosen in the menu, not told yet.
    #[must_use]
    pub fn choose(&self, user: &str, channel: &str, name: &str, words: &str) -> Value {
        let mut chosen = self.interaction(&self.id(), channel, user);
        chosen["type"] = 2.into();
        let option = json!({ "name": "words", "type": 3, "value": words });
        chosen["data"] = json!({ "id": self.id(), "name": name, "type": 1, "options": [option] });
        chosen
    }

    fn interaction(&self, id: &str, channel: &str, user: &str) -> Value {
        let person = json!({ "id": user, "username": format!("user{user}") });
        let mut interaction = json!({
            "id": id, "application_id": BOT, "channel_id": channel, "token": format!("token-{id}"), "version": 1,
        });
        if self.state.borrow().channels.contains_key(channel) {
            interaction["guild_id"] = SERVER.into();
            interaction["member"] = json!({ "user": person, "nick": null, "roles": ["7000"] });
        } else {
            interaction["user"] = person;
        }
        interaction
    }

    /// Posts an interaction to the bot's door, signed as if it was `age` old; tampered with if `spoilt`.
    ///
    /// # Panics
    /// When nothing is there.
    pub async fn post(
        &self,
        door: SocketAddr,
        interaction: &Value,
        (age, spoilt): (Duration, bool),
    ) -> (u16, Value) {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
        let time = (now - age).as_secs().to_string();
        let mut body = interaction.to_string();
        let signature = self.key.sign(format!("{time}{body}").as_bytes());
        if spoilt {
            body.push(' ');
        }
        let answer = crate::http::client()
            .post(format!("http://{door}/discord/bot"))
            .header(header::CONTENT_TYPE, "application/json")
            .header("x-signature-timestamp", time)
            .header("x-signature-ed25519", hex::encode(signature.to_bytes()))
            .body(body)
            .send()
            .await
            .expect("an answer");
        (answer.status().as_u16(), answer.json().await.unwrap_or_default())
    }

    /// What happens to the next messages that are sent, one after another.
    pub fn trouble(&self, troubles: impl IntoIterator<Item = Trouble>) {
        let new: Vec<Trouble> = troubles.into_iter().collect();
        self.state.send_modify(|state| state.troubles.extend(new));
    }

    /// Ends all connections of the gateway.
    pub fn cut(&self, cut: Cut) {
        self.state.send_modify(|state| {
            state.cuts += 1;
            state.cut = Some(cut);
        });
    }

    /// The messages that were sent so far, as calls.
    #[must_use]
    pub fn sends(&self) -> Vec<Call> {
        let is_send = |call: &&Call| {
            call.what.starts_with("POST channels/") && call.what.ends_with("/messages")
        };
        self.state.borrow().calls.iter().filter(is_send).cloned().collect()
    }

    /// Waits until there is an answer.
    pub async fn wait_for<T>(&self, what: &str, look: impl FnMut(&Discord) -> Option<T>) -> T {
        watched(what, self.state.subscribe(), look).await
    }

    /// Waits until the bot's messages in a channel are these.
    pub async fn reads(&self, channel: &str, texts: &[&str]) -> Vec<Message> {
        self.wait_for(&format!("the messages {texts:?} in {channel}"), |state| {
            let there = state.messages.iter().filter(|m| m.channel == channel && !m.deleted);
            let there: Vec<Message> = there.cloned().collect();
            let same = there.len() == texts.len()
                && there.iter().zip(texts).all(|(message, text)| message.reads(text));
            same.then_some(there)
        })
        .await
    }

    /// Fails if the bot sent anything that the real one would have refused.
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
