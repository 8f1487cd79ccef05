//! A session: its lease, what its owner knows beside it, and the one function that changes them.

use proto::id::{Epoch, OutboundId, ProcessId, Seq, Sid, TurnId};
use proto::lease::{Choices, Effect, Lease, Origin, Phase, Turn};
use proto::outbound::{Kind, Outbound};
use proto::receipt::{Fact, Fate, StateName};
use proto::session::SessionKey;
use proto::turn::{Control, TurnRef};

use crate::input::{Input, Signal};
use crate::liveness::Live;
use crate::policy::Policy;
use crate::time::Time;

/// One session. Two with equal state behave equally.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Session {
    /// What is stored.
    pub lease: Lease,
    /// Its id: the hash of its key.
    pub(crate) sid: Sid,
    /// What only this owner knows: when it last heard of the worker, and the like.
    pub(crate) live: Live,
}

impl Session {
    /// A session of which nothing is stored.
    #[must_use]
    pub fn new(session: SessionKey, epoch: Epoch, now: Time) -> Self {
        let lease = Lease {
            session,
            epoch,
            seen: Seq::default(),
            phase: Phase::Idle,
            queue: Vec::new(),
            effects: Vec::new(),
            choices: Choices::default(),
            suspended: false,
            forget: Vec::new(),
            last: None,
            background: Vec::new(),
        };
        Self::restore(lease, now)
    }

    /// A session as it is stored. Everything that was being waited for is waited for anew.
    #[must_use]
    pub fn restore(lease: Lease, now: Time) -> Self {
        Self { sid: lease.session.sid(), lease, live: Live::new(now) }
    }

    /// Its id.
    #[must_use]
    pub const fn sid(&self) -> Sid {
        self.sid
    }

    /// Whether nothing runs, so that nothing but a message can change it.
    #[must_use]
    pub const fn is_idle(&self) -> bool {
        matches!(self.lease.phase, Phase::Idle)
    }

    /// Whether the runs of a scheduled job take place here.
    pub(crate) fn is_of_job(&self) -> bool {
        self.lease.session.job().is_some()
    }

    /// To be called when the lease's effects have been published: they are not published again.
    pub fn effects_are_out(&mut self) {
        self.lease.effects.clear();
    }

    /// Applies one input at `now`. Time passes first: what is due happens before the input is looked at. Returns whether the
    /// lease changed; the signals must wait until it is written.
    #[must_use]
    pub fn step(
        &mut self,
        policy: &Policy,
        now: Time,
        input: &Input,
        signals: &mut Vec<Signal>,
    ) -> bool {
        let seen = input.seq();
        if seen.is_some_and(|seq| seq <= self.lease.seen) {
            return false;
        }
        let before = (seen.is_none()).then(|| self.lease.clone());
        let first = signals.len();
        let state = self.state();
        let mut step = Step { session: self, policy, now, signals };
        step.expire();
        step.apply(input);
        if let Some(seq) = seen {
            self.lease.seen = seq;
        }
        self.one_fate_each(signals, first);
        if self.state() != state {
            signals.push(Signal::Fact(self.state()));
        }
        debug_assert_eq!(self.check(policy), Ok(()));
        before.is_none_or(|before| before != self.lease)
    }

    /// The state in a form that people follow.
    #[must_use]
    pub fn state(&self) -> Fact {
        let state = match self.lease.phase {
            Phase::Idle => StateName::Idle,
            Phase::Collecting { .. } => StateName::Collecting,
            Phase::Starting { .. } => StateName::Starting,
            Phase::Running { .. } => StateName::Running,
            Phase::Stopping { .. } => StateName::Stopping,
        };
        let turn = self.lease.phase.turn().map(|turn| turn.id);
        Fact::State { state, turn, queued: self.lease.queue.len() }
    }
}

/// One application of an input: the session and what it may look at, in one place so that the pieces can be small.
pub(crate) struct Step<'a> {
    pub(crate) session: &'a mut Session,
    pub(crate) policy: &'a Policy,
    pub(crate) now: Time,
    pub(crate) signals: &'a mut Vec<Signal>,
}

