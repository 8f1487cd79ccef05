//! What Slack sends: the parts of its events, buttons and commands that matter here, and what they say in our terms.

use proto::command::{Parsed, parse};
use proto::event::{Media, MediaKind};
use proto::media::MediaRef;
use proto::session::ChatKind;
use serde::Deserialize;
use serde_json::Value;

use super::{PLATFORM, text};
use crate::adapter::Press;
use crate::gate::{Arrival, Attention, Deed, Place, Sender};

/// The outside of an event: `events_api`, or the body of a request.
#[derive(Debug, Deserialize)]
pub(super) struct Callback {
    #[serde(rename = "type")]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) challenge: Option<String>,
    #[serde(default)]
    pub(super) event: Option<Event>,
}

/// An event.
#[derive(Debug, Deserialize)]
pub(super) struct Event {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    channel: Value,
    #[serde(default)]
    deleted_ts: Option<String>,
    #[serde(default)]
    message: Option<Message>,
    #[serde(default)]
    previous_message: Option<Message>,
    #[serde(flatten)]
    own: Message,
}

/// A message: an event is one, or holds one.
#[derive(Debug, Default, Deserialize)]
struct Message {
    #[serde(default)]
    subtype: Option<String>,
    #[serde(default)]
    user: Option<String>,
    #[serde(default)]
    bot_id: Option<String>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    thread_ts: Option<String>,
    #[serde(default)]
    parent_user_id: Option<String>,
    #[serde(default)]
    files: Vec<File>,
    #[serde(default)]
    edited: Option<Edited>,
    #[serde(default)]
    ts: String,
}

#[derive(Debug, Deserialize)]
struct Edited {
    ts: String,
}

#[derive(Debug, Deserialize)]
struct File {
    id: String,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    mimetype: Option<String>,
    #[serde(default)]
    subtype: Option<String>,
    #[serde(default)]
    mode: Option<String>,
}

/// A pressed button.
#[derive(Debug, Deserialize)]
pub(super) struct Interaction {
    #[serde(rename = "type")]
    kind: String,
    user: Person,
    #[serde(default)]
    container: Container,
    #[serde(default)]
    pub(super) message: Value,
    #[serde(default)]
    actions: Vec<Action>,
}

#[derive(Debug, Deserialize)]
struct Person {
    id: String,
    #[serde(default)]
    name: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
struct Container {
    #[serde(default)]
    channel_id: String,
    #[serde(default)]
    message_ts: String,
    #[serde(default)]
    thread_ts: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Action {
    #[serde(default)]
    value: Option<String>,
    #[serde(default)]
    action_ts: String,
}

/// A command of Slack's own menu.
#[derive(Debug, Deserialize)]
pub(super) struct Slash {
    command: String,
    #[serde(default)]
    text: String,
    user_id: String,
    #[serde(default)]
    user_name: Option<String>,
    channel_id: String,
    #[serde(default)]
    channel_name: Option<String>,
    trigger_id: String,
}

/// Who we are on Slack.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Me {
    #[serde(rename = "user_id")]
    pub(super) user: String,
    #[serde(default)]
    pub(super) bot_id: Option<String>,
    #[serde(default)]
    pub(super) team: String,
}

/// How one account reads what comes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'a> {
    pub(super) account: &'a str,
    pub(super) me: &'a Me,
    /// Whether each message in a channel opens a thread.
    pub(super) reply_in_thread: bool,
}

