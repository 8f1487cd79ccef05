//! Asks: what a running turn wants to know from a person. Each has an id, is decided once, and never interrupts the turn.

use proto::id::{AskId, OutboundId};
use proto::lease::{Ask, Effect, Phase, Turn, Waiting};
use proto::outbound::{Kind, Outbound};
use proto::receipt::Decided;
use proto::turn::{AskKind, Control, Decision};

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
            Which::Oldest => turn.asks.first().map(|ask| ask.id).into_iter().collect(),
            Which::All => turn.asks.iter().map(|ask| ask.id).collect(),
            Which::Named(ask) if turn.asks.iter().any(|open| open.id == ask) => vec![ask],
            Which::Named(ask) => return self.answer(waiting, wording::ask_is_closed(ask)),
        };
        if asks.is_empty() {
            return self.answer(waiting, wording::nothing_asked());
        }
        if turn.origin.user.id != waiting.origin.user.id {
            return self.answer(waiting, wording::not_yours_to_decide());
        }
        turn.asks.retain(|open| !asks.contains(&open.id));
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

    /// The question that the words of a person answer: the oldest that their turn waits for.
    pub(crate) fn question_for(&self, user: &str) -> Option<AskId> {
        let Phase::Running { turn, .. } = &self.session.lease.phase else { return None };
        let open = turn.asks.iter().find(|ask| ask.kind == AskKind::Question);
        open.filter(|_| turn.origin.user.id == user).map(|ask| ask.id)
    }

    /// Plain words are what the turn waits for. They go with it as a hint does, so that they are not lost with its worker: what
    /// the model has not seen leads the next turn.
    pub(crate) fn answered(&mut self, waiting: Waiting, ask: AskId) -> Decided {
        let seq = waiting.seq;
        let Phase::Running { turn, worker } = &mut self.session.lease.phase else {
            return Decided::TooLate;
        };
        turn.asks.retain(|open| open.id != ask);
        let decision = Decision::Answered { seq };
        turn.answers.push((ask, decision.clone()));
        turn.steers.push(Waiting { answers: true, ..waiting });
        let (worker, turn) = (*worker, turn.clone());
        self.tell(worker, Control::Answer { of: self.name(&turn), ask, decision });
        Decided::Answering
    }

    /// A turn asks.
    pub(crate) fn asked(&mut self, ask: AskId, kind: AskKind, text: &str) {
        let yolo = kind == AskKind::Approval && self.session.lease.choices.yolo;
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
        turn.asks.push(Ask { id: ask, kind });
        let turn: Turn = turn.clone();
        let text = text.chars().take(QUESTION_CHARS).collect();
        let outbound = self.outbound_of_turn(&turn, "ask", Kind::Question, text);
        let id = OutboundId::of_turn(turn.id, &format!("ask-{}-{}", ask.attempt.get(), ask.number));
        // Buttons decide; a question wants words.
        let buttons = (kind == AskKind::Approval).then_some(ask);
        let outbound = Outbound { id, ask: buttons, ..outbound };
        self.lease().effects.push(Effect::Send { outbound });
    }

    /// A turn no longer waits for an answer.
    pub(crate) fn ask_closed(&mut self, ask: AskId) {
        if let Some(turn) = self.session.lease.phase.turn_mut() {
            turn.asks.retain(|open| open.id != ask);
            turn.answers.retain(|(answered, _)| *answered != ask);
        }
    }
}
