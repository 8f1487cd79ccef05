//! `talaria up` as an operator runs it: an address that answers, a clean end, data that is found again, and plain errors.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use talaria::nats_server::obtain;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

const DEADLINE: Duration = Duration::from_secs(60);
const TOOLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.talaria/tools");

#[tokio::test]
async fn it_answers_and_goes_on_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let mut up = Up::start(folder.path()).await;
    let first = up.address().await;
    assert!(up.ask(&first, "hello").await.contains("scripted"), "it says what answers");
    let child = child_of(folder.path());
    up.stop().await;
    assert!(!runs(child), "the broker ended too");

    let mut up = Up::start(folder.path()).await;
    let second = up.address().await;
    assert_eq!(first.split_once("token=").unwrap().1, second.split_once("token=").unwrap().1);
    let history = up.ask(&second, "hello again").await;
    assert!(history.contains("hello again"), "{history}");
    up.stop().await;
}

#[tokio::test]
async fn it_restarts_its_own_services_behind_the_same_door() {
    let folder = tempfile::tempdir().unwrap();
    let mut up = Up::start(folder.path()).await;
    let address = up.address().await;
    let answer = up.ask(&address, "/restart").await;
    assert!(answer.starts_with("Restarting"), "{answer}");
    // The services have new names when they are up again; the process and its door are the same.
    for (text, answer) in [("/restart", "Restarting"), ("hello", "scripted")] {
        let answered = async {
            while !up.ask(&address, text).await.contains(answer) {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        timeout(DEADLINE, answered).await.expect("it works again");
    }
    up.stop().await;
}

#[tokio::test]
async fn a_killed_one_takes_its_broker_along_and_the_next_one_starts() {
    let folder = tempfile::tempdir().unwrap();
    let mut up = Up::start(folder.path()).await;
    up.address().await;
    let broker = child_of(folder.path());
    up.child.kill().await.unwrap();

    let gone = async {
        while runs(broker) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(DEADLINE, gone).await.expect("the broker ends by itself");
    let mut up = Up::start(folder.path()).await;
    up.address().await;
    up.stop().await;
}

#[tokio::test]
async fn two_on_one_folder_are_one_too_many() {
    let folder = tempfile::tempdir().unwrap();
    let mut up = Up::start(folder.path()).await;
    up.address().await;
    let output = run(folder.path(), &["up"]).await;
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("another talaria runs on the data"), "{error}");
    assert_eq!(output.status.code(), Some(1));
    up.stop().await;
}

#[tokio::test]
async fn each_failure_has_its_exit_code_and_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    for (args, code, words) in [
        (vec!["up", "--bogus"], 64, "--help"),
        (vec!["up", "--nats", "nats://127.0.0.1:1"], 69, "--nats"),
        (vec!["up", "--model", "parrot"], 78, "openai:NAME"),
        (vec!["up", "--config", "missing.toml"], 78, "--config"),
        (vec!["config", "--config", "missing.toml"], 78, "--config"),
    ] {
        let output = run(folder.path(), &args).await;
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {error}");
        assert!(error.contains(words), "{args:?}: {error}");
    }
}

#[tokio::test]
async fn config_shows_what_applies() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("talaria.toml");
    std::fs::write(file, "[agent]\nmax_iterations = 7\n[model]\nopenai_api_key = \"hush\"\n")
        .unwrap();
    let output = run(folder.path(), &["config", "--json"]).await;
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        shown["settings"]["agent.max_iterations"],
        json!({ "value": 7, "origin": "talaria.toml" })
    );
    assert!(!shown.to_string().contains("hush"));
}

#[tokio::test]
async fn without_a_command_it_shows_its_help() {
    let output = run(Path::new("."), &[]).await;
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stdout).contains("talaria up"));
}

/// A running `talaria up`.
struct Up {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Up {
    async fn start(folder: &Path) -> Self {
        let mut command = command(folder, &["up", "--model", "scripted"]).await;
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// The address of the chat page, once it is printed.
    async fn address(&mut self) -> String {
        let find = async {
            while let Some(line) = self.lines.next_line().await.unwrap() {
                if let Some(address) = line.trim().strip_prefix("Chat ") {
                    return address.trim().to_owned();
                }
            }
            panic!("it ended without an address");
        };
        timeout(DEADLINE, find).await.expect("an address is printed")
    }

    /// What the API answers in one session.
    async fn ask(&self, address: &str, text: &str) -> String {
        node::process::install_tls();
        let client = reqwest::Client::builder().no_proxy().timeout(DEADLINE).build().unwrap();
        let (base, token) = address.split_once("/?token=").unwrap();
        let body = json!({ "messages": [{ "role": "user", "content": text }] });
        let request = client.post(format!("{base}/v1/chat/completions")).json(&body);
        let request = request.bearer_auth(token).header("X-Session-Id", "s");
        // The services may be starting again.
        let Ok(answer) = request.send().await else { return String::new() };
        let answer: Value = answer.json().await.unwrap_or_default();
        answer["choices"][0]["message"]["content"].as_str().unwrap_or_default().to_owned()
    }

    /// Presses Ctrl-C.
    async fn stop(mut self) {
        let pid = i32::try_from(self.child.id().unwrap()).unwrap();
        kill(Pid::from_raw(pid), Signal::SIGINT).unwrap();
        let status = timeout(DEADLINE, self.child.wait()).await.expect("it ends").unwrap();
        assert!(status.success(), "{status}");
    }
}

async fn run(folder: &Path, args: &[&str]) -> Output {
    let output = command(folder, args).await.output();
    timeout(DEADLINE, output).await.expect("it ends").unwrap()
}

async fn command(folder: &Path, args: &[&str]) -> Command {
    let server = obtain(Path::new(TOOLS)).await.unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_talaria"));
    let path: PathBuf = server.path.canonicalize().unwrap();
    command.args(args).current_dir(folder).env("TALARIA_NATS_SERVER", path).kill_on_drop(true);
    command.stdin(Stdio::null());
    command
}

/// The broker of the system in a folder.
fn child_of(folder: &Path) -> Pid {
    let pid = std::fs::read_to_string(folder.join(".talaria/nats.pid")).unwrap();
    Pid::from_raw(pid.trim().parse().unwrap())
}

/// Whether a process runs; one that has ended and that no one has waited for does not.
fn runs(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    kill(pid, None).is_ok() && !stat.contains(") Z ")
}
