//! A shell command as a process group: its output live, its end certain. The group gets TERM, then KILL two seconds later; it is
//! killed at once when its owner is dropped.

use std::ffi::OsString;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};

use super::sandbox::Sandbox;
use super::workspace::Workspace;

/// How long a group may take to end by itself after TERM.
const GRACE: Duration = Duration::from_secs(2);
/// How long the output is read after the command has ended: what it left in the background may keep the pipe open.
const REST: Duration = Duration::from_millis(200);
/// What a command sees of our environment; never a key.
const ENVIRONMENT: [&str; 6] = ["PATH", "HOME", "LANG", "TERM", "TMPDIR", "USER"];

/// A running command.
pub(super) struct Group {
    child: Child,
    pid: Option<Pid>,
    output: pipe::Receiver,
}

impl Group {
    /// Starts a command in the workspace.
    pub(super) fn start(
        workspace: &Workspace,
        sandbox: &Sandbox,
        command: &str,
    ) -> std::io::Result<Self> {
        // One pipe for both streams keeps their lines in order.
        let (sender, output) = pipe::pipe()?;
        let out = sender.into_blocking_fd()?;
        let error = out.try_clone()?;
        let mut start = Command::new(shell());
        start
            .arg("-c")
            .arg(sandbox.prelude(shell()))
            .arg(command)
            .current_dir(workspace.root())
            .env_clear()
            .envs(environment())
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(error)
            .process_group(0)
            .kill_on_drop(true);
        let runtime = tokio::runtime::Handle::current();
        let child = sandbox.start(|| {
            let _inside = runtime.enter();
            start.spawn()
        })?;
        let pid = child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw);
        Ok(Self { child, pid, output })
    }

    /// Waits for the command's end, giving its output to `sink` as it comes. Can be dropped and called again.
    pub(super) async fn wait(
        &mut self,
        mut sink: impl FnMut(&[u8]),
    ) -> std::io::Result<ExitStatus> {
        let mut buffer = [0; 4096];
        let mut open = true;
        let status = loop {
            tokio::select! {
                biased;
                read = self.output.read(&mut buffer), if open => match read {
                    Ok(0) | Err(_) => open = false,
                    Ok(count) => sink(&buffer[..count]),
                },
                status = self.child.wait() => break status?,
            }
        };
        let rest = async {
            while let Ok(count @ 1..) = self.output.read(&mut buffer).await {
                sink(&buffer[..count]);
            }
        };
        let _ = tokio::time::timeout(REST, rest).await;
        // Whatever it left behind ends with it.
        self.signal(Signal::SIGKILL);
        Ok(status)
    }

    /// Ends the whole group: TERM, and KILL for what is still there after the grace.
    pub(super) async fn stop(&mut self, sink: impl FnMut(&[u8])) {
        self.signal(Signal::SIGTERM);
        if tokio::time::timeout(GRACE, self.wait(sink)).await.is_err() {
            self.signal(Signal::SIGKILL);
            // Nothing survives KILL; the wait only collects the process.
            let _ = self.child.wait().await;
        }
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = self.pid {
            // A group that is gone needs no signal.
            let _ = killpg(pid, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::SIGKILL);
    }
}

/// The variables that a command sees.
pub(crate) fn environment() -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os().filter(|(name, _)| {
        let name = name.to_string_lossy();
        ENVIRONMENT.contains(&name.as_ref()) || name.starts_with("LC_")
    })
}

fn shell() -> &'static str {
    if std::path::Path::new("/bin/bash").exists() { "/bin/bash" } else { "/bin/sh" }
}
