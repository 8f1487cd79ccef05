//! What can happen next between two owners, and what must hold whatever happens.

use proto::lease::Phase;
use stateright::{Model, Property};

use super::{Action, Checkpoint, Entry, Fated, Handover, Job, Owner, Stage, State, Work};

const FENCED: &str = "who has a turn in hand has fenced the owner before";

impl Model for Handover {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let first = Owner { epoch: 1, stage: Stage::Ready, ..Owner::default() };
        vec![State {
            log: Vec::new(),
            sent: 0,
            stored: None,
            revision: 0,
            checkpoint: Checkpoint { epoch: 1, ..Checkpoint::default() },
            owners: [first, Owner::default()],
            workers: Default::default(),
            order: None,
            delivered: Vec::new(),
            replied: Default::default(),
            started: Default::default(),
            fates: Default::default(),
            went_back: false,
            takeovers: 0,
            stale_answers: 0,
            deaths: 0,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.sent < self.messages.len() {
            actions.push(Action::Send);
        }
        self.owners(state, actions);
        let different = usize::from(state.workers[0] != state.workers[1]);
        for (w, worker) in state.workers.iter().enumerate().take(self.workers.min(1 + different)) {
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
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Send => {
                state.log.push(Entry::Message(state.sent));
                state.sent += 1;
            }
            Action::Take(s) => state.take(s),
            Action::Load(s) => state.load(self, s),
            Action::Read(s) => state.begin(self, s, Work::Read),
            Action::Write(s) => state.write(self, s),
            Action::Publish(s) => state.publish(s),
            Action::Checkpoint(s) => state.store_checkpoint(self, s),
            Action::Ask(s, w) => {
                let job = state.workers[w].claiming?;
                let stale = state.owners[s].epoch != state.checkpoint.epoch;
                state.stale_answers += u8::from(stale);
                state.begin(self, s, Work::Claim(w, job));
            }
            Action::Reorder(s) => state.begin(self, s, Work::Tick(self.policy.reorder)),
            Action::Lapse(s) => state.begin(self, s, Work::Tick(self.policy.lease_ttl)),
            Action::StopLapse(s) => state.begin(self, s, Work::Tick(self.policy.stop_deadline)),
            Action::Pull(w) => state.pull(w),
            Action::Finish(w) => state.finish(w),
            Action::Die(w) => state.die(w),
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = vec![
            Property::always("an attempt is run once", |_, state: &State| {
                state.started.values().all(|times| *times == 1)
            }),
            Property::always("one live attempt", |_, state: &State| {
                let current = state.stored.as_ref().and_then(|lease| lease.phase.turn());
                let live = |job: &Job| {
                    current.is_some_and(|turn| (turn.id, turn.attempt) == (job.turn, job.attempt))
                };
                state.workers.iter().filter_map(|worker| worker.running).filter(live).count() <= 1
            }),
            Property::always("a turn has one reply", |_, state: &State| {
                state.replied.values().all(|reports| reports.len() == 1)
            }),
            Property::always("a message has one end", |_, state: &State| {
                state.fates.values().all(|fates| fates.len() == 1)
            }),
            Property::always(FENCED, |_, state: &State| {
                let current = |owner: &&Owner| {
                    owner.epoch == state.checkpoint.epoch && owner.stage == Stage::Ready
                };
                let running = |owner: &Owner| {
                    owner.session.as_ref().is_none_or(|session| {
                        let stored = state.stored.as_ref().map(|lease| lease.epoch.get());
                        session.is_idle() || stored == Some(owner.epoch)
                    })
                };
                state.owners.iter().filter(current).all(running)
            }),
            Property::always("epochs do not go back", |_, state: &State| !state.went_back),
            Property::always("replies keep their order", |_, state: &State| {
                let turns = state.delivered.iter().filter_map(|id| id.strip_suffix("-reply"));
                turns.is_sorted()
            }),
            Property::always("no message is lost", |system: &Self, state: &State| {
                !state.is_quiet(system) || (1..=state.log.len()).all(|place| state.has_ended(place))
            }),
            Property::always("it never gets stuck", |system: &Self, state: &State| {
                let mut actions = Vec::new();
                system.actions(state, &mut actions);
                actions.retain(|action| !matches!(action, Action::Die(_)));
                !actions.is_empty() || state.is_quiet(system)
            }),
            Property::sometimes("everything is quiet", |system: &Self, state: &State| {
                state.is_quiet(system)
            }),
            Property::sometimes("two believe to be the owner", |_, state: &State| {
                state.owners.iter().all(|owner| owner.stage != Stage::Off)
            }),
            Property::sometimes("a write is refused", |_, state: &State| {
                let behind = |owner: &Owner| {
                    matches!(owner.stage, Stage::Writing(_)) && owner.revision != state.revision
                };
                state.owners.iter().any(behind)
            }),
            Property::sometimes(
                "all that wants an answer has one",
                |system: &Self, state: &State| {
                    let wants = |text: &&&str| !text.starts_with("/stop");
                    state.replied.len() == system.messages.iter().filter(wants).count()
                },
            ),
        ];
        if self.worker_deaths > 0 {
            properties.push(Property::sometimes("a second attempt runs", |_, state: &State| {
                state.started.keys().any(|job| job.attempt > proto::id::Attempt::FIRST)
            }));
        }
        properties
    }
}

impl Handover {
    fn owners(&self, state: &State, actions: &mut Vec<Action>) {
        let alone = state.owners.iter().all(|owner| owner.stage == Stage::Off);
        for (s, owner) in state.owners.iter().enumerate() {
            match owner.stage {
                Stage::Off if alone || state.takeovers < self.takeovers => {
                    actions.push(Action::Take(s));
                }
                Stage::Off => {}
                Stage::Loading => actions.push(Action::Load(s)),
                Stage::Ready => self.ready(state, s, actions),
                Stage::Writing(_) => actions.push(Action::Write(s)),
                Stage::Publishing => actions.push(Action::Publish(s)),
            }
        }
    }

    fn ready(&self, state: &State, s: usize, actions: &mut Vec<Action>) {
        let owner = &state.owners[s];
        if owner.cursor < state.log.len() {
            actions.push(Action::Read(s));
        }
        let stale = state.checkpoint.epoch != owner.epoch;
        if stale || state.checkpoint.cursor != owner.cursor {
            actions.push(Action::Checkpoint(s));
        }
        // Each claim that a stale owner answers may cost an order, which is then sent again: once is enough to see that.
        let may_answer = !stale || state.stale_answers == 0;
        for (w, worker) in state.workers.iter().enumerate() {
            if worker.claiming.is_some() && may_answer {
                actions.push(Action::Ask(s, w));
            }
        }
        let nobody = state
            .workers
            .iter()
            .all(|worker| worker.claiming.is_none() && worker.running.is_none());
        match state.lease(s).map(|lease| &lease.phase) {
            Some(Phase::Starting { .. }) if nobody && state.order.is_none() => {
                actions.push(Action::Reorder(s));
            }
            Some(Phase::Running { .. }) if state.holder_is_gone(s) => {
                actions.push(Action::Lapse(s));
            }
            Some(Phase::Stopping { .. }) => actions.push(Action::StopLapse(s)),
            _ => {}
        }
    }
}

impl State {
    /// Whether the message at a place, if it is one, has its end, and an answer has been delivered if that is its end.
    fn has_ended(&self, place: usize) -> bool {
        let Entry::Message(_) = self.log[place - 1] else { return true };
        let Some(fates) = self.fates.get(&format!("m{place}")) else { return false };
        let answered = fates.contains(&Fated("Answered".into()));
        !answered || self.delivered.contains(&format!("t{place}-reply"))
    }

    /// Whether nothing is left to do, for an owner that is not stale.
    pub(crate) fn is_quiet(&self, system: &Handover) -> bool {
        let owner = |owner: &Owner| {
            owner.epoch == self.checkpoint.epoch
                && owner.stage == Stage::Ready
                && owner.cursor == self.log.len()
        };
        self.sent == system.messages.len()
            && self.owners.iter().any(owner)
            && self.stored.as_ref().is_some_and(|lease| matches!(lease.phase, Phase::Idle))
            && self.workers.iter().all(|w| w.running.is_none() && w.claiming.is_none())
    }
}
