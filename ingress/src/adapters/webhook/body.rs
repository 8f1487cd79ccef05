//! What a webhook takes: the body as JSON, checked, and shaped into what the gate takes.

use proto::command::addressed;
use proto::event::{Media, Quote};
use proto::session::ChatKind;
use serde::Deserialize;

use crate::adapter::OWN_NAME;
use crate::gate::{Arrival, Attention, Deed, Place, Sender};
use crate::problem::Problem;

/// The longest id, in bytes: ids stay in every record of their session.
const ID_MAX: usize = 1024;
/// The longest name, in bytes.
const NAME_MAX: usize = 256;
/// How much of a mistake is shown, in characters.
const SHOWN_MAX: usize = 200;

#[derive(Debug, Deserialize)]
struct Body {
    id: String,
    chat: Chat,
    user: UserBody,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    media: Option<Vec<Media>>,
    #[serde(default)]
    reply_to: Option<Quote>,
    /// The message that this one replaces.
    #[serde(default)]
    edits: Option<String>,
    /// The message that is taken back.
    #[serde(default)]
    deletes: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Chat {
    id: String,
    #[serde(rename = "type")]
    kind: ChatKind,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    thread: Option<String>,
}

#[derive(Debug, Deserialize)]
struct UserBody {
    id: String,
    #[serde(default)]
    name: Option<String>,
}

/// Reads a body.
pub(crate) fn read(bytes: &[u8]) -> Result<Arrival, Problem> {
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let body: Body = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let place = match error.path().to_string() {
            path if path == "." => "body".to_owned(),
            path => path,
        };
        let what: String = error.inner().to_string().chars().take(SHOWN_MAX).collect();
        Problem::invalid(place, &what)
    })?;
    json.end().map_err(|error| Problem::invalid("body".into(), &error.to_string()))?;
    check(&body)?;
    Ok(shape(body))
}

fn check(body: &Body) -> Result<(), Problem> {
    let ids = [
        ("id", Some(&body.id)),
        ("chat.id", Some(&body.chat.id)),
        ("chat.thread", body.chat.thread.as_ref()),
        ("user.id", Some(&body.user.id)),
        ("reply_to.id", body.reply_to.as_ref().map(|quote| &quote.id)),
        ("edits", body.edits.as_ref()),
        ("deletes", body.deletes.as_ref()),
    ];
    for (place, id) in ids {
        let Some(id) = id else { continue };
        // An empty thread is a thread of its own; any other empty id names nothing.
        if id.is_empty() && place != "chat.thread" {
            return Err(Problem::invalid(place.into(), "is empty"));
        }
        if id.len() > ID_MAX {
            return Err(Problem::invalid(place.into(), &format!("is longer than {ID_MAX} bytes")));
        }
    }
    let names = [("chat.name", &body.chat.name), ("user.name", &body.user.name)];
    for (place, name) in names {
        if name.as_ref().is_some_and(|name| name.len() > NAME_MAX) {
            return Err(Problem::invalid(
                place.into(),
                &format!("is longer than {NAME_MAX} bytes"),
            ));
        }
    }
    check_target(body)?;
    let no_text = body.text.as_ref().is_none_or(|text| text.trim().is_empty());
    if body.deletes.is_none() && no_text && body.media.as_ref().is_none_or(Vec::is_empty) {
        return Err(Problem::invalid("text".into(), "there is neither text nor media"));
    }
    Ok(())
}

fn check_target(body: &Body) -> Result<(), Problem> {
    if body.edits.is_some() && body.deletes.is_some() {
        return Err(Problem::invalid("deletes".into(), "cannot stand beside edits"));
    }
    for (place, target) in [("edits", &body.edits), ("deletes", &body.deletes)] {
        if target.as_ref() == Some(&body.id) {
            let what =
                "names the event itself: the message's id is meant, and the event has its own";
            return Err(Problem::invalid(place.into(), what));
        }
    }
    Ok(())
}

