//! What Discord sends: the parts of its messages and interactions that matter here, and what they say in our terms.

use proto::command::{Parsed, parse};
use proto::event::{Media, MediaKind, Quote};
use proto::media::MediaRef;
use serde::Deserialize;

use super::PLATFORM;
use crate::adapter::Press;
use crate::gate::{Arrival, Attention, Deed, Place, Sender};

/// The kinds of messages that people write: ordinary ones, and answers.
const WRITTEN: [u8; 2] = [0, 19];
/// The bit of a voice message.
const VOICE: u64 = 1 << 13;
/// The types of interactions.
const COMMAND: u8 = 2;
const COMPONENT: u8 = 3;

/// A message.
#[derive(Debug, Deserialize)]
pub(super) struct Message {
    pub(super) id: String,
    pub(super) channel_id: String,
    #[serde(default)]
    pub(super) guild_id: Option<String>,
    #[serde(default, rename = "type")]
    kind: u8,
    #[serde(default)]
    author: Option<Person>,
    #[serde(default)]
    member: Option<Member>,
    #[serde(default)]
    webhook_id: Option<String>,
    #[serde(default)]
    content: String,
    #[serde(default)]
    edited_timestamp: Option<String>,
    #[serde(default)]
    mentions: Vec<Person>,
    #[serde(default)]
    attachments: Vec<Attachment>,
    #[serde(default)]
    message_reference: Option<Reference>,
    #[serde(default)]
    referenced_message: Option<Box<Referenced>>,
    #[serde(default)]
    flags: u64,
}

/// A message that is gone: Discord says no more of it.
#[derive(Debug, Deserialize)]
pub(super) struct Deleted {
    pub(super) id: String,
    pub(super) channel_id: String,
    #[serde(default)]
    pub(super) guild_id: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Person {
    id: String,
    #[serde(default)]
    username: String,
    #[serde(default)]
    global_name: Option<String>,
    #[serde(default)]
    bot: bool,
}

#[derive(Debug, Default, Deserialize)]
struct Member {
    #[serde(default)]
    nick: Option<String>,
    #[serde(default)]
    roles: Vec<String>,
    #[serde(default)]
    user: Option<Person>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Attachment {
    pub(super) id: String,
    #[serde(default)]
    filename: Option<String>,
    #[serde(default)]
    pub(super) content_type: Option<String>,
    #[serde(default)]
    pub(super) size: u64,
    pub(super) url: String,
}

#[derive(Debug, Deserialize)]
struct Reference {
    #[serde(default)]
    message_id: Option<String>,
    /// 0 is an answer, 1 a forwarded message.
    #[serde(default, rename = "type")]
    kind: u8,
}

#[derive(Debug, Deserialize)]
struct Referenced {
    #[serde(default)]
    author: Option<Person>,
    #[serde(default)]
    content: String,
}

/// A pressed button or a chosen command.
#[derive(Debug, Deserialize)]
pub(super) struct Interaction {
    pub(super) id: String,
    pub(super) token: String,
    #[serde(rename = "type")]
    pub(super) kind: u8,
    #[serde(default)]
    pub(super) guild_id: Option<String>,
    #[serde(default)]
    pub(super) channel_id: Option<String>,
    #[serde(default)]
    data: InteractionData,
    #[serde(default)]
    member: Option<Member>,
    #[serde(default)]
    user: Option<Person>,
}

#[derive(Debug, Default, Deserialize)]
struct InteractionData {
    #[serde(default)]
    custom_id: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    options: Vec<Choice>,
}

#[derive(Debug, Deserialize)]
struct Choice {
    #[serde(default)]
    value: serde_json::Value,
}

/// Who we are on Discord.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Me {
    pub(super) id: String,
    #[serde(default)]
    pub(super) username: String,
}

impl Person {
    fn sender(&self, member: Option<&Member>) -> Sender {
        let nick = member.and_then(|member| member.nick.clone());
        let name = nick.or_else(|| self.global_name.clone());
        Sender {
            id: self.id.clone(),
            aliases: Vec::new(),
            name: Some(name.unwrap_or_else(|| self.username.clone()))
                .filter(|name| !name.is_empty()),
            is_bot: self.bot,
            roles: member.map(|member| member.roles.clone()).unwrap_or_default(),
        }
    }
}

impl Message {
    /// What it says to us, in its place; none if it is none of our business.
    pub(super) fn read(
        &self,
        edited: bool,
        place: Place,
        account: &str,
        me: &Me,
    ) -> Option<Arrival> {
        let author = self.author.as_ref().filter(|author| author.id != me.id)?;
        if !WRITTEN.contains(&self.kind) || (edited && self.edited_timestamp.is_none()) {
            return None;
        }
        let (text, mentioned) = self.text(me);
        let media = self.media(account);
        if text.is_empty() && media.is_empty() && !mentioned {
            return None;
        }
        let (id, deed) = match &self.edited_timestamp {
            // A message may be changed again and again; that its previews have come is no change.
            Some(time) if edited => {
                (format!("edit:{}:{time}", self.id), Deed::Edited { message: self.id.clone() })
            }
            Some(_) | None => (self.id.clone(), Deed::Wrote),
        };
        let mut sender = author.sender(self.member.as_ref());
        sender.is_bot |= self.webhook_id.is_some();
        let answered = self.referenced_message.as_ref().and_then(|message| message.author.as_ref());
        let replied = answered.is_some_and(|author| author.id == me.id);
        Some(Arrival {
            id,
            deed,
            place,
            sender,
            attention: Attention { mentioned, replied },
            text: if text.is_empty() && media.is_empty() { "(mentioned you)".into() } else { text },
            media,
            reply_to: self.quoted(),
            history: Vec::new(),
        })
    }

