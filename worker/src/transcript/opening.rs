//! What a turn appends before it asks its model, so that the stored conversation is complete and valid: the mark of a new attempt,
//! results for calls that never got one, the instructions, a history that the client brought along, and the person's words.

use std::sync::Arc;

use proto::event::Media;
use proto::id::Attempt;
use proto::transcript::{Body, CallStatus, Entry, ToolCall};
use proto::turn::TurnRef;

use super::OUTCOME_UNKNOWN;

/// What a turn wants its conversation to begin with.
#[derive(Clone, Debug)]
pub(crate) struct Beginning {
    /// The instructions of a fresh conversation.
    pub(crate) system: String,
    /// The lines that come before the person's words in a fresh conversation.
    pub(crate) history: Vec<Body>,
    /// What came along with the person's words.
    pub(crate) media: Vec<Media>,
    /// The person's words.
    pub(crate) user: Body,
}

/// The next entry that is missing; none when the model can be asked. It is asked for again after each append, since what is
/// stored may have changed under it.
pub(crate) fn next_piece(entries: &[Arc<Entry>], of: TurnRef, begin: &Beginning) -> Option<Body> {
    let ours = || entries.iter().filter(|entry| entry.turn == of.turn);
    let marked = ours().any(|entry| entry.attempt == of.attempt && entry.body == Body::Resumed);
    if of.attempt > Attempt::FIRST && !marked {
        return Some(Body::Resumed);
    }
    if let Some(call) = open_calls(entries).first() {
        return Some(Body::Result {
            call: call.id.clone(),
            output: OUTCOME_UNKNOWN.into(),
            status: CallStatus::Unknown,
            inputs: Vec::new(),
        });
    }
    if !entries.iter().any(|entry| matches!(entry.body, Body::System { .. })) {
        return Some(Body::System { text: begin.system.clone() });
    }
    if ours().any(|entry| is_from_inputs(&entry.body, &begin.user)) {
        return None;
    }
    let is_fresh = entries.iter().all(|entry| entry.turn == of.turn);
    let stored = ours().filter(|entry| is_line(&entry.body)).count();
    if let Some(line) = begin.history.get(stored).filter(|_| is_fresh) {
        return Some(line.clone());
    }
    let is_attached = ours().any(|entry| matches!(entry.body, Body::Attached { .. }));
    if !begin.media.is_empty() && !is_attached {
        return Some(Body::Attached { media: begin.media.clone() });
    }
    Some(begin.user.clone())
}

/// The entries that a turn's own attempts have added after the person's words.
pub(crate) fn own_part<'a>(
    entries: &'a [Arc<Entry>],
    of: TurnRef,
    user: &Body,
) -> &'a [Arc<Entry>] {
    let at =
        entries.iter().position(|entry| entry.turn == of.turn && is_from_inputs(&entry.body, user));
    at.map_or(&[], |at| &entries[at + 1..])
}

fn is_from_inputs(body: &Body, user: &Body) -> bool {
    match (body, user) {
        (Body::User { inputs, .. }, Body::User { inputs: wanted, .. }) => inputs == wanted,
        _ => false,
    }
}

const fn is_line(body: &Body) -> bool {
    matches!(body, Body::User { .. } | Body::Assistant { .. })
}

/// The calls at the end of a conversation that have no result.
fn open_calls(entries: &[Arc<Entry>]) -> Vec<&ToolCall> {
    let mut open: Vec<&ToolCall> = Vec::new();
    for entry in entries {
        match &entry.body {
            Body::Assistant { calls, .. } => open = calls.iter().collect(),
            Body::Result { call, .. } => {
                if let Some(at) = open.iter().position(|open| open.id == *call) {
                    open.remove(at);
                }
            }
            // Words after a call without a result: too late to mend in place, so it is left to the rendering.
            Body::User { .. } => open.clear(),
            Body::System { .. }
            | Body::Resumed
            | Body::Attached { .. }
            | Body::Compressed { .. }
            | Body::Withdrawn { .. } => {}
        }
    }
    open
}

#[cfg(test)]
pub(crate) mod tests {
    use proto::id::{Seq, Sid, TurnId};

    use super::*;

    pub(crate) fn of(turn: u64, attempt: u64) -> TurnRef {
        TurnRef { sid: Sid::new(1), turn: TurnId::new(turn), attempt: Attempt::new(attempt) }
    }

