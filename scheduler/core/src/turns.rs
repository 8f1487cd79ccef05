//! The life of a turn: ordered, claimed, reported, given to another worker, ended; and what follows it.

use proto::event::Address;
use proto::id::{Attempt, Epoch, OutboundId, ProcessId, Seq};
use proto::job::JobEnd;
use proto::lease::{Ask, Effect, Phase, Turn, Waiting};
use proto::outbound::{Kind, Outbound};
use proto::receipt::{End, Fact, Fate};
use proto::turn::{
    Claim, ClaimReply, Control, Denial, News, Outcome, StopReason, TurnKind, TurnReport,
};

use crate::input::Signal;
use crate::jobs;
use crate::jobs::{LastWord, end_of_job};
use crate::liveness::Live;
use crate::session::Step;
use crate::wording;

impl Step<'_> {
    /// Orders a turn for an input.
    pub(crate) fn start(&mut self, input: Waiting, depth: u8) {
        let suspended = std::mem::take(&mut self.lease().suspended);
        let forget = std::mem::take(&mut self.lease().forget);
        let leading = input.edited.unwrap_or(input.seq);
        self.order(Turn {
            id: input.seq.into(),
            attempt: Attempt::FIRST,
            kind: input.kind,
            inputs: std::iter::once(leading)
                .chain(input.more.iter().map(|more| more.seq))
                .collect(),
            // Each run of a job begins with nothing: what was said in the one before is not its own.
            fresh: (suspended || self.session.is_of_job()) && input.kind != TurnKind::Reset,
            forget,
            more: input.more,
            origin: input.origin,
            depth,
            crashes: 0,
            accepted_at_ms: input.accepted_at_ms,
            steers: Vec::new(),
            asks: Vec::new(),
            answers: Vec::new(),
            notices: 0,
            warned: false,
            extended_ms: 0,
        });
    }

    fn order(&mut self, turn: Turn) {
        self.session.live.begin(self.now);
        self.lease().effects.push(Effect::Order);
        self.lease().phase = Phase::Starting { turn };
    }

    /// Sends the order again: no worker has claimed it for a while, and it may be lost.
    pub(crate) fn reorder(&mut self) {
        self.session.live.begin(self.now);
        self.forget_order();
        self.lease().effects.push(Effect::Order);
    }

    /// Leaves out an order that has not been sent: no one waits for it any more.
    pub(crate) fn forget_order(&mut self) {
        self.lease().effects.retain(|effect| *effect != Effect::Order);
    }

    /// What follows a turn: the queue's head, or nothing.
    pub(crate) fn next(&mut self, depth: u8) {
        if self.session.lease.queue.is_empty() {
            self.session.lease.phase = Phase::Idle;
            self.session.live.rest();
        } else {
            let head = self.lease().queue.remove(0);
            self.start(head, depth);
        }
    }

    /// A worker wants to run an order. It may if the turn waits for a worker, or if it is the one that has it already (the
    /// first answer may have been lost; a worker never starts the same attempt twice).
    pub(crate) fn claim(&mut self, claim: Claim) {
        let epoch = self.session.lease.epoch;
        let answer = match &self.session.lease.phase {
            Phase::Starting { turn } if self.name(turn) == claim.of => {
                let turn = turn.clone();
                self.claimed(turn, claim.worker);
                ClaimReply::Granted { epoch }
            }
            Phase::Running { turn, worker } if self.name(turn) == claim.of => {
                if *worker == claim.worker {
                    ClaimReply::Granted { epoch }
                } else {
                    ClaimReply::Denied { reason: Denial::Taken }
                }
            }
            Phase::Idle
            | Phase::Collecting { .. }
            | Phase::Starting { .. }
            | Phase::Running { .. }
            | Phase::Stopping { .. } => ClaimReply::Denied { reason: Denial::Superseded },
        };
        self.signals.push(Signal::Claim(answer));
    }

    fn claimed(&mut self, turn: Turn, worker: ProcessId) {
        self.fact(Fact::Claimed { turn: turn.id, attempt: turn.attempt, worker });
        self.session.live.begin(self.now);
        self.forget_order();
        let of = self.name(&turn);
        for steer in &turn.steers {
            self.tell(worker, Control::Steer { of, seq: steer.seq });
        }
        self.session.lease.phase = Phase::Running { turn, worker };
    }

    /// Tells the worker of a hint.
    pub(crate) fn tell_of_steer(&mut self, seq: Seq) {
        if let Phase::Running { turn, worker } = &self.session.lease.phase {
            let (worker, of) = (*worker, self.name(turn));
            self.tell(worker, Control::Steer { of, seq });
        }
    }

    /// Tells the worker to stop, and waits for it to say that it has. A stronger reason replaces a weaker one.
    pub(crate) fn stop_turn(&mut self, why: StopReason) {
        let (turn, worker) = match &self.session.lease.phase {
            Phase::Running { turn, worker } => {
                self.session.live.stopping(self.now);
                (turn.clone(), *worker)
            }
            Phase::Stopping { turn, worker, .. } => (turn.clone(), *worker),
            Phase::Idle | Phase::Collecting { .. } | Phase::Starting { .. } => return,
        };
        if is_silent(why) {
            // Nothing more of this turn will be shown, whatever its worker still does.
            self.close_turn(&turn);
        }
        self.tell(worker, Control::Interrupt { of: self.name(&turn), reason: why });
        self.session.lease.phase = Phase::Stopping { turn, worker, why };
    }

    /// A worker reports. What it says of a turn or an attempt that is not the current one no longer counts.
    pub(crate) fn report(&mut self, seq: Seq, report: &TurnReport) {
        let (turn, stopped) = match &self.session.lease.phase {
            Phase::Running { turn, worker }
                if (self.name(turn), *worker) == (report.of, report.worker) =>
            {
                (turn.clone(), None)
            }
            Phase::Stopping { turn, worker, why }
                if (self.name(turn), *worker) == (report.of, report.worker) =>
            {
                (turn.clone(), Some(*why))
            }
            Phase::Idle
            | Phase::Collecting { .. }
            | Phase::Starting { .. }
            | Phase::Running { .. }
            | Phase::Stopping { .. } => return,
        };
        match &report.news {
            News::Asked { ask, text, kind, rule } => {
                self.asked(Ask { id: *ask, kind: *kind, rule: rule.clone() }, text);
            }
            News::AskClosed { ask } => self.ask_closed(*ask),
            // After a stop nothing more is said.
            News::Said { .. } if stopped.is_some() => {}
            News::Said { number, address, .. } => self.said(seq, &turn, *number, address),
            News::HandedBack => match stopped {
                Some(why) => self.release(&turn, why),
                None => self.again(turn, true),
            },
            News::Finished { outcome, reply, steered, .. } => {
                let word = self.last_word(&turn, *outcome, reply);
                self.finished(seq, &turn, stopped, (*outcome, word), steered);
            }
        }
    }

    /// The turn says something in another chat. The words stay in the report.
    fn said(&mut self, seq: Seq, turn: &Turn, number: u32, address: &Address) {
        let name = format!("said-{}-{number}", turn.attempt.get());
        let outbound = Outbound {
            address: address.clone(),
            reply_to: None,
            ..self.outbound(
                OutboundId::of_turn(turn.id, &name),
                Kind::Notice,
                &turn.origin,
                String::new(),
            )
        };
        self.lease().effects.push(Effect::Reply { report: seq, outbound });
    }

    fn finished(
        &mut self,
        seq: Seq,
        turn: &Turn,
        stopped: Option<StopReason>,
        (outcome, word): (Outcome, LastWord),
        steered: &[Seq],
    ) {
        let silent = stopped.is_some_and(is_silent);
        if stopped.is_some_and(leaves_no_trace) {
            // Its worker has done so if it heard of it in time.
            self.lease().forget.push(turn.id);
        }
        if outcome == Outcome::Interrupted && !silent {
            self.close_turn(turn);
        } else if !silent && word == LastWord::Reply {
            let outbound = self.outbound_of_turn(turn, "reply", Kind::Reply, String::new());
            self.lease().effects.push(Effect::Reply { report: seq, outbound });
        }
        let (seen, unseen): (Vec<_>, Vec<_>) =
            turn.steers.iter().cloned().partition(|steer| steered.contains(&steer.seq));
        for steer in &seen {
            self.steer_seen(turn, steer);
        }
        self.put_first(unseen, silent);
        let fate = match outcome {
            Outcome::Interrupted => Fate::Interrupted,
            Outcome::Completed | Outcome::Failed | Outcome::Refused if silent => Fate::Interrupted,
            Outcome::Refused => Fate::Refused,
            Outcome::Completed | Outcome::Failed => Fate::Answered,
        };
        self.job_ended(turn, end_of_job(outcome, stopped, word));
        self.ended(turn, End::Reported { outcome }, fate);
        let depth = if outcome == Outcome::Interrupted { turn.depth.saturating_add(1) } else { 0 };
        self.next(depth);
    }

    /// A hint that the model has not seen is not lost: it leads the next turn, unless everything was to stop.
    pub(crate) fn put_first(&mut self, unseen: Vec<Waiting>, silent: bool) {
        if silent {
            for steer in &unseen {
                self.close(steer.seq, &steer.origin);
                self.settled(&steer.origin.message, Fate::Cleared);
            }
        } else {
            let unseen = unseen.into_iter().map(|steer| Waiting { answers: false, ..steer });
            self.session.lease.queue.splice(0..0, unseen);
        }
    }

    /// Goes on without the worker's word: it did not confirm the stop, or it is gone.
    pub(crate) fn release(&mut self, turn: &Turn, why: StopReason) {
        if !is_silent(why) {
            self.close_turn(turn);
        }
        self.still_forget(turn, leaves_no_trace(why));
        self.put_first(turn.steers.clone(), is_silent(why));
        self.job_ended(turn, end_of_job(Outcome::Interrupted, Some(why), LastWord::Reply));
        self.ended(turn, End::Released { why }, Fate::Interrupted);
        self.next(turn.depth.saturating_add(1));
    }

    /// The worker is gone. Another one gets the turn, unless too many have died of it.
    pub(crate) fn evict(&mut self, mut turn: Turn) {
        turn.crashes = turn.crashes.saturating_add(1);
        if turn.crashes < self.policy.attempts {
            self.again(turn, false);
            return;
        }
        let text = if self.session.is_of_job() {
            jobs::job_parked(turn.crashes)
        } else {
            wording::parked(turn.crashes)
        };
        self.say_of_turn(&turn, "parked", Kind::Notice, text);
        self.job_ended(&turn, JobEnd::Failed);
        self.close_turn(&turn);
        self.still_forget(&turn, false);
        self.put_first(turn.steers.clone(), false);
        self.ended(&turn, End::Parked, Fate::Parked);
        self.next(0);
    }

    /// A turn that no worker has finished may not have forgotten what it was to forget; the next one does.
    pub(crate) fn still_forget(&mut self, turn: &Turn, itself: bool) {
        let also = itself.then_some(turn.id);
        self.session.lease.forget = turn.forget.iter().copied().chain(also).collect();
    }

    /// Orders the next attempt. The asks of the earlier one are closed: no one waits for their answers.
    fn again(&mut self, turn: Turn, handed_back: bool) {
        let attempt = turn.attempt.next();
        self.fact(Fact::Retried { turn: turn.id, attempt, handed_back });
        self.order(Turn {
            attempt,
            asks: Vec::new(),
            answers: Vec::new(),
            notices: 0,
            warned: false,
            ..turn
        });
    }

    pub(crate) fn worker_gone(&mut self, gone: ProcessId) {
        match &self.session.lease.phase {
            Phase::Running { turn, worker } if *worker == gone => {
                let turn = turn.clone();
                self.evict(turn);
            }
            Phase::Stopping { turn, worker, why } if *worker == gone => {
                let (turn, why) = (turn.clone(), *why);
                self.release(&turn, why);
            }
            Phase::Idle
            | Phase::Collecting { .. }
            | Phase::Starting { .. }
            | Phase::Running { .. }
            | Phase::Stopping { .. } => {}
        }
    }

    pub(crate) fn adopt(&mut self, epoch: Epoch) {
        self.lease().epoch = epoch;
        self.session.live = Live::new(self.now);
    }

    pub(crate) fn close_turn(&mut self, turn: &Turn) {
        self.close(Seq::new(turn.id.get()), &turn.origin);
    }

    /// A turn has ended, and with it every message that it was about.
    pub(crate) fn ended(&mut self, turn: &Turn, end: End, fate: Fate) {
        self.fact(Fact::Ended { turn: turn.id, attempt: turn.attempt, end });
        let of = |message: &str, fate| Fact::Settled {
            message: message.to_owned(),
            fate,
            turn: Some(turn.id),
        };
        self.fact(of(&turn.origin.message, fate));
        for more in &turn.more {
            let fate = if fate == Fate::Answered { Fate::Merged } else { fate };
            let text = if fate == Fate::Merged { wording::merged() } else { String::new() };
            self.close_saying(more.seq, &more.origin(&turn.origin), text);
            self.fact(of(&more.message, fate));
        }
    }

    /// The model has seen a hint: the person is told, since only that makes it certain.
    pub(crate) fn steer_seen(&mut self, turn: &Turn, steer: &Waiting) {
        if !steer.answers {
            let id = OutboundId::of_input(steer.seq, "seen");
            let outbound = self.outbound(id, Kind::Ack, &steer.origin, wording::steer_seen());
            self.lease().effects.push(Effect::Send { outbound });
        }
        self.close_saying(steer.seq, &steer.origin, wording::went_into_turn(steer.answers));
        let message = steer.origin.message.clone();
        self.fact(Fact::Settled { message, fate: Fate::Steered, turn: Some(turn.id) });
    }
}

/// Whether the conversation keeps nothing of a turn that was stopped for this reason.
const fn leaves_no_trace(why: StopReason) -> bool {
    match why {
        StopReason::Rollback | StopReason::Withdrawn => true,
        StopReason::Stop
        | StopReason::Reset
        | StopReason::Message
        | StopReason::Timeout
        | StopReason::Hangup => false,
    }
}

/// Whether nothing more of a turn that was stopped for this reason is shown.
const fn is_silent(why: StopReason) -> bool {
    match why {
        StopReason::Stop | StopReason::Reset | StopReason::Rollback | StopReason::Withdrawn => true,
        StopReason::Message | StopReason::Timeout | StopReason::Hangup => false,
    }
}
