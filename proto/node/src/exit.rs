//! How a process ends: the exit codes, after `sysexits.h`, and the error that carries one.

use std::fmt;
use std::process::ExitCode;

/// Why a process could not run, or how it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It did what it was asked to (0).
    Clean,
    /// Something failed that no other code names (1).
    Failure,
    /// It works, but promises less than it could (2).
    Weaker,
    /// The command line is wrong (64).
    Usage,
    /// The broker cannot be reached (69).
    Unavailable,
    /// It wants to be started again (75).
    Restart,
    /// The settings are wrong (78).
    Configuration,
}

impl Exit {
    /// The number.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Clean => 0,
            Self::Failure => 1,
            Self::Weaker => 2,
            Self::Usage => 64,
            Self::Unavailable => 69,
            Self::Restart => 75,
            Self::Configuration => 78,
        }
    }

    /// The exit that an error asks for: attach one with `.context(Exit::…)`.
    #[must_use]
    pub fn of(error: &anyhow::Error) -> Self {
        error.downcast_ref::<Self>().copied().unwrap_or(Self::Failure)
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Clean => "done",
            Self::Failure => "failed",
            Self::Weaker => "weaker than promised",
            Self::Usage => "wrong usage",
            Self::Unavailable => "the broker cannot be used",
            Self::Restart => "restart wanted",
            Self::Configuration => "bad configuration",
        })
    }
}

impl std::error::Error for Exit {}