    /// The words without our own name, with the names of others, and whether we are mentioned.
    fn text(&self, me: &Me) -> (String, bool) {
        let mut text = self.content.clone();
        let mut mentioned = false;
        for form in [format!("<@{}>", me.id), format!("<@!{}>", me.id)] {
            mentioned |= text.contains(&form);
            text = text.replace(&format!("{form} "), "").replace(&form, "");
        }
        for person in &self.mentions {
            let name = person.global_name.as_ref().unwrap_or(&person.username);
            for form in [format!("<@{}>", person.id), format!("<@!{}>", person.id)] {
                text = text.replace(&form, &format!("@{name}"));
            }
        }
        (text.trim().to_owned(), mentioned)
    }

    fn media(&self, account: &str) -> Vec<Media> {
        let media = |file: &Attachment| {
            let mime = file.content_type.clone();
            let kind = match mime.as_deref().unwrap_or_default().split('/').next() {
                Some("image") => MediaKind::Photo,
                Some("audio") if self.flags & VOICE != 0 => MediaKind::Voice,
                Some("audio") => MediaKind::Audio,
                Some("video") => MediaKind::Video,
                _ => MediaKind::Document,
            };
            // A file's address is good for a day only; what is kept leads to a new one.
            let reference = format!("{}/{}/{}", self.channel_id, self.id, file.id);
            let (platform, account) = (PLATFORM.into(), account.into());
            let url = MediaRef { platform, account, reference }.to_string();
            Media { url, kind, mime, name: file.filename.clone(), group: None }
        };
        self.attachments.iter().map(media).collect()
    }

    fn quoted(&self) -> Option<Quote> {
        let reference = self.message_reference.as_ref().filter(|reference| reference.kind == 0)?;
        let text = self.referenced_message.as_ref().map(|message| message.content.clone());
        Some(Quote {
            id: reference.message_id.clone()?,
            text: text.filter(|text| !text.is_empty()),
        })
    }

    pub(super) fn into_attachments(self) -> Vec<Attachment> {
        self.attachments
    }
}

impl Deleted {
    /// The same in our terms. Who had written it, Discord does not say.
    pub(super) fn read(self, place: Place, sender: Sender) -> Arrival {
        Arrival {
            id: format!("withdraw:{}", self.id),
            deed: Deed::Withdrew { message: self.id },
            place,
            sender,
            attention: Attention::default(),
            text: String::new(),
            media: Vec::new(),
            reply_to: None,
            history: Vec::new(),
        }
    }
}

impl Interaction {
    /// What it says to us, in its place; none if it is not one of ours.
    pub(super) fn read(&self, place: Place) -> Option<Arrival> {
        let of_member = self.member.as_ref().and_then(|member| member.user.as_ref());
        let sender = of_member.or(self.user.as_ref())?.sender(self.member.as_ref());
        let text = match self.kind {
            COMPONENT => Press::of_data(self.data.custom_id.as_deref()?)?.command(),
            COMMAND => {
                let words = self.data.options.iter().filter_map(|option| option.value.as_str());
                let text = format!(
                    "/{} {}",
                    self.data.name.as_deref()?,
                    words.collect::<Vec<_>>().join(" ")
                );
                let text = text.trim_end().to_owned();
                matches!(parse(&text), Parsed::Command(_)).then_some(text)?
            }
            _ => return None,
        };
        Some(Arrival {
            id: format!("interaction:{}", self.id),
            deed: Deed::Pressed,
            place,
            sender,
            // What is ours is meant for us.
            attention: Attention { mentioned: true, replied: true },
            text,
            media: Vec::new(),
            reply_to: None,
            history: Vec::new(),
        })
    }

