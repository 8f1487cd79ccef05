//! What can happen to a session, and what is said because of it.

use proto::event::MessageEvent;
use proto::id::{Epoch, ProcessId, Seq};
use proto::receipt::Fact;
use proto::turn::{BeatTurn, Claim, ClaimReply, Control, TurnReport};

/// What can happen. The first seven come from the log and carry their place in it; one that the lease has seen is skipped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A person wrote.
    Message {
        /// Its place.
        seq: Seq,
        /// What was written.
        event: Box<MessageEvent>,
    },
    /// A person wrote what a hook of the operator does not allow.
    Refused {
        /// Its place.
        seq: Seq,
        /// What was written.
        event: Box<MessageEvent>,
        /// What the person is told.
        text: String,
    },
    /// A person changed what they wrote.
    Edit {
        /// Its place.
        seq: Seq,
        /// What it says now; the id is that of the message that it replaces.
        event: Box<MessageEvent>,
    },
    /// A person took a message back.
    Withdrawal {
        /// Its place.
        seq: Seq,
        /// The message's id.
        message: String,
        /// The person's id.
        user: String,
    },
    /// A worker reports.
    Report {
        /// Its place.
        seq: Seq,
        /// What it reports.
        report: TurnReport,
    },
    /// The client that waited for the answer to a message hung up.
    Hangup {
        /// Its place.
        seq: Seq,
        /// The message's id.
        message: String,
    },
    /// An input that could not be read: it only takes its place.
    Unreadable {
        /// Its place.
        seq: Seq,
    },
    /// A worker wants to run an order.
    Claim(Claim),
    /// A worker says how a turn is doing.
    Beat {
        /// Who says it.
        worker: ProcessId,
        /// What it says.
        turn: BeatTurn,
    },
    /// A process is proven to be dead.
    WorkerGone(ProcessId),
    /// A new owner took the partition over: whoever runs something gets a fresh grace period.
    Adopt(Epoch),
    /// Time has passed.
    Tick,
}

impl Input {
    /// Its place in the log, if it comes from there.
    #[must_use]
    pub const fn seq(&self) -> Option<Seq> {
        match self {
            Self::Message { seq, .. }
            | Self::Refused { seq, .. }
            | Self::Edit { seq, .. }
            | Self::Withdrawal { seq, .. }
            | Self::Report { seq, .. }
            | Self::Hangup { seq, .. }
            | Self::Unreadable { seq } => Some(*seq),
            Self::Claim(_)
            | Self::Beat { .. }
            | Self::WorkerGone(_)
            | Self::Adopt(_)
            | Self::Tick => None,
        }
    }
}

/// What is said once the lease is written. Losing any of it is harmless.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signal {
    /// The answer to the claim.
    Claim(ClaimReply),
    /// The answer to the heartbeat.
    Beat {
        /// Whether the worker keeps the turn.
        kept: bool,
        /// What it should know and has not applied.
        controls: Vec<Control>,
    },
    /// A word to a worker.
    Tell {
        /// Whom.
        worker: ProcessId,
        /// What.
        control: Control,
    },
    /// A receipt.
    Fact(Fact),
}
