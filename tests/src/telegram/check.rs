//! What the Bot API does with each method: the checks of its reference, and their answers.

use std::time::Instant;

use serde_json::{Value, json};

use super::{BOT, BOT_ID, Message, Telegram, refused};

/// The longest text of a message, after its marks are read, in UTF-16 units.
const TEXT_MAX: usize = 4096;
/// The tags that Telegram knows.
const TAGS: [&str; 12] =
    ["b", "strong", "i", "em", "u", "s", "del", "code", "pre", "a", "blockquote", "tg-spoiler"];

/// A menu has at most 100 commands, each of 1 to 32 small letters, digits and underscores, described in 1 to 256 characters.
fn set_commands(arguments: &Value) -> Result<Value, (u16, String)> {
    let commands = arguments["commands"].as_array().cloned().unwrap_or_default();
    let is_name = |name: &str| {
        let is_mark = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        (1..=32).contains(&name.len()) && name.chars().all(is_mark)
    };
    let is_right = |command: &Value| {
        let about = command["description"].as_str().unwrap_or_default().chars().count();
        command["command"].as_str().is_some_and(is_name) && (1..=256).contains(&about)
    };
    if (1..=100).contains(&commands.len()) && commands.iter().all(is_right) {
        Ok(Value::from(true))
    } else {
        Err((400, "Bad Request: BOT_COMMAND_INVALID".to_owned()))
    }
}

impl Telegram {
    /// How long the chat of a call must still be left in peace; asking makes it longer.
    pub(super) fn in_silence(&mut self, arguments: &Value, method: &str) -> Option<u64> {
        let chat = arguments["chat_id"].as_i64().filter(|_| method != "answerCallbackQuery")?;
        let until = *self.silence.get(&chat)?;
        let now = Instant::now();
        if now >= until {
            self.silence.remove(&chat);
            return None;
        }
        self.floods += 1;
        let left = (until - now) * 2;
        self.silence.insert(chat, now + left);
        Some(left.as_secs() + 1)
    }

    pub(super) fn carry_out(&mut self, method: &str, arguments: &Value) -> (u16, Value) {
        let outcome = match method {
            "getMe" => {
                Ok(json!({ "id": BOT_ID, "is_bot": true, "first_name": "Bot", "username": BOT }))
            }
            "deleteWebhook" => {
                self.webhook = None;
                Ok(json!(true))
            }
            "setWebhook" => self.set_webhook(arguments),
            "setMyCommands" => set_commands(arguments),
            "sendMessage" => self.send(arguments),
            "editMessageText" => self.edit(arguments),
            "editMessageReplyMarkup" => self.edit_buttons(arguments),
            "deleteMessage" => self.delete(arguments),
            "sendChatAction" if arguments["action"] == "typing" => Ok(json!(true)),
            "setMessageReaction" | "answerCallbackQuery" => Ok(json!(true)),
            "getFile" => self.get_file(arguments),
            _ => Err((404, "Not Found".to_owned())),
        };
        match outcome {
            Ok(result) => (200, json!({ "ok": true, "result": result })),
            Err((code, why)) => {
                if code == 400 && !why.contains("not modified") && !why.contains("not found") {
                    self.faults.push(format!("{method}: {why}: {arguments}"));
                }
                refused(code, &why, Value::Null)
            }
        }
    }

    fn set_webhook(&mut self, arguments: &Value) -> Result<Value, (u16, String)> {
        if !arguments["url"].as_str().is_some_and(|url| url.starts_with("https://")) {
            return Err(bad("bad webhook: An HTTPS URL must be provided for webhook"));
        }
        self.webhook = Some(arguments.clone());
        Ok(json!(true))
    }

    fn send(&mut self, arguments: &Value) -> Result<Value, (u16, String)> {
        let chat = arguments["chat_id"].as_i64().ok_or_else(|| bad("chat_id is empty"))?;
        let (text, markup) = text_of(arguments)?;
        let buttons = buttons_of(arguments)?;
        let reply = &arguments["reply_parameters"];
        let id = self.next_message;
        self.next_message += 1;
        let thread = arguments["message_thread_id"].as_i64();
        if thread == Some(1) {
            return Err(bad("message thread not found"));
        }
        self.messages.push(Message {
            id,
            chat,
            thread,
            reply_to: reply["message_id"].as_i64(),
            states: vec![text.clone()],
            text,
            markup,
            buttons,
            deleted: false,
        });
        Ok(json!({ "message_id": id, "date": 1, "chat": { "id": chat, "type": "private" } }))
    }

    fn find(&mut self, arguments: &Value, what: &str) -> Result<&mut Message, (u16, String)> {
        let (chat, id) = (arguments["chat_id"].as_i64(), arguments["message_id"].as_i64());
        let is_it = |m: &&mut Message| Some(m.chat) == chat && Some(m.id) == id && !m.deleted;
        self.messages
            .iter_mut()
            .find(is_it)
            .ok_or_else(|| bad(&format!("message to {what} not found")))
    }

