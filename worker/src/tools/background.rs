//! Commands that go on while the conversation does: started by `terminal`, watched and ended by `process`. They belong to their
//! session and to this worker; whatever still runs when the worker ends, ends with it.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use moka::sync::Cache;
use proto::id::Sid;
use proto::transcript::CallStatus;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::process::Group;
use super::terminal::passed;
use super::{Effort, Output, Tool, arguments};
use crate::models::ToolSpec;

/// How many commands of one session may run at once.
const RUNNING_MAX: usize = 8;
/// How many are known in all.
const KNOWN_MAX: u64 = 512;
/// How long a command that has ended is remembered.
const REMEMBERED: Duration = Duration::from_secs(30 * 60);
/// How much of the newest output is kept of each.
const OUTPUT_BYTES_MAX: usize = 16 * 1024;
/// How long `wait` waits when it is not told.
const WAIT: Duration = Duration::from_secs(60);
/// The longest that it waits.
const WAIT_MAX: Duration = Duration::from_secs(600);

/// What can be seen of a command.
#[derive(Clone, Debug, Default)]
struct View {
    output: String,
    missing: usize,
    ended: Option<(Instant, String)>,
}

struct Job {
    command: String,
    began: Instant,
    view: watch::Receiver<View>,
    stop: CancellationToken,
    /// Forgetting a command ends it.
    _end: DropGuard,
}

/// All of a worker.
#[derive(Clone)]
pub(crate) struct Background {
    jobs: Cache<(Sid, u32), Arc<Job>>,
    numbers: Arc<AtomicU32>,
}

impl Background {
    /// None yet.
    pub(crate) fn new() -> Self {
        let jobs = Cache::builder().max_capacity(KNOWN_MAX).build();
        Self { jobs, numbers: Arc::default() }
    }

    fn of(&self, session: Sid) -> Vec<(u32, Arc<Job>)> {
        let mut found: Vec<_> = self
            .jobs
            .iter()
            .filter(|(key, _)| key.0 == session)
            .map(|(key, job)| (key.1, job))
            .collect();
        found.sort_by_key(|(number, _)| *number);
        found.retain(|(number, job)| {
            let old =
                job.view.borrow().ended.as_ref().is_some_and(|(at, _)| at.elapsed() > REMEMBERED);
            if old {
                self.jobs.invalidate(&(session, *number));
            }
            !old
        });
        found
    }

    /// Lets a command go on by itself; returns its number.
    pub(super) fn adopt(&self, session: Sid, command: &str, group: Group) -> Result<u32, String> {
        let running =
            self.of(session).iter().filter(|(_, job)| job.view.borrow().ended.is_none()).count();
        if running >= RUNNING_MAX {
            return Err(format!(
                "{running} commands run in the background already; kill one first"
            ));
        }
        let number = self.numbers.fetch_add(1, Ordering::Relaxed) + 1;
        let (sender, view) = watch::channel(View::default());
        let stop = CancellationToken::new();
        tokio::spawn(attend(group, sender, stop.clone()));
        let job = Job {
            command: command.to_owned(),
            began: Instant::now(),
            view,
            _end: stop.clone().drop_guard(),
            stop,
        };
        self.jobs.insert((session, number), Arc::new(job));
        Ok(number)
    }

    /// Ends all commands of a session.
    pub(crate) fn stop_all(&self, session: Sid) {
        self.of(session).iter().for_each(|(_, job)| job.stop.cancel());
    }
}

/// Stays with a command to its end.
async fn attend(mut group: Group, view: watch::Sender<View>, stop: CancellationToken) {
    let take = |bytes: &[u8]| {
        view.send_modify(|view| {
            view.output += &String::from_utf8_lossy(bytes);
            let surplus = view.output.len().saturating_sub(OUTPUT_BYTES_MAX);
            let kept = crate::text::end(&view.output, OUTPUT_BYTES_MAX).len();
            if surplus > 0 {
                let cut = view.output.len() - kept;
                view.missing += cut;
                view.output.drain(..cut);
            }
        });
    };
    let status = tokio::select! {
        () = stop.cancelled() => None,
        status = group.wait(take) => Some(status),
    };
    let how = match status {
        None => {
            group.stop(take).await;
            "killed".to_owned()
        }
        Some(Ok(status)) => status
            .code()
            .map_or_else(|| format!("ended: {status}"), |code| format!("exit code {code}")),
        Some(Err(error)) => format!("error: {error}"),
    };
    view.send_modify(|view| view.ended = Some((Instant::now(), how)));
}

impl Job {
    fn line(&self, number: u32) -> String {
        let how =
            self.view.borrow().ended.as_ref().map_or("running", |(_, how)| how.as_str()).to_owned();
        format!("{number}\t{how}\tbegan {} s ago\t{}", self.began.elapsed().as_secs(), self.command)
    }

    fn shown(&self, number: u32) -> String {
        let view = self.view.borrow().clone();
        let mut text = self.line(number);
        if view.missing > 0 {
            let _ = write!(text, "\n[… {} bytes before this …]", view.missing);
        }
        let _ = write!(
            text,
            "\n{}",
            if view.output.is_empty() { "[no output yet]" } else { &view.output }
        );
        text
    }
}

/// `process`
pub(super) struct Process(pub(super) Background);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Action {
    List,
    Poll,
    Wait,
    Kill,
}

