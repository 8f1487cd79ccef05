//! Asking a person before something dangerous is done. No answer means no.

use proto::activity::State;
use proto::id::AskId;
use proto::turn::{AskKind, Decision, News, Scope};

use super::work::Work;
use super::{Halt, Stop};
use crate::tools::danger::Danger;

/// The most of a command that is shown.
const COMMAND_BYTES_MAX: usize = 1500;

/// What is asked.
pub(super) struct Question<'a> {
    /// A few words on it.
    pub(super) about: &'a str,
    /// What is wanted.
    pub(super) kind: AskKind,
    /// What the person reads.
    pub(super) text: String,
    /// What an approval for more than this once would cover.
    pub(super) rule: Option<String>,
}

/// What came of the question.
pub(super) enum Verdict {
    /// Go ahead.
    Approved,
    /// No; the words are for the model.
    Refused(String),
    /// The turn ends first.
    Stopped(Stop),
}

/// What was heard of a question.
pub(super) enum Heard {
    /// An answer.
    Decision(Decision),
    /// The turn ends first.
    Stop(Stop),
    /// Nothing, in time.
    Nothing,
}

impl Work<'_> {
    /// Asks whether something may be done.
    pub(super) async fn ask_approval(
        &self,
        command: &str,
        danger: &Danger,
    ) -> Result<Verdict, Halt> {
        let rule = danger.rule();
        if let Some(rule) = rule
            && self.turn.is_approved(rule).await?
        {
            return Ok(Verdict::Approved);
        }
        let question = Question {
            about: command,
            kind: AskKind::Approval,
            text: question(command, danger),
            rule: rule.map(str::to_owned),
        };
        Ok(match self.ask(question).await? {
            Heard::Decision(Decision::ApprovedFor { scope: Scope::Always }) => {
                if let Some(rule) = rule {
                    self.turn.approve_always(rule).await?;
                }
                Verdict::Approved
            }
            Heard::Decision(Decision::Approved | Decision::ApprovedFor { .. }) => Verdict::Approved,
            Heard::Decision(Decision::Denied { reason }) => {
                let reason = reason.map(|words| format!(" They said: {words}")).unwrap_or_default();
                Verdict::Refused(refusal(&format!("A person refused this.{reason}")))
            }
            Heard::Stop(stop) => Verdict::Stopped(stop),
            // Words decide nothing.
            Heard::Decision(Decision::Answered { .. }) | Heard::Nothing => {
                Verdict::Refused(refusal("No one allowed this in time."))
            }
        })
    }

    /// Asks, and waits for the answer, the end of the turn, or the time limit.
    pub(super) async fn ask(&self, question: Question<'_>) -> Result<Heard, Halt> {
        let Question { about, kind, text, rule } = question;
        let turn = self.turn;
        let (of, number) = (turn.order.of, turn.counts.ask());
        let ask = AskId { turn: of.turn, attempt: of.attempt, number };
        turn.shared.metrics.asks.inc();
        turn.fence.check()?;
        // Before it is asked, so that no plain message interrupts a turn that waits for its answer.
        self.tracker.enter(State::WaitingForHuman, about);
        turn.report(News::Asked { ask, text, kind, rule }, &format!("asked-{number}")).await?;
        let heard = self.decision(ask).await;
        turn.fence.check()?;
        self.tracker.enter(State::Preparing, "");
        if !matches!(heard, Heard::Decision(_)) {
            let what = format!("ask-closed-{number}");
            turn.report(News::AskClosed { ask }, &what).await?;
        }
        Ok(heard)
    }

    async fn decision(&self, ask: AskId) -> Heard {
        let mut wishes = self.turn.wishes.clone();
        let decided = wishes.wait_for(|now| now.answer(ask).is_some() || now.stopped().is_some());
        let limit = self.turn.shared.node.settings.agent.approval_timeout.limit();
        let limited = async {
            match limit {
                Some(limit) => tokio::time::sleep(limit).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            now = decided => match now.as_deref() {
                Ok(now) => match (now.answer(ask), now.stopped()) {
                    // A stop that came with the answer is seen at the next step.
                    (Some(decision), _) => Heard::Decision(decision.clone()),
                    (None, Some(stop)) => Heard::Stop(stop),
                    (None, None) => Heard::Nothing,
                },
                Err(_) => Heard::Stop(Stop::HandBack),
            },
            () = limited => Heard::Nothing,
        }
    }
}

fn question(command: &str, danger: &Danger) -> String {
    let command = crate::text::shorten(command.to_owned(), COMMAND_BYTES_MAX);
    let why = danger.why;
    let replies = match danger.rule() {
        Some(_) => "Reply /approve (this once), /approve session, /approve always, or /deny.",
        None => "Reply /approve or /deny.",
    };
    format!("May I run this? It {why}.\n\n```\n{command}\n```\n\n{replies}")
}

fn refusal(why: &str) -> String {
    format!(
        "[not run] {why} Do not try this again, and do not try to reach the same in another way. Go on without it, or ask the \
         person what to do instead."
    )
}
