//! What can go wrong between us and a platform, by what must follow from it.

use std::time::Duration;

/// A delivery that did not happen.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeliverError {
    /// It may succeed later. Nothing is sent to the same chat until then.
    #[error("to be tried again: {why}")]
    Retry {
        /// How long the platform wants us to wait; none if it did not say.
        after: Option<Duration>,
        /// What went wrong.
        why: String,
    },
    /// It never will.
    #[error("not deliverable: {why}")]
    Dead {
        /// Why.
        why: String,
    },
    /// Nor will anything else that goes to the same chat.
    #[error("the chat is gone: {why}")]
    Gone {
        /// Why.
        why: String,
    },
}

/// What a wait is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The chat.
    Chat,
    /// Everything that the account sends.
    Account,
}

/// Why a platform will not do a thing, however often it is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It does not understand the markup: the plain text may do.
    Markup,
    /// The chat cannot be written to: it is gone, or we were blocked or thrown out.
    Chat,
    /// The message that is meant is gone, or can no longer be changed.
    Message,
    /// The chat has moved to this id.
    Moved(String),
    /// It does not let us in: the token is wrong or was taken back.
    Account,
    /// The file is larger than it takes.
    TooLarge,
    /// Anything else.
    Other,
}

/// A call that did not succeed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// Too many calls: none of the scope may follow before the time.
    #[error("too many calls: {why}")]
    Flood {
        /// How long to keep quiet; none if the platform did not say.
        after: Option<Duration>,
        /// What must keep quiet.
        scope: Scope,
        /// What the platform said.
        why: String,
    },
    /// It did not happen, and may succeed later.
    #[error("not done: {why}")]
    Failed {
        /// What went wrong.
        why: String,
    },
    /// It may have happened: the request left, and no answer came.
    #[error("unknown whether done: {why}")]
    Unknown {
        /// What went wrong.
        why: String,
    },
    /// It did not happen, and never will.
    #[error("refused: {why}")]
    Refused {
        /// What follows from it.
        reason: Refusal,
        /// What the platform said.
        why: String,
    },
}

impl SendError {
    /// A call that the platform will never carry out.
    #[must_use]
    pub fn refused(reason: Refusal, why: impl Into<String>) -> Self {
        Self::Refused { reason, why: why.into() }
    }

    /// What went wrong, for people.
    #[must_use]
    pub fn why(&self) -> &str {
        match self {
            Self::Flood { why, .. }
            | Self::Failed { why }
            | Self::Unknown { why }
            | Self::Refused { why, .. } => why,
        }
    }
}

/// A connection that broke or was not made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// It may succeed later: the network, the platform's own trouble, another one that uses the token at the moment.
    #[error("{why}")]
    Retry {
        /// How long the platform wants us to wait at least; none if it did not say.
        after: Option<Duration>,
        /// What went wrong.
        why: String,
    },
    /// It never will as things are configured: the account pauses until the process starts again.
    #[error("{why}")]
    Fatal {
        /// What went wrong, and what to do.
        why: String,
    },
}

impl ConnectError {
    /// A failed call as the end of a connection.
    #[must_use]
    pub fn of(error: SendError) -> Self {
        match error {
            SendError::Flood { after, why, .. } => Self::Retry { after, why },
            SendError::Refused { reason: Refusal::Account, why } => Self::Fatal { why },
            SendError::Failed { why }
            | SendError::Unknown { why }
            | SendError::Refused { why, .. } => Self::Retry { after: None, why },
        }
    }
}
