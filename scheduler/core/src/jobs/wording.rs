//! What is said about jobs, to people and to the agent.

use proto::job::{Job, JobEnd, JobPhase, When};

use super::record::is_alive;
use super::schedule::local;
use crate::wording::duration;

/// What an answer says that is to stay unsaid: these words alone, whatever signs stand around them.
const SILENT: [&str; 3] = ["silent", "no_reply", "no reply"];

/// Whether an answer says that there is nothing to report.
pub(crate) fn is_silent(answer: &str) -> bool {
    let bare = answer.trim_matches(|c: char| c.is_whitespace() || "[]()*_`\"'.!".contains(c));
    SILENT.iter().any(|word| bare.eq_ignore_ascii_case(word))
}

/// What the agent is told at a run.
#[must_use]
pub fn prompt(job: &Job) -> String {
    let when = job.run.map_or_else(String::new, |run| {
        let at = local(run.due_ms, &job.zone);
        let late = run.claimed_ms.saturating_sub(run.due_ms);
        let mut text =
            if run.asked { format!("asked for at {at}") } else { format!("due at {at}") };
        if late >= 60_000 {
            text += &format!(", begun {} late", duration(late));
        }
        match run.missed {
            0 => {}
            1 => text += "; one more time was missed since, and is part of this run",
            n => text += &format!("; {n} more times were missed since, and are part of this run"),
        }
        text
    });
    format!(
        "[Scheduled job {} {:?}, {when}. No one is there: nothing can be asked or approved. Your answer is sent to the chat. If \
         there is nothing to report, answer exactly [SILENT] and nothing is sent.]\n\n{}",
        job.id, job.name, job.prompt
    )
}

/// What stands above the answer of a job, so that people know why it comes.
#[must_use]
pub fn label(job: &Job) -> String {
    format!("[{}]\n", job.name)
}

/// The list of a chat's jobs.
#[must_use]
pub fn list(jobs: &[Job], now_ms: u64) -> String {
    let mut alive: Vec<_> = jobs.iter().filter(|job| is_alive(job)).collect();
    alive.sort_by_key(|job| (job.next_ms.unwrap_or(u64::MAX), job.id));
    match alive.len() {
        0 => {
            return "No scheduled jobs here. For example: /cron add 0 9 * * 1-5 tell me what the weather will be".into();
        }
        1 => "1 scheduled job:".to_owned(),
        n => format!("{n} scheduled jobs:"),
    }
    .lines()
    .map(str::to_owned)
    .chain(alive.into_iter().map(|job| line(job, now_ms)))
    .collect::<Vec<_>>()
    .join("\n")
}

fn line(job: &Job, now_ms: u64) -> String {
    let mut text = format!("{} {:?}: {}", job.id, job.name, schedule(job));
    match (job.phase, job.next_ms) {
        (JobPhase::Paused, _) => text += "; paused",
        (_, Some(next)) if !matches!(job.when, When::At { .. }) => {
            text += &format!("; next {}", local(next, &job.zone));
        }
        (_, Some(_) | None) => {}
    }
    if let Some(run) = job.run {
        let since = now_ms.saturating_sub(run.claimed_ms);
        text += &format!("; running for {}", duration(since));
    } else if let Some(last) = job.last {
        text += &format!("; last run {}", end(last.end));
    }
    text
}

const fn end(end: JobEnd) -> &'static str {
    match end {
        JobEnd::Answered => "answered",
        JobEnd::Silent => "had nothing to report",
        JobEnd::Failed => "failed",
        JobEnd::TimedOut => "made no progress and was stopped",
        JobEnd::Stopped => "was stopped",
        JobEnd::Lost => "left no trace",
    }
}

fn schedule(job: &Job) -> String {
    match &job.when {
        When::Cron { expression } => format!("{expression} ({})", job.zone),
        When::Every { period_ms } => format!("every {}", duration(*period_ms)),
        When::At { at_ms } => format!("once, {}", local(*at_ms, &job.zone)),
    }
}

/// A new job.
#[must_use]
pub fn added(job: &Job) -> String {
    let next = job.next_ms.map(|next| local(next, &job.zone)).unwrap_or_default();
    let when = match job.when {
        When::At { .. } => format!("It runs at {next}"),
        When::Cron { .. } | When::Every { .. } => {
            format!("{}; it runs first at {next}", schedule(job))
        }
    };
    format!(
        "Job {} {:?} is set. {when}, and its answer comes here. /cron remove {} ends it.",
        job.id, job.name, job.id
    )
}

pub(super) fn removed(job: &Job) -> String {
    let run = if job.run.is_some() { " The run in progress goes on to its end." } else { "" };
    format!("Job {} {:?} is removed.{run}", job.id, job.name)
}

pub(super) fn paused(job: &Job) -> String {
    format!("Job {} {:?} is paused. /cron resume {} lets it run again.", job.id, job.name, job.id)
}

pub(super) fn resumed(job: &Job) -> String {
    let next = job.next_ms.map(|next| local(next, &job.zone));
    format!("Job {} {:?} runs again, next at {}.", job.id, job.name, next.unwrap_or_default())
}

pub(super) fn runs_now(job: &Job) -> String {
    format!("Job {} {:?} runs now; its answer comes here.", job.id, job.name)
}

pub(super) fn runs_already(job: &Job) -> String {
    format!("Job {} {:?} is running already. /cron stop {} stops it.", job.id, job.name, job.id)
}

pub(super) fn runs_not(job: &Job) -> String {
    format!("Job {} {:?} is not running. /cron remove {} ends it.", job.id, job.name, job.id)
}

pub(super) fn stopping(job: &Job) -> String {
    format!("The run of job {} {:?} is being stopped.", job.id, job.name)
}

pub(super) fn too_often(gap_ms: u64, least_ms: u64) -> String {
    format!(
        "That is every {}; a job runs every {} at most (cron.min_interval). Choose a longer interval.",
        duration(gap_ms),
        duration(least_ms)
    )
}

/// A run that was given up.
pub(crate) fn job_parked(crashes: u8) -> String {
    format!(
        "This run of a scheduled job was given up: its worker died {crashes} times. /cron run and its id try once more."
    )
}

/// A run that said nothing at all.
pub(crate) fn no_answer() -> String {
    "A scheduled job ended without an answer. /cron lists the jobs; /cron run and its id try once more.".into()
}

/// The answer to whatever a run asks.
pub(crate) fn no_one_to_ask() -> String {
    "this is a scheduled job: no one is there to ask. Do without it, or say what is needed.".into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_is_recognised_alone_and_only_then() {
        for silent in ["[SILENT]", "silent", " **[Silent]**\n", "NO_REPLY", "`[no reply].`"] {
            assert!(is_silent(silent), "{silent:?}");
        }
        for words in ["", "[SILENT] but the disk is full", "silently done", "No replying today"] {
            assert!(!is_silent(words), "{words:?}");
        }
    }
}
