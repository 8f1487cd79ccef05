//! What Telegram sends: the parts of its updates that matter here, and what they say in our terms.

use std::borrow::Cow;

use proto::command::addressed;
use proto::event::{Media, MediaKind, Quote};
use proto::media::MediaRef;
use proto::session::ChatKind;
use serde::Deserialize;

use super::PLATFORM;
use crate::adapter::Press;
use crate::gate::{Arrival, Attention, Deed, Place, Sender};

#[derive(Debug, Deserialize)]
pub(super) struct Update {
    update_id: i64,
    #[serde(default)]
    message: Option<Box<Message>>,
    #[serde(default)]
    edited_message: Option<Box<Message>>,
    #[serde(default)]
    channel_post: Option<Box<Message>>,
    #[serde(default)]
    edited_channel_post: Option<Box<Message>>,
    #[serde(default)]
    callback_query: Option<Callback>,
}

#[derive(Debug, Deserialize)]
struct Message {
    message_id: i64,
    chat: Chat,
    #[serde(default)]
    from: Option<Person>,
    #[serde(default)]
    sender_chat: Option<Chat>,
    #[serde(default)]
    message_thread_id: Option<i64>,
    #[serde(default)]
    is_topic_message: bool,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    entities: Vec<Entity>,
    #[serde(default)]
    caption: Option<String>,
    #[serde(default)]
    caption_entities: Vec<Entity>,
    #[serde(default)]
    media_group_id: Option<String>,
    #[serde(default)]
    reply_to_message: Option<Box<Self>>,
    #[serde(default)]
    quote: Option<TextQuote>,
    #[serde(default)]
    migrate_to_chat_id: Option<i64>,
    #[serde(default)]
    photo: Vec<File>,
    #[serde(default)]
    voice: Option<File>,
    #[serde(default)]
    audio: Option<File>,
    #[serde(default)]
    video: Option<File>,
    #[serde(default)]
    video_note: Option<File>,
    #[serde(default)]
    animation: Option<File>,
    #[serde(default)]
    document: Option<File>,
    #[serde(default)]
    sticker: Option<Sticker>,
    #[serde(default)]
    location: Option<Location>,
    #[serde(default)]
    contact: Option<Contact>,
}

