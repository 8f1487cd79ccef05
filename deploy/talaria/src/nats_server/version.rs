//! Versions of nats-server: asking a binary for its own, and the oldest that will do.

use std::fmt;
use std::path::Path;
use std::process::Stdio;
use std::str::FromStr;
use std::time::Duration;

use tokio::process::Command;

/// How long a binary may take to say its version.
const ANSWER: Duration = Duration::from_secs(20);

/// A version of nats-server; what follows the three numbers (`-RC.1`) is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    major: u32,
    minor: u32,
    patch: u32,
}

impl Version {
    /// The oldest that will do: an older one silently ignores settings that we depend on.
    pub const OLDEST: Self = Self { major: 2, minor: 11, patch: 0 };

    /// Asks a binary.
    ///
    /// # Errors
    /// When it cannot be run or says something else.
    pub async fn of(binary: &Path) -> Result<Self, ProbeError> {
        let mut command = Command::new(binary);
        command.arg("-v").stdin(Stdio::null()).kill_on_drop(true);
        let output = tokio::time::timeout(ANSWER, command.output())
            .await
            .map_err(|_| ProbeError::Silent)?
            .map_err(ProbeError::Broken)?;
        let text = String::from_utf8_lossy(&output.stdout);
        text.split_whitespace()
            .find_map(|word| word.strip_prefix('v')?.parse().ok())
            .ok_or_else(|| ProbeError::Foreign(text.trim().chars().take(80).collect()))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl FromStr for Version {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let numbers = text.split(['-', '+']).next().unwrap_or_default();
        let mut parts = numbers.splitn(3, '.').map(str::parse);
        let mut next = || parts.next().unwrap_or_else(|| "".parse());
        Ok(Self { major: next()?, minor: next()?, patch: next()? })
    }
}

/// A binary that does not say its version.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// It cannot be run.
    #[error("it cannot be run: {0}")]
    Broken(#[source] std::io::Error),
    /// It does not answer.
    #[error("it does not answer to -v")]
    Silent,
    /// It says something else.
    #[error("it does not say its version, but {0:?}")]
    Foreign(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> Version {
        text.parse().unwrap()
    }

    #[test]
    fn versions_are_ordered_by_number_not_by_letter() {
        assert!(version("2.9.10") < Version::OLDEST);
        assert!(version("2.11.0") >= Version::OLDEST);
        assert!(version("2.15.1") > version("2.15.0-RC.2"));
        assert!(version("3.0.0") > version("2.99.99"));
    }

    #[test]
    fn half_a_version_is_none() {
        for text in ["", "2", "2.15", "two.three.four", "2.15.x"] {
            assert!(text.parse::<Version>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_version_prints_as_it_reads() {
        assert_eq!(version("2.15.1").to_string(), "2.15.1");
    }
}
