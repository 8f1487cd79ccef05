//! The REST API: the checks of its reference, and its answers.

use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::{BOT, Call, Discord, Message, TOKEN, Trouble};

/// The longest text of a message, in characters.
const TEXT_MAX: usize = 2000;
/// The longest nonce.
const NONCE_MAX: usize = 25;

/// What is answered: a status and a body.
type Answer = (u16, Value);
/// A refusal: a status and a code.
type Done = Result<Value, (u16, u32)>;

pub(super) async fn call(
    State(state): State<watch::Sender<Discord>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    if let Some(id) = uri.path().strip_prefix("/files/") {
        let found = state.borrow().uploads.get(id).map(|(_, content)| content.clone());
        return found
            .map_or_else(|| StatusCode::NOT_FOUND.into_response(), IntoResponse::into_response);
    }
    let header = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let is_bot = header(header::USER_AGENT).starts_with("DiscordBot (");
    let allowed = header(header::AUTHORIZATION) == format!("Bot {TOKEN}");
    let path = uri.path().trim_start_matches("/api/v10/").to_owned();
    let what = format!("{method} {path}");
    let arguments: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let (mut answer, mut lost): (Answer, bool) =
        ((401, json!({ "code": 0, "message": "401: Unauthorized" })), false);
    // An interaction is proven by its own token.
    if allowed || path.starts_with("interactions/") {
        state.send_modify(|state| {
            if !is_bot {
                state.faults.push(format!("{what}: not the agent of a bot"));
            }
            (answer, lost) = state.answer(&what, &arguments);
        });
    }
    if lost {
        // The connection breaks before the answer: a body that ends too soon.
        let broken = futures_util::stream::iter([Err::<Bytes, _>(std::io::Error::other("lost"))]);
        return Response::new(axum::body::Body::from_stream(broken));
    }
    let status = StatusCode::from_u16(answer.0).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if status == StatusCode::NO_CONTENT {
        return status.into_response();
    }
    (status, axum::Json(answer.1)).into_response()
}

impl Discord {
    fn answer(&mut self, what: &str, arguments: &Value) -> (Answer, bool) {
        let parts: Vec<&str> = what.split(['/', ' ']).collect();
        let is_send = matches!(parts.as_slice(), ["POST", "channels", _, "messages"]);
        let trouble = if is_send { self.troubles.pop_front() } else { None };
        let channel = parts.get(2).copied().unwrap_or_default();
        let now = Instant::now();
        let hushed = ["everywhere", channel]
            .iter()
            .any(|scope| self.quiet.get(*scope).is_some_and(|until| now < *until));
        self.floods += usize::from(hushed && is_send);
        let (answer, lost) = match trouble {
            Some(Trouble::Flood { after, global }) => {
                let scope = if global { "everywhere" } else { channel };
                self.quiet.insert(scope.to_owned(), now + Duration::from_secs_f64(after));
                let body = json!({ "message": "You are being rate limited.", "retry_after": after, "global": global });
                ((429, body), false)
            }
            Some(Trouble::Refused(status, code)) => {
                ((status, json!({ "code": code, "message": "as told" })), false)
            }
            Some(Trouble::Lost) => (self.carry_out(&parts, what, arguments), true),
            None => (self.carry_out(&parts, what, arguments), false),
        };
        let (what, arguments) = (what.to_owned(), arguments.clone());
        self.calls.push(Call { what, arguments, at: now, status: answer.0 });
        (answer, lost)
    }

    fn carry_out(&mut self, parts: &[&str], what: &str, arguments: &Value) -> Answer {
        let done = match parts {
            ["GET", "users", "@me"] => Ok(json!({ "id": BOT, "username": "talaria", "bot": true })),
            ["GET", "applications", "@me"] => Ok(json!({ "id": BOT, "name": "Talaria" })),
            ["PUT", "applications", BOT, "commands"] => self.set_commands(arguments),
            ["GET", "gateway", "bot"] => Ok(json!({
                "url": self.gateway, "shards": 1,
                "session_start_limit": { "total": 1000, "remaining": 999, "reset_after": 0, "max_concurrency": 1 },
            })),
            ["GET", "channels", id] => self.channels.get(*id).cloned().ok_or((404, 10003)),
            ["GET", "channels", _, "messages", id] => {
                self.uploads.get(*id).map(|(message, _)| message.clone()).ok_or((404, 10008))
            }
            ["POST", "channels", channel, "messages"] => self.send(channel, arguments),
            ["PATCH", "channels", channel, "messages", id] => self.edit((channel, id), arguments),
            ["DELETE", "channels", channel, "messages", id] => {
                self.find(channel, id).map(|message| message.deleted = true).map(|()| Value::Null)
            }
            ["POST", "channels", _, "typing"] => Ok(Value::Null),
            ["POST", "interactions", id, token, "callback"] => self.respond((id, token), arguments),
            _ => Err((404, 0)),
        };
        match done {
            Ok(Value::Null) => (204, Value::Null),
            Ok(value) => (200, value),
            Err((status, code)) => {
                if !matches!(code, 10003 | 10008) {
                    self.faults.push(format!("{what}: {code}: {arguments}"));
                }
                (status, json!({ "code": code, "message": "refused" }))
            }
        }
    }

