//! The sessions that an owner has in memory: all that run something, and some idle ones, so that the next message need not
//! read them again.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use proto::id::{ProcessId, Sid};
use proto::lease::Phase;
use scheduler_core::{Session, Time};

use super::Owner;
use super::observed::Observed;

/// How many idle sessions of one partition are remembered.
const IDLE_MAX: usize = 1024;

/// A session in memory, with the revision of its stored lease.
pub(crate) struct Slot {
    pub(crate) session: Session,
    /// 0: nothing is stored.
    pub(crate) revision: u64,
    pub(crate) observed: Observed,
    deadline: Option<Time>,
}

impl Slot {
    pub(crate) fn new(session: Session, revision: u64) -> Self {
        Self { session, revision, observed: Observed::default(), deadline: None }
    }
}

/// The sessions of a partition.
#[derive(Default)]
pub(crate) struct Table {
    slots: BTreeMap<Sid, Slot>,
    deadlines: BTreeSet<(Time, Sid)>,
    idle: VecDeque<Sid>,
}

impl Table {
    pub(crate) fn contains(&self, sid: Sid) -> bool {
        self.slots.contains_key(&sid)
    }

    /// Takes a session out, to work on it.
    pub(crate) fn take(&mut self, sid: Sid) -> Option<Slot> {
        let slot = self.slots.remove(&sid)?;
        if let Some(at) = slot.deadline {
            self.deadlines.remove(&(at, sid));
        }
        Some(slot)
    }

    /// Puts a session back.
    pub(crate) fn put(&mut self, mut slot: Slot, owner: &Owner) {
        let sid = slot.session.sid();
        slot.deadline = slot.session.deadline(owner.policies.of(&slot.session.lease.session));
        if let Some(at) = slot.deadline {
            self.deadlines.insert((at, sid));
        }
        if slot.session.is_idle() {
            self.idle.push_back(sid);
        }
        self.slots.insert(sid, slot);
        while self.idle.len() > IDLE_MAX {
            self.forget_one();
        }
    }

    /// Forgets the session that has been idle for longest, unless it has been busy since.
    fn forget_one(&mut self) {
        if let Some(sid) = self.idle.pop_front()
            && !self.idle.contains(&sid)
            && self.slots.get(&sid).is_some_and(|slot| slot.session.is_idle())
        {
            self.slots.remove(&sid);
        }
    }

    /// When the first session wants to be looked at.
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    /// The sessions whose time has come.
    pub(crate) fn due(&self, now: Time) -> Vec<Sid> {
        self.deadlines.iter().take_while(|(at, _)| *at <= now).map(|(_, sid)| *sid).collect()
    }

    /// The sessions in which something is going on.
    pub(crate) fn busy(&self) -> impl Iterator<Item = &Session> {
        self.slots.values().map(|slot| &slot.session).filter(|session| !session.is_idle())
    }

    /// The sessions whose turn a worker runs.
    pub(crate) fn held_by(&self, worker: ProcessId) -> Vec<Sid> {
        let holds = |slot: &Slot| match &slot.session.lease.phase {
            Phase::Running { worker: holder, .. } | Phase::Stopping { worker: holder, .. } => {
                *holder == worker
            }
            Phase::Idle | Phase::Collecting { .. } | Phase::Starting { .. } => false,
        };
        self.slots.iter().filter(|(_, slot)| holds(slot)).map(|(sid, _)| *sid).collect()
    }
}