impl Step<'_> {
    fn apply(&mut self, input: &Input) {
        match input {
            Input::Message { seq, event } => self.message(*seq, event),
            Input::Refused { seq, event, text } => self.forbidden(*seq, event, text),
            Input::Edit { seq, event } => self.edit(*seq, event),
            Input::Withdrawal { seq, message, user } => self.withdrawal(*seq, message, user),
            Input::Report { seq, report } => self.report(*seq, report),
            Input::Hangup { message, .. } => self.hangup(message),
            Input::Claim(claim) => self.claim(*claim),
            Input::Beat { worker, turn } => self.beat(*worker, turn),
            Input::WorkerGone(worker) => self.worker_gone(*worker),
            Input::Adopt(epoch) => self.adopt(*epoch),
            Input::Unreadable { .. } | Input::Tick => {}
        }
    }

    pub(crate) const fn lease(&mut self) -> &mut Lease {
        &mut self.session.lease
    }

    pub(crate) const fn name(&self, turn: &Turn) -> TurnRef {
        TurnRef { sid: self.session.sid, turn: turn.id, attempt: turn.attempt }
    }

    pub(crate) fn fact(&mut self, fact: Fact) {
        self.signals.push(Signal::Fact(fact));
    }

    /// A message has reached its end.
    pub(crate) fn settled(&mut self, message: &str, fate: Fate) {
        let turn = self
            .session
            .lease
            .phase
            .turn()
            .filter(|turn| turn.origin.message == message)
            .map(|turn| turn.id);
        self.fact(Fact::Settled { message: message.to_owned(), fate, turn });
    }

    pub(crate) fn tell(&mut self, worker: ProcessId, control: Control) {
        self.signals.push(Signal::Tell { worker, control });
    }

    /// Says something to the person who wrote an input.
    pub(crate) fn say(&mut self, seq: Seq, kind: Kind, origin: &Origin, text: String) {
        let outbound = self.outbound(OutboundId::of_input(seq, "ack"), kind, origin, text);
        self.lease().effects.push(Effect::Send { outbound });
    }

    /// Says something about a turn to the person whose message leads it.
    pub(crate) fn say_of_turn(&mut self, turn: &Turn, what: &str, kind: Kind, text: String) {
        let outbound = self.outbound_of_turn(turn, what, kind, text);
        self.lease().effects.push(Effect::Send { outbound });
    }

    pub(crate) fn outbound_of_turn(
        &self,
        turn: &Turn,
        what: &str,
        kind: Kind,
        text: String,
    ) -> Outbound {
        let outbound = self.outbound(OutboundId::of_turn(turn.id, what), kind, &turn.origin, text);
        Outbound { turn: Some(turn.id), attempt: Some(turn.attempt), ..outbound }
    }

    /// Ends what an adapter may still show or wait for because of a message that will get no answer.
    pub(crate) fn close(&mut self, seq: Seq, origin: &Origin) {
        self.close_saying(seq, origin, String::new());
    }

    /// The same, with words for whoever waits for an answer to it.
    pub(crate) fn close_saying(&mut self, seq: Seq, origin: &Origin, text: String) {
        if self.session.is_of_job() {
            // No one waits, and nothing of it was shown.
            return;
        }
        let turn = TurnId::from(seq);
        let mut outbound =
            self.outbound(OutboundId::of_turn(turn, "closed"), Kind::Closed, origin, text);
        outbound.turn = Some(turn);
        self.lease().effects.push(Effect::Send { outbound });
    }

    pub(crate) fn outbound(
        &self,
        id: OutboundId,
        kind: Kind,
        origin: &Origin,
        text: String,
    ) -> Outbound {
        Outbound {
            id,
            session: self.session.lease.session.clone(),
            address: origin.address.clone(),
            // The run of a job has no message in the chat.
            reply_to: (!self.session.is_of_job()).then(|| origin.message.clone()),
            turn: None,
            attempt: None,
            kind,
            text,
            ask: None,
            replaces: None,
        }
    }
}
