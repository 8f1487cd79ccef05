//! What goes to Slack: messages with buttons and files, their changes, and the look for one whose answer was lost.

use proto::event::Address;
use serde::Deserialize;
use serde_json::{Value, json};

use super::App;
use super::call::{As, is_gone};
use super::text::escape;
use crate::adapter::{Attachment, Button, Post, Press, SendError};

/// Under what type our messages carry their key as metadata.
const METADATA: &str = "talaria_message";
/// How long the text of a block may be, in characters.
const SECTION_MAX: usize = 3000;
/// How many messages are looked at on one page, and how many pages, when one is looked for.
const PAGE: &str = "200";
const PAGES_MAX: usize = 20;

#[derive(Deserialize)]
struct Sent {
    ts: String,
}

impl App {
    pub(super) async fn send(&self, post: &Post<'_>) -> Result<String, SendError> {
        if !post.files.is_empty() {
            return self.send_files(post).await;
        }
        let mut arguments = message(post);
        // A text that was refused with marks is shown as it is.
        arguments["mrkdwn"] = post.markup.is_some().into();
        arguments["unfurl_links"] = false.into();
        arguments["unfurl_media"] = false.into();
        arguments["metadata"] =
            json!({ "event_type": METADATA, "event_payload": { "key": post.key } });
        if let Some(thread) = &post.to.thread {
            arguments["thread_ts"] = thread.as_str().into();
        }
        let sent: Sent = self.api()?.call("chat.postMessage", &arguments, As::Bot).await?;
        Ok(sent.ts)
    }

    pub(super) async fn edit(&self, message_ts: &str, post: &Post<'_>) -> Result<(), SendError> {
        let mut arguments = message(post);
        arguments["ts"] = message_ts.into();
        if post.buttons.is_empty() {
            // Else those that are there stay.
            arguments["blocks"] = json!([]);
        }
        self.api()?.call::<Value>("chat.update", &arguments, As::Bot).await.map(drop)
    }

    pub(super) async fn delete(&self, chat: &str, message: &str) -> Result<(), SendError> {
        let arguments = json!({ "channel": chat, "ts": message });
        match self.api()?.call::<Value>("chat.delete", &arguments, As::Bot).await {
            Err(error) if is_gone(&error) => Ok(()),
            deleted => deleted.map(drop),
        }
    }

    /// Files are uploaded first, each to an address of its own, and then shown in one message, whose id is that of the first.
    async fn send_files(&self, post: &Post<'_>) -> Result<String, SendError> {
        let mut files = Vec::new();
        for file in post.files {
            files.push(json!({ "id": self.upload(file).await?, "title": file.name }));
        }
        let id = files.first().and_then(|file| file["id"].as_str()).unwrap_or_default().to_owned();
        let text = post.markup.map_or_else(|| escape(post.plain), str::to_owned);
        let mut arguments = json!({ "files": files, "channel_id": post.to.chat });
        if !text.is_empty() {
            arguments["initial_comment"] = text.into();
        }
        if let Some(thread) = &post.to.thread {
            arguments["thread_ts"] = thread.as_str().into();
        }
        let api = self.api()?;
        api.call::<Value>("files.completeUploadExternal", &arguments, As::Bot).await?;
        Ok(id)
    }

    async fn upload(&self, file: &Attachment) -> Result<String, SendError> {
        #[derive(Deserialize)]
        struct Place {
            upload_url: String,
            file_id: String,
        }
        let api = self.api()?;
        let length = file.bytes.len().to_string();
        let arguments = [("filename", file.name.as_str()), ("length", length.as_str())];
        let place: Place = api.ask("files.getUploadURLExternal", &arguments).await?;
        api.upload(&place.upload_url, file.bytes.clone()).await?;
        Ok(place.file_id)
    }

    /// Looks for the message that carries a key, in its thread or among the newest of its channel.
    pub(super) async fn find(&self, to: &Address, key: &str) -> Result<Option<String>, SendError> {
        let api = self.api()?;
        let method =
            if to.thread.is_some() { "conversations.replies" } else { "conversations.history" };
        let mut cursor = String::new();
        for _ in 0..PAGES_MAX {
            let mut arguments = vec![
                ("channel", to.chat.as_str()),
                ("limit", PAGE),
                ("include_all_metadata", "true"),
            ];
            arguments.extend(to.thread.as_deref().map(|thread| ("ts", thread)));
            if !cursor.is_empty() {
                arguments.push(("cursor", &cursor));
            }
            let page: Value = api.ask(method, &arguments).await?;
            let messages = page["messages"].as_array().into_iter().flatten();
            let has_key = |message: &&Value| {
                let metadata = &message["metadata"];
                metadata["event_type"] == METADATA && metadata["event_payload"]["key"] == key
            };
            if let Some(found) = messages.into_iter().find(has_key) {
                return Ok(found["ts"].as_str().map(str::to_owned));
            }
            cursor =
                page["response_metadata"]["next_cursor"].as_str().unwrap_or_default().to_owned();
            if cursor.is_empty() {
                return Ok(None);
            }
        }
        // So far back it would have been seen by now.
        Ok(None)
    }
}

/// The arguments that sending and changing share.
fn message(post: &Post<'_>) -> Value {
    let text = post.markup.map_or_else(|| escape(post.plain), str::to_owned);
    let mut arguments = json!({ "channel": post.to.chat, "text": text });
    if !post.buttons.is_empty() {
        let mut blocks = sections(post);
        blocks.push(json!({ "type": "actions", "elements": post.buttons.iter().map(button).collect::<Vec<_>>() }));
        arguments["blocks"] = blocks.into();
    }
    arguments
}

/// A message with blocks shows nothing else. Text that is too long for one block is shown without marks, which must not be cut.
fn sections(post: &Post<'_>) -> Vec<Value> {
    let fits = |markup: &&str| markup.chars().count() <= SECTION_MAX;
    if let Some(markup) = post.markup.filter(fits) {
        return vec![json!({ "type": "section", "text": { "type": "mrkdwn", "text": markup } })];
    }
    let chars: Vec<char> = post.plain.chars().collect();
    let section = |part: &[char]| {
        let text: String = part.iter().collect();
        json!({ "type": "section", "text": { "type": "plain_text", "text": text, "emoji": false } })
    };
    chars.chunks(SECTION_MAX).map(section).collect()
}

fn button(button: &Button) -> Value {
    let (action, style) = match button.press {
        Press::Approve(_) => ("approve", "primary"),
        Press::Deny(_) => ("deny", "danger"),
    };
    json!({
        "type": "button",
        "action_id": action,
        "style": style,
        "text": { "type": "plain_text", "text": button.label },
        "value": button.press.data(),
    })
}
