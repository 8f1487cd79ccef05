//! A model of the protocol around the real core: one session, a scheduler that may crash between any write and what follows
//! it, two workers that may die, orders and claims that are repeated, answers and controls that are lost. `stateright` visits
//! every order of events up to the bounds.

mod kit;

use std::collections::{BTreeMap, BTreeSet};

use kit::{event, finished, key};
use proto::id::{Attempt, Epoch, ProcessId, Seq, TurnId};
use proto::lease::{Effect, Lease, Phase};
use proto::outbound::Kind;
use proto::turn::{Claim, ClaimReply, Control, Outcome, TurnRef, TurnReport};
use scheduler_core::{Input, Policy, Session, Signal, Time};
use stateright::{Checker, Model, Property};

/// What is sent, and how many faults there may be.
#[derive(Clone, Debug)]
struct System {
    messages: &'static [&'static str],
    scheduler_crashes: u8,
    worker_deaths: u8,
    losses: u8,
    policy: Policy,
    /// A bug put in on purpose, to see that the model finds it.
    bug: Option<Bug>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bug {
    /// The scheduler forgets which inputs it has applied when it restarts.
    ForgetsSeen,
    /// Workers forget which attempts they have run.
    ForgetfulWorkers,
    /// The scheduler does not publish again what it finds when it restarts.
    SkipsEffects,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Job {
    turn: TurnId,
    attempt: Attempt,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Worker {
    /// Counts its lives: each has a process id of its own.
    life: u64,
    claiming: Option<Job>,
    running: Option<Job>,
    told_to_stop: bool,
    ran: BTreeSet<Job>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    log: Vec<Entry>,
    sent: usize,
    stored: Option<Lease>,
    scheduler: Session,
    position: usize,
    unpublished: Vec<Effect>,
    order: Option<Job>,
    workers: [Worker; 2],
    /// What has been delivered, by id; a repeated id is not delivered again.
    delivered: BTreeMap<String, Kind>,
    /// The reports that became replies, by turn.
    replied: BTreeMap<TurnId, BTreeSet<Seq>>,
    now: Time,
    epoch: u64,
    crashes: u8,
    deaths: u8,
    losses: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Entry {
    Message(usize),
    Report(TurnReport),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Action {
    Send,
    ReadLog { lost: bool },
    Publish,
    CrashScheduler,
    Pull(usize),
    AnswerClaim { worker: usize, lost: bool },
    Finish(usize),
    Die(usize),
    Beat(usize),
    LeaseLapses,
    StopLapses,
}

impl State {
    fn id(&self, worker: usize) -> ProcessId {
        ProcessId::new(self.workers[worker].life * 2 + worker as u64)
    }

    fn of(&self, job: Job) -> TurnRef {
        TurnRef { sid: self.scheduler.sid(), turn: job.turn, attempt: job.attempt }
    }

    /// Whether the process that the lease names will never be heard of again: it died, and has not reported before.
    fn holder_is_gone(&self) -> bool {
        let Phase::Running { worker, turn } = &self.scheduler.lease.phase else { return false };
        let of = self.of(Job { turn: turn.id, attempt: turn.attempt });
        let reported = |entry: &Entry| matches!(entry, Entry::Report(report) if report.of == of);
        !(0..2).any(|w| self.id(w) == *worker && self.workers[w].running.is_some())
            && !self.log[self.position..].iter().any(reported)
    }

    /// Whether the worker has something to learn from a heartbeat.
    fn beat_matters(&self, w: usize) -> bool {
        let Some(job) = self.workers[w].running else { return false };
        match &self.scheduler.lease.phase {
            Phase::Running { turn, worker } => {
                (turn.id, turn.attempt, *worker) != (job.turn, job.attempt, self.id(w))
            }
            _ => !self.workers[w].told_to_stop,
        }
    }

    /// The scheduler applies an input and writes; what follows waits in `unpublished`, and the signals are acted on or lost.
    fn step(&mut self, system: &System, input: &Input, lose_signals: bool) -> Option<ClaimReply> {
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

    fn publish(&mut self) {
        for effect in std::mem::take(&mut self.unpublished) {
            match effect {
                Effect::Order => {
                    let turn = self.scheduler.lease.phase.turn().expect("an order is for a turn");
                    self.order = Some(Job { turn: turn.id, attempt: turn.attempt });
                }
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

    fn is_quiet(&self, system: &System) -> bool {
        self.sent == system.messages.len()
            && self.position == self.log.len()
            && self.unpublished.is_empty()
            && self
                .workers
                .iter()
                .all(|worker| worker.running.is_none() && worker.claiming.is_none())
            && matches!(self.scheduler.lease.phase, Phase::Idle)
    }
}

impl Model for System {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            log: Vec::new(),
            sent: 0,
            stored: None,
            scheduler: Session::new(key(), Epoch::new(1), Time::from_ms(0)),
            position: 0,
            unpublished: Vec::new(),
            order: None,
            workers: Default::default(),
            delivered: BTreeMap::new(),
            replied: BTreeMap::new(),
            now: Time::from_ms(0),
            epoch: 1,
            crashes: 0,
            deaths: 0,
            losses: 0,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.sent < self.messages.len() {
            actions.push(Action::Send);
        }
        if state.crashes < self.scheduler_crashes {
            actions.push(Action::CrashScheduler);
        }
        // Of two equal workers it does not matter which one acts.
        let different = usize::from(state.workers[0] != state.workers[1]);
        for (w, worker) in state.workers.iter().enumerate().take(1 + different) {
            if worker.claiming.is_none() && worker.running.is_none() && state.order.is_some() {
                actions.push(Action::Pull(w));
            }
            if worker.running.is_some() {
                actions.push(Action::Finish(w));
                if state.deaths < self.worker_deaths {
                    actions.push(Action::Die(w));
                }
            }
        }
        if !state.unpublished.is_empty() {
            actions.push(Action::Publish);
            return;
        }
        if state.position < state.log.len() {
            actions.push(Action::ReadLog { lost: false });
            if state.losses < self.losses {
                actions.push(Action::ReadLog { lost: true });
            }
        }
        for (w, worker) in state.workers.iter().enumerate() {
            if worker.claiming.is_some() {
                actions.push(Action::AnswerClaim { worker: w, lost: false });
                if state.losses < self.losses {
                    actions.push(Action::AnswerClaim { worker: w, lost: true });
                }
            }
            if state.beat_matters(w) {
                actions.push(Action::Beat(w));
            }
        }
        match state.scheduler.lease.phase {
            // A worker gives its turn up by its own clock before the scheduler does.
            Phase::Running { .. } if state.holder_is_gone() => actions.push(Action::LeaseLapses),
            Phase::Stopping { .. } => actions.push(Action::StopLapses),
            _ => {}
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Send => {
                state.log.push(Entry::Message(state.sent));
                state.sent += 1;
            }
            Action::ReadLog { lost } => {
                let seq = Seq::new(state.position as u64 + 1);
                let input = match state.log[state.position].clone() {
                    Entry::Message(index) => Input::Message {
                        seq,
                        event: Box::new(event(seq.get(), self.messages[index])),
                    },
                    Entry::Report(report) => Input::Report { seq, report },
                };
                state.position += 1;
                state.losses += u8::from(lost);
                state.step(self, &input, lost);
            }
            Action::Publish => state.publish(),
            Action::CrashScheduler => {
                state.crashes += 1;
                state.epoch += 1;
                state.scheduler = match state.stored.clone() {
                    Some(lease) => Session::restore(lease, state.now),
                    None => Session::new(key(), Epoch::new(state.epoch), state.now),
                };
                if self.bug == Some(Bug::ForgetsSeen) {
                    state.scheduler.lease.seen = Seq::default();
                }
                state.position = 0;
                state.unpublished = state.scheduler.lease.effects.clone();
                if self.bug == Some(Bug::SkipsEffects) {
                    state.unpublished.clear();
                }
                let mut signals = Vec::new();
                if !state.scheduler.is_idle() {
                    let adopt = Input::Adopt(Epoch::new(state.epoch));
                    let _ = state.scheduler.step(&self.policy, state.now, &adopt, &mut signals);
                    state.stored = Some(state.scheduler.lease.clone());
                }
            }
            Action::Pull(w) => {
                let job = state.order?;
                if state.workers[w].ran.contains(&job) && self.bug != Some(Bug::ForgetfulWorkers) {
                    state.order = None;
                } else {
                    state.workers[w].claiming = Some(job);
                }
            }
            Action::AnswerClaim { worker: w, lost } => {
                let job = state.workers[w].claiming?;
                let claim = Claim { of: state.of(job), worker: state.id(w) };
                let answer = state.step(self, &Input::Claim(claim), false);
                if lost {
                    // The worker asks again.
                    state.losses += 1;
                } else {
                    let worker = &mut state.workers[w];
                    worker.claiming = None;
                    if matches!(answer, Some(ClaimReply::Granted { .. })) {
                        worker.running = Some(job);
                        worker.told_to_stop = false;
                        worker.ran.insert(job);
                    }
                    // With the bug, the broker also repeats an order whose acknowledgement was lost.
                    if state.order == Some(job) && self.bug != Some(Bug::ForgetfulWorkers) {
                        state.order = None;
                    }
                }
            }
            Action::Finish(w) => {
                let job = state.workers[w].running.take()?;
                let outcome = if state.workers[w].told_to_stop {
                    Outcome::Interrupted
                } else {
                    Outcome::Completed
                };
                let report =
                    TurnReport { of: state.of(job), worker: state.id(w), news: finished(outcome) };
                state.log.push(Entry::Report(report));
            }
            Action::Die(w) => {
                state.deaths += 1;
                let life = state.workers[w].life + 1;
                state.workers[w] = Worker { life, ..Worker::default() };
            }
            Action::Beat(w) => {
                let job = state.workers[w].running?;
                let turn = proto::turn::BeatTurn {
                    of: state.of(job),
                    activity: Default::default(),
                    steers: Vec::new(),
                    answers: Vec::new(),
                };
                let id = state.id(w);
                let mut signals = Vec::new();
                let _ = state.scheduler.step(
                    &self.policy,
                    state.now,
                    &Input::Beat { worker: id, turn },
                    &mut signals,
                );
                for signal in signals {
                    if let Signal::Beat { kept, controls } = signal {
                        let worker = &mut state.workers[w];
                        worker.told_to_stop |= !controls.is_empty();
                        if !kept {
                            worker.running = None;
                        }
                    }
                }
            }
            Action::LeaseLapses => {
                state.now = state.now.after(self.policy.lease_ttl);
                state.step(self, &Input::Tick, false);
            }
            Action::StopLapses => {
                state.now = state.now.after(self.policy.stop_deadline);
                state.step(self, &Input::Tick, false);
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("one live attempt", |_, state: &State| {
                // A worker that the session no longer waits for is fenced; only one may hold what the lease names.
                let current = state.stored.as_ref().and_then(|lease| match &lease.phase {
                    Phase::Running { turn, worker } => Some((turn.id, turn.attempt, *worker)),
                    _ => None,
                });
                let live = (0..2).filter(|w| {
                    state.workers[*w].running.is_some_and(|job| {
                        current.is_some_and(|(turn, attempt, _)| {
                            (job.turn, job.attempt) == (turn, attempt)
                        })
                    })
                });
                live.count() <= 1
            }),
            Property::always("a turn has one reply", |_, state: &State| {
                state.replied.values().all(|reports| reports.len() == 1)
            }),
            Property::always("no message is lost", |system: &Self, state: &State| {
                !state.is_quiet(system)
                    || state.log.iter().enumerate().all(|(at, entry)| match entry {
                        Entry::Message(index) if !system.messages[*index].starts_with("/stop") => {
                            let turn = at + 1;
                            ["reply", "closed", "parked"].iter().any(|what| {
                                state.delivered.contains_key(&format!("t{turn}-{what}"))
                            })
                        }
                        _ => true,
                    })
            }),
            Property::always("it never gets stuck", |system: &Self, state: &State| {
                let mut actions = Vec::new();
                system.actions(state, &mut actions);
                actions.retain(|action| *action != Action::CrashScheduler);
                !actions.is_empty() || state.is_quiet(system)
            }),
            Property::sometimes("every message is answered", |system: &Self, state: &State| {
                state.is_quiet(system) && state.replied.len() == system.messages.len()
            }),
            Property::sometimes("a second attempt answers", |_, state: &State| {
                state.log.iter().any(|entry| match entry {
                    Entry::Report(report) => report.of.attempt > Attempt::FIRST,
                    Entry::Message(_) => false,
                }) && !state.replied.is_empty()
            }),
            Property::sometimes("a turn is interrupted", |_, state: &State| {
                state.delivered.values().any(|kind| *kind == Kind::Closed)
            }),
        ]
    }
}

fn system(messages: &'static [&'static str]) -> System {
    System {
        messages,
        scheduler_crashes: 1,
        worker_deaths: 1,
        losses: 1,
        policy: Policy { notify: None, timeout: None, ack_interval: u64::MAX, ..Policy::default() },
        bug: None,
    }
}

#[track_caller]
fn holds(system: System) {
    let checker =
        system.checker().threads(2).timeout(std::time::Duration::from_secs(25)).spawn_bfs().join();
    println!(
        "{} states, depth {}, done: {}",
        checker.unique_state_count(),
        checker.max_depth(),
        checker.is_done()
    );
    checker.assert_properties();
}

/// Checks that a seeded bug is found by the property that should find it.
#[track_caller]
fn finds(bug: Bug, property: &'static str) {
    let system = System { bug: Some(bug), ..system(&["a", "b"]) };
    let checker = system.checker().threads(2).spawn_bfs().join();
    assert!(checker.discovery(property).is_some(), "{bug:?} is not found");
}

#[test]
fn two_messages_survive_a_crash_and_a_death() {
    holds(System { losses: 0, ..system(&["a", "b"]) });
}

#[test]
fn two_messages_survive_a_crash_and_a_loss() {
    holds(System { worker_deaths: 0, ..system(&["a", "b"]) });
}

#[test]
fn two_messages_survive_a_death_and_a_loss() {
    holds(System { scheduler_crashes: 0, ..system(&["a", "b"]) });
}

#[test]
fn a_stop_between_two_messages_survives_a_crash() {
    holds(System { worker_deaths: 0, losses: 0, ..system(&["a", "/stop", "b"]) });
}

#[test]
fn forgetting_what_was_seen_is_found() {
    finds(Bug::ForgetsSeen, "a turn has one reply");
}

#[test]
fn forgetful_workers_are_found() {
    finds(Bug::ForgetfulWorkers, "one live attempt");
}

#[test]
fn not_publishing_again_is_found() {
    finds(Bug::SkipsEffects, "it never gets stuck");
}
