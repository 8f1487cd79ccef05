//! A session with a clock of its own, and short ways to say what happens to it.
#![allow(
    unused_imports,
    dead_code,
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "each test file uses a part of the kit"
)]

mod inputs;

pub use self::inputs::media;

use proto::activity::Activity;
use proto::event::{Address, BusyMode, MessageEvent, User};
use proto::id::{AskId, Attempt, Epoch, ProcessId, Seq, TurnId};
use proto::lease::{Effect, Phase, Waiting};
use proto::outbound::{Kind, Outbound};
use proto::receipt::{Decided, Fact, Fate};
use proto::session::{ChatKind, SessionKey, SessionParts};
use proto::turn::{
    AskKind, BeatTurn, Claim, ClaimReply, Control, News, Outcome, TurnRef, TurnReport, Usage,
};
use scheduler_core::{Input, Policy, Session, Signal, Time};

pub const W1: ProcessId = ProcessId::new(1);
pub const W2: ProcessId = ProcessId::new(2);

pub fn key() -> SessionKey {
    SessionKey::new(SessionParts {
        platform: "test",
        kind: ChatKind::Dm,
        chat: "c",
        thread: None,
        participant: None,
    })
}

pub fn event(seq: u64, text: &str) -> MessageEvent {
    MessageEvent {
        id: format!("m{seq}"),
        session: key(),
        address: Address {
            platform: "test".into(),
            account: "a".into(),
            chat: "c".into(),
            kind: ChatKind::Dm,
            thread: None,
        },
        user: User { id: "u".into(), name: None },
        text: text.into(),
        media: Vec::new(),
        reply_to: None,
        mode: None,
        history: Vec::new(),
        admission: proto::access::Admission::default(),
        accepted_at_ms: 1_000 * seq,
    }
}

/// A session as its owner drives it: each step is written, its effects go out, its signals are collected.
#[derive(Clone, Debug)]
pub struct Story {
    pub session: Session,
    pub policy: Policy,
    pub now: Time,
    pub last_seq: u64,
    pub effects: Vec<Effect>,
    pub signals: Vec<Signal>,
    /// What became of each message, in the order in which it was said.
    pub fates: Vec<(String, Fate)>,
}

impl Story {
    pub fn new() -> Self {
        Self::with(Policy::default())
    }

    pub fn with(policy: Policy) -> Self {
        let now = Time::from_ms(1_000_000);
        let session = Session::new(key(), Epoch::new(1), now);
        Self {
            session,
            policy,
            now,
            last_seq: 0,
            effects: Vec::new(),
            signals: Vec::new(),
            fates: Vec::new(),
        }
    }

    pub fn input(&mut self, input: &Input) -> &mut Self {
        self.session.effects_are_out();
        self.signals.clear();
        let _ = self.session.step(&self.policy, self.now, input, &mut self.signals);
        assert_eq!(self.session.check(&self.policy), Ok(()));
        self.effects = self.session.lease.effects.clone();
        self.fates.extend(self.signals.iter().filter_map(|signal| match signal {
            Signal::Fact(Fact::Settled { message, fate, .. }) => Some((message.clone(), *fate)),
            _ => None,
        }));
        self
    }

    pub fn seq(&mut self) -> Seq {
        self.last_seq += 1;
        Seq::new(self.last_seq)
    }

    /// A person writes; the message's place is the next one.
    pub fn says(&mut self, text: &str) -> &mut Self {
        let seq = self.seq();
        self.input(&Input::Message { seq, event: Box::new(event(seq.get(), text)) })
    }

    pub fn says_in(&mut self, mode: BusyMode, text: &str) -> &mut Self {
        let seq = self.seq();
        let event = MessageEvent { mode: Some(mode), ..event(seq.get(), text) };
        self.input(&Input::Message { seq, event: Box::new(event) })
    }

    pub fn of(&self, turn: u64, attempt: u64) -> TurnRef {
        TurnRef { sid: self.session.sid(), turn: TurnId::new(turn), attempt: Attempt::new(attempt) }
    }

    pub fn claims(&mut self, worker: ProcessId, turn: u64, attempt: u64) -> &mut Self {
        let claim = Claim { of: self.of(turn, attempt), worker };
        self.input(&Input::Claim(claim))
    }

    pub fn reports(&mut self, worker: ProcessId, turn: u64, attempt: u64, news: News) -> &mut Self {
        let seq = self.seq();
        let report = TurnReport { of: self.of(turn, attempt), worker, news };
        self.input(&Input::Report { seq, report })
    }

    pub fn finishes(
        &mut self,
        worker: ProcessId,
        turn: u64,
        attempt: u64,
        outcome: Outcome,
    ) -> &mut Self {
        self.reports(worker, turn, attempt, finished(outcome))
    }

    pub fn beats(
        &mut self,
        worker: ProcessId,
        turn: u64,
        attempt: u64,
        activity: Activity,
    ) -> &mut Self {
        let of = self.of(turn, attempt);
        let turn = BeatTurn {
            of,
            activity: Some(activity),
            steers: Vec::new(),
            seen: Vec::new(),
            answers: Vec::new(),
        };
        self.input(&Input::Beat { worker, turn })
    }