    pub(super) const fn is_button(&self) -> bool {
        self.kind == COMPONENT
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn me() -> Me {
        Me { id: "99".into(), username: "talaria".into() }
    }

    fn read(message: Value, edited: bool) -> Option<Arrival> {
        let message: Message = serde_json::from_value(message).unwrap();
        message.read(edited, Place::default(), "bot", &me())
    }

    fn said(content: &str) -> Value {
        json!({
            "id": "7", "channel_id": "5", "guild_id": "3", "type": 0, "content": content,
            "author": { "id": "1", "username": "ada", "global_name": "Ada" },
            "member": { "nick": null, "roles": ["44"] }, "mentions": [], "attachments": [],
        })
    }

    #[test]
    fn our_name_is_taken_out_and_others_are_named() {
        let mut message = said("<@99> tell <@!2> hello");
        message["mentions"] = json!([{ "id": "2", "username": "bob" }]);
        let arrival = read(message, false).unwrap();
        assert_eq!(arrival.text, "tell @bob hello");
        assert!(arrival.attention.mentioned);
        assert_eq!(arrival.sender.roles, ["44"]);
        assert_eq!(arrival.sender.name.as_deref(), Some("Ada"));
        assert!(!read(said("hello"), false).unwrap().attention.mentioned);
    }

    #[test]
    fn an_answer_to_us_is_meant_for_us_and_a_forwarded_message_is_no_answer() {
        let mut message = said("and?");
        message["type"] = 19.into();
        message["message_reference"] = json!({ "type": 0, "message_id": "6" });
        message["referenced_message"] = json!({ "id": "6", "author": { "id": "99", "username": "x" }, "content": "what I said" });
        let arrival = read(message.clone(), false).unwrap();
        assert!(arrival.attention.replied);
        assert_eq!(
            arrival.reply_to,
            Some(Quote { id: "6".into(), text: Some("what I said".into()) })
        );
        message["message_reference"]["type"] = 1.into();
        assert_eq!(read(message, false).unwrap().reply_to, None);
    }

    #[test]
    fn a_change_is_one_only_when_its_writer_made_it() {
        let mut message = said("new");
        assert_eq!(read(message.clone(), true), None);
        message["edited_timestamp"] = "2026-01-01T00:00:00Z".into();
        let edit = read(message, true).unwrap();
        assert_eq!(edit.deed, Deed::Edited { message: "7".into() });
        assert_eq!(edit.id, "edit:7:2026-01-01T00:00:00Z");
    }

    #[test]
    fn we_do_not_hear_ourselves_or_what_nobody_wrote() {
        let mut ours = said("x");
        ours["author"]["id"] = "99".into();
        assert_eq!(read(ours, false), None);
        let mut joined = said("");
        joined["type"] = 7.into();
        assert_eq!(read(joined, false), None);
        let mut hook = said("x");
        hook["webhook_id"] = "1".into();
        assert!(read(hook, false).unwrap().sender.is_bot);
    }

    #[test]
    fn commands_of_the_menu_are_ours_only() {
        let chosen = |name: &str, value: &str| {
            let interaction = json!({
                "id": "1", "token": "t", "type": 2, "channel_id": "5", "user": { "id": "1", "username": "ada" },
                "data": { "name": name, "options": [{ "name": "words", "type": 3, "value": value }] },
            });
            let interaction: Interaction = serde_json::from_value(interaction).unwrap();
            interaction.read(Place::default()).map(|arrival| arrival.text)
        };
        assert_eq!(chosen("queue", "more").as_deref(), Some("/queue more"));
        assert_eq!(chosen("stop", "").as_deref(), Some("/stop"));
        assert_eq!(chosen("other", "x"), None);
    }
}
