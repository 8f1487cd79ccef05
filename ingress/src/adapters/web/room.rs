//! One session as browsers see it: what they were sent, for those who come back, and what they must know who come anew.

use std::collections::VecDeque;

use proto::command::{self, Parsed};
use proto::id::TurnId;
use proto::outbound::{Draft, Kind, Outbound};
use proto::receipt::StateName;
use proto::turn::TurnRef;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::text::Growing;

/// How many frames are kept for browsers that come back.
const FRAMES_MAX: usize = 1024;
/// How many bytes of frames are kept.
const BYTES_MAX: usize = 512 * 1024;
/// How many frames a browser may be behind before it is let go; it comes back and resumes.
pub(crate) const BEHIND_MAX: usize = 2 * FRAMES_MAX;

/// One server-sent event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Its place among the frames of its session; none for what is not repeated (a state, a greeting).
    pub(crate) number: Option<u64>,
    pub(crate) event: &'static str,
    pub(crate) data: String,
}

impl Frame {
    fn unnumbered(event: &'static str, data: &Value) -> Self {
        Self { number: None, event, data: data.to_string() }
    }
}

/// What a kept frame is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum About {
    /// Words of the person that lead a turn: they are in the history only once it has begun.
    User(TurnId),
    /// A piece of a turn's text: worthless once the turn has ended.
    Draft(TurnId),
    /// A question of a turn: open until the turn has ended.
    Question(TurnId),
    /// Anything else.
    Other,
}

/// One session.
#[derive(Debug, Default)]
pub(crate) struct Room {
    log: VecDeque<(About, Frame)>,
    bytes: usize,
    next: u64,
    /// The last frame that was forgotten for want of room.
    floor: u64,
    /// The text of the turn that runs.
    partial: Option<(TurnRef, Growing)>,
    state: Option<Frame>,
    browsers: Vec<mpsc::Sender<Frame>>,
}

impl Room {
    /// Lets a browser in. `last` is the last frame that it has seen, if that was one of this room's.
    pub(crate) fn join(&mut self, browser: mpsc::Sender<Frame>, last: Option<u64>) {
        let resumed = last.filter(|last| (self.floor..=self.next).contains(last));
        let hello = json!({ "resumed": resumed.is_some() });
        let mut greeting = vec![Frame {
            number: Some(resumed.unwrap_or(self.next)),
            event: "hello",
            data: hello.to_string(),
        }];
        greeting.extend(self.state.clone());
        match resumed {
            Some(last) => greeting.extend(
                self.log.iter().map(|(_, frame)| frame).filter(|f| f.number > Some(last)).cloned(),
            ),
            None => greeting.extend(self.for_newcomers()),
        }
        // A channel that cannot even hold this belongs to a browser that cannot be helped.
        if greeting.into_iter().all(|frame| browser.try_send(frame).is_ok()) {
            self.browsers.push(browser);
        }
    }

    /// What a new browser must know beside the history: words that wait, open questions, and the text so far.
    fn for_newcomers(&self) -> impl Iterator<Item = Frame> {
        let kept = self.log.iter().filter_map(|(about, frame)| match about {
            About::User(_) | About::Question(_) => Some(Frame { number: None, ..frame.clone() }),
            About::Draft(_) | About::Other => None,
        });
        let partial = self.partial.as_ref().map(|(of, text)| draft_frame(*of, 0, text.as_str()));
        kept.chain(partial)
    }

    /// Whether any browser looks. Forgets those that have gone.
    pub(crate) fn is_watched(&mut self) -> bool {
        self.browsers.retain(|browser| !browser.is_closed());
        !self.browsers.is_empty()
    }

    /// The person wrote, here or in another window.
    pub(crate) fn user(&mut self, id: &str, text: &str, turn: TurnId) {
        let data = json!({ "id": id, "kind": "user", "text": text, "turn": turn.to_string() });
        let about = if leads_a_turn(text) { About::User(turn) } else { About::Other };
        self.send(about, "message", &data);
    }

    /// The session's state.
    pub(crate) fn state(&mut self, state: StateName, queued: usize) {
        let frame = Frame::unnumbered("state", &json!({ "state": state, "queued": queued }));
        if self.state.as_ref() != Some(&frame) {
            self.state = Some(frame.clone());
            self.broadcast(&frame);
        }
    }

    /// Forgets the state: nobody follows it any more.
    pub(crate) fn forget_state(&mut self) {
        self.state = None;
    }

