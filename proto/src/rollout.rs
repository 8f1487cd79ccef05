//! A rolling restart of the fleet (`fleet` bucket, key `restart`): one process at a time, workers first, then schedulers, then
//! ingress. Nobody conducts it: each process reads the plan and the list of the living, and computes whose turn it is.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::id::{OutboundId, ProcessId};
use crate::member::{Member, Role};
use crate::outbound::{Kind, Outbound};

/// The roles in the order in which their processes restart: those that hand turns over first, the front door last.
const ORDER: [Role; 3] = [Role::Worker, Role::Scheduler, Role::Ingress];

/// The plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rollout {
    /// The processes that were alive when it was asked for, in the order in which they restart.
    pub plan: Vec<Member>,
    /// What was said when it was asked for. Progress replaces its words; its id names the rollout.
    pub notice: Outbound,
}

/// How far a rollout is, as far as the list of the living shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stand {
    /// This process drains and starts again.
    Turn {
        /// Which.
        id: ProcessId,
        /// Its place in the plan, from 1.
        place: usize,
    },
    /// A process has gone and no new one has come in its place yet.
    Awaiting {
        /// What it did.
        role: Role,
        /// How many of the plan are gone.
        gone: usize,
    },
    /// All have gone, and as many have come.
    Done,
}

impl Rollout {
    /// A plan for these processes.
    #[must_use]
    pub fn new(living: impl IntoIterator<Item = Member>, notice: Outbound) -> Self {
        let mut plan: Vec<Member> = living.into_iter().collect();
        plan.sort_by_key(|member| (ORDER.iter().position(|role| *role == member.role), member.id));
        Self { plan, notice }
    }

    /// How far it is.
    #[must_use]
    pub fn stand(&self, living: &BTreeMap<ProcessId, Member>) -> Stand {
        let is_gone = |member: &&Member| !living.contains_key(&member.id);
        let gone = self.plan.iter().filter(is_gone).count();
        for role in ORDER {
            let of = |member: &&Member| member.role == role;
            let needed = self.plan.iter().filter(of).filter(is_gone).count();
            let is_new = |member: &&Member| !self.plan.iter().any(|old| old.id == member.id);
            if living.values().filter(of).filter(is_new).count() < needed {
                return Stand::Awaiting { role, gone };
            }
        }
        let next = self.plan.iter().position(|member| living.contains_key(&member.id));
        next.map_or(Stand::Done, |at| Stand::Turn { id: self.plan[at].id, place: at + 1 })
    }

    /// Words that replace those of the answer; `what` makes their id, the same whoever says them.
    #[must_use]
    pub fn says(&self, what: &str, text: String) -> Outbound {
        Outbound {
            id: OutboundId::following(&self.notice.id, what),
            replaces: Some(self.notice.id.clone()),
            kind: Kind::Notice,
            text,
            ..self.notice.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Address;
    use crate::id::Seq;
    use crate::session::{ChatKind, SessionKey, SessionParts};

    fn member(role: Role, id: u64) -> Member {
        Member { role, id: ProcessId::new(id), slot: None, turns: 0 }
    }

    fn notice() -> Outbound {
        let parts = SessionParts {
            platform: "p",
            kind: ChatKind::Dm,
            chat: "c",
            thread: None,
            participant: None,
        };
        let address = Address {
            platform: "p".into(),
            account: "a".into(),
            chat: "c".into(),
            kind: ChatKind::Dm,
            thread: None,
        };
        Outbound {
            id: OutboundId::of_input(Seq::new(7), "ack"),
            session: SessionKey::new(parts),
            address,
            reply_to: None,
            turn: None,
            attempt: None,
            kind: Kind::Notice,
            text: String::new(),
            ask: None,
            replaces: None,
        }
    }

    #[test]
    fn one_at_a_time_in_order_and_never_before_the_one_before_is_replaced() {
        let old = [(Role::Ingress, 1), (Role::Scheduler, 2), (Role::Worker, 4), (Role::Worker, 3)];
        let mut living: BTreeMap<ProcessId, Member> =
            old.iter().map(|(role, id)| (ProcessId::new(*id), member(*role, *id))).collect();
        let rollout = Rollout::new(living.values().cloned(), notice());
        for (place, id, role) in [
            (1, 3, Role::Worker),
            (2, 4, Role::Worker),
            (3, 2, Role::Scheduler),
            (4, 1, Role::Ingress),
        ] {
            let (id, next) = (ProcessId::new(id), id + 100);
            assert_eq!(rollout.stand(&living), Stand::Turn { id, place });
            living.remove(&id);
            assert_eq!(rollout.stand(&living), Stand::Awaiting { role, gone: place });
            let new = member(role, next);
            living.insert(new.id, new);
        }
        assert_eq!(rollout.stand(&living), Stand::Done);
    }

    #[test]
    fn whoever_sees_nobody_yet_does_nothing() {
        let rollout = Rollout::new([member(Role::Worker, 1)], notice());
        let awaiting = Stand::Awaiting { role: Role::Worker, gone: 1 };
        assert_eq!(rollout.stand(&BTreeMap::new()), awaiting);
    }

    #[test]
    fn progress_replaces_the_answer_under_ids_that_anyone_can_make() {
        let said = Rollout::new([], notice()).says("restarted", "done".into());
        assert_eq!(said.replaces, Some(notice().id));
        assert_ne!(said.id, notice().id);
        assert_eq!(said.id, Rollout::new([], notice()).says("restarted", String::new()).id);
    }
}
