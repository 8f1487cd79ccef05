//! What others want of a running turn: a state that only grows, so that a control that comes early, late or twice does no harm.

use std::collections::BTreeMap;

use proto::id::{AskId, Seq};
use proto::turn::{Control, Decision, StopReason};

/// Why a turn should end before it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Someone wants it to: it is stopped wherever it is.
    Interrupt(StopReason),
    /// The worker stops: the turn goes to another one from the next step boundary.
    HandBack,
}

/// All that is wanted so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wishes {
    stop: Option<Stop>,
    steers: Vec<Seq>,
    answers: BTreeMap<AskId, Decision>,
}

impl Wishes {
    /// Takes a control in; tells whether it says anything new.
    pub(crate) fn apply(&mut self, control: &Control) -> bool {
        match control {
            Control::Interrupt { reason, .. } => self.stop(Stop::Interrupt(*reason)),
            Control::Steer { seq, .. } => {
                let new = !self.steers.contains(seq);
                if new {
                    self.steers.push(*seq);
                }
                new
            }
            Control::Answer { ask, decision, .. } => {
                let new = !self.answers.contains_key(ask);
                self.answers.entry(*ask).or_insert_with(|| decision.clone());
                // Should the ask be closed already, the words are a hint.
                if let Decision::Answered { seq } = decision
                    && !self.steers.contains(seq)
                {
                    self.steers.push(*seq);
                }
                new
            }
            // Not for the turn: its fence says so.
            Control::Abandon { .. } => false,
        }
    }

    /// Asks for the end. An interrupt is stronger than giving back, and the first reason stays.
    pub(crate) fn stop(&mut self, stop: Stop) -> bool {
        let new = match self.stop {
            None => true,
            Some(Stop::HandBack) => matches!(stop, Stop::Interrupt(_)),
            Some(Stop::Interrupt(_)) => false,
        };
        if new {
            self.stop = Some(stop);
        }
        new
    }

    /// Whether the turn should end.
    pub(crate) const fn stopped(&self) -> Option<Stop> {
        self.stop
    }

    /// The hints that reached the turn, in order.
    pub(crate) fn steers(&self) -> &[Seq] {
        &self.steers
    }

    /// The decision on an ask.
    pub(crate) fn answer(&self, ask: AskId) -> Option<&Decision> {
        self.answers.get(&ask)
    }

    /// The asks that were decided.
    pub(crate) fn answered(&self) -> Vec<AskId> {
        self.answers.keys().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::tests::of;

    #[test]
    fn a_control_that_comes_twice_changes_nothing() {
        let of = of(1, 1);
        let ask = AskId { turn: of.turn, attempt: of.attempt, number: 1 };
        let controls = [
            Control::Steer { of, seq: Seq::new(5) },
            Control::Answer { of, ask, decision: Decision::Approved },
            Control::Interrupt { of, reason: StopReason::Message },
        ];
        let mut wishes = Wishes::default();
        assert!(controls.iter().all(|control| wishes.apply(control)));
        assert!(!controls.iter().any(|control| wishes.apply(control)));
        let late = Decision::Denied { reason: None };
        assert!(!wishes.apply(&Control::Answer { of, ask, decision: late }));
        assert_eq!(wishes.answer(ask), Some(&Decision::Approved));
        assert_eq!((wishes.steers(), wishes.answered()), (&[Seq::new(5)][..], vec![ask]));
    }

    #[test]
    fn an_interrupt_is_stronger_than_giving_back() {
        let mut wishes = Wishes::default();
        assert!(wishes.stop(Stop::HandBack));
        assert!(wishes.stop(Stop::Interrupt(StopReason::Stop)));
        assert!(!wishes.stop(Stop::HandBack));
        assert_eq!(wishes.stopped(), Some(Stop::Interrupt(StopReason::Stop)));
    }
}
