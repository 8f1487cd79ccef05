//! One of our services as a process: it can be killed, frozen and asked to stop, and its log is shown when a test fails.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use proto::member::Role;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::wait::{DEADLINE, eventually};

/// Where a process is, if that matters.
#[derive(Clone, Debug, Default)]
pub struct Place {
    /// Where it listens.
    pub listen: Option<SocketAddr>,
    /// Where it finds the broker.
    pub nats: Option<SocketAddr>,
    /// Its slot.
    pub slot: Option<String>,
    /// What else it has in its environment.
    pub environment: Vec<(String, String)>,
}

/// The process; dropping it kills it.
#[derive(Debug)]
pub struct Process {
    role: Role,
    child: Child,
    pid: Pid,
    address: SocketAddr,
    log: PathBuf,
}

impl Process {
    /// Starts the test binary `service` in a role, with a settings file.
    ///
    /// # Panics
    /// When it cannot be started.
    #[must_use]
    pub fn spawn(service: &str, role: Role, config: &Path, log: PathBuf) -> Self {
        Self::spawn_at(service, role, config, log, &Place::default())
    }

    /// The same at a given place.
    ///
    /// # Panics
    /// When it cannot be started.
    #[must_use]
    pub fn spawn_at(service: &str, role: Role, config: &Path, log: PathBuf, place: &Place) -> Self {
        let address = place.listen.unwrap_or_else(free_address);
        let out = std::fs::File::create(&log).expect("a log file");
        let child = Command::new(service)
            .arg0(format!("talaria-{role}"))
            .arg("--config")
            .arg(config)
            .args(["--listen", &address.to_string()])
            .args(place.nats.map(|nats| format!("--nats=nats://{nats}")))
            .envs(place.environment.iter().cloned())
            .envs(place.slot.as_ref().map(|slot| ("TALARIA__WORKER__SLOT", slot)))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(out)
            .kill_on_drop(true)
            .spawn()
            .expect("the service binary runs");
        let id = child.id().and_then(|id| i32::try_from(id).ok()).expect("a running child");
        Self { role, child, pid: Pid::from_raw(id), address, log }
    }

    /// Where it listens: health and metrics, and for ingress the front door.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it has logged.
    #[must_use]
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Waits until it says that it is ready.
    pub async fn ready(&mut self) {
        let url = format!("http://{}/readyz", self.address);
        let client = crate::http::client();
        eventually(&format!("the {} is ready", self.role), || {
            let answer = client.get(&url).send();
            async { answer.await.is_ok_and(|answer| answer.status().is_success()).then_some(()) }
        })
        .await;
    }

    /// What one of its metrics says; 0 if it does not say it. `series` is the whole name, with its labels.
    pub async fn metric(&self, series: &str) -> f64 {
        let url = format!("http://{}/metrics", self.address);
        let Ok(answer) = crate::http::client().get(url).send().await else { return 0.0 };
        let text = answer.text().await.unwrap_or_default();
        let value = text.lines().find_map(|line| line.strip_prefix(series)?.trim().parse().ok());
        value.unwrap_or_default()
    }

    /// Kills it at once, as a crash would.
    ///
    /// # Panics
    /// When it is gone already.
    pub async fn kill9(&mut self) {
        self.signal(Signal::SIGKILL);
        let status = self.ended().await;
        assert_eq!(status.signal(), Some(Signal::SIGKILL as i32), "the {} was killed", self.role);
    }

    /// Freezes it.
    pub fn pause(&self) {
        self.signal(Signal::SIGSTOP);
    }

    /// Lets it go on.
    pub fn resume(&self) {
        self.signal(Signal::SIGCONT);
    }

    /// Asks it to stop, and waits until it has.
    ///
    /// # Panics
    /// When it does not end cleanly.
    pub async fn terminate(&mut self) {
        self.signal(Signal::SIGTERM);
        let status = self.ended().await;
        assert!(status.success(), "the {} ended with {status}", self.role);
    }

    /// Waits until it ends by itself, and returns its exit code; none if a signal ended it.
    pub async fn exit_code(&mut self) -> Option<i32> {
        self.ended().await.code()
    }

    /// Its exit code, if it has ended.
    ///
    /// # Panics
    /// When it cannot be asked.
    pub fn has_ended(&mut self) -> Option<i32> {
        let status = self.child.try_wait().expect("a child of ours");
        status.map(|status| status.code().unwrap_or(-1))
    }

    /// What it does.
    #[must_use]
    pub const fn role(&self) -> Role {
        self.role
    }

    /// Asks it to stop, and does not wait.
    ///
    /// # Panics
    /// When it is gone already.
    pub fn ask_to_stop(&self) {
        self.signal(Signal::SIGTERM);
    }

    /// How much memory it has in use, kilobytes.
    ///
    /// # Panics
    /// When it is gone.
    #[must_use]
    pub fn memory_kb(&self) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid));
        let status = status.expect("a running process");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let words = line.and_then(|line| line.split_whitespace().next());
        words.and_then(|kb| kb.parse().ok()).expect("a size in kB")
    }

    /// Sends it a signal; nothing happens if it has ended.
    pub fn send(&mut self, signal: Signal) {
        if self.has_ended().is_none() {
            let _ = kill(self.pid, signal);
        }
    }

    fn signal(&self, signal: Signal) {
        kill(self.pid, signal).unwrap_or_else(|error| panic!("{signal} to {}: {error}", self.role));
    }

    async fn ended(&mut self) -> ExitStatus {
        let ended = timeout(DEADLINE, self.child.wait()).await;
        ended.unwrap_or_else(|_| panic!("the {} does not end", self.role)).expect("a child of ours")
    }
}

impl Drop for Process {
    #[expect(clippy::print_stderr, reason = "a failing test shows what its processes logged")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = std::fs::read_to_string(&self.log).unwrap_or_default();
            eprintln!("--- {} (pid {}) logged:\n{log}", self.role, self.pid);
        }
    }
}

/// An address that was free a moment ago.
fn free_address() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    listener.local_addr().expect("a bound socket has an address")
}
