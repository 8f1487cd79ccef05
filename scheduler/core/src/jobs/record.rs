//! The life of a job's record. Every function takes the record as it is stored and returns it as it is to be stored, which the
//! driver writes by compare-and-set; where nothing is to be written it returns none.

use proto::id::{JobId, Seq};
use proto::job::{Home, Job, JobChange, JobCounts, JobEnd, JobPhase, Past, Run, When};

use super::schedule::{next_after, read_schedule};
use super::wording;

/// How many further times of a schedule are looked at when its shortest interval is wanted, and missed times counted.
const LOOK_AHEAD: u32 = 500;
/// How long a name may be, in characters.
const NAME_CHARS: usize = 40;

/// The limits that an operator sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobLimits {
    /// At most how many jobs one chat has.
    pub per_chat: usize,
    /// The shortest time between two runs of a job, milliseconds.
    pub min_interval_ms: u64,
    /// The longest prompt, bytes.
    pub prompt_bytes: usize,
    /// The time zone of jobs that name none.
    pub zone: String,
}

/// What is to be done about a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// Nothing yet.
    No,
    /// A run begins.
    Run,
    /// A run should begin, and the one before is still in progress.
    Overlap,
}

/// A wish for a new job.
#[derive(Clone, Debug)]
pub struct New<'a> {
    /// Its id.
    pub id: JobId,
    /// Where it belongs.
    pub home: Home,
    /// When it runs, as it was typed.
    pub schedule: &'a str,
    /// What the agent is to be told.
    pub prompt: &'a str,
    /// What it is called, if that was said.
    pub name: Option<&'a str>,
    /// Its time zone, if that was said.
    pub zone: Option<&'a str>,
    /// When it was wished for, milliseconds since 1970.
    pub at_ms: u64,
    /// The place of the command in the log, if it came from there.
    pub seen: Seq,
}

/// What a wish has come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// The record as it is to be stored; none if it stays as it is.
    pub job: Option<Job>,
    /// What to say.
    pub text: String,
}

/// Makes a job. `others` are those that the chat has already.
///
/// # Errors
/// Why it is not made, and what to do.
pub fn add(new: New<'_>, others: &[Job], limits: &JobLimits) -> Result<Job, String> {
    let New { id, home, schedule, prompt, name, zone, at_ms, seen } = new;
    let (when, zone, rest) = read_schedule(schedule, zone.unwrap_or(&limits.zone), at_ms)?;
    if !rest.is_empty() {
        return Err(format!("{rest:?} does not belong to the schedule {schedule:?}."));
    }
    let prompt = prompt.trim();
    if prompt.is_empty() {
        return Err("What is the agent to do then? The message is missing.".into());
    }
    if prompt.len() > limits.prompt_bytes {
        return Err(format!(
            "The message has {} bytes; at most {} are kept. Put the rest into a file and name it.",
            prompt.len(),
            limits.prompt_bytes
        ));
    }
    let alive = others.iter().filter(|job| is_alive(job)).count();
    if alive >= limits.per_chat {
        return Err(format!(
            "This chat has {alive} jobs, and may have no more (cron.per_chat). Remove one first; /cron lists them."
        ));
    }
    let next_ms = first(&when, &zone, at_ms)?;
    if let Some(gap) = shortest(&when, &zone, at_ms).filter(|gap| *gap < limits.min_interval_ms) {
        return Err(wording::too_often(gap, limits.min_interval_ms));
    }
    let name = name.map(str::trim).filter(|name| !name.is_empty()).unwrap_or(prompt);
    let name = name.lines().next().unwrap_or_default().chars().take(NAME_CHARS).collect();
    Ok(Job {
        id,
        home,
        name,
        prompt: prompt.to_owned(),
        when,
        zone,
        made_at_ms: at_ms,
        phase: JobPhase::Active,
        next_ms: Some(next_ms),
        run: None,
        last: None,
        counts: JobCounts::default(),
        seen,
    })
}

/// When a new job is due first.
fn first(when: &When, zone: &str, at_ms: u64) -> Result<u64, String> {
    next_after(when, zone, at_ms, at_ms).ok_or_else(|| match when {
        When::At { .. } => "That time has passed already.".to_owned(),
        When::Cron { .. } | When::Every { .. } => "That time never comes.".to_owned(),
    })
}

/// The shortest time between two of the next runs.
fn shortest(when: &When, zone: &str, at_ms: u64) -> Option<u64> {
    match when {
        When::At { .. } => None,
        When::Every { period_ms } => Some(*period_ms),
        When::Cron { .. } => {
            let mut shortest = None;
            let mut last = next_after(when, zone, at_ms, at_ms)?;
            for _ in 0..LOOK_AHEAD {
                let Some(next) = next_after(when, zone, at_ms, last) else { break };
                shortest = Some(shortest.map_or(next - last, |gap: u64| gap.min(next - last)));
                last = next;
            }
            shortest
        }
    }
}

/// Whether it may still run.
pub(super) const fn is_alive(job: &Job) -> bool {
    matches!(job.phase, JobPhase::Active | JobPhase::Paused)
}

/// When to look at it again; none as long as nothing is to be done.
#[must_use]
pub fn wake(job: &Job) -> Option<u64> {
    let once_more = !matches!(job.when, When::At { .. });
    // What is to run once waits for a run that was asked for in between, and is not skipped.
    let waits = job.run.is_some() && !once_more;
    job.next_ms.filter(|_| job.phase == JobPhase::Active && !waits)
}

