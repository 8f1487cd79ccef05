//! A real nats-server for one test: on a free port, in a temporary folder, gone with its value. It can be killed, frozen, and
//! started again on the same port and data.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use async_nats::jetstream;
use nix::sys::signal::Signal;
use node::settings::Nats;
use talaria::nats_server::{Binary, Server, obtain};
use tempfile::TempDir;

/// Where tests keep a nats-server that they had to download: where `cargo up` keeps it too.
pub const TOOLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../.talaria/tools");

/// The server.
#[derive(Debug)]
pub struct NatsServer {
    server: Option<Server>,
    port: u16,
    access: Nats,
    binary: Binary,
    // Dropped after the server, whose folder it is.
    folder: TempDir,
}

impl NatsServer {
    /// Obtains and starts one.
    ///
    /// # Panics
    /// When there is none to be had, which the message explains.
    pub async fn start() -> Self {
        node::process::install_tls();
        let binary = obtain(Path::new(TOOLS)).await.unwrap_or_else(|error| panic!("{error}"));
        let folder = tempfile::tempdir().expect("a temporary folder");
        let server = start(&binary, folder.path(), None).await;
        let (port, access) = (server.port(), server.access());
        Self { server: Some(server), port, access, binary, folder }
    }

    /// How to reach it, as settings.
    #[must_use]
    pub const fn access(&self) -> &Nats {
        &self.access
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// A JetStream context of the test's own.
    ///
    /// # Panics
    /// When the server does not answer.
    pub async fn jetstream(&self) -> jetstream::Context {
        jetstream::new(self.running().connect().await.expect("the server answers"))
    }

    /// How many messages a stream holds; none if it does not exist.
    pub async fn count(&self, stream: &str) -> Option<u64> {
        let context = self.jetstream().await;
        let info = context.get_stream(stream).await.ok()?.get_info().await.ok()?;
        Some(info.state.messages)
    }

    /// Kills it at once.
    ///
    /// # Panics
    /// When it is not running.
    pub async fn kill(&mut self) {
        self.server.take().expect("a running server").kill().await;
    }

    /// Starts it again after a kill.
    pub async fn restart(&mut self) {
        self.server = Some(start(&self.binary, self.folder.path(), Some(self.port)).await);
    }

    /// Freezes it: connections stay open and nothing answers.
    ///
    /// # Panics
    /// When it is not running.
    pub fn pause(&self) {
        self.running().signal(Signal::SIGSTOP).expect("a running server");
    }

    /// Lets it go on.
    ///
    /// # Panics
    /// When it is not running.
    pub fn resume(&self) {
        self.running().signal(Signal::SIGCONT).expect("a running server");
    }

    fn running(&self) -> &Server {
        self.server.as_ref().expect("a running server")
    }
}

async fn start(binary: &Binary, folder: &Path, port: Option<u16>) -> Server {
    Server::start(binary, folder, port).await.unwrap_or_else(|error| panic!("{error}"))
}
