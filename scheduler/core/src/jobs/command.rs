//! `/cron`: what is typed behind it.

use proto::job::{JobAction, JobChange};

use super::schedule::read_schedule;

/// How it is used.
pub(super) const USAGE: &str = "\
/cron — the jobs of this chat
/cron add <schedule> <message> — a new one. Schedules: 0 9 * * 1-5 · @daily · every 10m · in 20m · at 18:00 · at 2026-12-24 18:00. \
`tz=Europe/Berlin` and `name=report` may stand in front.
/cron remove|pause|resume|run|stop <id or name>";

/// Reads the arguments of `/cron`. `zone` is the one that applies when none is named; `now_ms` is when it was written.
///
/// # Errors
/// What is wrong, and what to type instead.
pub fn read_command(args: &str, zone: &str, now_ms: u64) -> Result<JobAction, String> {
    let (word, rest) = args.trim().split_once(char::is_whitespace).unwrap_or((args.trim(), ""));
    let rest = rest.trim();
    match word.to_ascii_lowercase().as_str() {
        "" | "list" | "ls" => Ok(JobAction::List),
        "add" | "new" | "create" => add(rest, zone, now_ms),
        "rm" | "delete" | "cancel" => change(JobChange::Remove, rest),
        name => match JobChange::named(name) {
            Some(what) => change(what, rest),
            None => Err(format!("There is no /cron {word:?}.\n{USAGE}")),
        },
    }
}

fn change(change: JobChange, job: &str) -> Result<JobAction, String> {
    if job.is_empty() {
        return Err(format!(
            "Which job? /cron lists them; then /cron {} and the id.",
            change.name()
        ));
    }
    Ok(JobAction::Change { job: job.to_owned(), change })
}

fn add(text: &str, zone: &str, now_ms: u64) -> Result<JobAction, String> {
    let (name, text) = match text.split_once(char::is_whitespace) {
        Some((word, rest)) if word.starts_with("name=") => {
            (word.strip_prefix("name=").map(str::to_owned), rest.trim_start())
        }
        _ => (None, text),
    };
    let (_, zone, prompt) = read_schedule(text, zone, now_ms)?;
    if prompt.is_empty() {
        return Err("What is the agent to do then? Write it behind the schedule.".into());
    }
    // The schedule as it was typed: it is read once more where the job is made, by the same rules.
    let schedule = text[..text.len() - prompt.len()].trim().to_owned();
    Ok(JobAction::Add { schedule, prompt: prompt.to_owned(), name, zone: Some(zone) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(args: &str) -> Result<JobAction, String> {
        read_command(args, "UTC", 0)
    }

    #[test]
    fn the_words_behind_cron_are_read() {
        for list in ["", " list ", "ls"] {
            assert_eq!(read(list), Ok(JobAction::List));
        }
        let remove = JobAction::Change { job: "4f2a".into(), change: JobChange::Remove };
        assert_eq!(read("remove 4f2a"), Ok(remove.clone()));
        assert_eq!(read("RM  4f2a"), Ok(remove));
        let Ok(JobAction::Add { schedule, prompt, name, zone }) =
            read("add name=mail tz=Europe/Berlin 0 9 * * * look at the\nmail")
        else {
            panic!("a new job")
        };
        assert_eq!(
            (schedule.as_str(), prompt.as_str()),
            ("tz=Europe/Berlin 0 9 * * *", "look at the\nmail")
        );
        assert_eq!((name.as_deref(), zone.as_deref()), (Some("mail"), Some("Europe/Berlin")));
    }

    #[test]
    fn what_cannot_be_read_is_answered_with_what_to_type() {
        for (args, part) in [
            ("frobnicate", "/cron add"),
            ("remove", "Which job?"),
            ("add", "When?"),
            ("add in 5m", "What is the agent to do"),
            ("add soon x", "five fields"),
        ] {
            let error = read(args).unwrap_err();
            assert!(error.contains(part), "{args}: {error}");
        }
    }
}
