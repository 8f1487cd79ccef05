//! A stored conversation as a model is given it. Whatever is stored, what comes out is valid for a strict provider: each call has
//! exactly one result, in place.

use std::sync::Arc;

use proto::event::Media;
use proto::transcript::{Body, Entry, ToolCall};

use super::OUTCOME_UNKNOWN;
use crate::models::Message;

/// Said for the person when the conversation ends with words of the model that were cut off.
const GO_ON: &str = "(go on)";

/// What the message at a place came with.
type Attachment<'a> = (usize, &'a [Media]);

/// The conversation as messages, and what they came with.
pub(crate) fn rendered(entries: &[Arc<Entry>]) -> (Vec<Message<'_>>, Vec<Attachment<'_>>) {
    let mut attached = Vec::new();
    let mut coming: &[Media] = &[];
    let mut out = Vec::with_capacity(entries.len() + 1);
    let mut open: Vec<&ToolCall> = Vec::new();
    for entry in entries {
        match &entry.body {
            Body::System { text } => out.push(Message::System(text)),
            Body::User { text, .. } => {
                close(&mut out, &mut open);
                if !coming.is_empty() {
                    attached.push((out.len(), std::mem::take(&mut coming)));
                }
                out.push(Message::User(text));
            }
            Body::Assistant { text, calls, .. } => {
                close(&mut out, &mut open);
                if !text.is_empty() || !calls.is_empty() {
                    out.push(Message::Assistant { text, calls });
                    open = calls.iter().collect();
                }
            }
            // A second result of a call, or one without a call, is not for a provider.
            Body::Result { call, output, .. } => {
                if let Some(at) = open.iter().position(|open| open.id == *call) {
                    open.remove(at);
                    out.push(Message::Result { call, output });
                }
            }
            Body::Attached { media } => coming = media,
            // What it stands for was put in its place when it was read.
            Body::Resumed | Body::Compressed { .. } | Body::Withdrawn { .. } => {}
        }
    }
    close(&mut out, &mut open);
    if matches!(out.last(), Some(Message::Assistant { .. })) {
        out.push(Message::User(GO_ON));
    }
    (out, attached)
}

/// Answers the calls that were never answered.
fn close<'a>(out: &mut Vec<Message<'a>>, open: &mut Vec<&'a ToolCall>) {
    let unknown = |call: &'a ToolCall| Message::Result { call: &call.id, output: OUTCOME_UNKNOWN };
    out.extend(open.drain(..).map(unknown));
}

#[cfg(test)]
mod tests {
    use super::super::opening::tests::{entry, of, result, says, user};
    use super::*;

    fn messages(entries: &[Arc<Entry>]) -> Vec<Message<'_>> {
        rendered(entries).0
    }

    /// What a strict provider checks.
    fn valid(messages: &[Message<'_>]) -> Result<(), String> {
        let mut open: Vec<&str> = Vec::new();
        for (at, message) in messages.iter().enumerate() {
            match message {
                Message::Result { call, .. } => match open.iter().position(|id| id == call) {
                    Some(found) => drop(open.remove(found)),
                    None => return Err(format!("{at}: a result without a call: {call}")),
                },
                _ if !open.is_empty() => return Err(format!("{at}: no result for {open:?}")),
                Message::Assistant { text, calls } => {
                    if text.is_empty() && calls.is_empty() {
                        return Err(format!("{at}: empty"));
                    }
                    open = calls.iter().map(|call| call.id.as_str()).collect();
                }
                Message::User("") => return Err(format!("{at}: empty")),
                Message::System(_) | Message::User(_) => {}
            }
        }
        match messages.last() {
            Some(Message::User(_) | Message::Result { .. }) if open.is_empty() => Ok(()),
            last => Err(format!("ends with {last:?}, open {open:?}")),
        }
    }

    #[test]
    fn what_is_sent_is_valid_wherever_a_conversation_was_cut() {
        let (t, u) = (of(1, 1), of(2, 1));
        let whole = [
            entry(t, Body::System { text: "s".into() }),
            entry(t, user(1, "hi")),
            entry(t, says("I look", &["a", "b"])),
            entry(t, result("b")),
            entry(t, result("a")),
            entry(t, result("a")),
            entry(t, user(3, "a hint")),
            entry(t, says("", &["a"])),
            entry(of(1, 2), Body::Resumed),
            entry(of(1, 2), result("a")),
            entry(of(1, 2), says("done", &[])),
            entry(u, user(9, "next")),
            entry(u, says("", &[])),
        ];
        for start in 0..2 {
            for end in 2..=whole.len() {
                let sent = messages(&whole[start..end]);
                assert_eq!(valid(&sent), Ok(()), "{start}..{end}: {sent:?}");
            }
        }
        // Words between a call and its result: the result comes too late to count.
        let mixed = [entry(t, says("", &["a"])), entry(u, user(2, "x")), entry(t, result("a"))];
        let sent = messages(&mixed);
        assert_eq!(valid(&sent), Ok(()));
        assert_eq!(sent[1], Message::Result { call: "a", output: OUTCOME_UNKNOWN });
    }
}
