//! The decision table: what a person's message does, by the state of the session. This is where a message contends for the
//! session's right to run.

use proto::activity::State;
use proto::command::{self, Bypass, Command, Control, Conversation, Name, Parsed};
use proto::event::{BusyMode, MessageEvent};
use proto::id::Seq;
use proto::lease::{Burst, Last, Origin, Phase, Waiting};
use proto::outbound::Kind;
use proto::receipt::{Decided, Fact, Fate, QueueReason, Refusal};
use proto::turn::{StopReason, TurnKind};

use crate::session::Step;
use crate::wording;

impl Step<'_> {
    pub(crate) fn message(&mut self, seq: Seq, event: &MessageEvent) {
        let decision = match event.parsed() {
            Parsed::Text => self.text(waiting(seq, event), event),
            Parsed::Command(command) => match command.spec.name {
                Name::Bypass(name) => self.bypass(waiting(seq, event), name, command.args, event),
                Name::Control(Control::Stop) => self.stop(&waiting(seq, event)),
                Name::Control(Control::New) => {
                    self.reset(Waiting { kind: TurnKind::Reset, ..waiting(seq, event) })
                }
                Name::Message(name) => self.explicit(waiting(seq, event), name, &command, event),
                Name::Conversation(name) => self.conversation(waiting(seq, event), name, &command),
            },
        };
        self.decided(seq, event, decision);
    }

    /// A hook does not allow it: it is answered, and that is its end.
    pub(crate) fn forbidden(&mut self, seq: Seq, event: &MessageEvent, text: &str) {
        let waiting = waiting(seq, event);
        self.say(seq, Kind::Notice, &waiting.origin, text.to_owned());
        self.close(seq, &waiting.origin);
        self.decided(seq, event, Decided::Refused { reason: Refusal::Forbidden });
    }

    /// Remembers a decision and says so to whoever follows.
    pub(crate) fn decided(&mut self, seq: Seq, event: &MessageEvent, decision: Decided) {
        let message = event.id.clone();
        let asks_why = matches!(event.parsed(), Parsed::Command(Command { spec, .. }) if spec.name == Name::Bypass(Bypass::Why));
        if !asks_why {
            self.lease().last = Some(Last { message: message.clone(), decision });
        }
        self.fact(Fact::Decided { seq, message, decision });
        if decision == Decided::Done {
            self.settled(&event.id, Fate::Done);
        } else if matches!(decision, Decided::Refused { .. }) {
            self.settled(&event.id, Fate::Refused);
        }
    }

    /// Commands that answer at once and disturb nothing.
    fn bypass(
        &mut self,
        waiting: Waiting,
        name: Bypass,
        args: &str,
        event: &MessageEvent,
    ) -> Decided {
        let text = match name {
            Bypass::Approve => return self.approve(&waiting, args),
            Bypass::Deny => return self.deny(&waiting, args),
            Bypass::Busy => self.busy(args, event.mode),
            Bypass::Yolo => self.yolo(args),
            Bypass::Extend => self.extend(args),
            Bypass::Status => self.session.status(self.now, event.accepted_at_ms, None),
            Bypass::Agents => return self.agents(&waiting, event.accepted_at_ms),
            Bypass::Cron => return self.cron(&waiting),
            Bypass::Why => wording::why(self.session.lease.last.as_ref()),
            Bypass::Whoami => wording::whoami(&event.user, &event.session),
            Bypass::SetHome => wording::no_home(),
            Bypass::Help => command::help(),
            Bypass::Restart => return self.restart(&waiting),
            Bypass::Start => return Decided::Done,
        };
        self.answer(&waiting, text)
    }

    /// Commands that change the conversation: a turn of their own, and only when nothing else uses it.
    fn conversation(
        &mut self,
        waiting: Waiting,
        name: Conversation,
        command: &Command<'_>,
    ) -> Decided {
        if name == Conversation::Resume && self.session.lease.suspended {
            self.lease().suspended = false;
            return self.answer(&waiting, wording::resumed());
        }
        if !self.session.is_idle() {
            let text = wording::not_now(command.spec);
            self.say(waiting.seq, Kind::Notice, &waiting.origin, text);
            self.close(waiting.seq, &waiting.origin);
            return Decided::Refused { reason: Refusal::NotNow };
        }
        self.start(Waiting { kind: TurnKind::Command, ..waiting }, 0);
        Decided::Started
    }

    /// Messages that say themselves how they want to be taken.
    fn explicit(
        &mut self,
        waiting: Waiting,
        name: command::Message,
        command: &Command<'_>,
        event: &MessageEvent,
    ) -> Decided {
        if command.args.is_empty() && event.media.is_empty() {
            return self.answer(&waiting, wording::usage(command.spec));
        }
        if matches!(command::parse(command.args), Parsed::Command(_)) {
            // A command is never words for a model, and one that runs later would surprise.
            return self.answer(&waiting, wording::command_in_command(command.args));
        }
        let mode = match name {
            command::Message::Background => return self.background(&waiting),
            command::Message::Steer => BusyMode::Steer,
            command::Message::Interrupt => BusyMode::Interrupt,
            command::Message::Queue => BusyMode::Queue,
        };
        let waiting = Waiting { burst: burst_of(event), ..waiting };
        let may_wait = mode == BusyMode::Queue || self.session.is_idle();
        if waiting.burst != Burst::Single && may_wait {
            // The command is the caption of pictures, and more of them may follow.
            return self.burst(waiting);
        }
        self.by_mode(waiting, event, mode, Told::Always)
    }

    /// An ordinary message. What the session has set goes before what its channel has set, and that before the default.
    fn text(&mut self, waiting: Waiting, event: &MessageEvent) -> Decided {
        let burst = burst_of(event);
        if burst != Burst::Single {
            return self.burst(Waiting { burst, ..waiting });
        }
        if event.media.is_empty()
            && let Some(ask) = self.question_for(&event.user.id)
        {
            return self.answered(waiting, ask);
        }
        let mode = self.session.lease.choices.busy.or(event.mode).unwrap_or(self.policy.busy_mode);
        self.by_mode(waiting, event, mode, Told::Sometimes)
    }

    fn by_mode(
        &mut self,
        mut waiting: Waiting,
        event: &MessageEvent,
        mode: BusyMode,
        told: Told,
    ) -> Decided {
        if mode == BusyMode::Collect {
            waiting.burst = Burst::Collected;
            let turn = self.session.lease.phase.turn();
            // Where a decision is open the person is told so, as for any words.
            if turn.is_none_or(|turn| turn.asks.is_empty()) {
                return self.burst(waiting);
            }
        }
        let reason = match &self.session.lease.phase {
            Phase::Idle => {
                self.start(waiting, 0);
                return Decided::Started;
            }
            _ if mode == BusyMode::Reject => return self.refuse(&waiting, Refusal::Busy),
            Phase::Collecting { .. } => QueueReason::Burst,
            Phase::Starting { .. } => QueueReason::Starting,
            Phase::Stopping { .. } => QueueReason::Stopping,
            Phase::Running { turn, .. } if !turn.asks.is_empty() => QueueReason::Asking,
            Phase::Running { .. } => match mode {
                BusyMode::Queue | BusyMode::Collect | BusyMode::Reject => QueueReason::Asked,
                BusyMode::Steer if event.media.is_empty() => match self.steer(waiting) {
                    Ok(decision) => return decision,
                    Err(waiting) => return self.enqueue(*waiting, QueueReason::NotSteered, told),
                },
                BusyMode::Steer => QueueReason::NotSteered,
                BusyMode::Interrupt => match self.demotion() {
                    Some(reason) => reason,
                    None => {
                        return self.interrupt(waiting, Decided::Interrupted, StopReason::Message);
                    }
                },
                BusyMode::Rollback => match self.demotion() {
                    Some(reason) => reason,
                    None => {
                        return self.interrupt(waiting, Decided::RolledBack, StopReason::Rollback);
                    }
                },
            },
        };
        self.enqueue(waiting, reason, told)
    }

    /// Why the running turn is not interrupted by a mere message.
    fn demotion(&self) -> Option<QueueReason> {
        let turn = self.session.lease.phase.turn()?;
        match self.session.live.doing() {
            Some(State::Delegating) => Some(QueueReason::Delegating),
            Some(State::Compressing) => Some(QueueReason::Compressing),
            _ => (turn.depth >= self.policy.interrupt_depth).then_some(QueueReason::Depth),
        }
    }

    fn interrupt(&mut self, waiting: Waiting, decision: Decided, why: StopReason) -> Decided {
        let (seq, origin) = (waiting.seq, waiting.origin.clone());
        if let Err(refused) = self.push(waiting) {
            return refused;
        }
        self.stop_turn(why);
        self.acknowledge(seq, &origin, wording::decided(decision, 1));
        decision
    }

    /// Passes a hint to the running turn; gives it back where too many are on their way.
    fn steer(&mut self, waiting: Waiting) -> Result<Decided, Box<Waiting>> {
        let room = self.room_for_steer();
        let Phase::Running { turn, .. } = &mut self.session.lease.phase else {
            return Err(Box::new(waiting));
        };
        if !room {
            return Err(Box::new(waiting));
        }
        let (seq, origin) = (waiting.seq, waiting.origin.clone());
        turn.steers.push(waiting);
        self.tell_of_steer(seq);
        self.say(seq, Kind::Ack, &origin, wording::decided(Decided::Steered, 0));
        Ok(Decided::Steered)
    }

    /// Whether one more hint can be passed on: those that are not seen must fit into the queue.
    pub(crate) fn room_for_steer(&self) -> bool {
        let lease = &self.session.lease;
        let steers = lease.phase.turn().map_or(0, |turn| turn.steers.len());
        steers + lease.queue.len() < self.policy.queue_limit
    }

    /// Puts a message at the end of the queue and says so.
    fn enqueue(&mut self, waiting: Waiting, reason: QueueReason, told: Told) -> Decided {
        let (seq, origin) = (waiting.seq, waiting.origin.clone());
        if let Err(refused) = self.push(waiting) {
            return refused;
        }
        let decision = Decided::Queued { reason };
        let text = wording::decided(decision, self.session.lease.queue.len());
        if told == Told::Always || reason == QueueReason::Asking {
            self.say(seq, Kind::Ack, &origin, text);
        } else {
            self.acknowledge(seq, &origin, text);
        }
        decision
    }

    /// Takes a place in the queue, or refuses it aloud.
    pub(crate) fn push(&mut self, waiting: Waiting) -> Result<(), Decided> {
        if self.session.lease.queue.len() >= self.policy.queue_limit {
            return Err(self.refuse(&waiting, Refusal::Full));
        }
        self.lease().queue.push(waiting);
        Ok(())
    }

    fn refuse(&mut self, waiting: &Waiting, reason: Refusal) -> Decided {
        let text = wording::refused(reason, self.session.lease.queue.len());
        self.say(waiting.seq, Kind::Notice, &waiting.origin, text);
        self.close(waiting.seq, &waiting.origin);
        Decided::Refused { reason }
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

/// Whether an acknowledgement is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    /// The person asked for exactly this.
    Always,
    /// At most once in a while.
    Sometimes,
}

/// What makes others belong to a message.
fn burst_of(event: &MessageEvent) -> Burst {
    event.burst().map_or(Burst::Single, |album| {
        album.map_or(Burst::Photos, |name| Burst::Album(name.to_owned()))
    })
}

pub(crate) fn waiting(seq: Seq, event: &MessageEvent) -> Waiting {
    Waiting {
        seq,
        edited: None,
        more: Vec::new(),
        burst: Burst::Single,
        kind: TurnKind::Chat,
        origin: Origin {
            address: event.address.clone(),
            message: event.id.clone(),
            user: event.user.clone(),
        },
        accepted_at_ms: event.accepted_at_ms,
        answers: false,
    }
}
