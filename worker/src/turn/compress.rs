//! Making room: a conversation that fills the model's context gives its middle up for a summary, which is stored before it is used.

use std::sync::Arc;

use proto::activity::State;
use proto::transcript::{Body, Entry};
use proto::turn::{StopReason, Usage};

use super::work::Work;
use super::{Halt, Stop};
use crate::models::{Answer, Calls, Message, ModelError, Request, Sign, Words};
use crate::transcript::{AppendError, Fold, tokens};

/// How much of the model's context the newest part keeps, percent.
const KEEP_PERCENT: u64 = 20;
/// The most that it keeps in bytes, so that the whole is easily stored.
const KEEP_BYTES_MAX: u64 = 256 * 1024;
/// How often a summary is tried.
const TRIES: u32 = 3;
/// The longest summary, tokens.
const SUMMARY_TOKENS: u32 = 2000;
const SUMMARISER: &str = "You write notes for an assistant whose memory is full, from a part of its conversation. Write down what it \
                          must not forget: what the person wants and has decided, facts and names, files and commands and \
                          what came of them, what is done, what is open. Be brief and exact. Write nothing else.";

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compressed {
    /// The conversation is shorter now.
    Shorter,
    /// There was nothing to be gained.
    AsItWas,
    /// The turn ends first; nothing has changed.
    Stopped(Stop),
}

/// How full the context is.
#[derive(Debug, Default)]
pub(super) struct Room {
    /// What the provider counted last, and how many entries that were.
    measured: Option<(u64, usize)>,
    /// What was left after the last compression: it is not worth doing again before more has come.
    floor: u64,
    /// Whether the model was asked in this attempt.
    is_asked: bool,
}

impl Room {
    /// The provider has counted.
    pub(super) fn measure(&mut self, usage: Usage, entries: &[Arc<Entry>]) {
        self.is_asked = true;
        self.measured = (usage.input > 0).then_some((usage.input, entries.len()));
    }

    fn used(&self, entries: &[Arc<Entry>]) -> u64 {
        let sum = |entries: &[Arc<Entry>]| entries.iter().map(|entry| tokens(entry)).sum::<u64>();
        match self.measured {
            Some((counted, at)) if at <= entries.len() => counted + sum(&entries[at..]),
            _ => sum(entries),
        }
    }
}

impl Work<'_> {
    /// Compresses the conversation if it is too long to go on with; says so if the turn is stopped meanwhile.
    pub(super) async fn make_room(&mut self) -> Result<Option<Stop>, Halt> {
        let settings = &self.turn.shared.node.settings.agent;
        let percent = if self.room.is_asked {
            settings.compress_percent
        } else {
            settings.compress_before_percent
        };
        let used = self.room.used(self.log.entries());
        let limit = self.model.context_tokens() * u64::from(percent) / 100;
        if percent == 0 || used <= limit.max(self.room.floor + self.room.floor / 4) {
            return Ok(None);
        }
        Ok(match self.compress().await? {
            Compressed::Stopped(stop) => Some(stop),
            Compressed::Shorter | Compressed::AsItWas => None,
        })
    }

    /// Compresses the conversation. A plain message does not disturb it; a stop leaves everything as it was.
    pub(super) async fn compress(&mut self) -> Result<Compressed, Halt> {
        let turn = self.turn;
        let context = self.model.context_tokens();
        let keep = (context * KEEP_PERCENT / 100).min(KEEP_BYTES_MAX / 4);
        let of = (turn.order.of, if self.depth == 0 { &turn.order.inputs[..] } else { &[] });
        let entries = self.log.entries().to_vec();
        let Some(fold) = Fold::of(&entries, of, keep) else { return Ok(Compressed::AsItWas) };
        self.tracker.enter(State::Compressing, "");
        let (by, summary) = tokio::select! {
            // A stop that came before the summary counts, however soon after it the summary comes.
            biased;
            stop = self.turn.told_to_stop() => return Ok(Compressed::Stopped(stop)),
            summary = self.summary(&fold) => match summary {
                Some(summary) => ("model", summary),
                None => ("rule", fold.by_rule()),
            },
        };
        turn.fence.check()?;
        let entries = fold.folded(&summary);
        match self.log.append(Body::Compressed { entries }).await {
            Ok(()) => {}
            Err(AppendError::TooLarge) => return Ok(Compressed::AsItWas),
            Err(error) => return Err(error.into()),
        }
        turn.shared.metrics.compressions.with_label_values(&[by]).inc();
        self.room.measured = None;
        self.room.floor = self.room.used(self.log.entries());
        tracing::info!(by, tokens = self.room.floor, "the conversation was compressed");
        self.tracker.enter(State::Preparing, "");
        Ok(Compressed::Shorter)
    }

    /// Has the model sum up what gives way.
    async fn summary(&self, fold: &Fold<'_>) -> Option<String> {
        // Half of the context at two bytes a token is safe in any language.
        let bytes = usize::try_from(self.model.context_tokens()).unwrap_or(usize::MAX).max(4000);
        let text = format!("Sum up this part of a conversation:\n\n{}", fold.text(bytes));
        for tries in 0..TRIES {
            let pause = match self.sum_up(&text).await {
                Ok(answer) if !answer.text.trim().is_empty() => return Some(answer.text),
                Ok(_) => ModelError::Empty.pause(tries),
                Err(error) => {
                    tracing::warn!(%error, tries, "a summary could not be had");
                    error.pause(tries)
                }
            };
            tokio::time::sleep(pause?).await;
        }
        None
    }

    async fn sum_up(&self, text: &str) -> Result<Answer, ModelError> {
        let (words, mut signs) = Words::channel();
        let request = Request {
            messages: vec![Message::System(SUMMARISER), Message::User(text)],
            images: std::collections::BTreeMap::new(),
            tools: &[],
            calls: Calls::Forbidden,
            max_tokens: SUMMARY_TOKENS,
        };
        let mut call = self.model.call(request, words);
        loop {
            tokio::select! {
                biased;
                Some(sign) = signs.recv() => match sign {
                    Sign::Text(_) | Sign::Busy => self.tracker.touch(),
                },
                answer = &mut call => return answer,
            }
        }
    }
}

impl super::Turn {
    /// Returns when someone wants the turn to end at once; a plain message can wait for a moment.
    async fn told_to_stop(&self) -> Stop {
        let is_urgent =
            |stop: Stop| !matches!(stop, Stop::HandBack | Stop::Interrupt(StopReason::Message));
        let mut wishes = self.wishes.clone();
        let told = wishes.wait_for(|now| now.stopped().is_some_and(is_urgent)).await;
        match told.ok().and_then(|now| now.stopped()) {
            Some(stop) => stop,
            None => std::future::pending().await,
        }
    }
}