    fn edit(&mut self, arguments: &Value) -> Result<Value, (u16, String)> {
        let (text, markup) = text_of(arguments)?;
        let buttons = buttons_of(arguments)?;
        let message = self.find(arguments, "edit")?;
        if message.markup == markup && message.buttons == buttons {
            return Err(bad(
                "message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message",
            ));
        }
        message.states.push(text.clone());
        (message.text, message.markup, message.buttons) = (text, markup, buttons);
        Ok(json!({ "message_id": message.id, "date": 1 }))
    }

    fn edit_buttons(&mut self, arguments: &Value) -> Result<Value, (u16, String)> {
        let buttons = buttons_of(arguments)?;
        let message = self.find(arguments, "edit")?;
        message.buttons = buttons;
        Ok(json!({ "message_id": message.id, "date": 1 }))
    }

    fn delete(&mut self, arguments: &Value) -> Result<Value, (u16, String)> {
        self.find(arguments, "delete")?.deleted = true;
        Ok(json!(true))
    }

    fn get_file(&mut self, arguments: &Value) -> Result<Value, (u16, String)> {
        let id = arguments["file_id"].as_str().unwrap_or_default();
        let file = self.files.get(id).ok_or_else(|| bad("invalid file_id"))?;
        Ok(json!({ "file_id": id, "file_unique_id": id, "file_size": file.len(), "file_path": id }))
    }
}

fn bad(why: &str) -> (u16, String) {
    (400, format!("Bad Request: {why}"))
}

/// What people read of a text, and the text as it was written.
fn text_of(arguments: &Value) -> Result<(String, String), (u16, String)> {
    let markup = arguments["text"].as_str().unwrap_or_default().to_owned();
    let text = match arguments["parse_mode"].as_str() {
        None => markup.clone(),
        Some("HTML") => {
            read_html(&markup).map_err(|why| bad(&format!("can't parse entities: {why}")))?
        }
        Some(mode) => return Err(bad(&format!("unsupported parse_mode {mode}"))),
    };
    if text.trim().is_empty() {
        return Err(bad("message text is empty"));
    }
    if text.encode_utf16().count() > TEXT_MAX {
        return Err(bad("message is too long"));
    }
    Ok((text, markup))
}

fn buttons_of(arguments: &Value) -> Result<Vec<String>, (u16, String)> {
    let mut data = Vec::new();
    let rows = arguments["reply_markup"]["inline_keyboard"].as_array().cloned().unwrap_or_default();
    for button in rows.iter().flat_map(|row| row.as_array().cloned().unwrap_or_default()) {
        let of = button["callback_data"].as_str().unwrap_or_default().to_owned();
        if of.is_empty() || of.len() > 64 || button["text"].as_str().is_none_or(str::is_empty) {
            return Err(bad("BUTTON_DATA_INVALID"));
        }
        data.push(of);
    }
    Ok(data)
}

/// Reads Telegram's HTML as strictly as Telegram, and returns what is visible.
///
/// # Errors
/// What is wrong with it.
pub fn read_html(html: &str) -> Result<String, String> {
    let (mut out, mut open, mut rest) = (String::new(), Vec::<String>::new(), html);
    while let Some(at) = rest.find(['<', '>', '&']) {
        out += &rest[..at];
        rest = &rest[at..];
        if rest.starts_with('>') {
            // Telegram lets it pass; we do not.
            return Err("a bare > is not escaped".into());
        }
        if rest.starts_with('&') {
            let end = rest.find(';').ok_or("an entity does not end")?;
            out.push(match &rest[..=end] {
                "&lt;" => '<',
                "&gt;" => '>',
                "&amp;" => '&',
                "&quot;" => '"',
                other => return Err(format!("unknown entity {other}")),
            });
            rest = &rest[end + 1..];
            continue;
        }
        let end = rest.find('>').ok_or("a tag does not end")?;
        tag(&rest[1..end], &mut open)?;
        rest = &rest[end + 1..];
    }
    out += rest;
    match open.pop() {
        Some(tag) => Err(format!("can't find end tag corresponding to start tag {tag}")),
        None => Ok(out),
    }
}

fn tag(tag: &str, open: &mut Vec<String>) -> Result<(), String> {
    if let Some(name) = tag.strip_prefix('/') {
        return match open.pop() {
            Some(last) if last == name => Ok(()),
            other => Err(format!("unmatched end tag {name}, expected {other:?}")),
        };
    }
    let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
    if !TAGS.contains(&name) {
        return Err(format!("unsupported start tag \"{name}\""));
    }
    let fine = match name {
        "a" => attributes.starts_with("href=\"") && attributes.ends_with('"'),
        "code" if open.last().is_some_and(|last| last == "pre") => {
            attributes.is_empty() || attributes.starts_with("class=\"language-")
        }
        _ => attributes.is_empty(),
    };
    if !fine {
        return Err(format!("strange attributes in {tag}"));
    }
    let inside = |what: &str| open.iter().any(|name| name == what);
    if name == "blockquote" && inside("blockquote") {
        return Err("blockquotes cannot be nested".into());
    }
    if inside("code") || (inside("pre") && name != "code") {
        return Err(format!("{name} inside code"));
    }
    if name == "code" && open.iter().any(|name| !matches!(name.as_str(), "pre" | "blockquote")) {
        return Err("code together with another look".into());
    }
    open.push(name.to_owned());
    Ok(())
}
