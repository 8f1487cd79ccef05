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

/// Which asks are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Which {
    Oldest,
    All,
    Named(AskId),
}

fn which(word: &str) -> Option<Which> {
    if word.eq_ignore_ascii_case("all") {
        Some(Which::All)
    } else {
        word.parse().ok().map(Which::Named)
    }
}

impl Step<'_> {
    /// `/approve [id]`
    pub(crate) fn approve(&mut self, waiting: &Waiting, args: &str) -> Decided {
        let word = args.split_whitespace().next().unwrap_or_default();
        match (which(word), word) {
            (Some(which), _) => self.decide(waiting, which, &Decision::Approved),
            (None, "") => self.decide(waiting, Which::Oldest, &Decision::Approved),
            (None, _) => self.answer(waiting, wording::not_an_ask(args)),
        }
    }

    /// `/deny [id] [reason]`
    pub(crate) fn deny(&mut self, waiting: &Waiting, args: &str) -> Decided {
        let (first, rest) = args.split_once(char::is_whitespace).unwrap_or((args, ""));
        let (which, reason) = match which(first) {
            Some(which) => (which, rest.trim()),
            None => (Which::Oldest, args),
        };
        let reason = (!reason.is_empty()).then(|| reason.chars().take(280).collect());
        self.decide(waiting, which, &Decision::Denied { reason })
    }

    /// Decides the asks that are meant.
    fn decide(&mut self, waiting: &Waiting, which: Which, decision: &Decision) -> Decided {
        let Phase::Running { turn, worker } = &mut self.session.lease.phase else {
            return self.answer(waiting, wording::nothing_asked());
        };
        let asks: Vec<AskId> = match which {
            Which::Oldest => turn.asks.first().copied().into_iter().collect(),
            Which::All => turn.asks.clone(),
            Which::Named(ask) if turn.asks.contains(&ask) => vec![ask],
            Which::Named(ask) => return self.answer(waiting, wording::ask_is_closed(ask)),
        };
        if asks.is_empty() {
            return self.answer(waiting, wording::nothing_asked());
        }
        if turn.origin.user.id != waiting.origin.user.id {
            return self.answer(waiting, wording::not_yours_to_decide());
        }
        turn.asks.retain(|open| !asks.contains(open));
        turn.answers.extend(asks.iter().map(|ask| (*ask, decision.clone())));
        let (worker, turn) = (*worker, turn.clone());
        for ask in &asks {
            self.tell(
                worker,
                Control::Answer { of: self.name(&turn), ask: *ask, decision: decision.clone() },
            );
        }
        self.answer(waiting, wording::decision(decision, asks.len()))
    }

    /// A turn asks.
    pub(crate) fn asked(&mut self, ask: AskId, text: &str) {
        let yolo = self.session.lease.choices.yolo;
        let Phase::Running { turn, worker } = &mut self.session.lease.phase else { return };
        if ask.turn != turn.id || ask.attempt != turn.attempt {
            return;
        }
        if yolo {
            turn.answers.push((ask, Decision::Approved));
            let (worker, turn) = (*worker, turn.clone());
            self.tell(
                worker,
                Control::Answer { of: self.name(&turn), ask, decision: Decision::Approved },
            );
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
