//! One of our services in the test's own process: it runs until it is stopped or dropped.

use std::net::{Ipv4Addr, SocketAddr};

use node::Node;
use node::health::Board;
use node::settings::Settings;
use proto::member::Role;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::wait::DEADLINE;

/// The service; dropping it ends it at once.
#[derive(Debug)]
pub struct Service {
    role: Role,
    address: SocketAddr,
    health: Board,
    stop: CancellationToken,
    task: JoinHandle<anyhow::Result<()>>,
}

impl Service {
    /// Starts one.
    ///
    /// # Panics
    /// When the broker cannot be used.
    pub async fn start(role: Role, settings: Settings) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let stop = CancellationToken::new();
        let node = Node::connect(settings, &format!("talaria-{role}"), stop.clone())
            .await
            .unwrap_or_else(|error| panic!("the {role} does not start: {error:#}"));
        let health = node.health.clone();
        let task = match role {
            Role::Scheduler => tokio::spawn(scheduler::run(node)),
            Role::Worker => tokio::spawn(worker::run(node)),
            Role::Ingress => tokio::spawn(ingress::run(node, listener)),
        };
        Self { role, address, health, stop, task }
    }

    /// Where the front door is, if it is an ingress.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until it says that it is ready.
    ///
    /// # Panics
    /// When it does not, or has ended.
    pub async fn ready(&self) {
        let ready = timeout(DEADLINE, self.health.ready()).await;
        let troubles = self.health.troubles();
        assert!(
            ready.is_ok() && !self.task.is_finished(),
            "the {} is not ready: {troubles:?}",
            self.role
        );
    }

    /// Stops it, and waits until it has drained.
    ///
    /// # Panics
    /// When it does not end cleanly.
    pub async fn stop(mut self) {
        self.stop.cancel();
        let ended = timeout(DEADLINE, &mut self.task).await;
        let ended = ended.unwrap_or_else(|_| panic!("the {} does not stop", self.role));
        ended.expect("it does not panic").unwrap_or_else(|e| panic!("the {}: {e:#}", self.role));
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.stop.cancel();
        self.task.abort();
    }
}
