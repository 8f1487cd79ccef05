//! Which drafts may still be shown: those of a turn that has not ended, and of its newest attempt.

use std::collections::{HashMap, VecDeque};

use proto::id::{Attempt, TurnId};
use proto::outbound::{Kind, Outbound};
use proto::turn::TurnRef;

/// How many turns are remembered: more than run at once, and as many again whose drafts may still be on their way.
const TURNS_MAX: usize = 16_384;

#[derive(Debug)]
struct Mark {
    attempt: Attempt,
    ended: bool,
}

/// What is known of recent turns.
#[derive(Debug, Default)]
pub(crate) struct Fence {
    turns: HashMap<TurnId, Mark>,
    order: VecDeque<TurnId>,
}

impl Fence {
    /// Whether a draft of this attempt may be shown.
    pub(crate) fn admits(&mut self, of: TurnRef) -> bool {
        let mark = self.mark(of.turn);
        let admitted = !mark.ended && of.attempt >= mark.attempt;
        if admitted {
            mark.attempt = of.attempt;
        }
        admitted
    }

    /// Notes a delivery: a reply or its absence ends the drafts of its turn.
    pub(crate) fn note(&mut self, outbound: &Outbound) {
        if let (Some(turn), Kind::Reply | Kind::Closed) = (outbound.turn, outbound.kind) {
            self.mark(turn).ended = true;
        }
    }

    fn mark(&mut self, turn: TurnId) -> &mut Mark {
        if !self.turns.contains_key(&turn) {
            if self.order.len() >= TURNS_MAX
                && let Some(oldest) = self.order.pop_front()
            {
                self.turns.remove(&oldest);
            }
            self.order.push_back(turn);
        }
        self.turns.entry(turn).or_insert(Mark { attempt: Attempt::FIRST, ended: false })
    }
}

#[cfg(test)]
mod tests {
    use proto::event::Address;
    use proto::id::{OutboundId, Sid};
    use proto::session::{ChatKind, SessionKey, SessionParts};

    use super::*;

    fn of(turn: u64, attempt: u64) -> TurnRef {
        TurnRef { sid: Sid::new(1), turn: TurnId::new(turn), attempt: Attempt::new(attempt) }
    }

    fn outbound(turn: u64, kind: Kind) -> Outbound {
        let address = Address {
            platform: "p".into(),
            account: "a".into(),
            chat: "c".into(),
            kind: ChatKind::Dm,
            thread: None,
        };
        let parts = SessionParts {
            platform: "p",
            kind: ChatKind::Dm,
            chat: "c",
            thread: None,
            participant: None,
        };
        Outbound {
            id: OutboundId::of_turn(TurnId::new(turn), "x"),
            session: SessionKey::new(parts),
            address,
            reply_to: None,
            turn: Some(TurnId::new(turn)),
            attempt: None,
            kind,
            text: String::new(),
            ask: None,
            replaces: None,
        }
    }

    #[test]
    fn drafts_end_with_the_turn() {
        let mut fence = Fence::default();
        assert!(fence.admits(of(1, 1)));
        fence.note(&outbound(1, Kind::Notice));
        assert!(fence.admits(of(1, 1)));
        fence.note(&outbound(1, Kind::Closed));
        assert!(!fence.admits(of(1, 1)));
        assert!(!fence.admits(of(1, 2)));
        assert!(fence.admits(of(2, 1)));
    }

    #[test]
    fn drafts_of_a_superseded_attempt_are_dropped() {
        let mut fence = Fence::default();
        assert!(fence.admits(of(1, 2)));
        assert!(!fence.admits(of(1, 1)));
        assert!(fence.admits(of(1, 2)));
    }

    #[test]
    fn its_memory_is_bounded() {
        let mut fence = Fence::default();
        for turn in 0..2 * TURNS_MAX as u64 {
            assert!(fence.admits(of(turn, 1)));
        }
        assert_eq!(fence.turns.len(), TURNS_MAX);
        assert_eq!(fence.order.len(), TURNS_MAX);
    }
}