    fn set_commands(&mut self, arguments: &Value) -> Done {
        let commands = arguments.as_array().ok_or((400, 50035_u32))?;
        let fine = |command: &Value| {
            let name = command["name"].as_str().unwrap_or_default();
            let about = command["description"].as_str().unwrap_or_default().chars().count();
            let legal =
                |c: char| c.is_alphanumeric() && !c.is_uppercase() || matches!(c, '-' | '_');
            (1..=32).contains(&name.len()) && name.chars().all(legal) && (1..=100).contains(&about)
        };
        if commands.len() > 100 || !commands.iter().all(fine) {
            return Err((400, 50035));
        }
        self.commands.clone_from(commands);
        Ok(arguments.clone())
    }

    fn send(&mut self, channel: &str, arguments: &Value) -> Done {
        check(arguments)?;
        let nonce = arguments["nonce"].as_str().map(str::to_owned);
        if nonce.as_ref().is_some_and(|nonce| nonce.len() > NONCE_MAX) {
            return Err((400, 50035));
        }
        let known = self.messages.iter().find(|message| nonce.is_some() && message.nonce == nonce);
        if let Some(known) = known.filter(|_| arguments["enforce_nonce"] == true) {
            return Ok(json!({ "id": known.id, "channel_id": channel, "nonce": nonce }));
        }
        let id = self.id();
        let content = arguments["content"].as_str().unwrap_or_default().to_owned();
        self.messages.push(Message {
            channel: channel.to_owned(),
            id: id.clone(),
            reply_to: arguments["message_reference"]["message_id"].as_str().map(str::to_owned),
            states: vec![content.clone()],
            content,
            components: arguments["components"].clone(),
            nonce,
            deleted: false,
        });
        Ok(json!({ "id": id, "channel_id": channel }))
    }

    fn find(&mut self, channel: &str, id: &str) -> Result<&mut Message, (u16, u32)> {
        let is_it = |m: &&mut Message| m.channel == channel && m.id == id && !m.deleted;
        self.messages.iter_mut().find(is_it).ok_or((404, 10008))
    }

    fn edit(&mut self, (channel, id): (&str, &str), arguments: &Value) -> Done {
        check(arguments)?;
        let content = arguments["content"].as_str().unwrap_or_default().to_owned();
        let message = self.find(channel, id)?;
        message.states.push(content.clone());
        message.content = content;
        message.components = arguments["components"].clone();
        Ok(json!({ "id": id, "channel_id": channel }))
    }

    fn respond(&mut self, (id, token): (&str, &str), arguments: &Value) -> Done {
        if token != format!("token-{id}") {
            return Err((404, 10062));
        }
        if self.answers.insert(id.to_owned(), arguments.clone()).is_some() {
            return Err((400, 40060));
        }
        match arguments["type"].as_u64() {
            Some(4) => {
                if arguments["data"]["content"].as_str().is_none_or(str::is_empty) {
                    return Err((400, 50006));
                }
            }
            Some(7) => {
                let message = self.pressed.get(id).cloned().ok_or((400, 50035_u32))?;
                let components = arguments["data"]["components"].clone();
                let shown = self.messages.iter_mut().filter(|there| there.id == message);
                shown.for_each(|message| message.components = components.clone());
            }
            _ => return Err((400, 50035)),
        }
        Ok(Value::Null)
    }
}

/// What sending and changing must keep to.
fn check(arguments: &Value) -> Result<(), (u16, u32)> {
    let content = arguments["content"].as_str().unwrap_or_default();
    if content.is_empty() {
        return Err((400, 50006));
    }
    let no_everyone = arguments["allowed_mentions"]["parse"]
        .as_array()
        .is_some_and(|parse| !parse.iter().any(|kind| kind == "everyone"));
    let rows = arguments["components"].as_array().map(Vec::as_slice).unwrap_or_default();
    let button = |button: &Value| {
        button["type"] == 2
            && matches!(button["style"].as_u64(), Some(1..=4))
            && button["label"].as_str().is_some_and(|label| label.chars().count() <= 80)
            && button["custom_id"].as_str().is_some_and(|id| (1..=100).contains(&id.len()))
    };
    let row = |row: &Value| {
        row["type"] == 1
            && row["components"].as_array().is_some_and(|buttons| {
                (1..=5).contains(&buttons.len()) && buttons.iter().all(button)
            })
    };
    let fine = content.chars().count() <= TEXT_MAX
        && no_everyone
        && rows.len() <= 5
        && rows.iter().all(row);
    if fine { Ok(()) } else { Err((400, 50035)) }
}
