//! What can happen next in the world, and what must hold whatever happens.

use std::collections::BTreeMap;

use proto::id::{Attempt, Epoch, TurnId};
use proto::lease::Phase;
use proto::outbound::Kind;
use scheduler_core::{Input, Session, Time};
use stateright::{Model, Property};

use crate::kit::key;
use crate::world::{Action, Entry, State, System, Worker};

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
            started: BTreeMap::new(),
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
            // A worker gives its turn up by its own clock before the scheduler does. That its report is not read yet, or
            // that it is cut off, is a fault.
            Phase::Running { .. } if state.holder_is_gone() => {
                actions.push(Action::LeaseLapses { cut_off: false })
            }
            Phase::Running { .. } if state.losses < self.losses => {
                actions.push(Action::LeaseLapses { cut_off: true });
            }
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
            Action::ReadLog { lost } => state.read_log(self, lost),
            Action::Publish => state.publish(),
            Action::CrashScheduler => state.crash_scheduler(self),
            Action::Pull(w) => state.pull(self, w),
            Action::AnswerClaim { worker, lost } => state.answer_claim(self, worker, lost),
            Action::Finish(w) => state.finish(w),
            Action::Die(w) => {
                state.deaths += 1;
                let life = state.workers[w].life + 1;
                state.workers[w] = Worker { life, ..Worker::default() };
            }
            Action::Beat(w) => state.beat(self, w),
            Action::LeaseLapses { cut_off } => state.lease_lapses(self, cut_off),
            Action::StopLapses => {
                state.now = state.now.after(self.policy.stop_deadline);
                state.step(self, &Input::Tick, false);
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = vec![
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
            Property::always("an attempt is run once", |_, state: &State| {
                state.started.values().all(|times| *times == 1)
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
            Property::sometimes("the first message is answered", |_, state: &State| {
                state.replied.contains_key(&TurnId::new(1))
            }),
            Property::sometimes("a turn is interrupted", |_, state: &State| {
                state.delivered.values().any(|kind| *kind == Kind::Closed)
            }),
            Property::sometimes("everything is quiet", |system: &Self, state: &State| {
                state.is_quiet(system)
            }),
        ];
        if self.worker_deaths > 0 {
            properties.push(Property::sometimes("a second attempt answers", |_, state: &State| {
                state.log.iter().any(|entry| match entry {
                    Entry::Report(report) => report.of.attempt > Attempt::FIRST,
                    Entry::Message(_) => false,
                }) && !state.replied.is_empty()
            }));
        }
        properties
    }
}
