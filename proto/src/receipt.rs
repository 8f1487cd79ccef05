//! Receipts: what was decided and why (`event.<sid>`), for the console, for `explain` and for audit. Best effort.

use serde::{Deserialize, Serialize};

use crate::id::{Attempt, ProcessId, Seq, TurnId};
use crate::session::SessionKey;
use crate::turn::{Outcome, StopReason};

/// What one write of a session's lease made true.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Receipt {
    /// The session's readable key.
    pub session: SessionKey,
    /// What happened, in order.
    pub facts: Vec<Fact>,
}

/// Why a message that might have interrupted waits instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueReason {
    /// It was asked for: `/queue`, or the mode says so.
    Asked,
    /// The turn has not started yet.
    Starting,
    /// The turn is stopping already.
    Stopping,
    /// Too many turns in a row were interrupted.
    Depth,
    /// Sub-agents work.
    Delegating,
    /// The conversation is being compressed.
    Compressing,
    /// The turn waits for a decision on something it asked.
    Asking,
    /// It cannot be a hint: the turn takes none at the moment, or it brings a file.
    NotSteered,
    /// It waits for more of its kind.
    Burst,
}

/// What can happen.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fact {
    /// An input was decided on.
    Decided {
        /// Where it stands in `INBOX`.
        seq: Seq,
        /// The platform's id of the message.
        message: String,
        /// What was decided.
        decision: Decided,
    },
    /// The session's state changed.
    State {
        /// `idle`, `starting`, `running` or `stopping`.
        state: StateName,
        /// The turn.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        turn: Option<TurnId>,
        /// How many wait.
        queued: usize,
    },
    /// A worker claimed a turn.
    Claimed {
        /// The turn.
        turn: TurnId,
        /// The attempt.
        attempt: Attempt,
        /// Who runs it.
        worker: ProcessId,
    },
    /// A turn ended.
    Ended {
        /// The turn.
        turn: TurnId,
        /// The attempt.
        attempt: Attempt,
        /// How.
        end: End,
    },
    /// A message has reached its end.
    Settled {
        /// The platform's id of the message.
        message: String,
        /// What became of it.
        fate: Fate,
        /// The turn that it was part of.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        turn: Option<TurnId>,
    },
    /// A turn was slow or silent for so long that its person was told.
    Slow {
        /// The turn.
        turn: TurnId,
        /// The attempt.
        attempt: Attempt,
        /// What they were told.
        stage: Stage,
    },
    /// A turn's worker was given up on; the next attempt was ordered.
    Retried {
        /// The turn.
        turn: TurnId,
        /// The new attempt.
        attempt: Attempt,
        /// Whether the worker gave it back by itself.
        handed_back: bool,
    },
}

/// What the person of a long turn is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// It still works.
    StillWorking,
    /// It has made no progress for a while and will be stopped.
    Warned,
    /// It has made none for too long and is stopped.
    TimedOut,
}

/// A session's state by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StateName {
    /// Nothing runs.
    Idle,
    /// More may come that belongs together.
    Collecting,
    /// A turn is ordered.
    Starting,
    /// A turn runs.
    Running,
    /// A turn is being stopped.
    Stopping,
}

/// What was decided on an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decided {
    /// It leads a turn now.
    Started,
    /// It leads a turn later.
    Queued {
        /// Why not now.
        reason: QueueReason,
    },
    /// It stops the turn and leads the next one.
    Interrupted,
    /// It stops the turn, which leaves no trace, and leads the next one.
    RolledBack,
    /// It was passed to the running turn.
    Steered,
    /// It answers what the running turn asked.
    Answering,
    /// It joined a message that was waiting.
    Merged,
    /// It waits for more of its kind, and then leads a turn.
    Collecting,
    /// It begins a session of its own.
    Background,
    /// A command was carried out.
    Done,
    /// It replaced what it edits.
    Edited,
    /// What it names was taken back.
    Withdrawn,
    /// It came too late to change anything.
    TooLate,
    /// It was refused.
    Refused {
        /// Why.
        reason: Refusal,
    },
}

/// Why a message was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// Too many wait already.
    Full,
    /// The mode takes none while a turn runs.
    Busy,
    /// The command touches the conversation, and a turn is using it.
    NotNow,
    /// The message that it changes is someone else's.
    NotYours,
    /// A hook of the operator does not allow it.
    Forbidden,
}

/// What became of a message in the end; each has exactly one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// Its turn replied.
    Answered,
    /// Its turn was stopped; what it had said stays.
    Interrupted,
    /// It is part of the turn of another message.
    Merged,
    /// A running turn saw it as a hint.
    Steered,
    /// A command dropped it before its turn began.
    Cleared,
    /// The person, or their client, took it back.
    Withdrawn,
    /// It was refused, and said so.
    Refused,
    /// It was a command, and was carried out.
    Done,
    /// Its turn was given up after too many attempts.
    Parked,
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// Its worker reported it.
    Reported {
        /// The outcome.
        outcome: Outcome,
    },
    /// Its worker did not confirm the stop in time.
    Released {
        /// Why it was stopped.
        why: StopReason,
    },
    /// It was stopped before a worker had it.
    Withdrawn,
    /// Its attempts are used up.
    Parked,
}
