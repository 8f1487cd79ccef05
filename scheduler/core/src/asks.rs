//! Asks: what a running turn wants to know from a person. Each has an id, is decided once, and never interrupts the turn.

use proto::id::{AskId, OutboundId};
use proto::lease::{Effect, Phase, Turn, Waiting};
use proto::outbound::{Kind, Outbound};
use proto::receipt::Decided;
use proto::turn::{Control, Decision};

use crate::session::Step;
use crate::wording;

/// How much of a question is shown, in characters: the lease stays small.
const QUESTION_CHARS: usize = 2_000;

impl Step<'_> {
    /// `/approve [id]`
    pub(crate) fn approve(&mut self, waiting: &Waiting, args: &str) -> Decided {
        let ask = args.split_whitespace().next().and_then(|word| word.parse().ok());
        if ask.is_none() && !args.is_empty() {
            return self.answer(waiting, wording::not_an_ask(args));
        }
        self.decide(waiting, ask, Decision::Approved)
    }

    /// `/deny [id] [reason]`
    pub(crate) fn deny(&mut self, waiting: &Waiting, args: &str) -> Decided {
        let (first, rest) = args.split_once(char::is_whitespace).unwrap_or((args, ""));
        let (ask, reason) = match first.parse() {
            Ok(ask) => (Some(ask), rest.trim()),
            Err(_) => (None, args),
        };
        let reason = (!reason.is_empty()).then(|| reason.chars().take(280).collect());
        self.decide(waiting, ask, Decision::Denied { reason })
    }

    /// Decides one ask: the named one, or the oldest.
    fn decide(&mut self, waiting: &Waiting, ask: Option<AskId>, decision: Decision) -> Decided {
        let Phase::Running { turn, worker } = &mut self.session.lease.phase else {
            return self.answer(waiting, wording::nothing_asked());
        };
        let Some(ask) = ask.or_else(|| turn.asks.first().copied()) else {
            return self.answer(waiting, wording::nothing_asked());
        };
        if !turn.asks.contains(&ask) {
            return self.answer(waiting, wording::ask_is_closed(ask));
        }
        if turn.origin.user.id != waiting.origin.user.id {
            return self.answer(waiting, wording::not_yours_to_decide());
        }
        turn.asks.retain(|open| *open != ask);
        turn.answers.push((ask, decision.clone()));
        let (worker, turn) = (*worker, turn.clone());
        self.tell(
            worker,
            Control::Answer { of: self.name(&turn), ask, decision: decision.clone() },
        );
        self.answer(waiting, wording::decision(&decision))
    }

    /// A turn asks.
    pub(crate) fn asked(&mut self, ask: AskId, text: &str) {
        let Phase::Running { turn, .. } = &mut self.session.lease.phase else { return };
        if ask.turn != turn.id || ask.attempt != turn.attempt {
            return;
        }
        turn.asks.push(ask);
        let turn: Turn = turn.clone();
        let text = text.chars().take(QUESTION_CHARS).collect();
        let outbound = self.outbound_of_turn(&turn, "ask", Kind::Question, text);
        let id = OutboundId::of_turn(turn.id, &format!("ask-{}-{}", ask.attempt.get(), ask.number));
        let outbound = Outbound { id, ask: Some(ask), ..outbound };
        self.lease().effects.push(Effect::Send { outbound });
    }

    /// A turn no longer waits for an answer.
    pub(crate) fn ask_closed(&mut self, ask: AskId) {
        if let Some(turn) = self.session.lease.phase.turn_mut() {
            turn.asks.retain(|open| *open != ask);
            turn.answers.retain(|(answered, _)| *answered != ask);
        }
    }
}
