//! The decision table: what a person's message does, by the state of the session. This is where a message contends for the
//! session's right to run.

use proto::activity::State;
use proto::command::{Name, Parsed};
use proto::event::{BusyMode, MessageEvent};
use proto::id::Seq;
use proto::lease::{Origin, Phase, Waiting};
use proto::outbound::Kind;
use proto::receipt::{Decided, Fact, QueueReason};
use proto::turn::{StopReason, TurnKind};

use crate::session::Step;
use crate::wording;

impl Step<'_> {
    pub(crate) fn message(&mut self, seq: Seq, event: &MessageEvent) {
        let waiting = waiting(seq, event, TurnKind::Chat);
        let decision = match event.parsed() {
            Parsed::Text => self.text(waiting, event.mode.unwrap_or(self.policy.busy_mode)),
            Parsed::Command(command) => match command.spec.name {
                Name::Stop => self.stop(&waiting),
                Name::New => self.reset(Waiting { kind: TurnKind::Reset, ..waiting }),
                Name::Queue | Name::Steer if command.args.is_empty() && event.media.is_empty() => {
                    self.answer(&waiting, wording::usage(command.spec))
                }
                Name::Queue => self.queue_command(waiting),
                Name::Steer => self.steer(waiting),
                Name::Approve => self.approve(&waiting, command.args),
                Name::Deny => self.deny(&waiting, command.args),
                Name::Status => {
                    let text = self.status(event.accepted_at_ms);
                    self.answer(&waiting, text)
                }
                Name::Help => self.answer(&waiting, proto::command::help()),
            },
        };
        self.fact(Fact::Decided { seq, message: event.id.clone(), decision });
    }

    /// An ordinary message: it starts a turn, interrupts one, or waits.
    fn text(&mut self, waiting: Waiting, mode: BusyMode) -> Decided {
        let reason = match &self.session.lease.phase {
            Phase::Idle => {
                self.start(waiting, 0);
                return Decided::Started;
            }
            Phase::Starting { .. } => QueueReason::Starting,
            Phase::Stopping { .. } => QueueReason::Stopping,
            Phase::Running { turn, .. } if !turn.asks.is_empty() => QueueReason::Asking,
            Phase::Running { .. } if mode == BusyMode::Queue => QueueReason::Asked,
            Phase::Running { turn, .. } if turn.depth >= self.policy.interrupt_depth => {
                QueueReason::Depth
            }
            Phase::Running { .. } => match self.session.live.doing() {
                Some(State::Delegating) => QueueReason::Delegating,
                Some(State::Compressing) => QueueReason::Compressing,
                _ => return self.interrupt(waiting),
            },
        };
        self.enqueue(waiting, reason, false)
    }

    fn interrupt(&mut self, waiting: Waiting) -> Decided {
        let (seq, origin) = (waiting.seq, waiting.origin.clone());
        if !self.push(waiting) {
            return Decided::Refused;
        }
        self.stop_turn(StopReason::Message);
        self.acknowledge(seq, &origin, wording::decided(Decided::Interrupted, 1));
        Decided::Interrupted
    }

    /// `/queue`: never disturbs the turn.
    fn queue_command(&mut self, waiting: Waiting) -> Decided {
        if self.session.is_idle() {
            self.start(waiting, 0);
            return Decided::Started;
        }
        self.enqueue(waiting, QueueReason::Asked, true)
    }

    /// `/steer`: a hint for the running turn, or a message where none runs.
    fn steer(&mut self, waiting: Waiting) -> Decided {
        let limit = self.policy.queue_limit;
        let reason = match &mut self.session.lease.phase {
            Phase::Idle => {
                self.start(waiting, 0);
                return Decided::Started;
            }
            Phase::Running { turn, .. } if turn.steers.len() < limit => {
                let (seq, origin) = (waiting.seq, waiting.origin.clone());
                turn.steers.push(waiting);
                self.tell_of_steer(seq);
                self.say(seq, Kind::Ack, &origin, wording::decided(Decided::Steered, 0));
                return Decided::Steered;
            }
            Phase::Running { .. } => QueueReason::Asked,
            Phase::Starting { .. } => QueueReason::Starting,
            Phase::Stopping { .. } => QueueReason::Stopping,
        };
        self.enqueue(waiting, reason, true)
    }

    /// Puts a message at the end of the queue and says so; `asked` acknowledgements are always sent.
    fn enqueue(&mut self, waiting: Waiting, reason: QueueReason, asked: bool) -> Decided {
        let (seq, origin) = (waiting.seq, waiting.origin.clone());
        if !self.push(waiting) {
            return Decided::Refused;
        }
        let decision = Decided::Queued { reason };
        let text = wording::decided(decision, self.session.lease.queue.len());
        if asked || reason == QueueReason::Asking {
            self.say(seq, Kind::Ack, &origin, text);
        } else {
            self.acknowledge(seq, &origin, text);
        }
        decision
    }

    /// Takes a place in the queue, or refuses it aloud.
    fn push(&mut self, waiting: Waiting) -> bool {
        if self.session.lease.queue.len() >= self.policy.queue_limit {
            let text = wording::queue_full(self.session.lease.queue.len());
            self.say(waiting.seq, Kind::Notice, &waiting.origin, text);
            self.close(waiting.seq, &waiting.origin);
            return false;
        }
        self.lease().queue.push(waiting);
        true
    }

    /// Acknowledges a message, unless the person was told something only a moment ago.
    fn acknowledge(&mut self, seq: Seq, origin: &Origin, text: String) {
        if self.session.live.may_acknowledge(self.now, self.policy.ack_interval) {
            self.say(seq, Kind::Ack, origin, text);
        }
    }

    /// Answers a command.
    pub(crate) fn answer(&mut self, waiting: &Waiting, text: String) -> Decided {
        self.say(waiting.seq, Kind::Notice, &waiting.origin, text);
        Decided::Done
    }
}

fn waiting(seq: Seq, event: &MessageEvent, kind: TurnKind) -> Waiting {
    Waiting {
        seq,
        kind,
        origin: Origin {
            address: event.address.clone(),
            message: event.id.clone(),
            user: event.user.clone(),
        },
        accepted_at_ms: event.accepted_at_ms,
    }
}
