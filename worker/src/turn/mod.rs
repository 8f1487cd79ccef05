//! One attempt at a turn, from the granted claim to the report.

mod admission;
mod agent;
mod alive;
mod approval;
mod attend;
mod budget;
mod calls;
mod command;
mod compress;
mod desk;
mod external;
mod grants;
mod model_call;
mod prepare;
mod prompt;
mod references;
mod report;
mod sight;
mod spoken;
mod told;
mod wishes;
mod work;

#[cfg(test)]
mod tests;

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use futures_util::FutureExt;
use proto::id::Partition;
use proto::turn::{News, Outcome, StopReason, TurnKind, TurnOrder, Usage};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub(crate) use self::budget::Budget;
pub(crate) use self::desk::Desk;
pub(crate) use self::wishes::{Stop, Wishes};
use self::work::Work;
use crate::activity::Tracker;
use crate::fence::{Fence, Lost};
use crate::metrics::Ended;
use crate::shared::Shared;
use crate::transcript::AppendError;

const FRESH: &str = "A fresh conversation begins. What was said before is set aside.";
const BROKEN: &str = "Something went wrong inside me, so I had to stop. Whoever runs this system finds more in the log. Please \
                      try again.";
const TOO_LARGE: &str =
    "This is too large for me to store, so I had to stop. Send it in smaller parts.";

/// One attempt at a turn.
pub(crate) struct Turn {
    /// What the worker's turns share.
    pub(crate) shared: Arc<Shared>,
    /// What was ordered.
    pub(crate) order: TurnOrder,
    /// The right to run it.
    pub(crate) fence: Fence,
    /// What others want of it.
    pub(crate) wishes: watch::Receiver<Wishes>,
    /// When to stop whatever is in flight.
    pub(crate) cut: CancellationToken,
    /// Where progress is noted.
    pub(crate) tracker: Tracker,
    /// What it and its sub-agents may spend.
    pub(crate) budget: Budget,
    /// What it has counted.
    pub(crate) counts: Counts,
    /// Whom it answers, as hooks are told; once that is known.
    pub(crate) speaker: OnceLock<serde_json::Value>,
}

/// Numbers that make names unique within an attempt.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    asks: AtomicU32,
    said: AtomicU32,
    children: AtomicU32,
    /// What sub-agents have used.
    input: AtomicU64,
    output: AtomicU64,
}

impl Counts {
    /// The number of the next question to a person.
    fn ask(&self) -> u32 {
        self.asks.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The number of the next message to another chat.
    fn said(&self) -> u32 {
        self.said.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The number of the next sub-agent.
    fn child(&self) -> u32 {
        self.children.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// A sub-agent has used this.
    fn spent(&self, usage: Usage) {
        self.input.fetch_add(usage.input, Ordering::Relaxed);
        self.output.fetch_add(usage.output, Ordering::Relaxed);
    }
}

/// How the turn came to an end.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Ending {
    /// With an answer.
    Completed,
    /// Because of a wish.
    Stopped(Stop),
    /// With an error; the words are for the person.
    Failed(String),
    /// Without anything done, because its people may not talk to the agent any more; the words are for them.
    Refused(String),
}

/// Why a step did not happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Halt {
    Lost,
    TooLarge,
}

impl From<Lost> for Halt {
    fn from(_: Lost) -> Self {
        Self::Lost
    }
}

impl From<AppendError> for Halt {
    fn from(error: AppendError) -> Self {
        match error {
            // After our first entry no one else may write; if someone did, the turn is theirs.
            AppendError::Lost(_) | AppendError::Overtaken => Self::Lost,
            AppendError::TooLarge => Self::TooLarge,
        }
    }
}

/// What the report says beside the ending.
#[derive(Debug, Default)]
struct Summary {
    reply: String,
    steered: Vec<proto::id::Seq>,
    usage: Usage,
}

impl Turn {
    /// Runs the attempt to its end. When the right to it is lost, everything that it has in flight is dropped on the spot.
    pub(crate) async fn run(self) -> Ended {
        let began = Instant::now();
        let ended = tokio::select! {
            biased;
            () = self.fence.lost() => Err(Lost),
            ended = self.to_the_end() => ended,
        };
        let how = ended.unwrap_or(Ended::Lost);
        self.shared.metrics.ended(how, began.elapsed());
        tracing::info!(outcome = how.label(), "turn ended");
        how
    }

