//! A nats-server child: JetStream on loopback, everything it has in one folder, its own process group so that Ctrl-C does not
//! reach it before the drain is over, and its end with its parent's, however that comes.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use async_nats::jetstream;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use node::settings::Secret;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout};

use super::guard::Guard;
use super::obtain::Binary;
use super::orphan;
use crate::data::kept_secret;

/// How long a server may take to be ready: it reads its streams first, 2 s for each million of subjects.
const READY: Duration = Duration::from_secs(120);
/// How long it may take to stop.
const STOP: Duration = Duration::from_secs(10);
/// How often one looks for its ports.
const LOOK: Duration = Duration::from_millis(10);
/// The name by which clients log in: other users of the machine must not be able to give the agent orders.
const USER: &str = "talaria";

/// A server that did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Its folder cannot be used.
    #[error("cannot use {}", .path.display())]
    Folder {
        /// What cannot be used.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It cannot be run.
    #[error("cannot run {}", .binary.display())]
    Run {
        /// What was run.
        binary: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// It ended at once.
    #[error("nats-server ended with {status}; the end of {}:\n{tail}", .log.display())]
    Ended {
        /// How.
        status: ExitStatus,
        /// Where it says why.
        log: PathBuf,
        /// Its last lines.
        tail: String,
    },
    /// It does not become ready.
    #[error("nats-server was not ready within {} s; see {}", READY.as_secs(), .log.display())]
    Late {
        /// Where it may say why.
        log: PathBuf,
    },
}

/// Where a server has its things, all in one folder.
#[derive(Clone, Debug)]
struct Places {
    store: PathBuf,
    config: PathBuf,
    log: PathBuf,
    pid: PathBuf,
    password: PathBuf,
    ports: PathBuf,
}

/// A running server; dropping it kills it.
#[derive(Debug)]
pub struct Server {
    // Dropped before the child: the watch must not outlive what it watches.
    guard: Guard,
    child: Child,
    pid: Pid,
    places: Places,
    port: u16,
    password: Secret,
}

impl Server {
    /// Starts a server on the data in `folder` and waits until it can be used. `port` none means any free one. Whoever calls
    /// this must own the folder: what an earlier owner left running in it is stopped.
    ///
    /// # Errors
    /// When it cannot be run, ends, or does not become ready.
    pub async fn start(
        binary: &Binary,
        folder: &Path,
        port: Option<u16>,
    ) -> Result<Self, StartError> {
        let places = Places::prepare(folder)?;
        let password = kept_secret(&places.password).map_err(folder_error(&places.password))?;
        orphan::stop(&places.pid, &places.config).await;
        places.write_config(port, &password)?;
        let run = |source| StartError::Run { binary: binary.path.clone(), source };
        let child = Command::new(&binary.path)
            .arg("--config")
            .arg(&places.config)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(run)?;
        let id = child.id().ok_or_else(|| run(io::Error::other("it has no pid")))?;
        let pid = Pid::from_raw(i32::try_from(id).map_err(|e| run(io::Error::other(e)))?);
        let guard = Guard::over(pid).map_err(run)?;
        std::fs::write(&places.pid, id.to_string()).map_err(folder_error(&places.pid))?;
        let mut server = Self { guard, child, pid, places, port: 0, password };
        server.wait_ready().await?;
        Ok(server)
    }

    /// Its address.
    #[must_use]
    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Its port.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Where it logs.
    #[must_use]
    pub fn log(&self) -> &Path {
        &self.places.log
    }

    /// How to reach it, as settings.
    #[must_use]
    pub fn access(&self) -> node::settings::Nats {
        node::settings::Nats {
            url: self.url(),
            user: USER.to_owned(),
            password: self.password.clone(),
            ..node::settings::Nats::default()
        }
    }

    /// A connection of its own, past ours, for measuring and for looking at what is stored.
    ///
    /// # Errors
    /// When the server does not answer.
    pub async fn connect(&self) -> Result<async_nats::Client, async_nats::ConnectError> {
        async_nats::ConnectOptions::with_user_and_password(
            USER.to_owned(),
            self.password.expose().to_owned(),
        )
        .connect(self.url())
        .await
    }

    /// Sends it a signal: `SIGSTOP` freezes it, `SIGCONT` lets it go on.
    ///
    /// # Errors
    /// When it is no longer there.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        kill(self.pid, signal).map_err(io::Error::from)
    }

    /// Waits until it ends by itself, which it should not.
    ///
    /// # Errors
    /// When it cannot be waited for.
    pub async fn ended(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Stops it: asks, waits, and then does not ask.
    pub async fn stop(mut self) {
        drop(self.guard);
        // Asking one that has ended does nothing, and killing it neither.
        let _ = kill(self.pid, Signal::SIGTERM);
        if timeout(STOP, self.child.wait()).await.is_err() {
            let _ = self.child.kill().await;
        }
        let _ = std::fs::remove_file(&self.places.pid);
    }

    /// Kills it at once, as a crash would.
    pub async fn kill(mut self) {
        drop(self.guard);
        let _ = self.child.kill().await;
    }

    async fn wait_ready(&mut self) -> Result<(), StartError> {
        let end = Instant::now() + READY;
        while Instant::now() < end {
            if let Ok(Some(status)) = self.child.try_wait() {
                let log = self.places.log.clone();
                return Err(StartError::Ended { status, tail: tail(&log), log });
            }
            if let Some(port) = self.places.port_of(self.pid) {
                self.port = port;
                if self.has_jetstream().await {
                    return Ok(());
                }
            }
            sleep(LOOK).await;
        }
        Err(StartError::Late { log: self.places.log.clone() })
    }

    async fn has_jetstream(&self) -> bool {
        let Ok(client) = self.connect().await else { return false };
        jetstream::new(client).query_account().await.is_ok()
    }
}

impl Places {
    fn prepare(folder: &Path) -> Result<Self, StartError> {
        std::fs::create_dir_all(folder).map_err(folder_error(folder))?;
        // The server's own working folder may be another.
        let folder = folder.canonicalize().map_err(folder_error(folder))?;
        let ports = folder.join("run");
        // Ports of a server that was killed are still there.
        let _ = std::fs::remove_dir_all(&ports);
        std::fs::create_dir_all(&ports).map_err(folder_error(&ports))?;
        Ok(Self {
            store: folder.join("nats"),
            config: folder.join("nats.conf"),
            log: folder.join("nats.log"),
            pid: folder.join("nats.pid"),
            password: folder.join("nats.password"),
            ports,
        })
    }

    fn write_config(&self, port: Option<u16>, password: &Secret) -> Result<(), StartError> {
        let port = port.map_or_else(|| "-1".to_owned(), |port| port.to_string());
        let text = format!(
            "# Written at each start by talaria; changes are lost.\n\
             host: \"127.0.0.1\"\n\
             port: {port}\n\
             ports_file_dir: {ports}\n\
             log_file: {log}\n\
             logfile_size_limit: 16MB\n\
             logfile_max_num: 2\n\
             max_payload: 8MB\n\
             authorization {{ user: {USER}, password: {password} }}\n\
             jetstream {{ store_dir: {store} }}\n",
            ports = quoted(&self.ports),
            log = quoted(&self.log),
            store = quoted(&self.store),
            password = quoted(Path::new(password.expose())),
        );
        let _ = std::fs::remove_file(&self.config);
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&self.config)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(folder_error(&self.config))
    }

    /// The port that a server got; none while it has not said so.
    fn port_of(&self, pid: Pid) -> Option<u16> {
        // The file is named after the server's executable, which may be a link.
        let ending = format!("_{pid}.ports");
        let mut entries = std::fs::read_dir(&self.ports).ok()?.filter_map(Result::ok);
        let file = entries.find(|entry| entry.file_name().to_string_lossy().ends_with(&ending))?;
        read_port(&file.path())
    }
}

fn folder_error(path: &Path) -> impl Fn(io::Error) -> StartError {
    move |source| StartError::Folder { path: path.to_owned(), source }
}

/// A string of the server's configuration language.
fn quoted(path: &Path) -> String {
    format!("{:?}", path.to_string_lossy())
}

/// The client port in a ports file; none while the file is not there or half written.
fn read_port(file: &Path) -> Option<u16> {
    let text = std::fs::read(file).ok()?;
    let ports: serde_json::Value = serde_json::from_slice(&text).ok()?;
    ports.get("nats")?.get(0)?.as_str()?.rsplit(':').next()?.parse().ok()
}

fn tail(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(5)..].join("\n")
}
