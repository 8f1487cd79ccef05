//! The worker: runs turns. It holds nothing that matters: the right to a turn is a lease that the scheduler writes, the
//! conversation is a stream, and what a turn says goes through the log. Any worker can go on where another one stopped.
//!
//! `runner` takes orders, claims them, beats, and passes controls on; `turn` is one attempt from claim to report; `models` and
//! `tools` are what it works with.

mod activity;
mod fence;
mod http;
mod mcp;
mod metrics;
pub mod models;
mod runner;
mod shared;
mod speech;
mod text;
mod tools;
mod transcript;
mod turn;

use std::sync::Arc;
use std::time::Duration;

use node::Node;
use node::bus::Bus;
use proto::member::{Member, Role};
use tokio_util::sync::CancellationToken;

use self::models::Model;
use self::runner::Runner;
use self::shared::Shared;

/// How long hooks may take at the end to hear what they have not heard.
const HOOKS: Duration = Duration::from_secs(2);

/// Registers the instruments of a worker that does not run, so that they can be listed. `tools` are the names that calls can have.
///
/// # Errors
/// When one is not valid.
pub fn describe(registry: &prometheus::Registry, tools: &[&str]) -> prometheus::Result<()> {
    metrics::Metrics::register(registry, tools).map(drop)
}

/// Runs a worker with the model that the settings choose, until the node is told to stop and its turns have ended or are given
/// back.
///
/// # Errors
/// When the settings are wrong or the worker cannot start.
pub async fn run(node: Node) -> anyhow::Result<()> {
    let model = models::choose(&node.settings.model)?;
    run_with(node, model).await
}

/// The same with a model of the caller's.
///
/// # Errors
/// When the settings are wrong or the worker cannot start.
pub async fn run_with(node: Node, model: Arc<dyn Model>) -> anyhow::Result<()> {
    let slot = Some(node.settings.worker.slot.clone()).filter(|slot| !slot.is_empty());
    let member = Member { role: Role::Worker, id: node.id, slot, turns: 0 };
    // The worker counts as alive until its turns are given back: withdrawing earlier would have them taken away.
    let done = CancellationToken::new();
    let (bus, hooks) = (node.bus.clone(), node.hooks.clone());
    let shared = Arc::new(Shared::new(node, model)?);
    let running = shared.metrics.running.clone();
    let turns = move || u32::try_from(running.get()).unwrap_or_default();
    let announcing = tokio::spawn(node::members::announce_with(bus, member, done.clone(), turns));
    let outcome = match Runner::new(shared) {
        Ok(runner) => runner.run().await,
        Err(error) => Err(error),
    };
    done.cancel();
    announcing.await?;
    hooks.flush(HOOKS).await;
    outcome
}

/// Makes the reader of a pool's orders, for workers whose user may not.
///
/// # Errors
/// When the broker refuses or does not answer.
pub async fn create_pool(bus: Bus, pool: &str) -> anyhow::Result<()> {
    let made = runner::create_pool(bus, pool.to_owned()).await;
    made.map_err(|error| anyhow::anyhow!(error).context(format!("cannot make the pool {pool:?}")))
}