#[derive(Debug, Deserialize)]
struct Chat {
    id: i64,
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    title: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Person {
    id: i64,
    #[serde(default)]
    is_bot: bool,
    #[serde(default)]
    first_name: String,
    #[serde(default)]
    last_name: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Entity {
    #[serde(rename = "type")]
    kind: String,
    /// UTF-16 units.
    offset: usize,
    length: usize,
    #[serde(default)]
    user: Option<Person>,
}

#[derive(Debug, Deserialize)]
struct TextQuote {
    text: String,
}

#[derive(Clone, Debug, Deserialize)]
struct File {
    file_id: String,
    #[serde(default)]
    mime_type: Option<String>,
    #[serde(default)]
    file_name: Option<String>,
    #[serde(default)]
    width: u32,
}

#[derive(Debug, Deserialize)]
struct Sticker {
    #[serde(default)]
    emoji: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Location {
    latitude: f64,
    longitude: f64,
}

#[derive(Debug, Deserialize)]
struct Contact {
    phone_number: String,
    first_name: String,
}

#[derive(Debug, Deserialize)]
struct Callback {
    id: String,
    from: Person,
    #[serde(default)]
    message: Option<Box<Message>>,
    #[serde(default)]
    data: Option<String>,
}

/// Who we are on Telegram.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Me {
    pub(super) id: i64,
    #[serde(default)]
    pub(super) username: String,
}

/// An update in our terms.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum News {
    /// Someone did something.
    Said(Box<Arrival>),
    /// Someone pressed a button of ours, under this message; Telegram wants an answer under this id.
    Pressed { arrival: Box<Arrival>, callback: String, message: String },
    /// A chat has another id now.
    Moved { from: String, to: String },
    /// Nothing that concerns us.
    Nothing,
}

/// Reads an update.
pub(super) fn read(update: Update, account: &str, me: &Me) -> News {
    let written = update.message.or(update.channel_post).map(|message| (Deed::Wrote, message));
    let edited = update
        .edited_message
        .or(update.edited_channel_post)
        .map(|message| (Deed::Edited { message: message.message_id.to_string() }, message));
    if let Some((deed, message)) = written.or(edited) {
        if let Some(to) = message.migrate_to_chat_id {
            return News::Moved { from: message.chat.id.to_string(), to: to.to_string() };
        }
        return said(update.update_id, deed, *message, account, me);
    }
    update.callback_query.map_or(News::Nothing, pressed)
}

fn said(update: i64, deed: Deed, message: Message, account: &str, me: &Me) -> News {
    let (text, entities) = match (&message.text, &message.caption) {
        (Some(text), _) => (text.as_str(), &message.entities),
        (None, Some(caption)) => (caption.as_str(), &message.caption_entities),
        (None, None) => ("", &message.entities),
    };
    let (text, mentioned) = without_mention(text, entities, me);
    let answers_us = message
        .reply_to_message
        .as_ref()
        .and_then(|quoted| quoted.from.as_ref())
        .is_some_and(|from| from.id == me.id);
    let media = media(&message, account);
    let text = match described(&message) {
        Some(what) if text.is_empty() => what,
        Some(what) => format!("{text}\n{what}"),
        None => text,
    };
    if text.trim().is_empty() && media.is_empty() {
        // Someone joined, a title changed: nobody speaks to us.
        return News::Nothing;
    }
    // A message may be changed again and again; each change is an update.
    let id = match &deed {
        Deed::Edited { .. } => format!("edit:{update}"),
        Deed::Wrote | Deed::Pressed | Deed::Withdrew { .. } => message.message_id.to_string(),
    };
    News::Said(Box::new(Arrival {
        id,
        deed,
        place: message.place(),
        attention: Attention { mentioned: mentioned || names_us(&text, me), replied: answers_us },
        sender: message.sender(),
        text: addressed(&text, &me.username).into_owned(),
        media,
        reply_to: message.quoted(),
        history: Vec::new(),
    }))
}

/// Whether it is a command with our name behind it.
fn names_us(text: &str, me: &Me) -> bool {
    matches!(addressed(text, &me.username), Cow::Owned(_))
}

fn pressed(callback: Callback) -> News {
    let Callback { id, from, message: Some(message), data: Some(data) } = callback else {
        return News::Nothing;
    };
    let Some(press) = Press::of_data(&data) else { return News::Nothing };
    let arrival = Arrival {
        id: format!("press:{id}"),
        deed: Deed::Pressed,
        place: message.place(),
        sender: from.sender(),
        // A button of ours is meant for us.
        attention: Attention { mentioned: true, replied: true },
        text: press.command(),
        media: Vec::new(),
        reply_to: None,
        history: Vec::new(),
    };
    let message = message.message_id.to_string();
    News::Pressed { arrival: Box::new(arrival), callback: id, message }
}

impl Message {
    /// The topic. A chain of answers in a group without topics has a thread id, too, and is none.
    fn thread(&self) -> Option<String> {
        self.message_thread_id.filter(|_| self.is_topic_message).map(|id| id.to_string())
    }

    fn place(&self) -> Place {
        Place {
            chat: self.chat.id.to_string(),
            kind: kind_of(&self.chat),
            thread: self.thread(),
            parent: None,
            name: self.chat.title.clone(),
        }
    }

    fn sender(&self) -> Sender {
        let of_chat = |chat: &Chat| Sender {
            id: chat.id.to_string(),
            name: chat.title.clone(),
            ..Sender::default()
        };
        match (&self.sender_chat, &self.from) {
            // A channel, or an administrator who speaks in the group's name.
            (Some(chat), _) => of_chat(chat),
            (None, Some(from)) => from.sender(),
            (None, None) => of_chat(&self.chat),
        }
    }