    pub(crate) fn entry(of: TurnRef, body: Body) -> Arc<Entry> {
        Arc::new(Entry { turn: of.turn, attempt: of.attempt, body })
    }

    pub(crate) fn user(seq: u64, text: &str) -> Body {
        let inputs = if seq == 0 { Vec::new() } else { vec![Seq::new(seq)] };
        Body::User { inputs, text: text.into() }
    }

    pub(crate) fn says(text: &str, calls: &[&str]) -> Body {
        let call = |id: &&str| ToolCall {
            id: (*id).into(),
            name: "terminal".into(),
            arguments: "{}".into(),
        };
        let calls = calls.iter().map(call).collect();
        Body::Assistant { text: text.into(), calls, partial: false }
    }

    pub(crate) fn result(call: &str) -> Body {
        Body::Result {
            call: call.into(),
            output: "ok".into(),
            status: CallStatus::Done,
            inputs: Vec::new(),
        }
    }

    fn begin(turn: u64, history: Vec<Body>) -> Beginning {
        Beginning { system: "s".into(), history, media: Vec::new(), user: user(turn, "hi") }
    }

    /// Opens a turn to the end, as the worker does.
    fn open(entries: &mut Vec<Arc<Entry>>, of: TurnRef, begin: &Beginning) {
        while let Some(body) = next_piece(entries, of, begin) {
            assert!(entries.len() < 100, "an opening ends");
            entries.push(entry(of, body));
        }
    }

    fn kinds(entries: &[Arc<Entry>]) -> String {
        let kind = |entry: &Arc<Entry>| match &entry.body {
            Body::System { .. } => 'S',
            Body::User { .. } => 'U',
            Body::Assistant { .. } => 'A',
            Body::Result { status: CallStatus::Unknown, .. } => '?',
            Body::Result { .. } => 'R',
            Body::Resumed => '>',
            Body::Attached { .. } => '+',
            Body::Compressed { .. } => 'C',
            Body::Withdrawn { .. } => 'W',
        };
        entries.iter().map(kind).collect()
    }

    #[test]
    fn a_conversation_begins_once() {
        let mut entries = Vec::new();
        open(&mut entries, of(1, 1), &begin(1, vec![]));
        assert_eq!(kinds(&entries), "SU");
        entries.push(entry(of(1, 1), says("hello", &[])));
        open(&mut entries, of(2, 1), &begin(2, vec![]));
        assert_eq!(kinds(&entries), "SUAU");
        open(&mut entries, of(2, 1), &begin(2, vec![]));
        assert_eq!(kinds(&entries), "SUAU");
    }

    #[test]
    fn a_new_attempt_marks_itself_and_mends_what_was_left_open() {
        let mut entries = Vec::new();
        open(&mut entries, of(1, 1), &begin(1, vec![]));
        entries.push(entry(of(1, 1), says("", &["a", "b", "c"])));
        entries.push(entry(of(1, 1), result("b")));
        open(&mut entries, of(1, 2), &begin(1, vec![]));
        assert_eq!(kinds(&entries), "SUAR>??");
        open(&mut entries, of(1, 3), &begin(1, vec![]));
        assert_eq!(kinds(&entries), "SUAR>??>");
        // Another turn mends as well: the one before may have been given up.
        let mut entries = entries[..4].to_vec();
        open(&mut entries, of(9, 1), &begin(9, vec![]));
        assert_eq!(kinds(&entries), "SUAR??U");
    }

    #[test]
    fn a_history_is_planted_once_even_if_the_first_attempt_died_in_it() {
        let history = vec![user(0, "one"), says("two", &[])];
        let wanted = begin(1, history);
        let mut whole = Vec::new();
        open(&mut whole, of(1, 1), &wanted);
        assert_eq!(kinds(&whole), "SUAU");
        for cut in 0..=whole.len() {
            let mut entries = whole[..cut].to_vec();
            open(&mut entries, of(1, 2), &wanted);
            let unmarked: String = kinds(&entries).chars().filter(|kind| *kind != '>').collect();
            assert_eq!(unmarked, "SUAU", "cut at {cut}");
        }
        assert!(own_part(&whole, of(1, 1), &wanted.user).is_empty());
        whole.push(entry(of(1, 1), says("three", &[])));
        assert_eq!(own_part(&whole, of(1, 1), &wanted.user).len(), 1);
    }
}