#[derive(Deserialize)]
struct Call {
    action: Action,
    #[serde(default)]
    id: Option<u32>,
    #[serde(default)]
    timeout_seconds: Option<u64>,
}

impl Process {
    async fn act(&self, call: &Value, effort: &Effort) -> Output {
        let call: Call = match arguments(call) {
            Ok(call) => call,
            Err(output) => return output,
        };
        let known = self.0.of(effort.session);
        if call.action == Action::List {
            let lines: Vec<String> = known.iter().map(|(number, job)| job.line(*number)).collect();
            return Output::done(if lines.is_empty() { "[none]".into() } else { lines.join("\n") });
        }
        let Some(number) = call.id else { return Output::failed("which one? give its id") };
        let Some((_, job)) = known.into_iter().find(|(known, _)| *known == number) else {
            return Output::failed(format_args!(
                "there is no command {number} here; list shows those that are known"
            ));
        };
        let limit = match call.action {
            Action::List | Action::Poll => return Output::done(job.shown(number)),
            Action::Kill => {
                job.stop.cancel();
                WAIT
            }
            Action::Wait => call.timeout_seconds.map_or(WAIT, Duration::from_secs).min(WAIT_MAX),
        };
        let mut view = job.view.clone();
        let ended = async {
            while view.borrow_and_update().ended.is_none() && view.changed().await.is_ok() {
                effort.tracker.touch();
            }
        };
        tokio::select! {
            biased;
            () = effort.cut.cancelled() => {
                Output::new(CallStatus::Interrupted, format!("[interrupted] it goes on: {}", job.line(number)))
            }
            () = ended => Output::done(job.shown(number)),
            _ = passed(Some(limit)) => Output::done(format!("[still running]\n{}", job.shown(number))),
        }
    }
}

impl Tool for Process {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "process".into(),
            description: "Commands that `terminal` started in the background: list them, poll one (its newest output), wait for \
                          its end, kill it."
                .into(),
            parameters: json!({ "type": "object", "required": ["action"], "properties": {
                "action": { "type": "string", "enum": ["list", "poll", "wait", "kill"] },
                "id": { "type": "integer", "description": "which one; not for list" },
                "timeout_seconds": { "type": "integer", "description": "how long to wait; 60 if left out" },
            }}),
        }
    }

    fn limit(&self, call: &Value) -> Option<Duration> {
        let asked = call["timeout_seconds"].as_u64().map(Duration::from_secs);
        Some(asked.unwrap_or(WAIT).min(WAIT_MAX))
    }

    fn summary(&self, call: &Value) -> String {
        format!("{} {}", call["action"].as_str().unwrap_or_default(), call["id"])
    }

    fn run<'a>(&'a self, call: &'a Value, effort: &'a Effort) -> BoxFuture<'a, Output> {
        self.act(call, effort).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::effort;
    use super::super::workspace::Workspace;
    use super::*;

    #[tokio::test]
    async fn a_command_is_listed_polled_waited_for_and_killed() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = Workspace::open(folder.path()).unwrap();
        let settings = node::settings::Worker::default();
        let sandbox = super::super::sandbox::Sandbox::new(&settings, workspace.root()).unwrap();
        let (background, effort) = (Background::new(), effort());
        let start = |command: &str| {
            let group = Group::start(&workspace, &sandbox, command).unwrap();
            background.adopt(effort.session, command, group).unwrap()
        };
        let (short, long) = (start("echo hello"), start("echo begun; sleep 1000"));
        let process = Process(background.clone());
        let act = async |call: Value| process.run(&call, &effort).await;
        let waited = act(json!({ "action": "wait", "id": short })).await;
        assert!(
            waited.text.contains("exit code 0") && waited.text.ends_with("hello\n"),
            "{waited:?}"
        );
        let waited = act(json!({ "action": "wait", "id": long, "timeout_seconds": 0 })).await;
        assert!(waited.text.starts_with("[still running]"), "{waited:?}");
        let killed = act(json!({ "action": "kill", "id": long })).await;
        assert!(killed.text.contains("killed"), "{killed:?}");
        let listed = act(json!({ "action": "list" })).await;
        assert_eq!(listed.text.lines().count(), 2);
        assert_eq!(act(json!({ "action": "poll", "id": 99 })).await.status, CallStatus::Failed);
        let other = Effort { session: Sid::new(7), ..effort.clone() };
        assert_eq!(process.run(&json!({ "action": "list" }), &other).await.text, "[none]");
    }

    #[tokio::test]
    async fn a_stop_interrupts_the_wait_and_stop_all_ends_the_command() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = Workspace::open(folder.path()).unwrap();
        let settings = node::settings::Worker::default();
        let sandbox = super::super::sandbox::Sandbox::new(&settings, workspace.root()).unwrap();
        let (background, effort) = (Background::new(), effort());
        let group = Group::start(&workspace, &sandbox, "sleep 1000").unwrap();
        let id = background.adopt(effort.session, "sleep 1000", group).unwrap();
        let process = Process(background.clone());
        let call = json!({ "action": "wait", "id": id, "timeout_seconds": 500 });
        let (output, ()) = tokio::join!(process.run(&call, &effort), async { effort.cut.cancel() });
        assert_eq!(output.status, CallStatus::Interrupted);
        let job = background.of(effort.session).remove(0).1;
        let mut view = job.view.clone();
        assert!(view.borrow().ended.is_none());
        background.stop_all(effort.session);
        view.wait_for(|view| view.ended.is_some()).await.unwrap();
    }
}