    fn quoted(&self) -> Option<Quote> {
        let quoted = self.reply_to_message.as_ref()?;
        // The message that opened a topic is "answered" by each message in it.
        if self.is_topic_message && self.message_thread_id == Some(quoted.message_id) {
            return None;
        }
        let whole = quoted.text.clone().or_else(|| quoted.caption.clone());
        let text = self.quote.as_ref().map(|quote| quote.text.clone()).or(whole);
        Some(Quote { id: quoted.message_id.to_string(), text })
    }
}

impl Person {
    fn sender(&self) -> Sender {
        let last = self.last_name.as_deref().unwrap_or_default();
        let name = format!("{} {last}", self.first_name).trim().to_owned();
        Sender {
            id: self.id.to_string(),
            name: (!name.is_empty()).then_some(name),
            is_bot: self.is_bot,
            ..Sender::default()
        }
    }
}

fn kind_of(chat: &Chat) -> ChatKind {
    match chat.kind.as_str() {
        "private" => ChatKind::Dm,
        "channel" => ChatKind::Channel,
        _ => ChatKind::Group,
    }
}

/// The text without mentions of us, and whether there was one. A name behind a command stays for the command's parser.
fn without_mention(text: &str, entities: &[Entity], me: &Me) -> (String, bool) {
    let units: Vec<u16> = text.encode_utf16().collect();
    let mut kept = Vec::with_capacity(units.len());
    let (mut at, mut mentioned) = (0, false);
    for entity in entities {
        let end = (entity.offset + entity.length).min(units.len());
        let Some(part) = units.get(entity.offset..end) else { continue };
        let part = String::from_utf16_lossy(part);
        let ours = match entity.kind.as_str() {
            "mention" => part.trim_start_matches('@').eq_ignore_ascii_case(&me.username),
            "text_mention" => entity.user.as_ref().is_some_and(|user| user.id == me.id),
            _ => false,
        };
        if ours && entity.offset >= at {
            kept.extend_from_slice(&units[at..entity.offset]);
            at = end;
            mentioned = true;
        }
    }
    kept.extend_from_slice(&units[at..]);
    let text = String::from_utf16_lossy(&kept);
    (if mentioned { text.trim().to_owned() } else { text }, mentioned)
}

fn media(message: &Message, account: &str) -> Vec<Media> {
    let photo =
        message.photo.iter().max_by_key(|size| size.width).map(|file| (MediaKind::Photo, file));
    // An animation is given as a document, too.
    let document = message.document.as_ref().filter(|_| message.animation.is_none());
    let others = [
        (MediaKind::Voice, &message.voice),
        (MediaKind::Audio, &message.audio),
        (MediaKind::Video, &message.video),
        (MediaKind::Video, &message.video_note),
        (MediaKind::Video, &message.animation),
    ];
    let others = others.into_iter().filter_map(|(kind, file)| Some((kind, file.as_ref()?)));
    let document = document.map(|file| (MediaKind::Document, file));
    let mut media: Vec<Media> = photo
        .into_iter()
        .chain(others)
        .chain(document)
        .map(|(kind, file)| {
            let reference = MediaRef {
                platform: PLATFORM.into(),
                account: account.into(),
                reference: file.file_id.clone(),
            };
            let mime = file.mime_type.clone();
            let mime = mime.or_else(|| (kind == MediaKind::Photo).then(|| "image/jpeg".into()));
            Media {
                url: reference.to_string(),
                kind,
                mime,
                name: file.file_name.clone(),
                group: None,
            }
        })
        .collect();
    media.iter_mut().for_each(|media| media.group.clone_from(&message.media_group_id));
    media
}

/// What is neither text nor a file, in words.
fn described(message: &Message) -> Option<String> {
    if let Some(sticker) = &message.sticker {
        return Some(format!("[sticker {}]", sticker.emoji.as_deref().unwrap_or("")));
    }
    if let Some(Location { latitude, longitude }) = &message.location {
        return Some(format!("[location {latitude}, {longitude}]"));
    }
    let Contact { phone_number, first_name } = message.contact.as_ref()?;
    Some(format!("[contact {first_name}, {phone_number}]"))
}
