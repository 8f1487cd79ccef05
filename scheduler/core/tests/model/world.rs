//! The world of the model: a log, a stored lease, a scheduler around the real core, workers, and what can go wrong.

use std::collections::{BTreeMap, BTreeSet};

use proto::activity::Activity;
use proto::id::{Attempt, Epoch, ProcessId, Seq, TurnId};
use proto::lease::{Effect, Lease, Phase};
use proto::outbound::Kind;
use proto::turn::{BeatTurn, Claim, ClaimReply, Control, Outcome, TurnRef, TurnReport};
use scheduler_core::{Input, Policy, Session, Signal, Time};

use crate::kit::{event, finished, key};

/// What is sent, and how many faults there may be.
#[derive(Clone, Debug)]
pub(crate) struct System {
    pub(crate) messages: &'static [&'static str],
    pub(crate) scheduler_crashes: u8,
    pub(crate) worker_deaths: u8,
    pub(crate) losses: u8,
    pub(crate) policy: Policy,
    /// A bug put in on purpose, to see that the model finds it.
    pub(crate) bug: Option<Bug>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    /// The record of an idle session is deleted, and with it the memory of which inputs were applied.
    ForgetsSeen,
    /// Workers forget which attempts they have run.
    ForgetfulWorkers,
    /// The scheduler does not publish again what it finds when it restarts.
    SkipsEffects,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Job {
    pub(crate) turn: TurnId,
    pub(crate) attempt: Attempt,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Worker {
    /// Counts its lives: each has a process id of its own.
    pub(crate) life: u64,
    pub(crate) claiming: Option<Job>,
    pub(crate) running: Option<Job>,
    pub(crate) told_to_stop: bool,
    pub(crate) ran: BTreeSet<Job>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(crate) log: Vec<Entry>,
    pub(crate) sent: usize,
    pub(crate) stored: Option<Lease>,
    pub(crate) scheduler: Session,
    pub(crate) position: usize,
    pub(crate) unpublished: Vec<Effect>,
    pub(crate) order: Option<Job>,
    pub(crate) workers: [Worker; 2],
    /// What has been delivered, by id; a repeated id is not delivered again.
    pub(crate) delivered: BTreeMap<String, Kind>,
    /// The reports that became replies, by turn.
    pub(crate) replied: BTreeMap<TurnId, BTreeSet<Seq>>,
    /// How often each attempt was started.
    pub(crate) started: BTreeMap<Job, u8>,
    pub(crate) now: Time,
    pub(crate) epoch: u64,
    pub(crate) crashes: u8,
    pub(crate) deaths: u8,
    pub(crate) losses: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Entry {
    Message(usize),
    Report(TurnReport),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Action {
    Send,
    ReadLog { lost: bool },
    Publish,
    CrashScheduler,
    Pull(usize),
    AnswerClaim { worker: usize, lost: bool },
    Finish(usize),
    Die(usize),
    Beat(usize),
    LeaseLapses { cut_off: bool },
    StopLapses,
}

impl State {
    pub(crate) fn id(&self, worker: usize) -> ProcessId {
        ProcessId::new(self.workers[worker].life * 2 + worker as u64)
    }

    pub(crate) fn of(&self, job: Job) -> TurnRef {
        TurnRef { sid: self.scheduler.sid(), turn: job.turn, attempt: job.attempt }
    }

    /// Whether the process that the lease names will never be heard of again: it died, and has not reported before.
    pub(crate) fn holder_is_gone(&self) -> bool {
        let Phase::Running { worker, turn } = &self.scheduler.lease.phase else { return false };
        let of = self.of(Job { turn: turn.id, attempt: turn.attempt });
        let reported = |entry: &Entry| matches!(entry, Entry::Report(report) if report.of == of);
        !(0..2).any(|w| self.id(w) == *worker && self.workers[w].running.is_some())
            && !self.log[self.position..].iter().any(reported)
    }

    /// Whether the worker has something to learn from a heartbeat.
    pub(crate) fn beat_matters(&self, w: usize) -> bool {
        let Some(job) = self.workers[w].running else { return false };
        match &self.scheduler.lease.phase {
            Phase::Running { turn, worker } => {
                (turn.id, turn.attempt, *worker) != (job.turn, job.attempt, self.id(w))
            }
            _ => !self.workers[w].told_to_stop,
        }
    }

    /// The scheduler applies an input and writes; what follows waits in `unpublished`, and the signals are acted on or lost.
    pub(crate) fn step(
        &mut self,
        system: &System,
        input: &Input,
        lose_signals: bool,
    ) -> Option<ClaimReply> {
        assert!(self.unpublished.is_empty());
        self.scheduler.effects_are_out();
        let mut signals = Vec::new();
        if self.scheduler.step(&system.policy, self.now, input, &mut signals) {
            self.stored = Some(self.scheduler.lease.clone());
            self.unpublished = self.scheduler.lease.effects.clone();
        }
        let mut claim = None;
        for signal in signals {
            match signal {
                Signal::Claim(answer) => claim = Some(answer),
                Signal::Tell { worker, control: Control::Interrupt { of, .. } }
                    if !lose_signals =>
                {
                    for w in 0..2 {
                        if self.id(w) == worker
                            && self.workers[w].running.map(|job| self.of(job)) == Some(of)
                        {
                            self.workers[w].told_to_stop = true;
                        }
                    }
                }
                _ => {}
            }
        }
        claim
    }

    pub(crate) fn publish(&mut self) {
        for effect in std::mem::take(&mut self.unpublished) {
            match effect {
                Effect::Order => {
                    let turn = self.scheduler.lease.phase.turn().expect("an order is for a turn");
                    self.order = Some(Job { turn: turn.id, attempt: turn.attempt });
                }
                Effect::Spawn { .. }
                | Effect::Roster { .. }
                | Effect::Restart { .. }
                | Effect::Cron { .. }
                | Effect::JobEnded { .. } => {}
                Effect::Send { outbound } => {
                    self.delivered.insert(outbound.id.to_string(), outbound.kind);
                }
                Effect::Reply { report, outbound } => {
                    self.delivered.insert(outbound.id.to_string(), outbound.kind);
                    self.replied
                        .entry(outbound.turn.expect("a reply is of a turn"))
                        .or_default()
                        .insert(report);
                }
            }
        }
    }

    pub(crate) fn is_quiet(&self, system: &System) -> bool {
        self.sent == system.messages.len()
            && self.position == self.log.len()
            && self.unpublished.is_empty()
            && self
                .workers
                .iter()
                .all(|worker| worker.running.is_none() && worker.claiming.is_none())
            && matches!(self.scheduler.lease.phase, Phase::Idle)
    }

    pub(crate) fn read_log(&mut self, system: &System, lost: bool) {
        let seq = Seq::new(self.position as u64 + 1);
        let input = match self.log[self.position].clone() {
            Entry::Message(index) => {
                Input::Message { seq, event: Box::new(event(seq.get(), system.messages[index])) }
            }
            Entry::Report(report) => Input::Report { seq, report },
        };
        self.position += 1;
        self.losses += u8::from(lost);
        self.step(system, &input, lost);
    }

    pub(crate) fn crash_scheduler(&mut self, system: &System) {
        self.crashes += 1;
        self.epoch += 1;
        self.scheduler = match self.stored.clone() {
            Some(lease) => Session::restore(lease, self.now),
            None => Session::new(key(), Epoch::new(self.epoch), self.now),
        };
        if system.bug == Some(Bug::ForgetsSeen) && self.scheduler.is_idle() {
            self.scheduler.lease.seen = Seq::default();
        }
        self.position = 0;
        self.unpublished = self.scheduler.lease.effects.clone();
        if system.bug == Some(Bug::SkipsEffects) {
            self.unpublished.clear();
        }
        if !self.scheduler.is_idle() {
            let adopt = Input::Adopt(Epoch::new(self.epoch));
            let _ = self.scheduler.step(&system.policy, self.now, &adopt, &mut Vec::new());
            self.stored = Some(self.scheduler.lease.clone());
        }
    }

    pub(crate) fn pull(&mut self, system: &System, w: usize) {
        let Some(job) = self.order else { return };
        if self.workers[w].ran.contains(&job) && system.bug != Some(Bug::ForgetfulWorkers) {
            self.order = None;
        } else {
            self.workers[w].claiming = Some(job);
        }
    }

    pub(crate) fn answer_claim(&mut self, system: &System, w: usize, lost: bool) {
        let Some(job) = self.workers[w].claiming else { return };
        let claim = Claim { of: self.of(job), worker: self.id(w) };
        let answer = self.step(system, &Input::Claim(claim), false);
        if lost {
            // The worker asks again.
            self.losses += 1;
            return;
        }
        let worker = &mut self.workers[w];
        worker.claiming = None;
        if matches!(answer, Some(ClaimReply::Granted { .. })) {
            worker.running = Some(job);
            worker.told_to_stop = false;
            worker.ran.insert(job);
            *self.started.entry(job).or_default() += 1;
        }
        // With the bug, the broker also repeats an order whose acknowledgement was lost.
        if self.order == Some(job) && system.bug != Some(Bug::ForgetfulWorkers) {
            self.order = None;
        }
    }

    pub(crate) fn finish(&mut self, w: usize) {
        let Some(job) = self.workers[w].running.take() else { return };
        let outcome =
            if self.workers[w].told_to_stop { Outcome::Interrupted } else { Outcome::Completed };
        let report = TurnReport { of: self.of(job), worker: self.id(w), news: finished(outcome) };
        self.log.push(Entry::Report(report));
    }

    pub(crate) fn beat(&mut self, system: &System, w: usize) {
        let Some(job) = self.workers[w].running else { return };
        let turn = BeatTurn {
            of: self.of(job),
            activity: Some(Activity::default()),
            steers: Vec::new(),
            seen: Vec::new(),
            answers: Vec::new(),
        };
        let input = Input::Beat { worker: self.id(w), turn };
        let mut signals = Vec::new();
        let _ = self.scheduler.step(&system.policy, self.now, &input, &mut signals);
        for signal in signals {
            if let Signal::Beat { kept, controls } = signal {
                let worker = &mut self.workers[w];
                worker.told_to_stop |= !controls.is_empty();
                if !kept {
                    worker.running = None;
                }
            }
        }
    }

    pub(crate) fn lease_lapses(&mut self, system: &System, cut_off: bool) {
        if cut_off {
            self.losses += 1;
            for w in 0..2 {
                if matches!(&self.scheduler.lease.phase, Phase::Running { worker, .. } if *worker == self.id(w))
                {
                    self.workers[w].running = None;
                }
            }
        }
        self.now = self.now.after(system.policy.lease_ttl);
        self.step(system, &Input::Tick, false);
    }
}
