//! Messages that are changed or taken back by the people who wrote them.

use proto::command::{self, Parsed};
use proto::event::MessageEvent;
use proto::id::Seq;
use proto::lease::{Burst, Lease, More, Phase, Turn, Waiting};
use proto::outbound::Kind;
use proto::receipt::{Decided, Fact, Fate, Refusal};
use proto::turn::{StopReason, TurnKind};

use crate::messages::waiting;
use crate::policy::Edits;
use crate::session::Step;
use crate::wording;

impl Step<'_> {
    /// What waits is replaced in its place. What runs already goes on, hears of it, or is stopped, as the operator chose.
    pub(crate) fn edit(&mut self, seq: Seq, event: &MessageEvent) {
        let decision = if !self.session.holds(&event.id) {
            Decided::TooLate
        } else if !self.session.is_by(&event.id, &event.user.id) {
            let (waiting, text) = (waiting(seq, event), wording::refused(Refusal::NotYours, 0));
            self.say(seq, Kind::Notice, &waiting.origin, text);
            Decided::Refused { reason: Refusal::NotYours }
        } else if !is_for_agent(event) {
            // A command is never words for a model, also not by way of an edit.
            let (waiting, text) = (waiting(seq, event), wording::command_in_command(&event.text));
            self.say(seq, Kind::Notice, &waiting.origin, text);
            Decided::Refused { reason: Refusal::NotNow }
        } else if self.replace(seq, &event.id) {
            Decided::Edited
        } else if self.leads(&event.id) {
            self.edit_of_turn(waiting(seq, event))
        } else {
            Decided::TooLate
        };
        self.fact(Fact::Decided { seq, message: event.id.clone(), decision });
    }

    fn replace(&mut self, seq: Seq, message: &str) -> bool {
        for waiting in held(self.lease()) {
            if waiting.kind != TurnKind::Chat {
                continue;
            }
            if waiting.origin.message == message {
                waiting.edited = Some(seq);
                return true;
            }
            if let Some(more) = waiting.more.iter_mut().find(|more| more.message == message) {
                more.seq = seq;
                return true;
            }
        }
        false
    }

    /// The running turn is about what was edited.
    fn edit_of_turn(&mut self, edit: Waiting) -> Decided {
        let room = self.room_for_steer();
        let Phase::Running { turn, .. } = &mut self.session.lease.phase else {
            return Decided::TooLate;
        };
        match self.policy.edits {
            _ if turn.kind != TurnKind::Chat => Decided::TooLate,
            Edits::Steer if room => {
                let seq = edit.seq;
                turn.steers.push(edit);
                self.tell_of_steer(seq);
                Decided::Steered
            }
            Edits::Ignore | Edits::Steer => Decided::TooLate,
            Edits::Interrupt => {
                // It keeps its place before everything that came after it.
                self.lease().queue.insert(0, edit);
                self.stop_turn(StopReason::Message);
                Decided::Interrupted
            }
        }
    }

    /// A message is taken back: it leaves the queue; a turn that it leads is stopped only if the operator chose so.
    pub(crate) fn withdrawal(&mut self, seq: Seq, message: &str, user: &str) {
        let decision = if self.session.holds(message) && !self.session.is_by(message, user) {
            Decided::Refused { reason: Refusal::NotYours }
        } else if self.take_back(message) {
            Decided::Withdrawn
        } else if self.leads(message) && self.policy.edits == Edits::Interrupt {
            self.stop_turn(StopReason::Withdrawn);
            Decided::Withdrawn
        } else {
            Decided::TooLate
        };
        self.fact(Fact::Decided { seq, message: message.to_owned(), decision });
    }

    /// Takes a message out of what waits, or ends a turn that has not begun. Says whether there was one.
    pub(crate) fn take_back(&mut self, message: &str) -> bool {
        if let Some(at) =
            self.lease().queue.iter().position(|waiting| waiting.origin.message == message)
        {
            let taken = self.lease().queue.remove(at);
            self.close(taken.seq, &taken.origin);
            self.settled(message, Fate::Withdrawn);
            if let Some(rest) = without_lead(taken) {
                self.lease().queue.insert(at, rest);
            }
            return true;
        }
        match self.session.lease.phase.clone() {
            Phase::Collecting { waiting } if waiting.origin.message == message => {
                self.close(waiting.seq, &waiting.origin);
                self.settled(message, Fate::Withdrawn);
                match without_lead(waiting) {
                    Some(rest) => self.session.lease.phase = Phase::Collecting { waiting: rest },
                    None => self.next(0),
                }
                true
            }
            Phase::Starting { turn } if turn.origin.message == message => {
                self.withdraw(Fate::Withdrawn);
                match without_lead(as_waiting(turn)) {
                    Some(rest) => self.start(rest, 0),
                    None => self.next(0),
                }
                true
            }
            Phase::Idle
            | Phase::Collecting { .. }
            | Phase::Starting { .. }
            | Phase::Running { .. }
            | Phase::Stopping { .. } => self.leave_out(message),
        }
    }

    /// Takes a message out of what it belongs to.
    fn leave_out(&mut self, message: &str) -> bool {
        let mut found = None;
        for waiting in held(self.lease()) {
            if let Some(at) = waiting.more.iter().position(|more| more.message == message) {
                let more = waiting.more.remove(at);
                found = Some((more.seq, more.origin(&waiting.origin)));
            }
        }
        let Some((seq, origin)) = found else { return false };
        self.close(seq, &origin);
        self.settled(message, Fate::Withdrawn);
        true
    }

    /// Whether the turn in progress is about a message.
    pub(crate) fn leads(&self, message: &str) -> bool {
        self.session.lease.phase.turn().is_some_and(|turn| turn.origin.message == message)
    }
}

/// Everything that waits: what is being collected, and the queue.
fn held(lease: &mut Lease) -> impl Iterator<Item = &mut Waiting> {
    let collecting = match &mut lease.phase {
        Phase::Collecting { waiting } => Some(waiting),
        Phase::Idle | Phase::Starting { .. } | Phase::Running { .. } | Phase::Stopping { .. } => {
            None
        }
    };
    collecting.into_iter().chain(&mut lease.queue)
}

/// Whether the words are for the agent, and not a command that is carried out when it comes.
fn is_for_agent(event: &MessageEvent) -> bool {
    match event.parsed() {
        Parsed::Text => true,
        Parsed::Command(command) => {
            command.spec.takes_prompt()
                && !command.args.is_empty()
                && matches!(command::parse(command.args), Parsed::Text)
        }
    }
}

/// What is left when its leading message is taken back: the one after it leads then.
fn without_lead(waiting: Waiting) -> Option<Waiting> {
    let mut more = waiting.more.into_iter();
    let next = more.next()?;
    let old = waiting.origin.address.clone();
    let origin = next.origin(&waiting.origin);
    let rest = more.map(|more| {
        let address = more.address.unwrap_or_else(|| old.clone());
        More { address: (address != origin.address).then_some(address), ..more }
    });
    Some(Waiting { seq: next.seq, edited: None, more: rest.collect(), origin, ..waiting })
}

/// What a turn that has not begun was made of.
fn as_waiting(turn: Turn) -> Waiting {
    Waiting {
        seq: Seq::new(turn.id.get()),
        edited: None,
        more: turn.more,
        burst: Burst::Single,
        kind: turn.kind,
        origin: turn.origin,
        accepted_at_ms: turn.accepted_at_ms,
        answers: false,
    }
}