    /// A piece of text.
    pub(crate) fn draft(&mut self, draft: &Draft) {
        let growing = match &mut self.partial {
            Some((of, growing)) if *of == draft.of => growing,
            partial => &mut partial.insert((draft.of, Growing::default())).1,
        };
        let offset = growing.as_str().len() as u64;
        let new = growing.push(draft.offset, &draft.text).to_owned();
        if !new.is_empty() {
            let frame = draft_frame(draft.of, offset, &new);
            self.keep(About::Draft(draft.of.turn), frame);
        }
    }

    /// Something that was delivered.
    pub(crate) fn outbound(&mut self, outbound: &Outbound) {
        let ends = outbound.turn.filter(|_| matches!(outbound.kind, Kind::Reply | Kind::Closed));
        let partial = ends.and_then(|turn| self.end(turn));
        if outbound.kind == Kind::Closed {
            let turn = outbound.turn.map(|turn| turn.to_string());
            let text = partial.as_ref().map_or("", Growing::as_str);
            let data = json!({ "turn": turn, "text": text, "reply_to": outbound.reply_to });
            self.send(About::Other, "closed", &data);
            return;
        }
        let about = match (outbound.kind, outbound.turn) {
            (Kind::Question, Some(turn)) => About::Question(turn),
            _ => About::Other,
        };
        let data = json!({
            "id": outbound.id,
            "kind": outbound.kind,
            "text": outbound.text,
            "turn": outbound.turn.map(|turn| turn.to_string()),
            "ask": outbound.ask,
            "reply_to": outbound.reply_to,
        });
        self.send(about, "message", &data);
    }

    /// Forgets what is only of use while a turn runs, and returns its text so far.
    fn end(&mut self, turn: TurnId) -> Option<Growing> {
        for (about, frame) in &mut self.log {
            if *about == About::Draft(turn) {
                self.bytes -= frame.data.len();
            }
            if *about == About::Question(turn) || *about == About::User(turn) {
                *about = About::Other;
            }
        }
        self.log.retain(|(about, _)| *about != About::Draft(turn));
        self.partial.take_if(|(of, _)| of.turn == turn).map(|(_, text)| text)
    }

    fn send(&mut self, about: About, event: &'static str, data: &Value) {
        self.keep(about, Frame::unnumbered(event, data));
    }

    fn keep(&mut self, about: About, frame: Frame) {
        self.next += 1;
        let frame = Frame { number: Some(self.next), ..frame };
        self.bytes += frame.data.len();
        self.broadcast(&frame);
        self.log.push_back((about, frame));
        while self.log.len() > FRAMES_MAX || self.bytes > BYTES_MAX {
            let Some((_, oldest)) = self.log.pop_front() else { break };
            self.bytes -= oldest.data.len();
            self.floor = oldest.number.unwrap_or(self.floor);
        }
    }

    fn broadcast(&mut self, frame: &Frame) {
        self.browsers.retain(|browser| browser.try_send(frame.clone()).is_ok());
    }
}

/// Whether a turn answers these words, rather than the scheduler alone.
fn leads_a_turn(text: &str) -> bool {
    match command::parse(text) {
        Parsed::Text => true,
        Parsed::Command(command) => command.spec.leads_a_turn(),
    }
}

fn draft_frame(of: TurnRef, offset: u64, text: &str) -> Frame {
    let data = json!({
        "turn": of.turn.to_string(), "attempt": of.attempt, "offset": offset, "text": text,
    });
    Frame::unnumbered("draft", &data)
}

#[cfg(test)]
mod tests {
    use proto::event::Address;
    use proto::id::{Attempt, OutboundId, Sid};
    use proto::session::{ChatKind, SessionKey, SessionParts};

    use super::*;

    fn address() -> (SessionKey, Address) {
        let (platform, kind, chat) = ("web", ChatKind::Dm, "s");
        let parts = SessionParts { platform, kind, chat, thread: None, participant: None };
        let address = Address {
            platform: platform.into(),
            account: "a".into(),
            chat: chat.into(),
            kind,
            thread: None,
        };
        (SessionKey::new(parts), address)
    }

    fn piece(turn: u64, offset: u64, text: &str) -> Draft {
        let (session, address) = address();
        let (turn, attempt) = (TurnId::new(turn), Attempt::FIRST);
        Draft {
            of: TurnRef { sid: Sid::new(1), turn, attempt },
            session,
            address,
            reply_to: "m".into(),
            offset,
            text: text.into(),
        }
    }

