//! More ways in which things happen to a session: other people, pictures, files, edits, hints that were seen.

use proto::activity::{Activity, State};
use proto::event::{Media, MediaKind, MessageEvent, User};
use proto::id::{ProcessId, Seq};
use proto::lease::Turn;
use proto::receipt::{Decided, Fact, Fate};
use proto::turn::{BeatTurn, News, Outcome, Usage};
use scheduler_core::{Input, Signal};

use super::{Story, event};

pub fn media(kind: MediaKind, group: Option<&str>) -> Media {
    Media { url: "u".into(), kind, mime: None, name: None, group: group.map(Into::into) }
}

impl Story {
    /// A person writes something out of the ordinary.
    pub fn writes(&mut self, change: impl FnOnce(&mut MessageEvent)) -> &mut Self {
        let seq = self.seq();
        let mut event = event(seq.get(), "");
        change(&mut event);
        self.input(&Input::Message { seq, event: Box::new(event) })
    }

    pub fn says_as(&mut self, user: &str, text: &str) -> &mut Self {
        self.writes(|event| {
            event.user = User { id: user.into(), name: None };
            event.text = text.into();
        })
    }

    pub fn shows(&mut self, user: &str, group: Option<&str>) -> &mut Self {
        self.writes(|event| {
            event.user = User { id: user.into(), name: None };
            event.media = vec![media(MediaKind::Photo, group)];
        })
    }

    pub fn brings(&mut self, kind: MediaKind) -> &mut Self {
        self.writes(|event| event.media = vec![media(kind, None)])
    }

    pub fn edits(&mut self, message: u64, text: &str) -> &mut Self {
        let seq = self.seq();
        let event = MessageEvent { id: format!("m{message}"), ..event(seq.get(), text) };
        self.input(&Input::Edit { seq, event: Box::new(event) })
    }

    pub fn withdraws(&mut self, message: u64) -> &mut Self {
        let seq = self.seq();
        self.input(&Input::Withdrawal { seq, message: format!("m{message}"), user: "u".into() })
    }

    pub fn hangs_up(&mut self, message: u64) -> &mut Self {
        let seq = self.seq();
        self.input(&Input::Hangup { seq, message: format!("m{message}") })
    }

    /// The worker of a turn beats, doing something, and its model has seen these hints.
    pub fn beats_with(
        &mut self,
        worker: ProcessId,
        (turn, attempt): (u64, u64),
        state: State,
        seen: &[u64],
    ) -> &mut Self {
        let beat = BeatTurn {
            of: self.of(turn, attempt),
            activity: Some(Activity { state, ..Activity::default() }),
            steers: seen.iter().copied().map(Seq::new).collect(),
            seen: seen.iter().copied().map(Seq::new).collect(),
            answers: Vec::new(),
        };
        self.input(&Input::Beat { worker, turn: beat })
    }

    pub fn finishes_having_seen(
        &mut self,
        worker: ProcessId,
        turn: u64,
        seen: &[u64],
    ) -> &mut Self {
        let news = News::Finished {
            outcome: Outcome::Completed,
            reply: "done".into(),
            steered: seen.iter().copied().map(Seq::new).collect(),
            usage: Usage::default(),
        };
        self.reports(worker, turn, 1, news)
    }

    pub fn turn(&self) -> &Turn {
        self.session.lease.phase.turn().expect("a turn")
    }

    /// The inputs of the turn.
    pub fn inputs(&self) -> Vec<u64> {
        self.turn().inputs.iter().map(|seq| seq.get()).collect()
    }

    #[track_caller]
    pub fn was(&mut self, decision: Decided) -> &mut Self {
        assert_eq!(self.decision(), Some(decision));
        self
    }

    /// What became of a message; panics if it had two ends.
    #[track_caller]
    pub fn fate(&self, message: u64) -> Option<Fate> {
        let name = format!("m{message}");
        let mut of = self.fates.iter().filter(|(message, _)| *message == name);
        let fate = of.next().map(|(_, fate)| *fate);
        assert!(of.next().is_none(), "{name} has two ends: {:?}", self.fates);
        fate
    }

    #[track_caller]
    pub fn settles(&mut self, message: u64, fate: Fate) -> &mut Self {
        assert_eq!(self.fate(message), Some(fate), "of m{message}: {:?}", self.fates);
        self
    }

    #[track_caller]
    pub fn is_open(&mut self, message: u64) -> &mut Self {
        assert_eq!(self.fate(message), None);
        self
    }

    pub fn facts(&self) -> Vec<Fact> {
        let of = |signal: &Signal| {
            if let Signal::Fact(fact) = signal { Some(fact.clone()) } else { None }
        };
        self.signals.iter().filter_map(of).collect()
    }
}