    pub fn asks(&mut self, worker: ProcessId, turn: u64, attempt: u64, number: u32) -> &mut Self {
        self.asks_by_rule(worker, (turn, attempt, number), None)
    }

    /// The same, where an approval for more than this once covers what `rule` says.
    pub fn asks_by_rule(
        &mut self,
        worker: ProcessId,
        (turn, attempt, number): (u64, u64, u32),
        rule: Option<&str>,
    ) -> &mut Self {
        let news = News::Asked {
            ask: ask(turn, attempt, number),
            text: "rm -rf?".into(),
            kind: AskKind::Approval,
            rule: rule.map(str::to_owned),
        };
        self.reports(worker, turn, attempt, news)
    }

    /// A turn wants an answer in words.
    pub fn wonders(
        &mut self,
        worker: ProcessId,
        turn: u64,
        attempt: u64,
        number: u32,
    ) -> &mut Self {
        let ask = ask(turn, attempt, number);
        let news =
            News::Asked { ask, text: "which one?".into(), kind: AskKind::Question, rule: None };
        self.reports(worker, turn, attempt, news)
    }

    pub fn after(&mut self, ms: u64) -> &mut Self {
        self.now = self.now.after(ms);
        self.input(&Input::Tick)
    }

    /// `idle`, `starting 1.1`, `running 1.1`, `collecting 1`: the phase with turn and attempt, and the queue behind it. What
    /// belongs together is joined: `running 1.1 + 2&3 4`.
    pub fn state(&self) -> String {
        let joined = |waiting: &Waiting| {
            let more = waiting.more.iter().map(|more| format!("&{}", more.seq.get()));
            format!("{}{}", waiting.seq.get(), more.collect::<String>())
        };
        let phase = &self.session.lease.phase;
        let of_turn = || {
            let turn = phase.turn().unwrap();
            format!("{}.{}", turn.id.get(), turn.attempt.get())
        };
        let now = match phase {
            Phase::Idle => return "idle".into(),
            Phase::Collecting { waiting } => format!("collecting {}", joined(waiting)),
            Phase::Starting { .. } => format!("starting {}", of_turn()),
            Phase::Running { .. } => format!("running {}", of_turn()),
            Phase::Stopping { .. } => format!("stopping {}", of_turn()),
        };
        let queue: Vec<_> = self.session.lease.queue.iter().map(joined).collect();
        if queue.is_empty() { now } else { format!("{now} + {}", queue.join(" ")) }
    }

    #[track_caller]
    pub fn is(&mut self, state: &str) -> &mut Self {
        assert_eq!(self.state(), state);
        self
    }

    /// What goes out: `order`, `reply`, or kind and text.
    pub fn sent(&self) -> Vec<String> {
        self.effects
            .iter()
            .map(|effect| match effect {
                Effect::Order => "order".into(),
                Effect::Spawn { session, .. } => format!("spawn {session}"),
                Effect::Cron { seq, .. } => format!("cron {}", seq.get()),
                Effect::JobEnded { due_ms, end } => format!("run {due_ms} {}", end.name()),
                Effect::Roster { outbound, .. } | Effect::Restart { outbound } => {
                    outbound.text.clone()
                }
                Effect::Reply { outbound, .. } => {
                    format!("reply to {}", outbound.reply_to.as_deref().unwrap_or("no one"))
                }
                Effect::Send { outbound: Outbound { kind: Kind::Closed, reply_to, .. } } => {
                    format!("closed {}", reply_to.clone().unwrap())
                }
                Effect::Send { outbound } => outbound.text.clone(),
            })
            .collect()
    }

    #[track_caller]
    pub fn sends(&mut self, expected: &[&str]) -> &mut Self {
        assert_eq!(self.sent(), expected);
        self
    }

    #[track_caller]
    pub fn sends_like(&mut self, part: &str) -> &mut Self {
        assert!(
            self.sent().iter().any(|text| text.contains(part)),
            "{part:?} is not in {:?}",
            self.sent()
        );
        self
    }

    pub fn decision(&self) -> Option<Decided> {
        self.signals.iter().find_map(|signal| match signal {
            Signal::Fact(Fact::Decided { decision, .. }) => Some(*decision),
            _ => None,
        })
    }

    pub fn told(&self) -> Vec<Control> {
        self.signals
            .iter()
            .filter_map(|signal| match signal {
                Signal::Tell { control, .. } => Some(control.clone()),
                _ => None,
            })
            .collect()
    }

    pub fn granted(&self) -> bool {
        self.signals
            .iter()
            .any(|signal| matches!(signal, Signal::Claim(ClaimReply::Granted { .. })))
    }

    pub fn kept(&self) -> bool {
        self.signals.iter().any(|signal| matches!(signal, Signal::Beat { kept: true, .. }))
    }
}

pub fn ask(turn: u64, attempt: u64, number: u32) -> AskId {
    AskId { turn: TurnId::new(turn), attempt: Attempt::new(attempt), number }
}

pub fn finished(outcome: Outcome) -> News {
    News::Finished { outcome, reply: "done".into(), steered: Vec::new(), usage: Usage::default() }
}