impl Reader<'_> {
    /// What an event says to us; none if it is none of our business.
    pub(super) fn event(self, event: Event) -> Option<Arrival> {
        let Event { kind, channel, deleted_ts, message, previous_message, own } = event;
        // Events about a channel itself carry an object here.
        let channel = channel.as_str()?;
        match (kind.as_str(), own.subtype.as_deref()) {
            ("app_mention", _)
            | (
                "message",
                None | Some("file_share" | "me_message" | "thread_broadcast" | "bot_message"),
            ) => self.said(Deed::Wrote, channel, own),
            ("message", Some("message_changed")) => {
                let (now, before) = (message?, previous_message.unwrap_or_default());
                let message = now.ts.clone();
                if now.subtype.as_deref() == Some("tombstone") {
                    // Taken back while its thread goes on.
                    return self.withdrew(channel, &message, before);
                }
                // Slack also says that a link's preview has come.
                if now.edited.is_none() || now.text == before.text {
                    return None;
                }
                self.said(Deed::Edited { message }, channel, now)
            }
            ("message", Some("message_deleted")) => {
                self.withdrew(channel, &deleted_ts?, previous_message?)
            }
            _ => None,
        }
    }

    fn said(self, deed: Deed, channel: &str, message: Message) -> Option<Arrival> {
        let ts = message.ts.as_str();
        let sender = self.sender(&message)?;
        let (text, mentioned) =
            text::read(message.text.as_deref().unwrap_or_default(), &self.me.user);
        let media = self.media(&message.files);
        // A mention alone is a call for attention; without any content there is nothing to answer.
        if text.trim().is_empty() && media.is_empty() && !mentioned {
            return None;
        }
        let id = match (&deed, &message.edited) {
            // A message may be changed again and again.
            (Deed::Edited { .. }, Some(edited)) => format!("edit:{ts}:{}", edited.ts),
            _ => ts.to_owned(),
        };
        let replied = message.parent_user_id.as_deref() == Some(&self.me.user);
        Some(Arrival {
            id,
            deed,
            place: self.place(
                channel,
                message.thread_ts.as_deref().or(Some(ts)),
                message.thread_ts.is_some(),
            ),
            sender,
            attention: Attention { mentioned, replied },
            text: if text.is_empty() && media.is_empty() { "(mentioned you)".into() } else { text },
            media,
            reply_to: None,
            history: Vec::new(),
        })
    }

    fn withdrew(self, channel: &str, ts: &str, message: Message) -> Option<Arrival> {
        let sender = self.sender(&message)?;
        let in_thread = message.thread_ts.as_deref().is_some_and(|thread| thread != ts);
        Some(Arrival {
            id: format!("withdraw:{ts}"),
            deed: Deed::Withdrew { message: ts.to_owned() },
            place: self.place(channel, message.thread_ts.as_deref().or(Some(ts)), in_thread),
            sender,
            attention: Attention::default(),
            text: String::new(),
            media: Vec::new(),
            reply_to: None,
            history: Vec::new(),
        })
    }

    /// Where a message belongs: to the thread that it is in, or to the one that it opens.
    fn place(self, channel: &str, thread: Option<&str>, in_thread: bool) -> Place {
        let kind = kind_of(channel);
        let opens = self.reply_in_thread && kind != ChatKind::Dm;
        let thread = thread.filter(|_| in_thread || opens).map(str::to_owned);
        Place { chat: channel.to_owned(), kind, thread, parent: None, name: None }
    }

    /// Who wrote a message; none if we did.
    fn sender(self, message: &Message) -> Option<Sender> {
        let Message { user, bot_id, .. } = message;
        let ours = user.as_deref() == Some(&self.me.user)
            || bot_id.is_some() && *bot_id == self.me.bot_id
            || user.as_deref() == Some("USLACKBOT");
        let id = user.clone().or_else(|| bot_id.clone()).unwrap_or_default();
        let is_bot = bot_id.is_some();
        (!ours).then_some(Sender { id, is_bot, ..Sender::default() })
    }

    fn media(self, files: &[File]) -> Vec<Media> {
        let there = files.iter().filter(|file| file.mode.as_deref() != Some("tombstone"));
        there
            .map(|file| {
                let mime = file.mimetype.clone();
                let kind = match mime.as_deref().unwrap_or_default().split('/').next() {
                    Some("image") => MediaKind::Photo,
                    _ if file.subtype.as_deref() == Some("slack_audio") => MediaKind::Voice,
                    Some("audio") => MediaKind::Audio,
                    Some("video") => MediaKind::Video,
                    _ => MediaKind::Document,
                };
                let reference = MediaRef {
                    platform: PLATFORM.into(),
                    account: self.account.into(),
                    reference: file.id.clone(),
                };
                Media {
                    url: reference.to_string(),
                    kind,
                    mime,
                    name: file.name.clone(),
                    group: None,
                }
            })
            .collect()
    }

    /// What a pressed button says, and where its message is; none if it is not one of ours.
    pub(super) fn pressed(self, interaction: &Interaction) -> Option<(Arrival, String)> {
        let Interaction { kind, user, container, message, actions } = interaction;
        let action = actions.first().filter(|_| kind == "block_actions")?;
        let press = Press::of_data(action.value.as_deref()?)?;
        let thread = container.thread_ts.as_deref().or_else(|| message["thread_ts"].as_str());
        let arrival = Arrival {
            id: format!("press:{}:{}:{}", container.message_ts, user.id, action.action_ts),
            deed: Deed::Pressed,
            place: self.place(&container.channel_id, thread, thread.is_some()),
            sender: Sender { id: user.id.clone(), name: user.name.clone(), ..Sender::default() },
            attention: Attention { mentioned: true, replied: true },
            text: press.command(),
            media: Vec::new(),
            reply_to: None,
            history: Vec::new(),
        };
        Some((arrival, container.message_ts.clone()))
    }

    /// What a command of Slack's menu says: `/stop` as it is, and `/talaria stop`, which leaves other apps theirs.
    pub(super) fn slash(self, slash: Slash) -> Arrival {
        let Slash {
            command,
            text: words,
            user_id,
            user_name,
            channel_id,
            channel_name,
            trigger_id,
        } = slash;
        let (words, _) = text::read(&words, &self.me.user);
        let whole = format!("{command} {words}");
        let inner = format!("/{}", words.trim_start_matches('/'));
        let is_ours = |text: &str| matches!(parse(text), Parsed::Command(_));
        let said = match words.trim() {
            _ if is_ours(&whole) => whole,
            "" => "/help".to_owned(),
            _ if is_ours(&inner) => inner,
            words => words.to_owned(),
        };
        let name = channel_name.filter(|name| name != "directmessage");
        Arrival {
            id: format!("slash:{trigger_id}"),
            deed: Deed::Pressed,
            place: Place { name, ..self.place(&channel_id, None, false) },
            sender: Sender { id: user_id, name: user_name, ..Sender::default() },
            attention: Attention { mentioned: true, replied: false },
            text: said.trim_end().to_owned(),
            media: Vec::new(),
            reply_to: None,
            history: Vec::new(),
        }
    }
}