    async fn to_the_end(&self) -> Result<Ended, Lost> {
        // A turn that panics must not take the worker along, and its person must not wait for nothing.
        let body = AssertUnwindSafe(Box::pin(self.body())).catch_unwind();
        let body = tokio::select! {
            body = body => body,
            () = alive::show(self) => return Err(Lost),
        };
        let (ending, result) = match body {
            Ok(Ok(done)) => done,
            Ok(Err(Halt::Lost)) => {
                self.fence.lose();
                return Err(Lost);
            }
            Ok(Err(Halt::TooLarge)) => (Ending::Failed(TOO_LARGE.into()), Summary::default()),
            Err(_) => {
                tracing::error!("a turn panicked");
                (Ending::Failed(BROKEN.into()), Summary::default())
            }
        };
        self.conclude(ending, result).await
    }

    async fn body(&self) -> Result<(Ending, Summary), Halt> {
        if let Some(stop) = self.stopped() {
            return Ok((Ending::Stopped(stop), Summary::default()));
        }
        if self.order.kind != TurnKind::Chat
            && let Err(ending) = admission::admitted(self).await?
        {
            return Ok((ending, Summary::default()));
        }
        if self.order.kind == TurnKind::Reset {
            self.end_background();
            prepare::begin_afresh(self).await?;
            let result = Summary { reply: FRESH.into(), ..Summary::default() };
            return Ok((Ending::Completed, result));
        }
        if self.order.kind == TurnKind::Command {
            return Box::pin(command::run(self)).await;
        }
        match prepare::agent(self).await? {
            Ok((agent, admitted)) => {
                let (ending, summary) = agent.finish().await?;
                Ok((ending, admitted.told(summary)))
            }
            Err(ending) => Ok((ending, Summary::default())),
        }
    }

    async fn conclude(&self, ending: Ending, result: Summary) -> Result<Ended, Lost> {
        if matches!(ending, Ending::Stopped(Stop::Interrupt(StopReason::Stop | StopReason::Reset)))
        {
            self.end_background();
        }
        let Summary { mut reply, steered, usage } = result;
        let (outcome, ended) = match ending {
            Ending::Completed => (Outcome::Completed, Ended::Completed),
            Ending::Stopped(Stop::Interrupt(_)) => (Outcome::Interrupted, Ended::Interrupted),
            Ending::Stopped(Stop::HandBack) => {
                self.tell_agent_end("handed_back", "");
                self.report(News::HandedBack, "handed-back").await?;
                return Ok(Ended::HandedBack);
            }
            Ending::Failed(words) => {
                if !reply.is_empty() {
                    reply += "\n\n";
                }
                reply += &words;
                (Outcome::Failed, Ended::Failed)
            }
            Ending::Refused(words) => {
                reply = words;
                (Outcome::Refused, Ended::Refused)
            }
        };
        // A byte of text can become six of JSON; a reply that long is not for reading anyway.
        let reply = crate::text::shorten(reply, self.shared.node.bus.payload_limit() / 2);
        self.tell_agent_end(ended.label(), &reply);
        let news = News::Finished { outcome, reply, steered, usage };
        self.report(news, "finished").await?;
        Ok(ended)
    }

    /// Ends what the session runs in the background, if that is what the operator wants.
    fn end_background(&self) {
        if self.shared.node.settings.worker.stop_ends_background {
            self.shared.background.stop_all(self.order.of.sid);
        }
    }

    /// Whether the turn should end, and why.
    fn stopped(&self) -> Option<Stop> {
        self.wishes.borrow().stopped()
    }

    /// The partition that decides for the session.
    fn partition(&self) -> Partition {
        self.shared.node.bus.partition_of(self.order.of.sid)
    }
}

impl Work<'_> {
    /// Runs the loop, and leaves the conversation as it should be found.
    async fn finish(mut self) -> Result<(Ending, Summary), Halt> {
        let ending = self.run().await?;
        self.leave_no_trace(&ending).await?;
        Ok((ending, self.put_away()))
    }

    /// Keeps the conversation for the session's next turn, and returns what the report says.
    fn put_away(self) -> Summary {
        let sid = self.turn.order.of.sid;
        let Self { turn, log, seat, spoken, steered, mut usage, .. } = self;
        usage.input += turn.counts.input.load(Ordering::Relaxed);
        usage.output += turn.counts.output.load(Ordering::Relaxed);
        let (last, entries) = log.into_parts();
        if let Some(seat) = seat
            && turn.fence.check().is_ok()
        {
            turn.shared.shelf.put(sid, seat.keep(last, entries));
        }
        tracing::info!(calls = turn.budget.used(), usage.input, usage.output, "what it took");
        Summary { reply: spoken.text().to_owned(), steered, usage }
    }
}
