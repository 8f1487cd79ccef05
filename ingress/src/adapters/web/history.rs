//! The conversation so far, for a page that is opened again: read from where the workers keep it.

use std::collections::VecDeque;
use std::time::Duration;

use futures_util::StreamExt;
use node::bus::Bus;
use proto::codec;
use proto::id::{Sid, TurnId};
use proto::subject;
use proto::topology::{SESSIONS, TRANSCRIPT};
use proto::transcript::{Body, Entry, Profile};
use serde::Serialize;
use serde_json::json;

/// How many lines are shown.
const LINES_MAX: usize = 200;
/// How many entries are asked for at once.
const BATCH: u64 = 500;
/// How many entries are read at most: a longer conversation shows its beginning up to here.
const ENTRIES_MAX: u64 = 20_000;
/// How long the broker may take for one entry.
const PATIENCE: Duration = Duration::from_secs(2);

/// Who said a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Role {
    /// The person.
    User,
    /// The agent.
    Assistant,
}

/// One line of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Line {
    pub(crate) role: Role,
    pub(crate) turn: String,
    pub(crate) text: String,
    /// Whether it was cut off.
    pub(crate) partial: bool,
}

/// A conversation that could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HistoryError {
    /// The broker does not answer.
    #[error("the conversation cannot be read at the moment")]
    Unavailable,
}

/// Reads the newest lines of a session's current conversation, oldest first.
pub(crate) async fn read(bus: &Bus, sid: Sid) -> Result<Vec<Line>, HistoryError> {
    let key = subject::bucket_subject(SESSIONS, &sid.to_string());
    let profile = bus.last_nearby(&format!("KV_{SESSIONS}"), &key).await;
    let profile = profile.map_err(|_| HistoryError::Unavailable)?;
    let Some(stored) = profile.filter(node::bus::Stored::is_value) else { return Ok(Vec::new()) };
    let Ok(profile) = codec::decode::<Profile>(&stored.payload) else { return Ok(Vec::new()) };
    let subject = subject::transcript(sid, profile.conversation);
    let mut lines = Lines::default();
    let (mut from, mut seen) = (1, 0);
    while seen < ENTRIES_MAX {
        let batch = batch(bus, &subject, from, &mut lines).await?;
        seen += batch.count;
        match batch.last {
            Some(last) if batch.count >= BATCH => from = last + 1,
            _ => break,
        }
    }
    Ok(lines.0.into())
}

struct Batch {
    count: u64,
    last: Option<u64>,
}

/// Asks for the next entries of a subject in one request (batched direct get, NATS 2.11).
async fn batch(
    bus: &Bus,
    subject: &str,
    from: u64,
    lines: &mut Lines,
) -> Result<Batch, HistoryError> {
    let unavailable = |_| HistoryError::Unavailable;
    let client = bus.client();
    let inbox = client.new_inbox();
    let mut answers =
        client.subscribe(inbox.clone()).await.map_err(|_| HistoryError::Unavailable)?;
    let request = json!({ "seq": from, "next_by_subj": subject, "batch": BATCH });
    client
        .publish_with_reply(
            format!("$JS.API.DIRECT.GET.{TRANSCRIPT}"),
            inbox,
            request.to_string().into(),
        )
        .await
        .map_err(|_| HistoryError::Unavailable)?;
    let mut batch = Batch { count: 0, last: None };
    loop {
        let answer = tokio::time::timeout(PATIENCE, answers.next()).await.map_err(unavailable)?;
        let Some(message) = answer else { return Err(HistoryError::Unavailable) };
        if let Some(status) = message.status.map(|status| status.as_u16()) {
            return match status {
                // The end of a batch, or nothing there.
                204 | 404 => Ok(batch),
                _ => Err(HistoryError::Unavailable),
            };
        }
        let sequence = message.headers.as_ref().and_then(|headers| headers.get("Nats-Sequence"));
        batch.last = sequence.and_then(|value| value.as_str().parse().ok()).or(batch.last);
        batch.count += 1;
        if let Ok(entry) = codec::decode(&message.payload) {
            lines.add(entry);
        }
    }
}

