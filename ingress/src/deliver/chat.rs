//! What waits for one chat: its parcels in order, and the drafts of its running turns, of which only the last state counts.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use proto::event::Address;
use proto::id::{Attempt, TurnId};
use proto::outbound::Draft;
use proto::session::ChatKind;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::adapter::Rate;
use crate::deliver::pace::Pace;
use crate::deliver::reader::Parcel;
use crate::text::Growing;

/// What a chat's one hand is doing.
#[derive(Debug, Default)]
pub(crate) enum Work {
    /// Nothing.
    #[default]
    Idle,
    /// Delivering a parcel.
    Delivering,
    /// Showing a draft, which gives way to a parcel.
    Drafting(CancellationToken),
}

/// How many turns of one chat may show drafts at once (people in a group have sessions of their own).
const PREVIEWS_MAX: usize = 32;
/// For how long a sign of life of a turn counts.
const TYPING_BELIEVED: Duration = Duration::from_secs(8);

/// How many intervals a text that grows no more waits for more before its last words are shown.
const PATIENCE: u32 = 3;

/// The text of a running turn as it is shown.
#[derive(Debug)]
struct Preview {
    /// The last piece, without its text: says which attempt speaks, and where.
    last: Draft,
    text: Growing,
    /// How many bytes of it are new since it was shown.
    new: usize,
    /// When it changed last.
    heard: Instant,
    due: Instant,
}

/// One chat.
#[derive(Debug)]
pub(crate) struct Chat {
    pub(crate) waiting: VecDeque<Parcel>,
    pub(crate) work: Work,
    /// Nothing may be sent before this.
    pub(crate) quiet: Option<Instant>,
    pub(crate) kind: ChatKind,
    /// How fast calls may follow each other.
    pub(crate) pace: Arc<Pace>,
    /// Why nothing can be sent to it, and until when that is believed.
    pub(crate) gone: Option<(Instant, String)>,
    /// Whether a turn works for it, and when that is shown next.
    pub(crate) typing: Typing,
    previews: BTreeMap<TurnId, Preview>,
}

/// The sign that the agent writes.
#[derive(Debug)]
pub(crate) struct Typing {
    /// Until when a turn is believed to work.
    until: Instant,
    due: Instant,
    address: Option<Address>,
}

impl Typing {
    /// A turn has shown that it works.
    pub(crate) fn heard(&mut self, now: Instant, address: &Address) {
        self.until = now + TYPING_BELIEVED;
        self.address = Some(address.clone());
    }

    /// A turn has ended.
    pub(crate) fn stop(&mut self) {
        self.address = None;
    }

    /// Where it is to be shown now; it stays for `lasts`.
    pub(crate) fn take_due(&mut self, now: Instant, lasts: Duration) -> Option<Address> {
        if now >= self.until {
            self.address = None;
        }
        let address = self.address.as_ref().filter(|_| now >= self.due)?;
        self.due = now + lasts;
        Some(address.clone())
    }
}

impl Chat {
    pub(crate) fn new(now: Instant, kind: ChatKind, rate: Rate) -> Self {
        Self {
            waiting: VecDeque::new(),
            work: Work::Idle,
            quiet: None,
            kind,
            pace: Arc::new(Pace::new(rate)),
            gone: None,
            typing: Typing { until: now, due: now, address: None },
            previews: BTreeMap::new(),
        }
    }

    /// Puts a parcel behind the others. A draft that is being shown gives way.
    pub(crate) fn push(&mut self, parcel: Parcel) {
        self.waiting.push_back(parcel);
        if let Work::Drafting(give_way) = &self.work {
            give_way.cancel();
        }
    }

