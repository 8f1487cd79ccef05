//! The three services in one process: started together, watched, and drained in the order in which they need each other.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use ingress::adapter::Adapter;
use node::Node;
use proto::id::ProcessId;
use tokio::net::TcpListener;
use tokio::task::{JoinError, JoinSet};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use worker::models::Model;

/// How long a drain may take beyond what the settings allow running turns.
const MARGIN: Duration = Duration::from_secs(10);

/// A service's name and how it ended.
type Ended = (&'static str, anyhow::Result<()>);

/// The services while they run.
#[derive(Debug)]
pub struct Running {
    /// Those at the edge, which drain first: ingress and worker.
    edge: JoinSet<Ended>,
    edge_stop: CancellationToken,
    /// The one in the middle, to which the others report.
    core: JoinSet<Ended>,
    core_stop: CancellationToken,
    limit: Duration,
    /// What the three are as members of the fleet.
    ids: Vec<ProcessId>,
}

impl Running {
    /// Starts all three, each as a process of its own on one connection. `adapters` come on top of those of ingress.
    #[must_use]
    pub fn start(
        node: &Node,
        listener: TcpListener,
        model: Arc<dyn Model>,
        adapters: Vec<Arc<dyn Adapter>>,
    ) -> Self {
        let (edge_stop, core_stop) = (CancellationToken::new(), CancellationToken::new());
        let process =
            |stop: &CancellationToken| Node { shutdown: stop.clone(), ..node.as_process() };
        let (decides, runs, talks) =
            (process(&core_stop), process(&edge_stop), process(&edge_stop));
        let ids = vec![decides.id, runs.id, talks.id];
        let (mut edge, mut core) = (JoinSet::new(), JoinSet::new());
        add(&mut core, "scheduler", scheduler::run(decides));
        add(&mut edge, "worker", worker::run_with(runs, model));
        add(&mut edge, "ingress", ingress::run_with(talks, listener, adapters));
        let limit = node.settings.worker.drain.get() + MARGIN;
        Self { edge, edge_stop, core, core_stop, limit, ids }
    }

    /// What the three are as members of the fleet.
    #[must_use]
    pub fn ids(&self) -> Vec<ProcessId> {
        self.ids.clone()
    }

    /// Waits until one of them ends by itself, which none should.
    pub async fn failed(&mut self) -> anyhow::Error {
        tokio::select! {
            Some(ended) = self.edge.join_next() => unexpected(ended),
            Some(ended) = self.core.join_next() => unexpected(ended),
        }
    }

    /// Stops the edge and then the core. A drain that fails does not keep the next from being tried.
    ///
    /// # Errors
    /// When one does not stop in time, or not cleanly.
    pub async fn drain(mut self) -> anyhow::Result<()> {
        let limit = self.limit;
        let drained = timeout(limit, async {
            self.edge_stop.cancel();
            let edge = finish(&mut self.edge).await;
            self.core_stop.cancel();
            finish(&mut self.core).await.and(edge)
        });
        let late = || anyhow!("the services did not stop within {} s", limit.as_secs());
        drained.await.unwrap_or_else(|_| Err(late()))
    }
}

fn add(
    set: &mut JoinSet<Ended>,
    name: &'static str,
    service: impl Future<Output = anyhow::Result<()>> + Send + 'static,
) {
    set.spawn(async move { (name, service.await) });
}

fn unexpected(ended: Result<Ended, JoinError>) -> anyhow::Error {
    match ended {
        Ok((name, Ok(()))) => anyhow!("the {name} ended by itself"),
        Ok((name, Err(error))) => error.context(format!("the {name} failed")),
        Err(panic) => anyhow!(panic).context("a service panicked"),
    }
}

async fn finish(set: &mut JoinSet<Ended>) -> anyhow::Result<()> {
    let mut outcome = Ok(());
    while let Some(ended) = set.join_next().await {
        let (name, ended) = ended.context("a service panicked")?;
        if let Err(error) = ended {
            outcome = Err(error.context(format!("the {name} did not stop cleanly")));
        }
    }
    outcome
}
