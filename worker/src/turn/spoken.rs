//! The visible text of a turn: what its reply will say, and what of it has been shown as drafts.

use std::time::Duration;

use proto::event::Address;
use proto::outbound::Draft;
use proto::session::SessionKey;
use proto::turn::TurnRef;
use tokio::time::Instant;

/// The least time between two drafts of a turn.
const PACE: Duration = Duration::from_millis(30);
/// What stands between two segments.
const BREAK: &str = "\n\n";

/// Where drafts of a turn go.
#[derive(Clone, Debug)]
pub(super) struct Stage {
    pub(super) of: TurnRef,
    pub(super) session: SessionKey,
    pub(super) address: Address,
    /// The message that the turn answers.
    pub(super) reply_to: String,
}

/// The text: one segment for each model call that said something.
#[derive(Debug, Default)]
pub(super) struct Spoken {
    text: String,
    /// Where the current segment begins.
    segment: usize,
    /// How much has been shown.
    shown: usize,
    shown_at: Option<Instant>,
}

impl Spoken {
    /// Adds a whole segment that was stored before.
    pub(super) fn resume(&mut self, text: &str) {
        self.begin();
        self.push(text);
    }

    /// A new segment begins.
    pub(super) const fn begin(&mut self) {
        self.segment = self.text.len();
    }

    /// Adds words to the current segment.
    pub(super) fn push(&mut self, words: &str) {
        if words.is_empty() {
            return;
        }
        if self.segment == self.text.len() && self.segment > 0 {
            self.text += BREAK;
            self.segment = self.text.len();
        }
        self.text += words;
    }

    /// Takes the current segment back: its model call failed and is made again. What was shown of it is shown anew.
    pub(super) fn take_back(&mut self) {
        self.text.truncate(self.segment);
        if self.text.ends_with(BREAK) && self.segment == self.text.len() {
            self.text.truncate(self.segment - BREAK.len());
        }
        self.begin();
        self.shown = self.shown.min(self.text.len());
    }

    /// The words of the current segment.
    pub(super) fn segment(&self) -> &str {
        &self.text[self.segment..]
    }

    /// The whole text.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Returns when there is something to show and it is time to; never if there is nothing.
    pub(super) async fn due(&self) {
        if self.shown == self.text.len() {
            return std::future::pending().await;
        }
        if let Some(at) = self.shown_at {
            tokio::time::sleep_until(at + PACE).await;
        }
    }

    /// What has not been shown, as a draft; it counts as shown from now on.
    pub(super) fn draft(&mut self, stage: &Stage) -> Option<Draft> {
        let text = &self.text[self.shown..];
        if text.is_empty() {
            return None;
        }
        let draft = Draft {
            of: stage.of,
            session: stage.session.clone(),
            address: stage.address.clone(),
            reply_to: stage.reply_to.clone(),
            offset: u64::try_from(self.shown).unwrap_or(u64::MAX),
            text: text.to_owned(),
        };
        self.shown = self.text.len();
        self.shown_at = Some(Instant::now());
        Some(draft)
    }
}

#[cfg(test)]
mod tests {
    use proto::session::ChatKind;

    use super::*;
    use crate::transcript::tests::of;
    use crate::turn::prompt;

    fn stage() -> Stage {
        let event = prompt::tests::event(ChatKind::Dm, "");
        Stage { of: of(1, 1), session: event.session, address: event.address, reply_to: event.id }
    }

    #[test]
    fn drafts_are_pieces_of_the_text_and_segments_are_set_apart() {
        let (mut spoken, stage) = (Spoken::default(), stage());
        spoken.resume("stored");
        spoken.begin();
        let mut seen = String::new();
        for words in ["on", "e", ""] {
            spoken.push(words);
            if let Some(draft) = spoken.draft(&stage) {
                assert_eq!(draft.offset, seen.len() as u64);
                seen += &draft.text;
            }
        }
        assert_eq!(spoken.segment(), "one");
        spoken.begin();
        assert_eq!(spoken.segment(), "");
        spoken.push("two");
        seen += &spoken.draft(&stage).unwrap().text;
        assert_eq!(seen, "stored\n\none\n\ntwo");
        assert_eq!(spoken.text(), seen);
        assert!(spoken.draft(&stage).is_none());
    }

    #[test]
    fn a_segment_that_is_taken_back_is_shown_anew() {
        let (mut spoken, stage) = (Spoken::default(), stage());
        spoken.push("one");
        spoken.begin();
        spoken.push("tw");
        assert!(spoken.draft(&stage).is_some());
        spoken.take_back();
        assert_eq!(spoken.text(), "one");
        spoken.push("three");
        let draft = spoken.draft(&stage).unwrap();
        assert_eq!((draft.offset, draft.text.as_str()), (3, "\n\nthree"));
        spoken.begin();
        spoken.take_back();
        assert_eq!(spoken.text(), "one\n\nthree");
    }

    #[tokio::test(start_paused = true)]
    async fn drafts_keep_their_distance() {
        let (mut spoken, stage) = (Spoken::default(), stage());
        spoken.push("a");
        spoken.due().await;
        assert!(spoken.draft(&stage).is_some());
        let shown = Instant::now();
        spoken.push("b");
        spoken.due().await;
        assert!(shown.elapsed() >= PACE);
    }
}
