//! The life of a record: limits, missed times, overlaps, pauses, ends, and clocks that are set.

use proptest::prelude::*;
use proto::id::Seq;
use proto::job::{Job, JobChange, JobEnd, JobPhase};
use scheduler_core::jobs::{self, Due};

use crate::{BEGIN, HOUR, MINUTE, make};

const AFTER: Seq = Seq::new(7);

fn done(job: &Job, end: JobEnd) -> Job {
    jobs::ended(job, job.run.unwrap().due_ms, end).unwrap()
}

#[test]
fn limits_are_said_with_what_to_do() {
    let jobs: Vec<_> =
        ["@daily", "@hourly", "@weekly"].iter().map(|at| make(at, &[]).unwrap()).collect();
    for (schedule, others, part) in [
        ("@monthly", &jobs[..], "cron.per_chat"),
        ("every 10s", &[], "cron.min_interval"),
        ("at 2025-12-31 23:00", &[], "passed already"),
        ("0 0 31 2 *", &[], "never comes"),
        ("@daily and then", &[], "does not belong"),
        ("soon", &[], "Write for example"),
    ] {
        let error = make(schedule, others).unwrap_err();
        assert!(error.contains(part), "{schedule}: {error}");
    }
    let removed = Job { phase: JobPhase::Removed, ..jobs[0].clone() };
    assert!(make("@monthly", &[removed, jobs[1].clone(), jobs[2].clone()]).is_ok());
    assert!(make("* * * * *", &[]).is_ok(), "a minute is what is allowed");
}

#[test]
fn missed_times_become_one_run_and_the_agent_is_told() {
    let job = make("every 10m", &[]).unwrap();
    assert_eq!(jobs::due(&job, BEGIN + 10 * MINUTE - 1), Due::No);
    let now = BEGIN + 47 * MINUTE;
    assert_eq!(jobs::due(&job, now), Due::Run);
    let job = jobs::claim(&job, now, AFTER);
    let run = job.run.unwrap();
    assert_eq!((run.due_ms, run.missed, run.after), (BEGIN + 10 * MINUTE, 3, AFTER));
    assert_eq!(job.next_ms, Some(BEGIN + 50 * MINUTE));
    assert_eq!((job.counts.runs, job.counts.missed), (1, 3));
    let prompt = jobs::prompt(&job);
    assert!(prompt.contains("37 min late") && prompt.contains("3 more times"), "{prompt}");
    assert!(prompt.ends_with("look at the mail"), "{prompt}");
}

#[test]
fn a_run_is_not_begun_beside_another_and_the_time_is_skipped() {
    let job = jobs::claim(&make("every 10m", &[]).unwrap(), BEGIN + 10 * MINUTE, AFTER);
    assert_eq!(jobs::due(&job, BEGIN + 15 * MINUTE), Due::No);
    assert_eq!(jobs::due(&job, BEGIN + 20 * MINUTE), Due::Overlap);
    let job = jobs::skip(&job, BEGIN + 20 * MINUTE);
    assert_eq!((job.counts.skipped, job.counts.runs), (1, 1));
    assert_eq!(jobs::ended(&job, 1, JobEnd::Answered), None, "of another run");
    let job = done(&job, JobEnd::Failed);
    assert_eq!((job.counts.failed, job.run, job.phase), (1, None, JobPhase::Active));
    assert_eq!(jobs::due(&job, BEGIN + 30 * MINUTE), Due::Run);
}

#[test]
fn what_runs_once_is_done_afterwards_and_waits_for_a_run_that_was_asked_for() {
    let job = make("in 20m", &[]).unwrap();
    let asked = jobs::change(&job, JobChange::Run, BEGIN + MINUTE, Some(Seq::new(2)), AFTER);
    let job = asked.job.unwrap();
    assert!(job.run.unwrap().asked);
    assert_eq!(jobs::due(&job, BEGIN + 20 * MINUTE), Due::No, "it waits, and is not skipped");
    let job = done(&job, JobEnd::Answered);
    assert_eq!((jobs::due(&job, BEGIN + 25 * MINUTE), job.phase), (Due::Run, JobPhase::Active));
    let job = done(&jobs::claim(&job, BEGIN + 25 * MINUTE, AFTER), JobEnd::Silent);
    assert_eq!((job.next_ms, job.phase), (None, JobPhase::Done));
    assert_eq!(jobs::due(&job, u64::MAX), Due::No);
}

