//! The program of an external agent, in a process group of its own, which ends with its value.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use node::settings::Acp;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::tools::environment;

/// The program.
pub(super) struct Program {
    child: Child,
    pub(super) folder: PathBuf,
}

impl Program {
    /// Starts it in the workspace, with the environment that commands get and what the settings add.
    pub(super) fn start(settings: &Acp, folder: &Path) -> std::io::Result<Self> {
        let given = settings.env.iter().map(|(name, value)| (name, value.expose()));
        let child = Command::new(&settings.command)
            .args(&settings.args)
            .current_dir(folder)
            .env_clear()
            .envs(environment())
            .envs(given)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        Ok(Self { child, folder: folder.to_owned() })
    }

    /// Its ends of the conversation; they can be taken once.
    pub(super) fn ends(&mut self) -> Option<(ChildStdin, ChildStdout)> {
        self.child.stdin.take().zip(self.child.stdout.take())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if let Some(pid) = self.child.id().and_then(|id| i32::try_from(id).ok()) {
            // What it has started ends with it; a group that is gone needs no signal.
            let _ = killpg(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}
