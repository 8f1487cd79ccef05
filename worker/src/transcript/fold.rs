//! Which part of a long conversation gives way to a summary: the middle. The instructions and the first words stay, so does the
//! request that is being worked on, and so does the newest part; a call is never parted from its result.

use std::sync::Arc;

use proto::id::Seq;
use proto::transcript::{Body, Entry, ToolCall};
use proto::turn::TurnRef;

use super::weight::tokens;

/// First words that are longer than this are part of the summary.
const FIRST_TOKENS_MAX: u64 = 2000;
/// The least that is worth a summary.
const MIDDLE_TOKENS_MIN: u64 = 500;
/// The most of one entry that the summary is made from, bytes.
const ENTRY_BYTES_MAX: usize = 2000;

/// A conversation with the part that gives way.
pub(crate) struct Fold<'a> {
    head: &'a [Arc<Entry>],
    middle: &'a [Arc<Entry>],
    tail: &'a [Arc<Entry>],
    of: TurnRef,
    request: &'a [Seq],
}

impl<'a> Fold<'a> {
    /// Divides a conversation; none if there is nothing to be gained. `keep` is how much of the newest part stays, tokens.
    pub(crate) fn of(
        entries: &'a [Arc<Entry>],
        (of, request): (TurnRef, &'a [Seq]),
        keep: u64,
    ) -> Option<Self> {
        let first = entries.iter().position(|entry| matches!(entry.body, Body::User { .. }));
        let is_short = |at: &usize| tokens(&entries[*at]) <= FIRST_TOKENS_MAX;
        let system = entries.iter().position(|entry| matches!(entry.body, Body::System { .. }));
        let head = first.filter(is_short).or(system).map_or(0, |at| at + 1);
        let mut size = 0;
        let mut tail = entries.len();
        for at in (head..entries.len()).rev() {
            size += tokens(&entries[at]);
            if size > keep {
                break;
            }
            // What belongs together begins with the model's or the person's words.
            let begins = match &entries[at].body {
                Body::Assistant { .. } | Body::Attached { .. } => true,
                Body::User { .. } => {
                    let before = at.checked_sub(1).map(|at| &entries[at].body);
                    !matches!(before, Some(Body::Attached { .. }))
                }
                Body::System { .. }
                | Body::Result { .. }
                | Body::Resumed
                | Body::Compressed { .. }
                | Body::Withdrawn { .. } => false,
            };
            if begins {
                tail = at;
            }
        }
        let (front, tail) = entries.split_at(tail);
        let (head, middle) = front.split_at(head);
        let weight: u64 = middle.iter().map(|entry| tokens(entry)).sum();
        let open = unanswered(middle);
        (weight >= MIDDLE_TOKENS_MIN && !open).then_some(Self { head, middle, tail, of, request })
    }

    /// The part that gives way, as a text to be summed up.
    pub(crate) fn text(&self, bytes: usize) -> String {
        let lines: Vec<String> = self.middle.iter().filter_map(|entry| line(&entry.body)).collect();
        crate::text::shorten(lines.join("\n\n"), bytes)
    }

    /// A summary by rule: what people said, in short, and what the model said last.
    pub(crate) fn by_rule(&self) -> String {
        let mut lines = vec![format!("{} entries were left out. People said:", self.middle.len())];
        for entry in self.middle {
            if let Body::User { text, .. } = &entry.body {
                lines.push(format!("- {}", crate::text::start(text, 200)));
            }
        }
        let said = self.middle.iter().rev().find_map(|entry| match &entry.body {
            Body::Assistant { text, .. } if !text.is_empty() => Some(text),
            Body::Assistant { .. }
            | Body::System { .. }
            | Body::User { .. }
            | Body::Result { .. }
            | Body::Resumed
            | Body::Attached { .. }
            | Body::Compressed { .. }
            | Body::Withdrawn { .. } => None,
        });
        lines.extend(said.map(|text| format!("You said last: {}", crate::text::start(text, 1000))));
        crate::text::shorten(lines.join("\n"), 8000)
    }

    /// The conversation with the summary in the middle's place.
    pub(crate) fn folded(&self, summary: &str) -> Vec<Entry> {
        let mut out: Vec<Entry> = self.head.iter().map(|entry| (**entry).clone()).collect();
        let mut hints = Vec::new();
        for (at, entry) in self.middle.iter().enumerate() {
            match &entry.body {
                Body::User { inputs, .. } if entry.turn == self.of.turn => {
                    if inputs == self.request {
                        let before = at.checked_sub(1).map(|at| &self.middle[at]);
                        let came =
                            before.filter(|entry| matches!(entry.body, Body::Attached { .. }));
                        out.extend(came.map(|entry| (**entry).clone()));
                        out.push((**entry).clone());
                    } else {
                        // A new attempt must know that the hints of this one were taken.
                        hints.extend(inputs);
                    }
                }
                Body::User { .. }
                | Body::System { .. }
                | Body::Assistant { .. }
                | Body::Result { .. }
                | Body::Resumed
                | Body::Attached { .. }
                | Body::Compressed { .. }
                | Body::Withdrawn { .. } => {}
            }
        }
        let text =
            format!("[What happened in between, in short. This is a note to yourself.]\n{summary}");
        let body = Body::User { inputs: hints, text };
        out.push(Entry { turn: self.of.turn, attempt: self.of.attempt, body });
        out.extend(self.tail.iter().map(|entry| (**entry).clone()));
        out
    }
}

fn line(body: &Body) -> Option<String> {
    let short = |text: &str| crate::text::shorten(text.to_owned(), ENTRY_BYTES_MAX);
    match body {
        Body::User { text, .. } => Some(format!("PERSON: {}", short(text))),
        Body::Assistant { text, calls, .. } => {
            let call =
                |call: &ToolCall| format!("\n[calls {} {}]", call.name, short(&call.arguments));
            Some(format!("YOU: {}{}", short(text), calls.iter().map(call).collect::<String>()))
        }
        Body::Result { output, .. } => Some(format!("RESULT: {}", short(output))),
        Body::System { .. }
        | Body::Resumed
        | Body::Attached { .. }
        | Body::Compressed { .. }
        | Body::Withdrawn { .. } => None,
    }
}

fn unanswered(entries: &[Arc<Entry>]) -> bool {
    let mut open = 0_usize;
    for entry in entries {
        match &entry.body {
            Body::Assistant { calls, .. } => open = calls.len(),
            Body::Result { .. } => open = open.saturating_sub(1),
            Body::System { .. }
            | Body::User { .. }
            | Body::Resumed
            | Body::Attached { .. }
            | Body::Compressed { .. }
            | Body::Withdrawn { .. } => {}
        }
    }
    open > 0
}

#[cfg(test)]
mod tests {
    use super::super::opening::tests::{entry, of, result, says, user};
    use super::*;

