//! The death watch of a server: a shell that waits on a pipe from us, and ends the server when the pipe closes because we were
//! killed. (The kernel's own means for that, where there are any, need unsafe code.)

use std::io;
use std::process::Stdio;

use nix::unistd::Pid;
use tokio::process::{Child, Command};

/// The watch. Dropping it calls it off: the shell is killed before its pipe closes.
#[derive(Debug)]
pub(super) struct Guard(#[expect(dead_code, reason = "held for its drop")] Child);

impl Guard {
    /// Watches over a server.
    pub(super) fn over(server: Pid) -> io::Result<Self> {
        let shell = Command::new("/bin/sh")
            .args(["-c", "read -r _; kill -TERM \"$0\"", &server.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        Ok(Self(shell))
    }
}
