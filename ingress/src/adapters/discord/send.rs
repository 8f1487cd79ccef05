//! What goes to Discord: messages with buttons and files, and their changes.

use reqwest::Method;
use reqwest::multipart::{Form, Part};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Bot;
use super::call::{Body, is_gone};
use crate::adapter::{Button, Post, Press, Refusal, SendError};

/// How long a nonce may be. Ours are hex digits, and this many of them are enough.
const NONCE_MAX: usize = 25;
/// The bit of a message that shows no previews of its links.
const NO_PREVIEWS: u64 = 1 << 2;
/// The looks of buttons.
const GREEN: u8 = 3;
const RED: u8 = 4;

#[derive(Deserialize)]
struct Sent {
    id: String,
}

impl Bot {
    pub(super) async fn send(&self, post: &Post<'_>) -> Result<String, SendError> {
        let mut arguments = message(post);
        if post.markup.is_none() {
            arguments["content"] = escaped(post.plain).into();
        }
        arguments["flags"] = NO_PREVIEWS.into();
        // Within some minutes Discord answers a repetition with the message that is there.
        arguments["nonce"] = post.key.get(..NONCE_MAX).unwrap_or(post.key).into();
        arguments["enforce_nonce"] = true.into();
        if let Some(answered) = post.reply_to.filter(|id| id.chars().all(|c| c.is_ascii_digit())) {
            arguments["message_reference"] =
                json!({ "message_id": answered, "fail_if_not_exists": false });
        }
        let path = format!("channels/{}/messages", post.to.chat);
        let api = self.api()?;
        let body = if post.files.is_empty() {
            Body::Json(&arguments)
        } else {
            Body::Form(form(post, &arguments)?)
        };
        let sent: Sent = api.call(Method::POST, &path, body).await?;
        Ok(sent.id)
    }

    pub(super) async fn edit(&self, message_id: &str, post: &Post<'_>) -> Result<(), SendError> {
        let mut arguments = message(post);
        if post.markup.is_none() {
            arguments["content"] = escaped(post.plain).into();
        }
        let path = format!("channels/{}/messages/{message_id}", post.to.chat);
        self.api()?.call::<Value>(Method::PATCH, &path, Body::Json(&arguments)).await.map(drop)
    }

    pub(super) async fn delete(&self, chat: &str, message: &str) -> Result<(), SendError> {
        let path = format!("channels/{chat}/messages/{message}");
        match self.api()?.call::<Value>(Method::DELETE, &path, Body::Nothing).await {
            Err(error) if is_gone(&error) => Ok(()),
            deleted => deleted.map(drop),
        }
    }

    pub(super) async fn typing(&self, chat: &str) -> Result<(), SendError> {
        let path = format!("channels/{chat}/typing");
        self.api()?.call::<Value>(Method::POST, &path, Body::Nothing).await.map(drop)
    }
}

/// What sending and changing share. The agent may name people, and never call everyone.
fn message(post: &Post<'_>) -> Value {
    let mut arguments = json!({
        "content": post.markup.unwrap_or(post.plain),
        "allowed_mentions": { "parse": ["users"], "replied_user": true },
        "components": [],
    });
    if !post.buttons.is_empty() {
        let buttons: Vec<Value> = post.buttons.iter().map(button).collect();
        arguments["components"] = json!([{ "type": 1, "components": buttons }]);
    }
    arguments
}

fn button(button: &Button) -> Value {
    let style = match button.press {
        Press::Approve(_) => GREEN,
        Press::Deny(_) => RED,
    };
    json!({ "type": 2, "style": style, "label": button.label, "custom_id": button.press.data() })
}

/// Plain text has no form of its own on Discord; what could be a mark is kept from being one, as far as there is room for it.
fn escaped(text: &str) -> String {
    let special = |c| matches!(c, '\\' | '*' | '_' | '~' | '`' | '|' | '[' | '<');
    let marks = text.chars().filter(|c| special(*c)).count();
    if text.encode_utf16().count() + marks > super::TEXT_MAX {
        return text.to_owned();
    }
    text.chars().flat_map(|c| special(c).then_some('\\').into_iter().chain([c])).collect()
}

/// A message with files: its fields as JSON, and the files beside them.
fn form(post: &Post<'_>, arguments: &Value) -> Result<Form, SendError> {
    let mut arguments = arguments.clone();
    let name = |(index, file): (usize, &crate::adapter::Attachment)| json!({ "id": index, "filename": file.name });
    arguments["attachments"] = post.files.iter().enumerate().map(name).collect();
    let mut form = Form::new().text("payload_json", arguments.to_string());
    for (index, file) in post.files.iter().enumerate() {
        let part = Part::stream(file.bytes.clone()).file_name(file.name.clone());
        let part = part
            .mime_str(&file.mime)
            .map_err(|_| SendError::refused(Refusal::Other, "a file's type is none"))?;
        form = form.part(format!("files[{index}]"), part);
    }
    Ok(form)
}