/// Whether it is due at this time of day. A clock that was set back makes nothing due twice: the next time of a job only ever
/// moves on.
#[must_use]
pub fn due(job: &Job, now_ms: u64) -> Due {
    match wake(job) {
        Some(at) if at <= now_ms && job.run.is_some() => Due::Overlap,
        Some(at) if at <= now_ms => Due::Run,
        Some(_) | None => Due::No,
    }
}

/// Claims the run that is due. Times that have passed since become part of it. `after` is the last message that the job's
/// session has in the log.
#[must_use]
pub fn claim(job: &Job, now_ms: u64, after: Seq) -> Job {
    let due_ms = job.next_ms.unwrap_or(now_ms);
    let (next_ms, missed) = pass(job, due_ms, now_ms);
    let run = Run { due_ms, claimed_ms: now_ms, after, missed, asked: false };
    let counts = JobCounts {
        runs: job.counts.runs + 1,
        missed: job.counts.missed + u64::from(missed),
        ..job.counts
    };
    Job { next_ms, run: Some(run), counts, ..job.clone() }
}

/// Lets the due time pass without a run, because the one before is still in progress.
#[must_use]
pub fn skip(job: &Job, now_ms: u64) -> Job {
    let due_ms = job.next_ms.unwrap_or(now_ms);
    let (next_ms, more) = pass(job, due_ms, now_ms);
    let skipped = job.counts.skipped + 1 + u64::from(more);
    Job { next_ms, counts: JobCounts { skipped, ..job.counts }, ..job.clone() }
}

/// The first time after both the due time and now, and how many lie between. Of very many, not all are counted.
fn pass(job: &Job, due_ms: u64, now_ms: u64) -> (Option<u64>, u32) {
    let after = |ms| next_after(&job.when, &job.zone, job.made_at_ms, ms);
    let (mut missed, mut last) = (0, due_ms);
    while missed < LOOK_AHEAD {
        match after(last) {
            Some(at) if at <= now_ms => (missed, last) = (missed + 1, at),
            next => return (next, missed),
        }
    }
    (after(now_ms), missed)
}

/// A run has ended. None if it is not the one in progress: then this is known already.
#[must_use]
pub fn ended(job: &Job, due_ms: u64, end: JobEnd) -> Option<Job> {
    job.run.filter(|run| run.due_ms == due_ms)?;
    let failed = match end {
        JobEnd::Failed | JobEnd::TimedOut | JobEnd::Lost => job.counts.failed + 1,
        JobEnd::Answered | JobEnd::Silent | JobEnd::Stopped => job.counts.failed,
    };
    let over = job.next_ms.is_none() && is_alive(job);
    Some(Job {
        run: None,
        last: Some(Past { due_ms, end }),
        phase: if over { JobPhase::Done } else { job.phase },
        counts: JobCounts { failed, ..job.counts },
        ..job.clone()
    })
}

/// The run in progress has left no trace: it is over.
#[must_use]
pub fn lost(job: &Job) -> Option<Job> {
    ended(job, job.run?.due_ms, JobEnd::Lost)
}

/// Changes a job. `seen` is the place of the command in the log, if it came from there: one that is part of the record already
/// changes nothing, and is answered as before. `after` is as for [`claim`].
#[must_use]
pub fn change(job: &Job, change: JobChange, at_ms: u64, seen: Option<Seq>, after: Seq) -> Changed {
    let repeated = seen.is_some_and(|seen| seen <= job.seen);
    let with = |changed: Job| Some(Job { seen: seen.unwrap_or(changed.seen), ..changed });
    let (changed, text) = match change {
        JobChange::Remove if job.phase == JobPhase::Removed => (None, wording::removed(job)),
        JobChange::Remove => {
            let removed = Job { phase: JobPhase::Removed, next_ms: None, ..job.clone() };
            (with(removed), wording::removed(job))
        }
        JobChange::Pause => {
            (with(Job { phase: JobPhase::Paused, ..job.clone() }), wording::paused(job))
        }
        JobChange::Resume if job.phase == JobPhase::Active => (None, wording::resumed(job)),
        JobChange::Resume => {
            let resumed =
                Job { phase: JobPhase::Active, next_ms: again(job, at_ms), ..job.clone() };
            let text = wording::resumed(&resumed);
            (with(resumed), text)
        }
        JobChange::Run if repeated => (None, wording::runs_now(job)),
        JobChange::Run if job.run.is_some() => (None, wording::runs_already(job)),
        JobChange::Run => (with(run_now(job, at_ms, after)), wording::runs_now(job)),
        JobChange::Stop if job.run.is_none() => (None, wording::runs_not(job)),
        JobChange::Stop => (None, wording::stopping(job)),
    };
    Changed { job: changed.filter(|_| !repeated), text }
}

/// When a paused job is due again. What passed in the pause was not missed; what was to run once still is.
fn again(job: &Job, at_ms: u64) -> Option<u64> {
    match job.when {
        When::At { .. } => job.next_ms,
        When::Cron { .. } | When::Every { .. } => {
            let from = job.next_ms.map_or(at_ms, |next| at_ms.max(next.saturating_sub(1)));
            next_after(&job.when, &job.zone, job.made_at_ms, from)
        }
    }
}

/// A run that was asked for, beside the job's times.
fn run_now(job: &Job, at_ms: u64, after: Seq) -> Job {
    let earlier = job.last.map(|last| last.due_ms);
    // Its name must be one that no other run has.
    let taken = |ms: u64| earlier == Some(ms) || job.next_ms == Some(ms);
    let due_ms = (at_ms..).find(|ms| !taken(*ms)).unwrap_or(at_ms);
    let run = Run { due_ms, claimed_ms: at_ms, after, missed: 0, asked: true };
    let counts = JobCounts { runs: job.counts.runs + 1, ..job.counts };
    Job { run: Some(run), counts, ..job.clone() }
}
