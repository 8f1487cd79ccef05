//! One call of a hook: the event goes in as JSON, an answer may come out as JSON.

use std::process::Stdio;

use anyhow::{Context, bail, ensure};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;

use crate::settings;

/// The longest answer that is read.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// What a program sees of our environment; never a key.
const ENVIRONMENT: [&str; 6] = ["PATH", "HOME", "LANG", "TERM", "TMPDIR", "USER"];

/// Where a hook is.
pub(super) enum Place {
    Program,
    Address(reqwest::Client),
}

impl Place {
    /// Where the settings say that it is.
    pub(super) fn of(settings: &settings::Hook) -> anyhow::Result<Self> {
        match (settings.command.is_empty(), settings.url.is_empty()) {
            (false, true) => Ok(Self::Program),
            (true, false) => {
                let url: reqwest::Url = settings.url.parse().context("bad url")?;
                ensure!(matches!(url.scheme(), "http" | "https"), "bad url: http or https");
                crate::process::install_tls();
                let client = reqwest::Client::builder()
                    .redirect(reqwest::redirect::Policy::none())
                    .build()
                    .context("no HTTP client")?;
                Ok(Self::Address(client))
            }
            (true, true) => bail!("it has neither a command nor a url"),
            (false, false) => bail!("it has a command and a url; one of them must go"),
        }
    }

    /// Passes an event on, and returns what comes back; null if nothing does.
    pub(super) async fn call(
        &self,
        settings: &settings::Hook,
        event: &Value,
    ) -> anyhow::Result<Value> {
        let answer = async {
            match self {
                Self::Program => run(settings, event).await,
                Self::Address(client) => post(client, settings, event).await,
            }
        };
        let answer = match settings.timeout.limit() {
            Some(limit) => {
                tokio::time::timeout(limit, answer).await.context("it took too long")??
            }
            None => answer.await?,
        };
        if answer.iter().all(u8::is_ascii_whitespace) {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&answer).context("its answer is not JSON")
    }
}

/// Ends a program and all that it has started.
struct Ended(Option<Pid>);

impl Drop for Ended {
    fn drop(&mut self) {
        if let Some(pid) = self.0 {
            // A group that is gone needs no signal.
            let _ = killpg(pid, Signal::SIGKILL);
        }
    }
}

async fn run(settings: &settings::Hook, event: &Value) -> anyhow::Result<Vec<u8>> {
    let harmless = |(name, _): &(std::ffi::OsString, _)| {
        ENVIRONMENT.contains(&name.to_string_lossy().as_ref())
    };
    let mut child = Command::new(&settings.command)
        .args(&settings.args)
        .env_clear()
        .envs(std::env::vars_os().filter(harmless))
        .envs(settings.env.iter().map(|(name, value)| (name, value.expose())))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("{} cannot be started", settings.command))?;
    let pid = child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw);
    let _ended = Ended(pid);
    let (Some(mut stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
        bail!("it has no standard input or output");
    };
    let write = async {
        // A program that does not read what it gets is free not to.
        let _ = stdin.write_all(event.to_string().as_bytes()).await;
        drop(stdin);
    };
    let mut answer = Vec::new();
    let mut stdout = stdout.take(ANSWER_BYTES_MAX as u64);
    let ((), read) = tokio::join!(write, stdout.read_to_end(&mut answer));
    read.context("its answer cannot be read")?;
    let status = child.wait().await.context("it cannot be waited for")?;
    ensure!(status.success(), "it ended with {status}");
    Ok(answer)
}

async fn post(
    client: &reqwest::Client,
    settings: &settings::Hook,
    event: &Value,
) -> anyhow::Result<Vec<u8>> {
    let mut request = client.post(&settings.url).json(event);
    if let Some(token) = settings.token.given() {
        request = request.bearer_auth(token);
    }
    let mut response = request.send().await.context("it cannot be reached")?;
    let status = response.status();
    ensure!(status.is_success(), "it answered {status}");
    let mut answer = Vec::new();
    while let Some(chunk) = response.chunk().await.context("its answer was cut off")? {
        ensure!(answer.len() + chunk.len() <= ANSWER_BYTES_MAX, "its answer is too long");
        answer.extend_from_slice(&chunk);
    }
    Ok(answer)
}
