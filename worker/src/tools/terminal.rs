//! `terminal`: a shell command in the workspace.

use std::collections::VecDeque;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use proto::transcript::CallStatus;
use serde::Deserialize;
use serde_json::{Value, json};

use super::background::Background;
use super::danger::{self, Danger};
use super::process::Group;
use super::sandbox::Sandbox;
use super::workspace::Workspace;
use super::{Effort, OUTPUT_BYTES_MAX, Output, Tool, arguments};
use crate::activity::Tracker;
use crate::models::ToolSpec;

/// What a shell says of a command that was interrupted.
const INTERRUPTED: i32 = 130;

/// The tool.
pub(super) struct Terminal {
    place: Place,
    limit: Option<Duration>,
    background: Background,
}

/// Where commands run, and what keeps them there.
pub(super) struct Place {
    pub(super) workspace: Workspace,
    pub(super) sandbox: Sandbox,
}

#[derive(Deserialize)]
struct Call {
    command: String,
    #[serde(default)]
    background: bool,
}

enum End {
    Exit(std::io::Result<std::process::ExitStatus>),
    Cut,
    Deadline(Duration),
}

impl Terminal {
    pub(super) const fn new(place: Place, limit: Option<Duration>, background: Background) -> Self {
        Self { place, limit, background }
    }

    async fn execute(&self, call: &Value, effort: &Effort) -> Output {
        let limit = self.limit(call);
        let Call { command, background } = match arguments(call) {
            Ok(call) => call,
            Err(output) => return output,
        };
        let mut group = match Group::start(&self.place.workspace, &self.place.sandbox, &command) {
            Ok(group) => group,
            Err(error) => return Output::failed(format_args!("cannot start a shell: {error}")),
        };
        if background {
            return match self.background.adopt(effort.session, &command, group) {
                Ok(number) => Output::done(format!(
                    "[it runs in the background; `process` knows it as {number}]"
                )),
                Err(why) => Output::failed(why),
            };
        }
        let mut capture = Capture::new(&effort.tracker);
        let end = tokio::select! {
            biased;
            () = effort.cut.cancelled() => End::Cut,
            status = group.wait(|bytes| capture.take(bytes)) => End::Exit(status),
            limit = passed(limit) => End::Deadline(limit),
        };
        if !matches!(end, End::Exit(_)) {
            group.stop(|bytes| capture.take(bytes)).await;
        }
        let (status, note) = verdict(&end);
        let mut text = capture.text();
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        Output::new(status, text + &note)
    }
}

impl Tool for Terminal {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "terminal".into(),
            description: "Runs a shell command in the workspace and returns its output and exit code. It has no input. What \
                          it leaves running is ended with it; a command that should go on is run with `background`."
                .into(),
            parameters: json!({ "type": "object", "required": ["command"], "properties": {
                "command": { "type": "string" },
                "timeout_seconds": { "type": "integer", "description": "when to give up" },
                "background": { "type": "boolean", "description": "start it and go on; see `process`" },
            }}),
        }
    }

    fn limit(&self, call: &Value) -> Option<Duration> {
        let asked = call["timeout_seconds"].as_u64().filter(|seconds| *seconds > 0);
        let asked = asked.map(Duration::from_secs);
        match (asked, self.limit) {
            (Some(asked), Some(limit)) => Some(asked.min(limit)),
            (asked, limit) => asked.or(limit),
        }
    }

    fn danger(&self, call: &Value) -> Option<Danger> {
        danger::judge(call["command"].as_str().unwrap_or_default())
    }

    fn summary(&self, call: &Value) -> String {
        call["command"].as_str().unwrap_or_default().to_owned()
    }

    fn run<'a>(&'a self, call: &'a Value, effort: &'a Effort) -> BoxFuture<'a, Output> {
        self.execute(call, effort).boxed()
    }
}

pub(crate) async fn passed(limit: Option<Duration>) -> Duration {
    match limit {
        None => std::future::pending().await,
        Some(limit) => {
            tokio::time::sleep(limit).await;
            limit
        }
    }
}

fn verdict(end: &End) -> (CallStatus, String) {
    match end {
        End::Cut => (CallStatus::Interrupted, format!("[interrupted] [exit code {INTERRUPTED}]")),
        End::Deadline(limit) => (
            CallStatus::Failed,
            format!("[interrupted] after {} s [exit code {INTERRUPTED}]", limit.as_secs_f32()),
        ),
        End::Exit(Err(error)) => (CallStatus::Failed, format!("error: {error}")),
        End::Exit(Ok(status)) => match status.code() {
            Some(code) => (CallStatus::Done, format!("[exit code {code}]")),
            None => (CallStatus::Failed, format!("[ended by a signal: {status}]")),
        },
    }
}

/// The output: its beginning and its end, in bounded memory.
struct Capture<'a> {
    tracker: &'a Tracker,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    missing: usize,
    line: Vec<u8>,
    last_line: Vec<u8>,
}

impl<'a> Capture<'a> {
    /// Half of what is kept; also the longest piece of a line that is compared.
    const HALF: usize = OUTPUT_BYTES_MAX / 2 - 100;
    const LINE: usize = 256;