    /// Takes a piece of streamed text along, and shows nothing yet. After a lost piece nothing more of the attempt is shown.
    pub(crate) fn piece(&mut self, now: Instant, draft: Draft) {
        if self.previews.len() >= PREVIEWS_MAX && !self.previews.contains_key(&draft.of.turn) {
            return;
        }
        let last = Draft { text: String::new(), ..draft.clone() };
        let preview = self.previews.entry(draft.of.turn).or_insert_with(|| Preview {
            last: last.clone(),
            text: Growing::default(),
            new: 0,
            heard: now,
            due: now,
        });
        if attempt(&preview.last) != attempt(&draft) {
            // A new attempt begins again, at the pace of the earlier one.
            preview.text = Growing::default();
            preview.new = 0;
        }
        preview.last = last;
        if let Some(from) = preview.text.push(draft.offset, &draft.text) {
            preview.new += preview.text.as_str().len() - from;
            preview.heard = now;
        }
    }

    /// Forgets the drafts of a turn that has ended.
    pub(crate) fn end_preview(&mut self, turn: TurnId) {
        self.previews.remove(&turn);
    }

    /// The whole text so far of a turn whose time has come, if nothing else is to be done.
    pub(crate) fn take_due(
        &mut self,
        now: Instant,
        every: Duration,
        growth: usize,
    ) -> Option<Draft> {
        let free = matches!(self.work, Work::Idle) && self.waiting.is_empty();
        if !free || self.quiet.is_some_and(|until| now < until) {
            return None;
        }
        let due = |preview: &&mut Preview| {
            let enough = preview.new >= growth.max(1) || now >= preview.heard + every * PATIENCE;
            now >= preview.due && preview.new > 0 && enough && !preview.text.as_str().is_empty()
        };
        let preview = self.previews.values_mut().find(due)?;
        preview.due = now + every;
        preview.new = 0;
        Some(Draft { offset: 0, text: preview.text.as_str().to_owned(), ..preview.last.clone() })
    }

    /// Whether there is nothing left to remember.
    pub(crate) fn is_idle(&self, now: Instant) -> bool {
        matches!(self.work, Work::Idle)
            && self.waiting.is_empty()
            && self.previews.is_empty()
            && self.quiet.is_none_or(|until| until <= now)
            && self.gone.as_ref().is_none_or(|(until, _)| *until <= now)
            && self.typing.address.is_none()
            && self.pace.is_rested()
    }
}

const fn attempt(draft: &Draft) -> Attempt {
    draft.of.attempt
}

#[cfg(test)]
mod tests {
    use proto::id::Sid;
    use proto::outbound::{Kind, Outbound};
    use proto::session::{SessionKey, SessionParts};
    use proto::turn::TurnRef;

    use super::*;

    const EVERY: Duration = Duration::from_secs(1);

    fn chat() -> (Chat, Instant) {
        let now = Instant::now();
        (Chat::new(now, ChatKind::Dm, Rate::per_second(1)), now)
    }

    fn piece(turn: u64, attempt: u64, offset: u64, text: &str) -> Draft {
        let parts = SessionParts {
            platform: "p",
            kind: ChatKind::Group,
            chat: "c",
            thread: None,
            participant: Some("u"),
        };
        let (turn, attempt) = (TurnId::new(turn), Attempt::new(attempt));
        Draft {
            of: TurnRef { sid: Sid::new(1), turn, attempt },
            session: SessionKey::new(parts),
            address: Address {
                platform: "p".into(),
                account: "a".into(),
                chat: "c".into(),
                kind: ChatKind::Group,
                thread: None,
            },
            reply_to: "m".into(),
            offset,
            text: text.into(),
        }
    }

    fn parcel() -> Parcel {
        let Draft { session, address, .. } = piece(1, 1, 0, "");
        let outbound = Outbound {
            id: proto::id::OutboundId::of_turn(TurnId::new(1), "reply"),
            session,
            address,
            reply_to: None,
            turn: None,
            attempt: None,
            kind: Kind::Reply,
            text: String::new(),
            ask: None,
            replaces: None,
        };
        let span = tracing::Span::none();
        Parcel { outbound, sequence: 1, age: Duration::ZERO, span }
    }

    #[track_caller]
    fn shows(chat: &mut Chat, now: Instant, expected: Option<&str>) {
        let draft = chat.take_due(now, EVERY, 1);
        assert_eq!(draft.as_ref().map(|draft| draft.text.as_str()), expected);
    }