#[test]
fn pause_resume_and_remove_do_what_they_say_and_a_repetition_does_nothing() {
    let job = make("every 10m", &[]).unwrap();
    let at =
        |job: &Job, change, now, seq| jobs::change(job, change, now, Some(Seq::new(seq)), AFTER);
    let paused = at(&job, JobChange::Pause, BEGIN + MINUTE, 2).job.unwrap();
    assert_eq!(jobs::due(&paused, BEGIN + HOUR), Due::No);
    let resumed = at(&paused, JobChange::Resume, BEGIN + HOUR, 3).job.unwrap();
    assert_eq!((resumed.next_ms, resumed.counts.missed), (Some(BEGIN + 70 * MINUTE), 0));
    assert_eq!(
        at(&resumed, JobChange::Pause, BEGIN + HOUR, 2).job,
        None,
        "an old command comes again"
    );
    let removed = at(&resumed, JobChange::Remove, BEGIN + HOUR, 4).job.unwrap();
    assert_eq!(jobs::due(&removed, u64::MAX), Due::No);
    let again = at(&removed, JobChange::Remove, BEGIN + HOUR, 4);
    assert!(again.job.is_none() && again.text.contains("is removed"), "{}", again.text);
    let running = at(&job, JobChange::Run, BEGIN + MINUTE, 2).job.unwrap();
    assert!(at(&running, JobChange::Run, BEGIN + MINUTE, 3).text.contains("running already"));
    assert!(at(&running, JobChange::Run, BEGIN + MINUTE, 2).text.contains("runs now"), "as before");
}

#[test]
fn a_list_says_what_there_is() {
    let running = jobs::claim(&make("0 9 * * 1-5", &[]).unwrap(), BEGIN + 9 * HOUR, AFTER);
    let paused = Job { phase: JobPhase::Paused, ..make("@daily", &[]).unwrap() };
    let text = jobs::list(&[running, paused], BEGIN + 9 * HOUR + 5000);
    assert!(text.starts_with("2 scheduled jobs:\n"), "{text}");
    for part in ["0 9 * * 1-5 (UTC); next 2026-01-02 09:00 UTC; running for 5 s", "paused"] {
        assert!(text.contains(part), "{text}");
    }
    assert!(jobs::list(&[], 0).contains("/cron add"));
}

proptest! {
    #[test]
    fn however_the_clock_is_set_each_due_time_has_one_run_and_none_comes_twice(
        schedule in prop::sample::select(vec!["*/7 * * * *", "@hourly", "every 11m", "30 2 * * * tz=Europe/Berlin"]),
        clock in prop::collection::vec(0..(3 * 24 * 60_u64), 1..60),
    ) {
        let mut job = make(schedule, &[]).unwrap();
        let mut dues = Vec::new();
        for minutes in clock {
            let now = BEGIN + minutes * MINUTE;
            if jobs::due(&job, now) == Due::Run {
                job = jobs::claim(&job, now, AFTER);
                let due = job.run.unwrap().due_ms;
                prop_assert!(due <= now);
                prop_assert!(job.next_ms.unwrap() > now, "what has passed is part of this run");
                dues.push(due);
                job = done(&job, JobEnd::Answered);
            }
        }
        prop_assert!(dues.windows(2).all(|pair| pair[0] < pair[1]), "{dues:?}");
    }

    #[test]
    fn every_time_is_run_missed_or_skipped_and_nothing_is_counted_twice(
        steps in prop::collection::vec((1..90_u64, any::<bool>()), 1..40),
    ) {
        let mut job = make("every 10m", &[]).unwrap();
        let mut now = BEGIN;
        for (minutes, ends) in steps {
            now += minutes * MINUTE;
            match jobs::due(&job, now) {
                Due::No => {}
                Due::Run => job = jobs::claim(&job, now, AFTER),
                Due::Overlap => job = jobs::skip(&job, now),
            }
            if ends && job.run.is_some() {
                job = done(&job, JobEnd::Answered);
            }
        }
        let counts = job.counts;
        prop_assert_eq!(counts.runs + counts.missed + counts.skipped, (now - BEGIN) / (10 * MINUTE));
    }
}