    fn long(turn: u64, steps: usize) -> Vec<Arc<Entry>> {
        let t = of(turn, 1);
        let words = "words ".repeat(100);
        let mut all = vec![
            entry(of(1, 1), Body::System { text: "s".into() }),
            entry(of(1, 1), user(1, "first")),
        ];
        all.push(entry(of(1, 1), says(&words, &[])));
        all.push(entry(t, user(turn, "the request")));
        for step in 0..steps {
            all.push(entry(t, says(&words, &["a", "b"])));
            all.push(entry(t, result("a")));
            all.push(entry(t, result("b")));
            if step == 1 {
                all.push(entry(t, user(77, "a hint")));
            }
        }
        all
    }

    #[test]
    fn the_middle_gives_way_and_calls_keep_their_results() {
        let entries = long(9, 12);
        let request = [Seq::new(9)];
        for keep in [0, 100, 200, 400, 800] {
            let fold = Fold::of(&entries, (of(9, 1), &request), keep).unwrap();
            let folded: Vec<_> = fold.folded("SUM").into_iter().map(Arc::new).collect();
            let texts: Vec<_> = folded.iter().filter_map(|entry| line(&entry.body)).collect();
            assert_eq!(texts[0], "PERSON: first");
            assert_eq!(texts[1], "PERSON: the request");
            assert!(texts[2].contains("SUM"), "{texts:#?}");
            assert!(
                matches!(&folded[3].body, Body::User { inputs, .. } if inputs == &[Seq::new(77)])
            );
            assert!(!unanswered(&folded));
            assert!(!matches!(folded.get(4).map(|entry| &entry.body), Some(Body::Result { .. })));
            assert!(folded.len() < entries.len(), "{keep}");
            assert!(fold.text(usize::MAX).contains("[calls terminal {}]"));
            assert!(fold.by_rule().contains("a hint"));
        }
    }

    #[test]
    fn what_is_short_or_all_new_stays() {
        let request = [Seq::new(9)];
        assert!(Fold::of(&long(9, 12), (of(9, 1), &request), 100_000).is_none());
        assert!(Fold::of(&long(9, 0), (of(9, 1), &request), 0).is_none());
    }
}