    #[test]
    fn drafts_are_merged_and_paced() {
        let (mut chat, now) = chat();
        chat.piece(now, piece(1, 1, 0, "one "));
        shows(&mut chat, now, Some("one "));
        chat.piece(now, piece(1, 1, 4, "two "));
        chat.piece(now, piece(1, 1, 8, "three"));
        shows(&mut chat, now, None);
        shows(&mut chat, now + EVERY, Some("one two three"));
        shows(&mut chat, now + EVERY * 2, None);
    }

    #[test]
    fn a_model_that_is_asked_again_replaces_what_it_said() {
        let (mut chat, now) = chat();
        chat.piece(now, piece(1, 1, 0, "Let me see. One, two"));
        shows(&mut chat, now, Some("Let me see. One, two"));
        chat.piece(now, piece(1, 1, 12, "Five"));
        shows(&mut chat, now + EVERY, Some("Let me see. Five"));
    }

    #[test]
    fn a_new_attempt_begins_again_and_turns_do_not_mix() {
        let (mut chat, now) = chat();
        chat.piece(now, piece(1, 1, 0, "first"));
        chat.piece(now, piece(2, 1, 0, "other"));
        chat.piece(now, piece(1, 2, 0, "again"));
        shows(&mut chat, now, Some("again"));
        shows(&mut chat, now, Some("other"));
    }

    #[test]
    fn drafts_give_way_to_parcels_and_end_with_their_turn() {
        let (mut chat, now) = chat();
        chat.piece(now, piece(1, 1, 0, "text"));
        let give_way = CancellationToken::new();
        chat.work = Work::Drafting(give_way.clone());
        chat.push(parcel());
        assert!(give_way.is_cancelled());
        chat.work = Work::Idle;
        shows(&mut chat, now, None);
        chat.waiting.clear();
        chat.end_preview(TurnId::new(1));
        shows(&mut chat, now, None);
        assert!(chat.is_idle(now));
    }

    #[test]
    fn nothing_is_shown_while_the_platform_wants_quiet() {
        let (mut chat, now) = chat();
        chat.quiet = Some(now + EVERY);
        chat.piece(now, piece(1, 1, 0, "text"));
        shows(&mut chat, now, None);
        shows(&mut chat, now + EVERY, Some("text"));
    }

    #[test]
    fn a_little_more_text_waits_for_more_and_is_shown_when_none_comes() {
        let (mut chat, now) = chat();
        let take = |chat: &mut Chat, now| chat.take_due(now, EVERY, 5).map(|draft| draft.text);
        chat.piece(now, piece(1, 1, 0, "12345"));
        assert_eq!(take(&mut chat, now).as_deref(), Some("12345"));
        chat.piece(now + EVERY, piece(1, 1, 5, "678"));
        assert_eq!(take(&mut chat, now + EVERY), None);
        chat.piece(now + EVERY, piece(1, 1, 8, "90"));
        assert_eq!(take(&mut chat, now + EVERY).as_deref(), Some("1234567890"));
        chat.piece(now + EVERY * 2, piece(1, 1, 10, "."));
        assert_eq!(take(&mut chat, now + EVERY * 4), None);
        assert_eq!(take(&mut chat, now + EVERY * 5).as_deref(), Some("1234567890."));
    }

    #[test]
    fn typing_is_shown_again_and_again_while_a_turn_shows_signs_of_life() {
        let (mut chat, now) = chat();
        let address = piece(1, 1, 0, "").address;
        assert_eq!(chat.typing.take_due(now, EVERY), None);
        chat.typing.heard(now, &address);
        assert!(chat.typing.take_due(now, EVERY).is_some());
        assert!(chat.typing.take_due(now, EVERY).is_none());
        assert!(!chat.is_idle(now));
        assert!(chat.typing.take_due(now + EVERY, EVERY).is_some());
        assert!(chat.typing.take_due(now + TYPING_BELIEVED, EVERY).is_none());
        chat.typing.heard(now, &address);
        chat.typing.stop();
        assert!(chat.typing.take_due(now + EVERY * 2, EVERY).is_none());
    }
}
