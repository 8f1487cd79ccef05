//! A second model: two schedulers that may both believe to own the partition. Each step of an owner (read, apply, write by
//! compare-and-set, publish, checkpoint) is an event of its own, so that either may be paused anywhere while the other goes on.

mod laws;
mod owner;

use std::collections::{BTreeMap, BTreeSet};

use proto::id::{Attempt, ProcessId, Seq, TurnId};
use proto::lease::{Effect, Lease};
use proto::receipt::Fate;
use proto::turn::{Claim, Outcome, TurnRef, TurnReport};
use scheduler_core::{Input, Policy, Session};

use crate::kit::{event, finished, key};

/// What is sent, and how many faults there may be.
#[derive(Clone, Debug)]
pub(crate) struct Handover {
    pub(crate) messages: &'static [&'static str],
    /// How often a scheduler takes the partition over, with or without need.
    pub(crate) takeovers: u8,
    pub(crate) worker_deaths: u8,
    /// One or two.
    pub(crate) workers: usize,
    pub(crate) policy: Policy,
    pub(crate) bug: Option<Slip>,
}

/// A bug put in on purpose, to see that the model finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slip {
    /// A refused write is written all the same.
    Overwrites,
    /// A new owner does not send what it finds unsent.
    SkipsEffects,
    /// The checkpoint passes an input before what follows from it is out.
    ChecksTooEarly,
    /// A new owner adopts what runs without writing it.
    AdoptsSilently,
    /// An owner that finds a newer one goes on by itself.
    NeverStepsDown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Job {
    pub(crate) turn: TurnId,
    pub(crate) attempt: Attempt,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Entry {
    Message(usize),
    Report(TurnReport),
}

/// What the owner is applying.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Work {
    Read,
    Claim(usize, Job),
    /// So many milliseconds have passed.
    Tick(u64),
    Adopt,
}

/// What an owner is in the middle of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Stage {
    /// It owns nothing, as far as it knows.
    #[default]
    Off,
    /// It has raised the epoch and has not read the leases.
    Loading,
    Ready,
    /// It has applied something and not written it.
    Writing(Work),
    /// It has written and not sent what follows.
    Publishing,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Owner {
    pub(crate) epoch: u64,
    pub(crate) stage: Stage,
    /// The session as it knows it, and the revision that it has read or written.
    pub(crate) session: Option<Session>,
    pub(crate) revision: u64,
    pub(crate) cursor: usize,
    pub(crate) settled: u64,
    /// What it will say once its write is done.
    pub(crate) said: Vec<Said>,
}

/// What matters here of what an owner says.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Said {
    Claim { granted: bool },
    Stop(ProcessId, TurnRef),
    Settled(String, Fate),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Worker {
    pub(crate) life: u64,
    pub(crate) claiming: Option<Job>,
    pub(crate) running: Option<Job>,
    pub(crate) told_to_stop: bool,
    pub(crate) ran: BTreeSet<Job>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Checkpoint {
    pub(crate) epoch: u64,
    pub(crate) cursor: usize,
    pub(crate) settled: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(crate) log: Vec<Entry>,
    pub(crate) sent: usize,
    /// The record with its revision.
    pub(crate) stored: Option<Lease>,
    pub(crate) revision: u64,
    pub(crate) checkpoint: Checkpoint,
    pub(crate) owners: [Owner; 2],
    pub(crate) workers: [Worker; 2],
    pub(crate) order: Option<Job>,
    /// What was delivered, in order, by id; a repeated id is not delivered again.
    pub(crate) delivered: Vec<String>,
    pub(crate) replied: BTreeMap<TurnId, BTreeSet<Seq>>,
    pub(crate) started: BTreeMap<Job, u8>,
    pub(crate) fates: BTreeMap<String, BTreeSet<Fated>>,
    pub(crate) went_back: bool,
    pub(crate) takeovers: u8,
    pub(crate) stale_answers: u8,
    pub(crate) deaths: u8,
}

/// A fate in an order of its own, to be kept in a set.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Fated(pub(crate) String);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Action {
    Send,
    Take(usize),
    Load(usize),
    Read(usize),
    Write(usize),
    Publish(usize),
    Checkpoint(usize),
    /// The claim of the second is asked of the first.
    Ask(usize, usize),
    Reorder(usize),
    Lapse(usize),
    StopLapse(usize),
    Pull(usize),
    Finish(usize),
    Die(usize),
}

impl State {
    pub(crate) fn id(&self, worker: usize) -> ProcessId {
        ProcessId::new(self.workers[worker].life * 2 + worker as u64)
    }

    pub(crate) fn of(job: Job) -> TurnRef {
        TurnRef { sid: key().sid(), turn: job.turn, attempt: job.attempt }
    }

    /// The input that an owner is working on.
    pub(crate) fn input(&self, system: &Handover, s: usize, work: Work) -> Input {
        match work {
            Work::Read => {
                let seq = Seq::new(self.owners[s].cursor as u64 + 1);
                match self.log[self.owners[s].cursor].clone() {
                    Entry::Message(index) => {
                        let event = event(seq.get(), system.messages[index]);
                        Input::Message { seq, event: Box::new(event) }
                    }
                    Entry::Report(report) => Input::Report { seq, report },
                }
            }
            Work::Claim(w, job) => Input::Claim(Claim { of: Self::of(job), worker: self.id(w) }),
            Work::Tick(_) => Input::Tick,
            Work::Adopt => Input::Adopt(proto::id::Epoch::new(self.owners[s].epoch)),
        }
    }

    pub(crate) fn finish(&mut self, w: usize) {
        let Some(job) = self.workers[w].running.take() else { return };
        let outcome =
            if self.workers[w].told_to_stop { Outcome::Interrupted } else { Outcome::Completed };
        let report = TurnReport { of: Self::of(job), worker: self.id(w), news: finished(outcome) };
        self.log.push(Entry::Report(report));
    }

    pub(crate) fn die(&mut self, w: usize) {
        self.deaths += 1;
        self.workers[w] = Worker { life: self.workers[w].life + 1, ..Worker::default() };
    }

    pub(crate) fn pull(&mut self, w: usize) {
        let Some(job) = self.order else { return };
        if self.workers[w].ran.contains(&job) {
            self.order = None;
        } else {
            self.workers[w].claiming = Some(job);
        }
    }

    pub(crate) fn claim_is_answered(&mut self, w: usize, job: Job, granted: bool) {
        let worker = &mut self.workers[w];
        if worker.claiming != Some(job) {
            // The other owner was faster.
            return;
        }
        worker.claiming = None;
        if granted {
            worker.running = Some(job);
            worker.told_to_stop = false;
            worker.ran.insert(job);
            *self.started.entry(job).or_default() += 1;
        }
        if self.order == Some(job) {
            self.order = None;
        }
    }

    pub(crate) fn deliver(&mut self, effect: Effect, turn: Option<Job>) {
        let outbound = match effect {
            Effect::Order => {
                self.order = turn;
                return;
            }
            Effect::Spawn { .. }
            | Effect::Roster { .. }
            | Effect::Restart { .. }
            | Effect::Cron { .. }
            | Effect::JobEnded { .. } => return,
            Effect::Send { outbound } => outbound,
            Effect::Reply { report, outbound } => {
                let turn = outbound.turn.expect("a reply is of a turn");
                self.replied.entry(turn).or_default().insert(report);
                outbound
            }
        };
        let id = outbound.id.to_string();
        if !self.delivered.contains(&id) {
            self.delivered.push(id);
        }
    }
}
