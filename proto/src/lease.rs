//! The lease: the one record of a session. It says what the session is, what must be sent because of it, and which input it
//! has seen. Only the owner of the session's partition writes it, each time by compare-and-set.

use serde::{Deserialize, Serialize};

use crate::event::{Address, User};
use crate::id::{AskId, Attempt, Epoch, ProcessId, Seq, TurnId};
use crate::outbound::Outbound;
use crate::session::SessionKey;
use crate::turn::{Decision, StopReason, TurnKind};

/// How far a partition has come (`leases` bucket, key `checkpoint.<p>`). Each new owner raises the epoch by compare-and-set, so
/// that an earlier owner's next checkpoint is refused and it steps down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Which owner wrote it.
    pub epoch: Epoch,
    /// The last input of the partition whose effects are out.
    pub cursor: Seq,
    /// The last revision in the bucket up to which the effects of all leases of the partition are out.
    pub settled: u64,
}

/// The record.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Lease {
    /// The session's readable key.
    pub session: SessionKey,
    /// Which owner of the partition wrote it.
    pub epoch: Epoch,
    /// The last input that is part of it; nothing at or before is applied again.
    pub seen: Seq,
    /// What the session is doing.
    pub phase: Phase,
    /// What waits, first in first out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queue: Vec<Waiting>,
    /// What must be sent because of the last write; sending it again is harmless.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<Effect>,
}

/// What a session is doing. A worker exists in exactly the phases that name one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Nothing.
    #[default]
    Idle,
    /// A turn is ordered, and no worker has claimed it: the sentinel.
    Starting {
        /// The turn.
        turn: Turn,
    },
    /// A worker runs the turn.
    Running {
        /// The turn.
        turn: Turn,
        /// Who runs it.
        worker: ProcessId,
    },
    /// A worker was told to stop the turn and has not confirmed it.
    Stopping {
        /// The turn.
        turn: Turn,
        /// Who runs it.
        worker: ProcessId,
        /// Why it was told so.
        why: StopReason,
    },
}

impl Phase {
    /// The turn in it, whatever its state.
    #[must_use]
    pub const fn turn(&self) -> Option<&Turn> {
        match self {
            Self::Idle => None,
            Self::Starting { turn } | Self::Running { turn, .. } | Self::Stopping { turn, .. } => {
                Some(turn)
            }
        }
    }

    /// The same, to change it.
    pub const fn turn_mut(&mut self) -> Option<&mut Turn> {
        match self {
            Self::Idle => None,
            Self::Starting { turn } | Self::Running { turn, .. } | Self::Stopping { turn, .. } => {
                Some(turn)
            }
        }
    }
}

/// A turn in progress.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Turn {
    /// Its id.
    pub id: TurnId,
    /// Which try it is.
    pub attempt: Attempt,
    /// What it does.
    pub kind: TurnKind,
    /// The inputs it answers.
    pub inputs: Vec<Seq>,
    /// Where its answer goes.
    pub origin: Origin,
    /// How many turns before it were interrupted in a row.
    #[serde(default)]
    pub depth: u8,
    /// How many of its attempts died with their worker.
    #[serde(default)]
    pub crashes: u8,
    /// When its leading input was accepted, milliseconds since 1970; for people to read.
    pub accepted_at_ms: u64,
    /// Hints that were passed on and not reported as seen by the model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steers: Vec<Waiting>,
    /// Questions that no one has answered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asks: Vec<AskId>,
    /// Answers that the worker has not confirmed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<(AskId, Decision)>,
    /// How many still-working notices went out.
    #[serde(default)]
    pub notices: u32,
    /// Whether the warning before the timeout went out.
    #[serde(default)]
    pub warned: bool,
}

/// Who caused something, and where to answer it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Origin {
    /// The chat.
    pub address: Address,
    /// The platform's id of the message.
    pub message: String,
    /// The person.
    pub user: User,
}

/// An input that waits for its turn.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Waiting {
    /// Its place in `INBOX`; the message itself stays there.
    pub seq: Seq,
    /// What its turn will do.
    pub kind: TurnKind,
    /// Who sent it and where the answer goes.
    pub origin: Origin,
    /// When it was accepted, milliseconds since 1970.
    pub accepted_at_ms: u64,
}

/// What must be sent because of a record.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// The order of the turn that is starting.
    Order,
    /// Something to deliver.
    Send {
        /// What.
        outbound: Outbound,
    },
    /// A reply whose words are in the report at `report`: everything long is referred to.
    Reply {
        /// Where the report stands in `INBOX`.
        report: Seq,
        /// The rest of it.
        outbound: Outbound,
    },
}
