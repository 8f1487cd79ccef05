//! `talaria cron`: the scheduled jobs of all chats, for the operator.

use anyhow::{anyhow, bail};
use clap::{Args, Subcommand};
use node::bus::{AskError, Bus};
use node::clock::wall_ms;
use node::exit::Exit;
use node::process::{CommonArgs, random};
use node::settings::Flags;
use proto::access::Admission;
use proto::event::{Address, User};
use proto::job::{Home, JobAction, JobChange, JobReply, JobRequest, Requester};
use proto::session::SessionKey;
use proto::subject;

use crate::console;

/// The account of a platform whose account is a process of ours: none, so that whichever lives delivers.
const ANY_PROCESS: &str = "0000000000000000";

/// The command's flags.
#[derive(Args, Debug)]
pub struct CronArgs {
    #[command(subcommand)]
    action: Action,
    #[command(flatten)]
    common: CommonArgs,
    /// Print one JSON object instead of text
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand, Debug)]
enum Action {
    /// Show the jobs of all chats, or of one
    List {
        /// Only those of this session (as /whoami shows it)
        #[arg(long, value_name = "KEY")]
        session: Option<String>,
    },
    /// Make a job
    Add(AddArgs),
    /// End a job
    Remove(Which),
    /// Keep a job from running until it is resumed
    Pause(Which),
    /// Let a paused job run again
    Resume(Which),
    /// Run a job now, beside its times
    Run(Which),
    /// Stop the run of a job that is in progress
    Stop(Which),
}

#[derive(Args, Debug)]
struct Which {
    /// The job's id, the beginning of it, or its name
    job: String,
}

#[derive(Args, Debug)]
struct AddArgs {
    /// The session of the chat where the answers go, as /whoami shows it there
    #[arg(long, value_name = "KEY")]
    session: String,
    /// The bot or hook that delivers, where the session does not name it
    #[arg(long)]
    account: Option<String>,
    /// The platform's id of the person for whom it runs, and who may change it in the chat
    #[arg(long, default_value = "operator")]
    user: String,
    /// What people call it
    #[arg(long)]
    name: Option<String>,
    /// Its time zone, for example Europe/Berlin
    #[arg(long)]
    timezone: Option<String>,
    /// When: "0 9 * * 1-5", "@daily", "every 10m", "in 20m", "at 2026-12-24 18:00"
    schedule: String,
    /// What the agent is told at each run
    prompt: String,
}

/// Asks a scheduler, and prints its answer.
///
/// # Errors
/// When no scheduler answers or the broker cannot be reached (exit 69), or it is refused (exit 1).
pub async fn run(args: CronArgs) -> anyhow::Result<()> {
    let CronArgs { action, common, json } = args;
    let loaded = common.load(Flags::default())?;
    let (home, action) = wanted(action)?;
    let bus = Bus::connect(&loaded.settings.nats, "cron")
        .await
        .map_err(|error| anyhow::Error::new(error).context(Exit::Unavailable))?;
    let reply = ask(&bus, home, action).await?;
    if json {
        let object =
            serde_json::json!({ "done": reply.done, "text": reply.text, "jobs": reply.jobs });
        console::say(&format!("{object:#}"))?;
    } else if reply.done {
        console::say(&reply.text)?;
    }
    if !reply.done {
        bail!("{}", reply.text);
    }
    Ok(())
}

/// Asks a scheduler for something about jobs, as the operator.
///
/// # Errors
/// When none answers.
pub async fn ask(bus: &Bus, home: Option<Home>, action: JobAction) -> anyhow::Result<JobReply> {
    let request = format!("{:032x}", u128::from_be_bytes(random()));
    let request =
        JobRequest { by: Requester::Operator { home }, request, at_ms: wall_ms(), action };
    bus.ask(subject::job_desk().to_owned(), &request).await.map_err(|error| match error {
        AskError::Silent(_) => {
            anyhow!("no scheduler answers; is one running? (`talaria up` runs everything)")
                .context(Exit::Unavailable)
        }
        AskError::Unreadable(_) => error.into(),
    })
}

fn wanted(action: Action) -> anyhow::Result<(Option<Home>, JobAction)> {
    let change = |Which { job }, change| Ok((None, JobAction::Change { job, change }));
    match action {
        Action::List { session } => {
            let home = session.map(|session| home(&session, None, String::new())).transpose()?;
            Ok((home, JobAction::List))
        }
        Action::Add(AddArgs { session, account, user, name, timezone: zone, schedule, prompt }) => {
            let home = home(&session, account, user)?;
            Ok((Some(home), JobAction::Add { schedule, prompt, name, zone }))
        }
        Action::Remove(which) => change(which, JobChange::Remove),
        Action::Pause(which) => change(which, JobChange::Pause),
        Action::Resume(which) => change(which, JobChange::Resume),
        Action::Run(which) => change(which, JobChange::Run),
        Action::Stop(which) => change(which, JobChange::Stop),
    }
}

/// Where the answers go, by the session's key.
fn home(session: &str, account: Option<String>, user: String) -> anyhow::Result<Home> {
    let place = SessionKey::typed(session).and_then(|key| Some((key.place()?, key)));
    let Some((place, session)) = place else {
        return Err(anyhow!(
            "{session:?} is not the key of a session; send /whoami in the chat, which shows it"
        )
        .context(Exit::Usage));
    };
    let (platform, named) = match place.platform.split_once('/') {
        Some((platform, account)) => (platform.to_owned(), Some(account.to_owned())),
        None => (place.platform, None),
    };
    let account = account.or(named).unwrap_or_else(|| ANY_PROCESS.to_owned());
    let address =
        Address { platform, account, chat: place.chat, kind: place.kind, thread: place.thread };
    let user = User { id: user, name: None };
    Ok(Home { session, address, user, admission: Admission::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_says_where_its_answers_go() {
        let home = home("webhook/demo:group:a%3Ab:t1", None, "u".into()).unwrap();
        let Address { platform, account, chat, thread, .. } = home.address;
        assert_eq!((platform.as_str(), account.as_str()), ("webhook", "demo"));
        assert_eq!((chat.as_str(), thread.as_deref()), ("a:b", Some("t1")));
        let error = super::home("somewhere", None, "u".into()).unwrap_err();
        assert!(format!("{error:#}").contains("/whoami"), "{error:#}");
    }
}
