//! One session as browsers see it: what they were sent, for those who come back, and what they must know who come anew.

use std::collections::{BTreeMap, VecDeque};

use proto::command::{self, Parsed};
use proto::event::Address;
use proto::id::TurnId;
use proto::outbound::{Draft, Kind, Outbound};
use proto::receipt::{Decided, Fact, Fate};
use proto::session::SessionKey;
use proto::turn::TurnRef;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::session_key;
use crate::text::Growing;

/// How many turns may speak at once: the session's own, and those that run beside it.
const SPEAKERS_MAX: usize = 32;
/// How many changes of messages may wait for their decision.
const EDITS_MAX: usize = 64;
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
#[derive(Clone, Debug, PartialEq, Eq)]
enum About {
    /// Words of the person that lead a turn: they are in the history only once it has begun.
    User { turn: TurnId, id: String },
    /// A piece of a turn's text: worthless once the turn has ended.
    Draft(TurnId),
    /// A question of a turn: open until the turn has ended.
    Question(TurnId),
    /// The answer of a session that runs beside this one: this one's history never has it.
    Beside,
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
    /// The texts of the turns that run.
    partials: BTreeMap<TurnId, (TurnRef, Growing)>,
    /// What messages are to say by changes that are not decided yet.
    edits: BTreeMap<String, String>,
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

    /// What a new browser must know beside the history: words that wait, open questions, answers from beside, and the texts
    /// so far.
    fn for_newcomers(&self) -> impl Iterator<Item = Frame> {
        let kept = self.log.iter().filter_map(|(about, frame)| match about {
            About::User { .. } | About::Question(_) | About::Beside => {
                Some(Frame { number: None, ..frame.clone() })
            }
            About::Draft(_) | About::Other => None,
        });
        let texts = self.partials.values();
        kept.chain(texts.map(|(of, text)| draft_frame(*of, 0, text.as_str())))
    }

    /// Whether any browser looks. Forgets those that have gone.
    pub(crate) fn is_watched(&mut self) -> bool {
        self.browsers.retain(|browser| !browser.is_closed());
        !self.browsers.is_empty()
    }

    /// The person wrote, here or in another window.
    pub(crate) fn user(&mut self, id: &str, text: &str, turn: TurnId) {
        let about =
            if leads_a_turn(text) { About::User { turn, id: id.to_owned() } } else { About::Other };
        self.send(about, "message", &user_data(id, text, turn));
    }

    /// The person wants a message to say something else. Nothing is shown before it is decided.
    pub(crate) fn edit(&mut self, id: String, text: String) {
        if self.edits.len() < EDITS_MAX || self.edits.contains_key(&id) {
            self.edits.insert(id, text);
        }
    }

    /// Something was decided about the session.
    pub(crate) fn fact(&mut self, fact: &Fact) {
        match fact {
            Fact::State { state, turn, queued } => {
                let turn = turn.map(|turn| turn.to_string());
                let data = json!({ "state": state, "queued": queued, "turn": turn });
                let frame = Frame::unnumbered("state", &data);
                if self.state.as_ref() != Some(&frame) {
                    self.state = Some(frame.clone());
                    self.broadcast(&frame);
                }
            }
            Fact::Decided { seq, message, decision } => {
                self.decided(message, TurnId::from(*seq), *decision);
            }
            Fact::Settled { message, fate, .. } => self.settled(message, *fate),
            Fact::Claimed { .. }
            | Fact::Slow { .. }
            | Fact::Ended { .. }
            | Fact::Retried { .. } => {}
        }
    }

    /// A message, or a change of one, was decided on. `turn` is what it leads, if it leads one.
    fn decided(&mut self, id: &str, turn: TurnId, decision: Decided) {
        let what = match decision {
            Decided::Edited => "edited",
            Decided::Interrupted => "interrupted",
            Decided::Steered => "steered",
            Decided::TooLate => "too_late",
            Decided::Refused { .. } => "refused",
            Decided::Withdrawn
            | Decided::Started
            | Decided::Queued { .. }
            | Decided::RolledBack
            | Decided::Answering
            | Decided::Merged
            | Decided::Collecting
            | Decided::Background
            | Decided::Done => return,
        };
        let text = self.edits.remove(id);
        let applies = matches!(what, "edited" | "interrupted" | "steered");
        if let Some(text) = text.as_ref().filter(|_| applies) {
            self.rewrite(id, text);
        }
        let text = text.filter(|_| applies);
        let data = json!({ "id": id, "turn": turn.to_string(), "what": what, "text": text });
        self.send(About::Other, "decided", &data);
    }