fn shape(body: Body) -> Arrival {
    let Body { id, chat, user, text, media, reply_to, edits, deletes } = body;
    let deed = match (edits, deletes) {
        (Some(message), _) => Deed::Edited { message },
        (None, Some(message)) => Deed::Withdrew { message },
        (None, None) => Deed::Wrote,
    };
    Arrival {
        id,
        deed,
        place: Place {
            chat: chat.id,
            kind: chat.kind,
            thread: chat.thread,
            parent: None,
            name: chat.name,
        },
        sender: Sender { id: user.id, name: user.name, ..Sender::default() },
        attention: Attention::default(),
        text: addressed(&text.unwrap_or_default(), OWN_NAME).into_owned(),
        media: media.unwrap_or_default(),
        reply_to,
        history: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn body(id: &str, kind: &str, thread: Option<&str>, user: &str) -> Value {
        json!({ "id": "evt-1", "chat": { "id": id, "type": kind, "thread": thread },
                "user": { "id": user }, "text": "hi" })
    }

    fn read_json(value: &Value) -> Result<Arrival, Problem> {
        read(value.to_string().as_bytes())
    }

    /// The field that is wrong, and what is said about it.
    fn told(outcome: Result<Arrival, Problem>) -> (String, String) {
        let problem = outcome.unwrap_err();
        assert_eq!(problem.status, axum::http::StatusCode::UNPROCESSABLE_ENTITY);
        (problem.place.unwrap(), problem.error)
    }

    #[test]
    fn the_whole_contract_is_read() {
        let arrival = read_json(&json!({
            "id": "evt-1",
            "chat": { "id": "c1", "type": "group", "name": "Room", "thread": "t1" },
            "user": { "id": "u1", "name": "Ann" }, "text": "hi",
            "media": [{ "url": "https://x/y", "kind": "photo", "mime": "image/png", "name": "y", "group": "album-1" }],
            "reply_to": { "id": "m0", "text": "before" }, "something": "new",
        }))
        .unwrap();
        let Arrival { place, media, reply_to, sender, .. } = arrival;
        assert_eq!((place.chat.as_str(), place.kind), ("c1", ChatKind::Group));
        assert_eq!((place.thread.as_deref(), place.name.as_deref()), (Some("t1"), Some("Room")));
        assert_eq!((sender.id.as_str(), sender.name.as_deref()), ("u1", Some("Ann")));
        assert_eq!(media[0].group.as_deref(), Some("album-1"));
        assert_eq!(reply_to.unwrap().text.as_deref(), Some("before"));
    }

    #[test]
    fn mistakes_are_named_with_their_place() {
        let of = |text: &str| told(read(text.as_bytes()));
        assert_eq!(of("").0, "body");
        assert_eq!(of("7").0, "body");
        assert!(of("{\"id\": ").1.contains("line 1 column"));
        assert!(of("{}").1.contains("missing field `id`"));
        let wrong = [
            ("/id", json!(7), "id"),
            ("/id", json!(""), "id"),
            ("/chat/id", json!(null), "chat.id"),
            ("/chat/type", json!("room"), "chat.type"),
            ("/user/id", json!(""), "user.id"),
            ("/user/id", json!("x".repeat(ID_MAX + 1)), "user.id"),
            ("/text", json!(["hi"]), "text"),
            ("/text", json!(" "), "text"),
        ];
        for (pointer, value, place) in wrong {
            let mut body = body("c1", "dm", None, "u1");
            *body.pointer_mut(pointer).unwrap() = value;
            assert_eq!(told(read_json(&body)).0, place, "{body}");
        }
        let mut media = body("c1", "dm", None, "u1");
        media["media"] = json!([{ "url": "u", "kind": "photo" }, { "url": "u", "kind": "smell" }]);
        assert_eq!(told(read_json(&media)).0, "media[1].kind");
        let two = body("c1", "dm", None, "u1").to_string().repeat(2);
        assert!(of(&two).1.contains("trailing"));
    }

    #[test]
    fn a_message_may_be_media_alone() {
        let mut photo = body("c1", "dm", None, "u1");
        photo["text"] = Value::Null;
        photo["media"] = json!([{ "url": "https://x/y", "kind": "photo" }]);
        assert_eq!(read_json(&photo).unwrap().text, "");
    }

    #[test]
    fn a_message_can_be_changed_and_taken_back() {
        let mut edit = body("c1", "dm", None, "u1");
        edit["edits"] = json!("evt-0");
        let arrival = read_json(&edit).unwrap();
        let message = "evt-0".to_owned();
        assert_eq!((arrival.id.as_str(), arrival.text.as_str()), ("evt-1", "hi"));
        assert_eq!(arrival.deed, Deed::Edited { message: message.clone() });

        let mut delete = body("c1", "dm", None, "u1");
        delete["deletes"] = json!("evt-0");
        delete["text"] = Value::Null;
        let arrival = read_json(&delete).unwrap();
        assert_eq!((arrival.id.as_str(), arrival.deed), ("evt-1", Deed::Withdrew { message }));
    }

    #[test]
    fn a_target_is_one_other_message() {
        let with = |edits: Value, deletes: Value| {
            let mut body = body("c1", "dm", None, "u1");
            (body["edits"], body["deletes"]) = (edits, deletes);
            told(read_json(&body)).0
        };
        assert_eq!(with(json!("a"), json!("b")), "deletes");
        assert_eq!(with(json!(""), Value::Null), "edits");
        assert_eq!(with(Value::Null, json!("")), "deletes");
        assert_eq!(with(json!("evt-1"), Value::Null), "edits");
        assert_eq!(with(json!(7), Value::Null), "edits");
        let mut empty = body("c1", "dm", None, "u1");
        (empty["edits"], empty["text"]) = (json!("evt-0"), json!(""));
        assert_eq!(told(read_json(&empty)).0, "text", "a change says what the message says now");
    }

    #[test]
    fn a_command_for_another_bot_is_no_command_here() {
        let text = |text: &str| {
            let mut body = body("c1", "group", None, "u1");
            body["text"] = json!(text);
            read_json(&body).unwrap().text
        };
        for (written, is_command) in [
            ("/stop", true),
            ("/stop@talaria", true),
            ("/STOP@Talaria", true),
            ("stop", true),
            ("Stop.", true),
            (" STOP ", true),
            ("/stop@otherbot", false),
            ("please stop the music", false),
            ("/stopwatch", false),
        ] {
            let text = text(written);
            let parsed = matches!(proto::command::parse(&text), proto::command::Parsed::Command(_));
            assert_eq!(parsed, is_command, "{written:?}");
        }
        assert_eq!(text("/stop@otherbot"), "/stop@otherbot");
    }
}