    const fn new(tracker: &'a Tracker) -> Self {
        Self {
            tracker,
            head: Vec::new(),
            tail: VecDeque::new(),
            missing: 0,
            line: Vec::new(),
            last_line: Vec::new(),
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        let news = bytes.iter().filter(|byte| self.note(**byte)).count();
        if news > 0 {
            self.tracker.touch();
        }
        let (head, rest) = bytes.split_at(bytes.len().min(Self::HALF - self.head.len()));
        self.head.extend_from_slice(head);
        self.tail.extend(rest);
        let surplus = self.tail.len().saturating_sub(Self::HALF);
        self.tail.drain(..surplus);
        self.missing += surplus;
    }

    /// Whether a line ends here that is not the one before over again: repeating oneself is no progress.
    fn note(&mut self, byte: u8) -> bool {
        if !matches!(byte, b'\n' | b'\r') {
            if self.line.len() < Self::LINE {
                self.line.push(byte);
            }
            return false;
        }
        let news = !self.line.is_empty() && self.line != self.last_line;
        std::mem::swap(&mut self.line, &mut self.last_line);
        self.line.clear();
        news
    }

    fn text(mut self) -> String {
        if self.missing > 0 {
            let note = format!("\n[… {} bytes left out …]\n", self.missing);
            self.head.extend_from_slice(note.as_bytes());
        }
        self.head.extend(self.tail);
        String::from_utf8_lossy(&self.head).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::tests::effort;
    use super::*;

    fn terminal(folder: &Path) -> Terminal {
        let limit = Some(Duration::from_secs(600));
        let workspace = Workspace::open(folder).unwrap();
        let sandbox = Sandbox::new(&node::settings::Worker::default(), workspace.root()).unwrap();
        let place = Place { workspace, sandbox };
        Terminal::new(place, limit, Background::new())
    }

    /// Waits until a process is gone.
    async fn gone(pid: &str) {
        let running = || std::fs::read_to_string(format!("/proc/{pid}/stat"));
        while running().is_ok_and(|stat| !stat.contains(") Z")) {
            tokio::task::yield_now().await;
        }
    }

    async fn pid_in(file: &Path) -> String {
        loop {
            match std::fs::read_to_string(file) {
                Ok(pid) if pid.ends_with('\n') => return pid.trim().to_owned(),
                _ => tokio::task::yield_now().await,
            }
        }
    }

    #[tokio::test]
    async fn output_and_exit_code_come_back_and_the_environment_is_scrubbed() {
        let folder = tempfile::tempdir().unwrap();
        let call = json!({ "command": "echo out; echo err >&2; env | cut -d= -f1 | sort; exit 3" });
        let output = terminal(folder.path()).run(&call, &effort()).await;
        assert_eq!(output.status, CallStatus::Done);
        assert!(output.text.starts_with("out\nerr\n") && output.text.ends_with("[exit code 3]"));
        assert!(!output.text.contains("CARGO"), "{}", output.text);
    }

    #[tokio::test]
    async fn a_stop_ends_the_whole_group_and_keeps_what_was_said() {
        let folder = tempfile::tempdir().unwrap();
        let (terminal, effort) = (terminal(folder.path()), effort());
        let call = json!({ "command": "echo begun; sleep 1000 & echo $! > pid; wait" });
        let stop = async {
            let pid = pid_in(&folder.path().join("pid")).await;
            effort.cut.cancel();
            pid
        };
        let (output, pid) = tokio::join!(terminal.run(&call, &effort), stop);
        assert_eq!(output.status, CallStatus::Interrupted);
        assert_eq!(output.text, "begun\n[interrupted] [exit code 130]");
        tokio::time::timeout(Duration::from_secs(5), gone(&pid)).await.unwrap();
    }

    #[tokio::test]
    async fn who_ignores_term_is_killed_and_a_deadline_counts_like_a_stop() {
        let folder = tempfile::tempdir().unwrap();
        let call = json!({ "command": "trap '' TERM; while :; do sleep 0.05; done", "timeout_seconds": 1 });
        let output = terminal(folder.path()).run(&call, &effort()).await;
        assert_eq!(output.status, CallStatus::Failed);
        assert!(output.text.contains("[exit code 130]"), "{}", output.text);
    }

    #[tokio::test]
    async fn dropping_the_call_kills_the_group() {
        let folder = tempfile::tempdir().unwrap();
        let (terminal, effort) = (terminal(folder.path()), effort());
        let call = json!({ "command": "sleep 1000 & echo $! > pid; wait" });
        let mut run = terminal.run(&call, &effort);
        let file = folder.path().join("pid");
        let pid = tokio::select! {
            output = &mut run => panic!("{output:?}"),
            pid = pid_in(&file) => pid,
        };
        drop(run);
        tokio::time::timeout(Duration::from_secs(5), gone(&pid)).await.unwrap();
    }

    #[test]
    fn only_new_lines_are_progress_and_long_output_keeps_both_ends() {
        let (tracker, _gauge) = Tracker::new(1, Default::default());
        let mut capture = Capture::new(&tracker);
        let news = |capture: &mut Capture<'_>, line: &str| {
            line.bytes().filter(|byte| capture.note(*byte)).count() > 0
        };
        assert!(news(&mut capture, "a\n"));
        assert!(!news(&mut capture, "a\n"));
        assert!(news(&mut capture, "b\n"));
        capture.take(b"begin");
        (0..100).for_each(|_| capture.take(&[b'x'; 1000]));
        capture.take(b"end");
        let text = capture.text();
        assert!(text.len() <= OUTPUT_BYTES_MAX && text.contains("bytes left out"));
        assert!(text.starts_with("begin") && text.ends_with("end"));
    }
}
