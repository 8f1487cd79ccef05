//! What the Web API does with each method: the checks of its reference, and its answers.

use axum::http::{HeaderMap, header};
use serde_json::{Map, Value, json};

use super::{APP_TOKEN, BOT, BOT_ID, BOT_TOKEN, Message, Slack};

/// The longest text of a message that is sent, and of one that is changed, in characters.
const POST_MAX: usize = 40_000;
const UPDATE_MAX: usize = 4000;
/// The longest text of a section.
const SECTION_MAX: usize = 3000;
/// The methods that read no JSON.
const FORM_ONLY: [&str; 6] = [
    "users.info",
    "conversations.info",
    "conversations.history",
    "conversations.replies",
    "files.info",
    "files.getUploadURLExternal",
];

/// The token of a request.
pub(super) fn bearer(headers: &HeaderMap) -> Option<&str> {
    headers.get(header::AUTHORIZATION)?.to_str().ok()?.strip_prefix("Bearer ")
}

/// The arguments of a call whose token is right.
pub(super) fn arguments(
    method: &str,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<Value, &'static str> {
    let expected = if method == "apps.connections.open" { APP_TOKEN } else { BOT_TOKEN };
    if bearer(headers) != Some(expected) {
        return Err("invalid_auth");
    }
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or("");
    if kind.starts_with("application/json") {
        if FORM_ONLY.contains(&method) {
            return Err("invalid_arguments");
        }
        return serde_json::from_slice(body).map_err(|_| "invalid_json");
    }
    if !kind.starts_with("application/x-www-form-urlencoded") {
        return Err("invalid_post_type");
    }
    let text = String::from_utf8_lossy(body);
    let url = reqwest::Url::parse(&format!("http://x/?{text}")).map_err(|_| "invalid_form_data")?;
    let fields: Map<String, Value> =
        url.query_pairs().map(|(key, value)| (key.into_owned(), Value::from(&*value))).collect();
    Ok(Value::Object(fields))
}

type Done = Result<Value, &'static str>;

fn text_of<'a>(arguments: &'a Value, name: &str) -> Result<&'a str, &'static str> {
    arguments[name].as_str().filter(|text| !text.is_empty()).ok_or("invalid_arguments")
}

impl Slack {
    pub(super) fn carry_out(&mut self, method: &str, arguments: &Value) -> Done {
        match method {
            "auth.test" => Ok(json!({
                "url": "https://test.slack.com/", "team": "Test", "user": "talaria",
                "team_id": "T0", "user_id": BOT, "bot_id": BOT_ID,
            })),
            "apps.connections.open" => {
                Ok(json!({ "url": format!("{}/link/?ticket=1", self.socket_address) }))
            }
            "chat.postMessage" => self.post_message(arguments),
            "chat.update" => self.update(arguments),
            "chat.delete" => {
                self.find(arguments)?.deleted = true;
                Ok(json!({}))
            }
            "chat.postEphemeral" => {
                for name in ["channel", "user", "text"] {
                    text_of(arguments, name)?;
                }
                Ok(json!({ "message_ts": self.next_ts() }))
            }
            "users.info" => {
                let user = text_of(arguments, "user")?;
                let profile = json!({ "display_name": format!("name of {user}") });
                Ok(json!({ "user": { "id": user, "name": user, "profile": profile } }))
            }
            "conversations.info" => {
                let channel = text_of(arguments, "channel")?;
                Ok(json!({ "channel": { "id": channel, "name": format!("name of {channel}") } }))
            }
            "conversations.history" | "conversations.replies" => self.history(arguments),
            "files.info" => {
                let id = text_of(arguments, "file")?;
                let size = self.files.get(id).ok_or("file_not_found")?.len();
                let url = format!("{}/files/{id}", self.address);
                Ok(
                    json!({ "file": { "id": id, "size": size, "mimetype": "text/plain", "url_private_download": url } }),
                )
            }
            "files.getUploadURLExternal" => {
                text_of(arguments, "filename")?;
                text_of(arguments, "length")?;
                let id = format!("F{}", self.next_ts());
                Ok(json!({ "upload_url": format!("{}/files/{id}", self.address), "file_id": id }))
            }
            _ => Err("unknown_method"),
        }
    }