    /// A message has reached its end.
    fn settled(&mut self, id: &str, fate: Fate) {
        self.edits.remove(id);
        let of_it = |about: &About| matches!(about, About::User { id: of, .. } if of == id);
        match fate {
            Fate::Withdrawn => {
                let gone = self.log.iter().filter(|(about, _)| of_it(about));
                self.bytes -= gone.map(|(_, frame)| frame.data.len()).sum::<usize>();
                self.log.retain(|(about, _)| !of_it(about));
            }
            Fate::Answered
            | Fate::Interrupted
            | Fate::Merged
            | Fate::Steered
            | Fate::Cleared
            | Fate::Refused
            | Fate::Done
            | Fate::Parked => {
                let kept = self.log.iter_mut().filter(|(about, _)| of_it(about));
                kept.for_each(|(about, _)| *about = About::Other);
            }
        }
        // The reply says so by itself.
        if fate != Fate::Answered {
            self.send(About::Other, "settled", &json!({ "id": id, "fate": fate }));
        }
    }

    /// Puts other words where a message stands, for those who come later.
    fn rewrite(&mut self, id: &str, text: &str) {
        for (about, frame) in &mut self.log {
            let About::User { turn, id: of } = about else { continue };
            if of == id {
                self.bytes -= frame.data.len();
                frame.data = user_data(id, text, *turn).to_string();
                self.bytes += frame.data.len();
            }
        }
    }

    /// Forgets the state: nobody follows it any more.
    pub(crate) fn forget_state(&mut self) {
        self.state = None;
    }

    /// A piece of text.
    pub(crate) fn draft(&mut self, draft: &Draft) {
        let turn = draft.of.turn;
        if self.partials.len() >= SPEAKERS_MAX && !self.partials.contains_key(&turn) {
            return;
        }
        let (of, text) =
            self.partials.entry(turn).or_insert_with(|| (draft.of, Growing::default()));
        if *of != draft.of {
            (*of, *text) = (draft.of, Growing::default());
        }
        if let Some(from) = text.push(draft.offset, &draft.text) {
            let frame = draft_frame(draft.of, from as u64, &text.as_str()[from..]);
            self.keep(About::Draft(turn), frame);
        }
    }

    /// Something that was delivered.
    pub(crate) fn outbound(&mut self, outbound: &Outbound) {
        let ends = outbound.turn.filter(|_| matches!(outbound.kind, Kind::Reply | Kind::Closed));
        let partial = ends.and_then(|turn| self.end(turn));
        let beside = is_beside(&outbound.session, &outbound.address);
        if outbound.kind == Kind::Closed {
            let turn = outbound.turn.map(|turn| turn.to_string());
            let text = partial.as_ref().map_or("", Growing::as_str);
            let data = json!({ "turn": turn, "text": text, "reply_to": outbound.reply_to });
            self.send(About::Other, "closed", &data);
            return;
        }
        let about = match (outbound.kind, outbound.turn) {
            (Kind::Question, Some(turn)) => About::Question(turn),
            (Kind::Reply, _) if beside => About::Beside,
            _ => About::Other,
        };
        let data = json!({
            "id": outbound.id,
            "kind": outbound.kind,
            "text": outbound.text,
            "turn": outbound.turn.map(|turn| turn.to_string()),
            "ask": outbound.ask,
            "reply_to": outbound.reply_to,
            "replaces": outbound.replaces,
            "beside": beside,
        });
        self.send(about, "message", &data);
    }

    /// Forgets what is only of use while a turn runs, and returns its text so far.
    fn end(&mut self, turn: TurnId) -> Option<Growing> {
        for (about, frame) in &mut self.log {
            if *about == About::Draft(turn) {
                self.bytes -= frame.data.len();
            }
            let of_it = match about {
                About::Question(of) | About::User { turn: of, .. } => *of == turn,
                About::Draft(_) | About::Beside | About::Other => false,
            };
            if of_it {
                *about = About::Other;
            }
        }
        self.log.retain(|(about, _)| *about != About::Draft(turn));
        self.partials.remove(&turn).map(|(_, text)| text)
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

/// Whether something comes from a session that runs beside the chat's own.
fn is_beside(session: &SessionKey, address: &Address) -> bool {
    *session != session_key(&address.chat)
}

fn user_data(id: &str, text: &str, turn: TurnId) -> Value {
    json!({ "id": id, "kind": "user", "text": text, "turn": turn.to_string() })
}

fn draft_frame(of: TurnRef, offset: u64, text: &str) -> Frame {
    let data = json!({
        "turn": of.turn.to_string(), "attempt": of.attempt, "offset": offset, "text": text,
    });
    Frame::unnumbered("draft", &data)
}

#[cfg(test)]
mod tests;
