//! The lease: the one record of a session. It says what the session is, what must be sent because of it, and which input it
//! has seen. Only the owner of the session's partition writes it, each time by compare-and-set.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::event::{Address, BusyMode, User};
use crate::id::{AskId, Attempt, Epoch, ProcessId, Seq, Sid, TurnId};
use crate::job::JobEnd;
use crate::outbound::Outbound;
use crate::receipt::Decided;
use crate::session::SessionKey;
use crate::turn::{AskKind, Decision, StopReason, TurnKind};

/// How far a partition has come (`leases` bucket, key `checkpoint.<p>`). Each new owner raises the epoch by compare-and-set, so
/// that an earlier owner's next checkpoint is refused and it steps down.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Which owner wrote it.
    pub epoch: Epoch,
    /// The last input of the partition whose effects are out; all before it are too.
    pub cursor: Seq,
    /// The last revision in the bucket up to which the effects of all leases of the partition are out.
    pub settled: u64,
    /// The sessions to whose inputs that does not apply.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aside: Vec<Aside>,
}

/// A session whose lease cannot be read. The cursor goes on without it; its inputs wait in `INBOX` until the lease is mended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Aside {
    /// The session.
    pub sid: Sid,
    /// Its first input that waits.
    pub first: Seq,
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
    /// What people have set for this session.
    #[serde(default, skip_serializing_if = "Choices::are_defaults")]
    pub choices: Choices,
    /// Whether the conversation was stopped, so that the next turn begins a fresh one.
    #[serde(default, skip_serializing_if = "is_false")]
    pub suspended: bool,
    /// Turns that are to leave no trace, until the next turn has seen to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forget: Vec<TurnId>,
    /// What was decided last, for `/why`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<Last>,
    /// The sessions that `/background` began from here, the newest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub background: Vec<SessionKey>,
}

/// What people have set for a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Choices {
    /// `/busy`: what a message does to a running turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy: Option<BusyMode>,
    /// `/yolo`: what the agent asks is approved without asking anyone.
    #[serde(default, skip_serializing_if = "is_false")]
    pub yolo: bool,
    /// `/approve session`: what is approved without asking, until the session is reset.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub approved: BTreeSet<String>,
}

impl Choices {
    fn are_defaults(&self) -> bool {
        *self == Self::default()
    }
}

/// The last decision on a message.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Last {
    /// The platform's id of the message.
    pub message: String,
    /// What was decided.
    pub decision: Decided,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde calls")]
const fn is_zero(value: &u64) -> bool {
    *value == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde calls")]
const fn is_false(value: &bool) -> bool {
    !*value
}

/// What a session is doing. A worker exists in exactly the phases that name one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Nothing.
    #[default]
    Idle,
    /// More may come that belongs together (an album, a burst): the turn is ordered when nothing has come for a while.
    Collecting {
        /// What has come.
        waiting: Waiting,
    },
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
            Self::Idle | Self::Collecting { .. } => None,
            Self::Starting { turn } | Self::Running { turn, .. } | Self::Stopping { turn, .. } => {
                Some(turn)
            }
        }
    }

    /// The same, to change it.
    pub const fn turn_mut(&mut self) -> Option<&mut Turn> {
        match self {
            Self::Idle | Self::Collecting { .. } => None,
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
    /// Whether it begins with the conversation set aside.
    #[serde(default, skip_serializing_if = "is_false")]
    pub fresh: bool,
    /// Turns before it of which the conversation is to keep nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forget: Vec<TurnId>,
    /// What belongs to its leading input, by message id.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more: Vec<More>,
    /// Hints that were passed on and not reported as seen by the model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steers: Vec<Waiting>,
    /// What it asked and no one has answered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asks: Vec<Ask>,
    /// Answers that the worker has not confirmed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<(AskId, Decision)>,
    /// How many still-working notices went out.
    #[serde(default)]
    pub notices: u32,
    /// Whether the warning before the timeout went out.
    #[serde(default)]
    pub warned: bool,
    /// How much longer than usual it may be without progress (`/extend`), milliseconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub extended_ms: u64,
}

/// Something that a turn waits for a person to say.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Ask {
    /// Its id.
    pub id: AskId,
    /// What is wanted.
    #[serde(default)]
    pub kind: AskKind,
    /// What an approval for more than this once covers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
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

/// Inputs that wait for their turn: one, or several that belong together.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Waiting {
    /// The place in `INBOX` of the one that leads; the message itself stays there.
    pub seq: Seq,
    /// Where its newest words stand, if it was edited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited: Option<Seq>,
    /// What came after it and belongs to it, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more: Vec<More>,
    /// What makes others belong to it.
    #[serde(default, skip_serializing_if = "Burst::is_single")]
    pub burst: Burst,
    /// What its turn will do.
    pub kind: TurnKind,
    /// Who sent it and where the answer goes.
    pub origin: Origin,
    /// When it was accepted, milliseconds since 1970.
    pub accepted_at_ms: u64,
    /// Whether it answers what the turn asked: that it is seen goes without saying.
    #[serde(default, skip_serializing_if = "is_false")]
    pub answers: bool,
}

/// An input that belongs to one before it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct More {
    /// Where it stands in `INBOX`.
    pub seq: Seq,
    /// The platform's id of the message.
    pub message: String,
    /// Where it came from, if not from where the message came that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<Address>,
}

impl More {
    /// Who caused it, and where to answer it; `lead` is that of the message that it belongs to.
    #[must_use]
    pub fn origin(&self, lead: &Origin) -> Origin {
        Origin {
            address: self.address.clone().unwrap_or_else(|| lead.address.clone()),
            message: self.message.clone(),
            user: lead.user.clone(),
        }
    }
}

/// What makes inputs belong together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Burst {
    /// Nothing: it stands alone.
    #[default]
    Single,
    /// Pictures of one sender, one after the other.
    Photos,
    /// Parts of the album of that name.
    Album(String),
    /// Messages that are collected on purpose.
    Collected,
}

impl Burst {
    fn is_single(&self) -> bool {
        *self == Self::Single
    }
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
    /// A message that begins a session of its own: the arguments of the `/background` at `seq`.
    Spawn {
        /// Where the command stands in `INBOX`.
        seq: Seq,
        /// The session that it begins.
        session: SessionKey,
    },
    /// What runs in this chat: the outbound's text, and the state of the background sessions, looked up when it is sent.
    Roster {
        /// The beginning of the answer.
        outbound: Outbound,
        /// Whose state follows.
        sessions: Vec<SessionKey>,
    },
    /// A rolling restart of the fleet, and the answer that announces it; how many turns run is counted when it is sent.
    #[serde(alias = "census")]
    Restart {
        /// The beginning of the answer.
        outbound: Outbound,
    },
    /// The answer to the `/cron` at `seq`, which is carried out when it is sent.
    Cron {
        /// Where the command stands in `INBOX`.
        seq: Seq,
        /// The answer, without its words.
        outbound: Outbound,
    },
    /// The run of a scheduled job has ended: its record is told. The session names the job.
    JobEnded {
        /// Which run: when it was due, milliseconds since 1970.
        due_ms: u64,
        /// How it ended.
        end: JobEnd,
    },
    /// A reply whose words are in the report at `report`: everything long is referred to.
    Reply {
        /// Where the report stands in `INBOX`.
        report: Seq,
        /// The rest of it.
        outbound: Outbound,
    },
}