    fn post_message(&mut self, arguments: &Value) -> Done {
        let channel = text_of(arguments, "channel")?.to_owned();
        let text = text_of(arguments, "text")?.to_owned();
        check_text(&text, POST_MAX)?;
        check_blocks(&arguments["blocks"])?;
        let metadata = arguments["metadata"].clone();
        let whole = metadata["event_type"].is_string() && metadata["event_payload"].is_object();
        if !(metadata.is_null() || whole) {
            return Err("invalid_metadata_format");
        }
        let ts = self.next_ts();
        self.messages.push(Message {
            channel: channel.clone(),
            ts: ts.clone(),
            thread: arguments["thread_ts"].as_str().map(str::to_owned),
            states: vec![text.clone()],
            text,
            blocks: arguments["blocks"].clone(),
            metadata,
            deleted: false,
        });
        Ok(json!({ "channel": channel, "ts": ts, "message": { "ts": ts, "bot_id": BOT_ID } }))
    }

    fn find(&mut self, arguments: &Value) -> Result<&mut Message, &'static str> {
        let (channel, ts) = (text_of(arguments, "channel")?, text_of(arguments, "ts")?);
        let is_it = |m: &&mut Message| m.channel == channel && m.ts == ts && !m.deleted;
        self.messages.iter_mut().find(is_it).ok_or("message_not_found")
    }

    fn update(&mut self, arguments: &Value) -> Done {
        let text = text_of(arguments, "text")?.to_owned();
        check_text(&text, UPDATE_MAX)?;
        check_blocks(&arguments["blocks"])?;
        let message = self.find(arguments)?;
        message.states.push(text.clone());
        message.text = text;
        if arguments["blocks"].is_array() {
            message.blocks = arguments["blocks"].clone();
        }
        Ok(json!({ "channel": message.channel, "ts": message.ts, "text": message.text }))
    }

    fn history(&self, arguments: &Value) -> Done {
        let (channel, thread) = (text_of(arguments, "channel")?, arguments["ts"].as_str());
        let all = arguments["include_all_metadata"] == "true";
        let there = self.messages.iter().filter(|m| m.channel == channel && !m.deleted);
        let of = there.filter(|m| thread.is_none_or(|thread| m.thread.as_deref() == Some(thread)));
        let shown = of.map(|m| {
            let metadata = if all { m.metadata.clone() } else { Value::Null };
            json!({ "type": "message", "ts": m.ts, "text": m.text, "bot_id": BOT_ID, "metadata": metadata })
        });
        Ok(json!({ "messages": shown.collect::<Vec<_>>(), "has_more": false }))
    }
}

/// Angle brackets are links and mentions, and nothing else; `&` begins one of three escapes.
fn check_text(text: &str, max: usize) -> Result<(), &'static str> {
    if text.chars().count() > max {
        return Err("msg_too_long");
    }
    for line in text.split('\n') {
        let mut rest = line.trim_start_matches(['>', ' ']);
        while let Some(at) = rest.find(['<', '>', '&']) {
            rest = &rest[at..];
            let known = ["&lt;", "&gt;", "&amp;"].iter().any(|escape| rest.starts_with(escape));
            let link =
                ["<http", "<mailto:", "<@", "<#", "<!"].iter().any(|link| rest.starts_with(link));
            match rest.find(if link { '>' } else { ';' }) {
                Some(end) if link || known => rest = &rest[end + 1..],
                Some(_) | None => return Err("unescaped text"),
            }
        }
    }
    Ok(())
}

fn check_blocks(blocks: &Value) -> Result<(), &'static str> {
    let blocks = blocks.as_array().map(Vec::as_slice).unwrap_or_default();
    for block in blocks {
        let fine = match block["type"].as_str() {
            Some("section") => {
                let text = block["text"]["text"].as_str().unwrap_or_default();
                let length = text.chars().count();
                matches!(block["text"]["type"].as_str(), Some("mrkdwn" | "plain_text"))
                    && (1..=SECTION_MAX).contains(&length)
            }
            Some("actions") => {
                let buttons = block["elements"].as_array().cloned().unwrap_or_default();
                let actions: std::collections::BTreeSet<String> =
                    buttons.iter().map(|button| button["action_id"].to_string()).collect();
                let button = |button: &Value| {
                    button["type"] == "button"
                        && button["text"]["type"] == "plain_text"
                        && button["text"]["text"].as_str().is_some_and(|text| text.len() <= 75)
                        && button["value"].as_str().is_some_and(|value| value.len() <= 2000)
                        && matches!(button["style"].as_str(), None | Some("primary" | "danger"))
                };
                actions.len() == buttons.len() && !buttons.is_empty() && buttons.iter().all(button)
            }
            _ => false,
        };
        if !fine {
            return Err("invalid_blocks");
        }
    }
    if blocks.len() > 50 { Err("invalid_blocks") } else { Ok(()) }
}
