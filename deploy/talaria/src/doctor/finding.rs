//! What the doctor finds: one line a check, and what to do where something is weaker than the promise.

use std::fmt;

use serde::Serialize;

/// How a check came out, the worst last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Grade {
    /// As promised.
    Fine,
    /// It cannot be seen from here.
    Unknown,
    /// It works, but promises less than it could.
    Weaker,
    /// It does not work.
    Broken,
}

/// The outcome of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was looked at.
    pub check: &'static str,
    /// How it came out.
    pub grade: Grade,
    /// What was found.
    pub found: String,
    /// How to mend it; empty where nothing is to be mended.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub mend: String,
}

impl Finding {
    /// As promised.
    pub(super) fn fine(check: &'static str, found: impl Into<String>) -> Self {
        Self { check, grade: Grade::Fine, found: found.into(), mend: String::new() }
    }

    /// Not to be seen from here; `mend` says how it could be.
    pub(super) fn unknown(
        check: &'static str,
        found: impl Into<String>,
        mend: impl Into<String>,
    ) -> Self {
        Self { check, grade: Grade::Unknown, found: found.into(), mend: mend.into() }
    }

    /// Weaker than the promise.
    pub(super) fn weaker(
        check: &'static str,
        found: impl Into<String>,
        mend: impl Into<String>,
    ) -> Self {
        Self { check, grade: Grade::Weaker, found: found.into(), mend: mend.into() }
    }

    /// Broken.
    pub(super) fn broken(
        check: &'static str,
        found: impl Into<String>,
        mend: impl Into<String>,
    ) -> Self {
        Self { check, grade: Grade::Broken, found: found.into(), mend: mend.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let grade = match self.grade {
            Grade::Fine => "fine   ",
            Grade::Unknown => "unknown",
            Grade::Weaker => "WEAKER ",
            Grade::Broken => "BROKEN ",
        };
        write!(f, "{grade}  {:<11} {}", self.check, self.found)?;
        if !self.mend.is_empty() {
            write!(f, "\n{:>22}→ {}", "", self.mend)?;
        }
        Ok(())
    }
}