/// What sort of chat it is, by its id: the events of one chat do not all say it, and must agree.
fn kind_of(channel: &str) -> ChatKind {
    if channel.starts_with('D') { ChatKind::Dm } else { ChatKind::Channel }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn me() -> Me {
        Me { user: "U0ME".into(), bot_id: Some("B0ME".into()), team: "T".into() }
    }

    fn read(event: Value) -> Option<Arrival> {
        let me = me();
        let reader = Reader { account: "main", me: &me, reply_in_thread: true };
        reader.event(serde_json::from_value(event).unwrap())
    }

    #[test]
    fn a_mention_and_its_message_are_one() {
        let message = json!({
            "type": "message", "channel": "C1", "channel_type": "channel", "user": "U1",
            "text": "<@U0ME> hi", "ts": "1.1", "client_msg_id": "x", "event_ts": "1.1",
        });
        let mut mention = message.clone();
        mention["type"] = "app_mention".into();
        mention.as_object_mut().unwrap().remove("channel_type");
        let message = read(message).unwrap();
        assert_eq!(Some(&message), read(mention).as_ref());
        assert_eq!((message.id.as_str(), message.text.as_str()), ("1.1", "hi"));
        assert!(message.attention.mentioned);
        assert_eq!(message.place.thread.as_deref(), Some("1.1"));
        assert_eq!(message.place.kind, ChatKind::Channel);
    }

    #[test]
    fn what_is_in_a_thread_stays_there_and_private_chats_have_none() {
        let answer = read(json!({
            "type": "message", "channel": "C1", "user": "U1", "text": "and?", "ts": "1.2",
            "thread_ts": "1.1", "parent_user_id": "U0ME",
        }))
        .unwrap();
        assert_eq!(answer.place.thread.as_deref(), Some("1.1"));
        assert!(answer.attention.replied);
        let direct = read(
            json!({ "type": "message", "channel": "D1", "user": "U1", "text": "x", "ts": "2" }),
        );
        let place = direct.unwrap().place;
        assert_eq!((place.kind, place.thread), (ChatKind::Dm, None));
    }

    #[test]
    fn edits_and_deletions_name_their_message_and_its_thread() {
        let said =
            |text: &str| json!({ "type": "message", "user": "U1", "text": text, "ts": "1.1" });
        let mut now = said("new");
        now["edited"] = json!({ "user": "U1", "ts": "1.5" });
        let changed = json!({
            "type": "message", "subtype": "message_changed", "channel": "C1", "ts": "1.6",
            "message": now, "previous_message": said("old"),
        });
        let edit = read(changed.clone()).unwrap();
        assert_eq!(edit.id, "edit:1.1:1.5");
        assert_eq!(edit.deed, Deed::Edited { message: "1.1".into() });
        assert_eq!(edit.place.thread.as_deref(), Some("1.1"));
        let mut unfurled = changed;
        unfurled["message"]["text"] = "old".into();
        assert_eq!(read(unfurled), None);

        let deleted = read(json!({
            "type": "message", "subtype": "message_deleted", "channel": "C1", "ts": "1.7",
            "deleted_ts": "1.1", "previous_message": said("old"),
        }))
        .unwrap();
        assert_eq!(deleted.deed, Deed::Withdrew { message: "1.1".into() });
        assert_eq!(deleted.place, edit.place);
    }

    #[test]
    fn we_do_not_hear_ourselves_or_what_nobody_said() {
        let ours = json!({ "type": "message", "channel": "C1", "user": "U0ME", "bot_id": "B0ME", "text": "x", "ts": "1" });
        let other = json!({ "type": "message", "subtype": "bot_message", "channel": "C1", "bot_id": "B1", "text": "x", "ts": "1" });
        let joined = json!({ "type": "message", "subtype": "channel_join", "channel": "C1", "user": "U1", "text": "x", "ts": "1" });
        let made = json!({ "type": "channel_created", "channel": { "id": "C2" } });
        assert_eq!(read(ours), None);
        assert!(read(other).unwrap().sender.is_bot);
        assert_eq!(read(joined), None);
        assert_eq!(read(made), None);
    }

    #[test]
    fn commands_of_the_menu_are_ours_or_words() {
        let me = me();
        let reader = Reader { account: "main", me: &me, reply_in_thread: true };
        let slash = |command: &str, text: &str| {
            let slash = json!({ "command": command, "text": text, "user_id": "U1", "channel_id": "C1", "trigger_id": "t" });
            reader.slash(serde_json::from_value(slash).unwrap()).text
        };
        assert_eq!(slash("/stop", ""), "/stop");
        assert_eq!(slash("/talaria", "stop"), "/stop");
        assert_eq!(slash("/talaria", "/queue more"), "/queue more");
        assert_eq!(slash("/talaria", "what is up?"), "what is up?");
        assert_eq!(slash("/talaria", ""), "/help");
    }
}
