//! Asks: what a running turn wants to know from a person. Each has an id, is decided once, and never interrupts the turn.

use proto::id::{AskId, OutboundId};
use proto::lease::{Ask, Effect, Phase, Turn, Waiting};
use proto::outbound::{Kind, Outbound};
use proto::receipt::Decided;
use proto::turn::{AskKind, Control, Decision, Scope};

use crate::jobs;
use crate::session::Step;
use crate::wording;

/// How much of a question is shown, in characters: the lease stays small.
const QUESTION_CHARS: usize = 2_000;

/// How many kinds of things can be approved for a session.
const RULES_MAX: usize = 32;

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
    /// `/approve [id|all] [session|always]`
    pub(crate) fn approve(&mut self, waiting: &Waiting, args: &str) -> Decided {
        let (mut asks, mut decision) = (Which::Oldest, Decision::Approved);
        for word in args.split_whitespace() {
            let word = word.to_ascii_lowercase();
            match (word.as_str(), which(&word)) {
                ("once", _) => decision = Decision::Approved,
                ("session", _) => decision = Decision::ApprovedFor { scope: Scope::Session },
                ("always", _) => decision = Decision::ApprovedFor { scope: Scope::Always },
                (_, Some(which)) => asks = which,
                (_, None) => return self.answer(waiting, wording::not_an_ask(args)),
            }
        }
        self.decide(waiting, asks, &decision)
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
        let decided: Vec<_> = turn.asks.extract_if(.., |open| asks.contains(&open.id)).collect();
        turn.answers.extend(asks.iter().map(|ask| (*ask, decision.clone())));
        let (worker, turn) = (*worker, turn.clone());
        for ask in &asks {
            self.tell(
                worker,
                Control::Answer { of: self.name(&turn), ask: *ask, decision: decision.clone() },
            );
        }
        let rules: Vec<String> = decided.into_iter().filter_map(|ask| ask.rule).collect();
        let text = wording::decision(decision, asks.len(), !rules.is_empty());
        if matches!(decision, Decision::ApprovedFor { .. }) {
            self.remember_approved(rules);
        }
        self.answer(waiting, text)
    }

    /// What is approved for more than once is not asked again in this session.
    fn remember_approved(&mut self, rules: Vec<String>) {
        let approved = &mut self.lease().choices.approved;
        for rule in rules {
            if approved.len() < RULES_MAX {
                approved.insert(rule);
            }
        }
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

    /// The decision that needs no person: an approval that was given before, and anything in the run of a job, where no one is
    /// there to ask.
    fn given(&self, ask: &Ask) -> Option<Decision> {
        let choices = &self.session.lease.choices;
        let of_job = self.session.is_of_job();
        let known = ask.rule.as_ref().is_some_and(|rule| choices.approved.contains(rule));
        let approves = choices.yolo || known || (of_job && self.policy.job_approve);
        if ask.kind == AskKind::Approval && approves {
            return Some(Decision::Approved);
        }
        of_job.then(|| Decision::Denied { reason: Some(jobs::no_one_to_ask()) })
    }

    /// A turn asks.
    pub(crate) fn asked(&mut self, ask: Ask, text: &str) {
        let (kind, given, id) = (ask.kind, self.given(&ask), ask.id);
        let Phase::Running { turn, worker } = &mut self.session.lease.phase else { return };
        if id.turn != turn.id || id.attempt != turn.attempt {
            return;
        }
        if let Some(decision) = given {
            turn.answers.push((id, decision.clone()));
            let (worker, turn) = (*worker, turn.clone());
            self.tell(worker, Control::Answer { of: self.name(&turn), ask: id, decision });
            return;
        }
        turn.asks.push(ask);
        let turn: Turn = turn.clone();
        let text = text.chars().take(QUESTION_CHARS).collect();
        let outbound = self.outbound_of_turn(&turn, "ask", Kind::Question, text);
        let name = format!("ask-{}-{}", id.attempt.get(), id.number);
        // Buttons decide; a question wants words.
        let buttons = (kind == AskKind::Approval).then_some(id);
        let outbound =
            Outbound { id: OutboundId::of_turn(turn.id, &name), ask: buttons, ..outbound };
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
