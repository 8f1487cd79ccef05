//! A server that outlived its parent and the watch over it (all were killed, or it was slow to end): found by the pid file in
//! its folder, and stopped before a new one starts on the same data. The folder's owner holds the folder's lock meanwhile.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::process::Command;
use tokio::time::{Instant, sleep};

/// How long a server may take to end by itself.
const GRACE: Duration = Duration::from_secs(10);
/// How often one looks whether it has ended.
const LOOK: Duration = Duration::from_millis(20);

/// Stops the server whose pid stands in `pid_file`, if it still runs and was started with `config`; a process that merely
/// got the same pid is left alone. Returns whether there was one.
pub(super) async fn stop(pid_file: &Path, config: &Path) -> bool {
    let Some(pid) =
        std::fs::read_to_string(pid_file).ok().and_then(|text| text.trim().parse().ok())
    else {
        return false;
    };
    let pid = Pid::from_raw(pid);
    let ours = is_server(pid, config).await;
    if ours {
        let _ = kill(pid, Signal::SIGTERM);
        if !gone(pid, config, GRACE).await {
            let _ = kill(pid, Signal::SIGKILL);
            gone(pid, config, GRACE).await;
        }
    }
    let _ = std::fs::remove_file(pid_file);
    ours
}

async fn gone(pid: Pid, config: &Path, limit: Duration) -> bool {
    let end = Instant::now() + limit;
    while is_server(pid, config).await {
        if Instant::now() > end {
            return false;
        }
        sleep(LOOK).await;
    }
    true
}

async fn is_server(pid: Pid, config: &Path) -> bool {
    // Pid 0 and below would name whole process groups.
    if pid.as_raw() <= 1 || kill(pid, None) == Err(Errno::ESRCH) {
        return false;
    }
    let config = config.to_string_lossy();
    command_line(pid).await.is_some_and(|line| line.contains(config.as_ref()))
}

async fn command_line(pid: Pid) -> Option<String> {
    if let Ok(line) = std::fs::read(format!("/proc/{pid}/cmdline")) {
        return Some(String::from_utf8_lossy(&line).into_owned());
    }
    let output = Command::new("ps")
        .args(["-ww", "-o", "args=", "-p", &pid.to_string()])
        .stdin(Stdio::null())
        .output()
        .await
        .ok()?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}
