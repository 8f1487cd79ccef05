//! `[cron]`: scheduled jobs.

use serde::{Deserialize, Serialize};

use crate::settings::values::Span;

/// `[cron]`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Cron {
    /// Who may have jobs: `anyone` who may talk to the agent (and the agent for them), `admins`, or `nobody`.
    pub who: CronAccess,
    /// How many jobs one chat may have.
    pub per_chat: usize,
    /// The shortest time between two runs of a job.
    pub min_interval: Span,
    /// The time zone of jobs that name none, for example `Europe/Berlin`.
    pub timezone: String,
    /// After how long without progress a run is stopped; 0 means never.
    pub timeout: Span,
    /// Whether what a run asks is approved; otherwise it is refused, since no one is there to ask.
    pub approve: bool,
    /// Whether the answer of a job begins with the job's name.
    pub label: bool,
}

impl Default for Cron {
    fn default() -> Self {
        Self {
            who: CronAccess::Anyone,
            per_chat: 20,
            min_interval: Span::seconds(60),
            timezone: "UTC".into(),
            timeout: Span::seconds(600),
            approve: false,
            label: true,
        }
    }
}

/// Who may have scheduled jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CronAccess {
    /// Everyone who may talk to the agent, and the agent for them.
    #[default]
    Anyone,
    /// Whom the operator has named.
    Admins,
    /// The operator alone, on the command line.
    Nobody,
}