    fn outbound(turn: u64, kind: Kind, text: &str) -> Outbound {
        let (session, address) = address();
        Outbound {
            id: OutboundId::of_turn(TurnId::new(turn), "x"),
            session,
            address,
            reply_to: None,
            turn: Some(TurnId::new(turn)),
            attempt: None,
            kind,
            text: text.into(),
            ask: None,
        }
    }

    fn join(room: &mut Room, last: Option<u64>) -> mpsc::Receiver<Frame> {
        let (sender, receiver) = mpsc::channel(BEHIND_MAX);
        room.join(sender, last);
        receiver
    }

    fn events(receiver: &mut mpsc::Receiver<Frame>) -> Vec<(&'static str, Value)> {
        let mut all = Vec::new();
        while let Ok(frame) = receiver.try_recv() {
            all.push((frame.event, serde_json::from_str(&frame.data).unwrap()));
        }
        all
    }

    #[test]
    fn a_browser_that_comes_back_gets_what_it_missed() {
        let mut room = Room::default();
        let mut first = join(&mut room, None);
        room.user("m1", "hi", TurnId::new(1));
        room.draft(&piece(1, 0, "one "));
        let seen = std::iter::from_fn(|| first.try_recv().ok()).last().unwrap().number;
        drop(first);
        room.draft(&piece(1, 4, "two"));
        room.state(StateName::Running, 0);
        let mut back = join(&mut room, seen);
        let missed = events(&mut back);
        assert_eq!(missed[0], ("hello", json!({ "resumed": true })));
        assert_eq!(missed[1].0, "state");
        assert_eq!((missed[2].0, &missed[2].1["text"]), ("draft", &json!("two")));
        assert_eq!(missed.len(), 3);
    }

    #[test]
    fn a_new_browser_gets_what_the_history_does_not_have() {
        let mut room = Room::default();
        room.user("m1", "hi", TurnId::new(1));
        room.draft(&piece(1, 0, "so "));
        room.draft(&piece(1, 3, "far"));
        room.outbound(&outbound(1, Kind::Question, "may I?"));
        room.outbound(&outbound(1, Kind::Notice, "still working"));
        let mut new = join(&mut room, None);
        let seen: Vec<_> = events(&mut new)
            .into_iter()
            .map(|(event, data)| (event, data["text"].clone()))
            .collect();
        let expected = [
            ("hello", Value::Null),
            ("message", json!("hi")),
            ("message", json!("may I?")),
            ("draft", json!("so far")),
        ];
        assert_eq!(seen, expected);
        room.outbound(&outbound(1, Kind::Reply, "done"));
        let mut later = join(&mut room, None);
        assert_eq!(events(&mut later).len(), 1, "the history has all of it now");
    }

    #[test]
    fn a_closed_turn_says_what_was_shown_and_forgets_its_drafts() {
        let mut room = Room::default();
        let mut browser = join(&mut room, None);
        room.draft(&piece(1, 0, "half an"));
        room.outbound(&outbound(1, Kind::Closed, ""));
        let (event, data) = events(&mut browser).pop().unwrap();
        assert_eq!((event, &data["text"]), ("closed", &json!("half an")));
        let mut back = join(&mut room, Some(0));
        let replayed: Vec<_> = events(&mut back).into_iter().map(|(event, _)| event).collect();
        assert_eq!(replayed, ["hello", "closed"]);
    }

    #[test]
    fn what_is_kept_is_bounded_and_too_old_a_browser_begins_anew() {
        let mut room = Room::default();
        for n in 0..2 * FRAMES_MAX {
            room.user(&n.to_string(), "x", TurnId::new(1));
        }
        assert_eq!(room.log.len(), FRAMES_MAX);
        let (_, hello) = events(&mut join(&mut room, Some(1))).remove(0);
        assert_eq!(hello, json!({ "resumed": false }));
        room.user("big", &"x".repeat(BYTES_MAX), TurnId::new(1));
        assert!(room.bytes <= BYTES_MAX);
        assert_eq!(room.bytes, room.log.iter().map(|(_, frame)| frame.data.len()).sum::<usize>());
        let (_, hello) = events(&mut join(&mut room, Some(u64::MAX))).remove(0);
        assert_eq!(hello, json!({ "resumed": false }), "a number of the future is not ours");
    }

    #[test]
    fn a_browser_that_does_not_read_is_let_go() {
        let mut room = Room::default();
        let _deaf = join(&mut room, None);
        for n in 0..BEHIND_MAX + 1 {
            room.user(&n.to_string(), "x", TurnId::new(1));
        }
        assert!(!room.is_watched());
    }
}
