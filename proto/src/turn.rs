//! Turns: their orders from the scheduler to a worker, the claim that starts one, and the reports that come back.

use serde::{Deserialize, Serialize};

use crate::activity::Activity;
use crate::event::Address;
use crate::id::{AskId, Attempt, Epoch, ProcessId, Seq, Sid, TurnId};
use crate::session::SessionKey;

/// What a turn does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnKind {
    /// Answers its inputs.
    #[default]
    Chat,
    /// Begins a fresh conversation.
    Reset,
    /// Carries out the command that its input holds: one that touches the conversation.
    Command,
}

/// One attempt at a turn, named so that everything it writes can be fenced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TurnRef {
    /// The session.
    pub sid: Sid,
    /// The turn.
    pub turn: TurnId,
    /// The attempt.
    pub attempt: Attempt,
}

/// An order to run a turn (`turn.<pool>.<sid>`). Getting one is not a right to run it: that is what the claim is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnOrder {
    /// What is to be run.
    pub of: TurnRef,
    /// The session's readable key.
    pub session: SessionKey,
    /// What to do.
    pub kind: TurnKind,
    /// The inputs to answer, in order.
    pub inputs: Vec<Seq>,
    /// Where drafts go.
    pub address: Address,
    /// Whether the conversation before is set aside first, because it was stopped.
    #[serde(default)]
    pub fresh: bool,
    /// Turns before it of which the conversation is to keep nothing: they were taken back, and their worker may not have seen to
    /// it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forget: Vec<TurnId>,
}

/// A worker asks to run an order (`scheduler.<p>.claim`, request).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// What it wants to run.
    pub of: TurnRef,
    /// Who asks.
    pub worker: ProcessId,
}

/// The answer to a claim. It is given after the lease record says so, never before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClaimReply {
    /// Run it.
    Granted {
        /// The owner's epoch: answers of earlier owners no longer count.
        epoch: Epoch,
    },
    /// Drop the order.
    Denied {
        /// Why.
        reason: Denial,
    },
}

/// Why a claim was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Denial {
    /// The turn has ended, was stopped, or has a newer attempt.
    Superseded,
    /// Another worker runs this attempt.
    Taken,
}

/// All turns that a worker runs in one partition (`scheduler.<p>.beat`, request, every `scheduler.beat`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beat {
    /// Who beats.
    pub worker: ProcessId,
    /// What it runs.
    pub turns: Vec<BeatTurn>,
}

/// One turn in a heartbeat.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BeatTurn {
    /// Which turn.
    pub of: TurnRef,
    /// What it is doing.
    pub activity: Activity,
    /// The steers that reached it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steers: Vec<Seq>,
    /// The steers that its model has seen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seen: Vec<Seq>,
    /// The answers that reached it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<AskId>,
}

/// The answer to a heartbeat: which turns the worker may go on with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BeatReply {
    /// The owner's epoch; an answer with a lower one than seen before does not count.
    pub epoch: Epoch,
    /// Renewed: the worker keeps these.
    pub kept: Vec<TurnRef>,
    /// Lost: stop at once and say nothing more.
    pub lost: Vec<TurnRef>,
    /// What the worker should know and has not applied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub controls: Vec<Control>,
}

/// Why a turn is told to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// A new message.
    Message,
    /// `/stop`.
    Stop,
    /// `/new`.
    Reset,
    /// No progress for too long.
    Timeout,
    /// The client that waited for the answer hung up.
    Hangup,
    /// A new message, and what the turn did is to leave no trace in the conversation.
    Rollback,
    /// The message that leads it was taken back.
    Withdrawn,
}

/// What a turn wants of a person.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AskKind {
    /// Leave to do something: only a decision counts, and words decide nothing.
    #[default]
    Approval,
    /// An answer in words: the next plain ones of the person are it.
    Question,
}

/// For how long an approval holds that is for more than one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Until the session is reset.
    Session,
    /// For good, for the person who says so.
    Always,
}

/// A decision on an ask.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Go ahead.
    Approved,
    /// Go ahead, and with the like of it later on.
    ApprovedFor {
        /// For how long.
        scope: Scope,
    },
    /// Do not.
    Denied {
        /// What the person said, if anything.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The person answered a question in words of their own.
    Answered {
        /// Where the words stand in `INBOX`.
        seq: Seq,
    },
}

/// A word to a running turn (`worker.<id>.control`). Volatile: the lease record holds what is wanted, and heartbeats repeat it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Control {
    /// Stop, store what there is, and report.
    Interrupt {
        /// Which turn.
        of: TurnRef,
        /// Why.
        reason: StopReason,
    },
    /// Stop at once and say nothing more: the turn is no longer this worker's.
    Abandon {
        /// Which turn.
        of: TurnRef,
    },
    /// Take a hint along; its words are the input at `seq`.
    Steer {
        /// Which turn.
        of: TurnRef,
        /// Where the hint stands in `INBOX`.
        seq: Seq,
    },
    /// Someone decided.
    Answer {
        /// Which turn.
        of: TurnRef,
        /// Which ask.
        ask: AskId,
        /// What was decided.
        decision: Decision,
    },
}

impl Decision {
    /// Whether it says yes.
    #[must_use]
    pub const fn is_approval(&self) -> bool {
        match self {
            Self::Approved | Self::ApprovedFor { .. } => true,
            Self::Denied { .. } | Self::Answered { .. } => false,
        }
    }
}

impl Control {
    /// The turn it is for.
    #[must_use]
    pub const fn of(&self) -> TurnRef {
        match self {
            Self::Interrupt { of, .. }
            | Self::Abandon { of }
            | Self::Steer { of, .. }
            | Self::Answer { of, .. } => *of,
        }
    }
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// With an answer.
    Completed,
    /// It was told to stop, and did.
    Interrupted,
    /// With an error that the reply explains.
    Failed,
}

/// Tokens used by a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens read by the model.
    pub input: u64,
    /// Tokens written by the model.
    pub output: u64,
}

/// What a worker says about a turn (`inbox.<p>.<sid>`): an input like any message.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TurnReport {
    /// Which turn.
    pub of: TurnRef,
    /// Who says it.
    pub worker: ProcessId,
    /// What happened.
    pub news: News,
}

/// What happened to a turn.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum News {
    /// It ended.
    Finished {
        /// How.
        outcome: Outcome,
        /// What the person should read; what was streamed, if it was interrupted.
        reply: String,
        /// The steers that the model has seen; the others become the next turns.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        steered: Vec<Seq>,
        /// What it cost.
        #[serde(default)]
        usage: Usage,
    },
    /// It waits for a person.
    Asked {
        /// The ask's id.
        ask: AskId,
        /// What to show.
        text: String,
        /// What is wanted.
        #[serde(default)]
        kind: AskKind,
        /// What an approval for more than this once would cover; none where there is only this once.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rule: Option<String>,
    },
    /// It has something to say in another chat.
    Said {
        /// The number of what is said, within the attempt.
        number: u32,
        /// Where.
        address: Address,
        /// The words.
        text: String,
    },
    /// It waits no longer (answered, timed out, or stopped).
    AskClosed {
        /// The ask's id.
        ask: AskId,
    },
    /// The worker stops and gives the turn back at a step boundary.
    HandedBack,
}
