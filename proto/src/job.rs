//! Scheduled jobs: their records (`jobs` bucket), and how they are made, listed and changed (`scheduler.jobs`, request).
//!
//! A run of a job is a message like any other: the scheduler writes it to `INBOX`, into a session of its own that is named
//! after the job ([`SessionKey::of_job`]). Its id names the job and the due time, so each due time has one run at most.

use serde::{Deserialize, Serialize};

use crate::access::Admission;
use crate::event::{Address, User};
use crate::id::{JobId, Seq};
use crate::session::SessionKey;

/// A job. Whoever changes it does so by compare-and-set on its revision.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Job {
    /// Its id.
    pub id: JobId,
    /// Where it belongs, and where its results go.
    pub home: Home,
    /// What people call it.
    pub name: String,
    /// What the agent is told at each run.
    pub prompt: String,
    /// When it runs.
    pub when: When,
    /// The time zone in which its times are read and shown, for example `Europe/Berlin`.
    pub zone: String,
    /// When it was made, milliseconds since 1970.
    pub made_at_ms: u64,
    /// Whether it runs.
    #[serde(default)]
    pub phase: JobPhase,
    /// When it is due next, milliseconds since 1970; none when it never is again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_ms: Option<u64>,
    /// The run in progress. A second one does not begin beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Run>,
    /// The run before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<Past>,
    /// What has been counted.
    #[serde(default)]
    pub counts: JobCounts,
    /// The last `/cron` that is part of it; one at or before is not applied again.
    #[serde(default)]
    pub seen: Seq,
}

/// Where a job belongs: who made it, in which chat.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Home {
    /// The session of the chat.
    pub session: SessionKey,
    /// Where its results go.
    pub address: Address,
    /// Who made it: for them it runs, and only they change it.
    pub user: User,
    /// On what grounds they were let in, so that a worker can judge again at each run.
    #[serde(default, skip_serializing_if = "Admission::is_plain")]
    pub admission: Admission,
}

/// When a job is due.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// At the times of a cron expression, by the wall clock of the job's zone.
    Cron {
        /// Minute, hour, day of month, month and day of week, or a nickname like `@daily`.
        expression: String,
    },
    /// Again and again, in equal steps from the moment that it was made.
    Every {
        /// The step, milliseconds.
        period_ms: u64,
    },
    /// Once.
    At {
        /// When, milliseconds since 1970.
        at_ms: u64,
    },
}

/// Whether a job runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobPhase {
    /// When it is due.
    #[default]
    Active,
    /// Not until it is resumed.
    Paused,
    /// Never again: all its runs are over. The record is kept for a while.
    Done,
    /// Never again: it was removed. The record is kept for a while, so that nothing late makes it anew.
    Removed,
}

/// A run in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Run {
    /// When it was due, milliseconds since 1970; this names it.
    pub due_ms: u64,
    /// When it was claimed, milliseconds since 1970.
    pub claimed_ms: u64,
    /// The last message that the job's session had in `INBOX` before; that of the run comes after it, once.
    pub after: Seq,
    /// How many further times had passed unnoticed, and are part of it.
    #[serde(default)]
    pub missed: u32,
    /// Whether a person asked for it now.
    #[serde(default)]
    pub asked: bool,
}

/// A run that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Past {
    /// When it was due, milliseconds since 1970.
    pub due_ms: u64,
    /// How it ended.
    pub end: JobEnd,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobEnd {
    /// With an answer, which was delivered.
    Answered,
    /// With nothing to report, and nothing was sent.
    Silent,
    /// With an error, which was delivered.
    Failed,
    /// It made no progress for too long.
    TimedOut,
    /// It was stopped.
    Stopped,
    /// No one knows: no trace of it is left.
    Lost,
}

impl JobEnd {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Answered, Self::Silent, Self::Failed, Self::TimedOut, Self::Stopped, Self::Lost];

    /// Its name, as on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Silent => "silent",
            Self::Failed => "failed",
            Self::TimedOut => "timed_out",
            Self::Stopped => "stopped",
            Self::Lost => "lost",
        }
    }
}

/// What a job has counted since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct JobCounts {
    /// Runs that began.
    pub runs: u64,
    /// Due times that had passed unnoticed and became part of a later run.
    pub missed: u64,
    /// Due times that were skipped because the run before was still in progress.
    pub skipped: u64,
    /// Runs that ended with an error, by a timeout, or without a trace.
    pub failed: u64,
}

/// The message id of a run: the same whoever writes it.
#[must_use]
pub fn run_id(job: JobId, due_ms: u64) -> String {
    format!("cron-{job}-{due_ms}")
}

/// When the run was due whose message has this id.
#[must_use]
pub fn run_due_ms(message: &str) -> Option<u64> {
    let (job, due) = message.strip_prefix("cron-")?.split_once('-')?;
    job.parse::<JobId>().ok()?;
    due.parse().ok()
}

/// A wish about jobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobRequest {
    /// Who wishes.
    pub by: Requester,
    /// What names the request: a repetition of it has the same, and does nothing more.
    pub request: String,
    /// When it was made, milliseconds since 1970: relative times count from here.
    pub at_ms: u64,
    /// What is wanted.
    pub action: JobAction,
}

/// Who wants something of jobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Requester {
    /// A person, by `/cron`.
    Person {
        /// Where the command stands in `INBOX`.
        seq: Seq,
        /// Who and where.
        home: Home,
    },
    /// The agent, in a turn for a person.
    Agent {
        /// For whom and where; the session is the turn's own.
        home: Home,
    },
    /// The operator, who may change every job.
    Operator {
        /// For whom and where a new job is to be.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        home: Option<Home>,
    },
}

/// What is wanted of jobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobAction {
    /// The jobs of the chat.
    List,
    /// A new one.
    Add {
        /// When: `0 9 * * 1-5`, `@daily`, `@every 10m`, `in 20m`, `at 2026-12-01 09:00`.
        schedule: String,
        /// What the agent is told.
        prompt: String,
        /// What it is called; by default the beginning of the prompt.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// Its time zone; by default the setting's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        zone: Option<String>,
    },
    /// Something with one that exists.
    Change {
        /// Which: its id, the beginning of it, or its name.
        job: String,
        /// What.
        change: JobChange,
    },
}

/// What can be done with a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobChange {
    /// It does not run any more.
    Remove,
    /// It does not run until it is resumed.
    Pause,
    /// It runs again.
    Resume,
    /// It runs now, beside its times.
    Run,
    /// The run in progress stops.
    Stop,
}

impl JobChange {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Remove, Self::Pause, Self::Resume, Self::Run, Self::Stop];

    /// Its name, as it is typed.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Remove => "remove",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Run => "run",
            Self::Stop => "stop",
        }
    }

    /// The change of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|change| change.name().eq_ignore_ascii_case(name))
    }
}

/// The answer to a wish.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobReply {
    /// Whether it was fulfilled.
    pub done: bool,
    /// What to say to whoever asked.
    pub text: String,
    /// The jobs that it is about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<Job>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_run_names_its_due_time() {
        let job = JobId::of_request("i17");
        assert_eq!(job, JobId::of_request("i17"));
        assert_eq!(run_due_ms(&run_id(job, 42)), Some(42));
        for other in ["m1", "cron-", "cron-0-1", "cron-0000000g-1", "cron-00000000-x"] {
            assert_eq!(run_due_ms(other), None, "{other}");
        }
    }
}