#[derive(Debug, Default)]
struct Lines(VecDeque<Line>);

impl Lines {
    /// Adds what an entry shows. The words of one turn, before and after its tools, are one line.
    fn add(&mut self, entry: Entry) {
        match entry.body {
            Body::User { text, .. } => self.push(Role::User, entry.turn, text, false),
            Body::Assistant { text, partial, .. } if !text.is_empty() || partial => {
                let turn = entry.turn.to_string();
                match self.0.back_mut().filter(|l| l.role == Role::Assistant && l.turn == turn) {
                    Some(line) => {
                        if !line.text.is_empty() && !text.is_empty() {
                            line.text += "\n\n";
                        }
                        line.text += &text;
                        line.partial = partial;
                    }
                    None => self.push(Role::Assistant, entry.turn, text, partial),
                }
            }
            Body::Withdrawn { turn, .. } => {
                let turn = turn.to_string();
                self.0.retain(|line| line.turn != turn);
            }
            // A conversation that was shortened for the model is shown as it was.
            Body::System { .. }
            | Body::Assistant { .. }
            | Body::Result { .. }
            | Body::Resumed
            | Body::Attached { .. }
            | Body::Compressed { .. } => {}
        }
    }

    fn push(&mut self, role: Role, turn: TurnId, text: String, partial: bool) {
        self.0.push_back(Line { role, turn: turn.to_string(), text, partial });
        if self.0.len() > LINES_MAX {
            self.0.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use proto::id::Attempt;
    use proto::transcript::CallStatus;

    use super::*;

    fn entry(turn: u64, body: Body) -> Entry {
        Entry { turn: TurnId::new(turn), attempt: Attempt::FIRST, body }
    }

    fn said(text: &str, partial: bool) -> Body {
        Body::Assistant { text: text.into(), calls: Vec::new(), partial }
    }

    #[test]
    fn a_turn_is_one_line_of_each_side() {
        let mut lines = Lines::default();
        let result = Body::Result {
            call: "c".into(),
            output: "o".into(),
            status: CallStatus::Done,
            inputs: vec![],
        };
        for body in [
            Body::System { text: "secret".into() },
            Body::User { inputs: Vec::new(), text: "hi".into() },
            said("Let me see.", false),
            result,
            said("It is five.", false),
        ] {
            lines.add(entry(1, body));
        }
        lines.add(entry(2, Body::User { inputs: Vec::new(), text: "and?".into() }));
        lines.add(entry(2, said("It", true)));
        let seen: Vec<_> = lines.0.iter().map(|l| (l.role, l.text.as_str(), l.partial)).collect();
        let expected = [
            (Role::User, "hi", false),
            (Role::Assistant, "Let me see.\n\nIt is five.", false),
            (Role::User, "and?", false),
            (Role::Assistant, "It", true),
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn a_withdrawn_turn_is_forgotten_and_a_compressed_conversation_is_not() {
        let mut lines = Lines::default();
        let user = |text: &str| Body::User { inputs: Vec::new(), text: text.into() };
        lines.add(entry(1, user("one")));
        lines.add(entry(1, said("first", false)));
        lines.add(entry(2, user("two")));
        lines.add(entry(2, said("second", true)));
        lines.add(entry(3, Body::Compressed { entries: vec![entry(1, user("summary"))] }));
        lines.add(entry(3, user("three")));
        lines.add(entry(3, Body::Withdrawn { turn: TurnId::new(2), inputs: Vec::new() }));
        lines.add(entry(3, said("third", false)));
        let seen: Vec<_> = lines.0.iter().map(|line| line.text.as_str()).collect();
        assert_eq!(seen, ["one", "first", "three", "third"]);
    }

    #[test]
    fn only_the_newest_lines_are_kept() {
        let mut lines = Lines::default();
        for turn in 0..500 {
            lines.add(entry(turn, Body::User { inputs: Vec::new(), text: "x".into() }));
        }
        assert_eq!(lines.0.len(), LINES_MAX);
        assert_eq!(lines.0.back().map(|line| line.turn.as_str()), Some("t499"));
    }
}
