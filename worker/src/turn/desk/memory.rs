//! `memory`: short notes on a person that outlast conversations. They are stored per person in a bucket, written by
//! compare-and-set, and shown to the model when a conversation with that person alone begins.

use node::bus::{Write, WriteError};
use proto::codec;
use proto::event::MessageEvent;
use proto::id::Sid;
use proto::session::{ChatKind, SessionKey, SessionParts};
use proto::subject;
use proto::topology::MEMORY;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::super::Turn;
use super::super::work::Work;
use super::object;
use crate::fence::Lost;
use crate::tools::{Output, arguments};
use crate::transcript::patiently;

/// How much is kept of one person: it is part of every conversation.
const CHARS_MAX: usize = 2200;
/// How often a note is tried again when another turn wrote at the same time.
const TRIES: usize = 5;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Notes {
    notes: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Action {
    List,
    Add,
    Replace,
    Remove,
}

#[derive(Deserialize)]
struct Call {
    action: Action,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    old: Option<String>,
}

pub(super) fn schema() -> (&'static str, Value) {
    let properties = json!({
        "action": { "type": "string", "enum": ["list", "add", "replace", "remove"] },
        "text": { "type": "string", "description": "the note, for add and replace" },
        "old": { "type": "string", "description": "words of the note that is meant, for replace and remove" },
    });
    let about = "Keeps short notes on the person for later conversations: lasting facts and wishes, never passwords or passing \
                 things.";
    (about, object(&["action"], properties))
}

/// Whose notes a turn keeps: those of the person who speaks.
pub(in crate::turn) fn person(event: &MessageEvent) -> Sid {
    let parts = SessionParts {
        platform: &event.address.platform,
        kind: ChatKind::Dm,
        chat: "",
        thread: None,
        participant: Some(&event.user.id),
    };
    SessionKey::new(parts).sid()
}

/// What is known of the person whom a conversation begins with, for its instructions. In company it stays unsaid.
pub(in crate::turn) async fn known_of(turn: &Turn, event: &MessageEvent) -> Result<String, Lost> {
    if event.address.kind != ChatKind::Dm {
        return Ok(String::new());
    }
    let (notes, _) = stored(turn, person(event)).await?;
    if notes.notes.is_empty() {
        return Ok(String::new());
    }
    Ok(format!("\n\nWhat you have noted about this person:\n- {}", notes.notes.join("\n- ")))
}

/// The notes, and the revision that they have.
async fn stored(turn: &Turn, person: Sid) -> Result<(Notes, u64), Lost> {
    let key = subject::bucket_subject(MEMORY, &person.to_string());
    let stream = format!("KV_{MEMORY}");
    let found = patiently(&turn.fence, || turn.shared.node.bus.last(&stream, &key)).await?;
    let Some(found) = found else { return Ok((Notes::default(), 0)) };
    let notes = if found.is_value() { codec::decode(&found.payload) } else { Ok(Notes::default()) };
    let notes = notes.unwrap_or_else(|error| {
        tracing::error!(%error, "notes cannot be read; they begin anew");
        Notes::default()
    });
    Ok((notes, found.sequence))
}

impl Notes {
    /// The notes after a call; the error is for the model.
    fn after(mut self, call: &Call) -> Result<Self, String> {
        let text = call.text.as_deref().map(str::trim).filter(|text| !text.is_empty());
        let old = call.old.as_deref().map(str::trim).filter(|old| !old.is_empty());
        let place = |notes: &[String]| {
            let old = old.ok_or("which note? give some words of it as `old`")?;
            let found: Vec<usize> =
                (0..notes.len()).filter(|at| notes[*at].contains(old)).collect();
            match found[..] {
                [at] => Ok(at),
                [] => Err("no note has these words"),
                _ => Err("several notes have these words; give more of them"),
            }
        };
        match call.action {
            Action::List => {}
            Action::Add => self.notes.push(text.ok_or("what? give it as `text`")?.to_owned()),
            Action::Replace => {
                let at = place(&self.notes)?;
                text.ok_or("by what? give it as `text`")?.clone_into(&mut self.notes[at]);
            }
            Action::Remove => {
                let at = place(&self.notes)?;
                self.notes.remove(at);
            }
        }
        let size: usize = self.notes.iter().map(|note| note.chars().count()).sum();
        if size > CHARS_MAX {
            return Err(format!(
                "that would be {size} characters; {CHARS_MAX} are kept. Remove or shorten something first"
            ));
        }
        Ok(self)
    }

    fn shown(&self) -> String {
        if self.notes.is_empty() {
            "[no notes]".into()
        } else {
            format!("- {}", self.notes.join("\n- "))
        }
    }
}

impl Work<'_> {
    /// Reads or changes the notes on the person who speaks.
    pub(super) async fn remember(&self, call: &Value) -> Output {
        let call: Call = match arguments(call) {
            Ok(call) => call,
            Err(output) => return output,
        };
        match self.noted(&call).await {
            Ok(Ok(notes)) => Output::done(notes.shown()),
            Ok(Err(why)) => Output::failed(why),
            Err(lost) => Output::failed(lost),
        }
    }

    async fn noted(&self, call: &Call) -> Result<Result<Notes, String>, Lost> {
        let turn = self.turn;
        let mut speaker = None;
        if let Some(seq) = turn.order.inputs.last() {
            speaker = turn.input(*seq).await?;
        }
        let Some(person) = speaker.as_ref().map(person) else {
            return Ok(Err("no one speaks".into()));
        };
        let key = subject::bucket_subject(MEMORY, &person.to_string());
        for _ in 0..TRIES {
            let (before, revision) = stored(turn, person).await?;
            let after = match before.clone().after(call) {
                Ok(after) => after,
                Err(why) => return Ok(Err(why)),
            };
            if after == before {
                return Ok(Ok(after));
            }
            turn.fence.check()?;
            let write = Write { expect: Some(revision), ..Write::default() };
            match turn.shared.node.bus.write(key.clone(), codec::encode(&after).into(), write).await
            {
                Ok(_) => return Ok(Ok(after)),
                Err(WriteError::TooLarge) => return Ok(Err("too large".into())),
                Err(WriteError::Refused) => {}
                // It may have been stored: then the notes are read back as they should be.
                Err(WriteError::Unknown) if stored(turn, person).await?.0 == after => {
                    return Ok(Ok(after));
                }
                Err(WriteError::Unknown) => {}
            }
        }
        Ok(Err("others are writing at the same time; try again".into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_added_replaced_and_removed_by_their_words() {
        let call = |action, text: &str, old: &str| Call {
            action,
            text: Some(text.into()),
            old: Some(old.into()),
        };
        let notes = Notes::default().after(&call(Action::Add, "likes tea", "")).unwrap();
        let notes = notes.after(&call(Action::Add, "has a cat", "")).unwrap();
        let notes = notes.after(&call(Action::Replace, "likes coffee", "tea")).unwrap();
        assert_eq!(notes.shown(), "- likes coffee\n- has a cat");
        assert!(notes.clone().after(&call(Action::Remove, "", "s")).is_err(), "two are meant");
        assert!(notes.clone().after(&call(Action::Remove, "", "dog")).is_err());
        assert!(notes.clone().after(&call(Action::Add, &"x".repeat(CHARS_MAX), "")).is_err());
        assert_eq!(
            notes.after(&call(Action::Remove, "", "cat")).unwrap().shown(),
            "- likes coffee"
        );
    }
}
