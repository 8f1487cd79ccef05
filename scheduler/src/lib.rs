//! The scheduler: owns partitions of the session space, and in each applies the log to the leases. The decisions are in
//! `scheduler-core`; here is only what carries them out.
//!
//! Each process announces itself, computes from the list of the living which partitions are its own (`ownership`), and runs
//! one loop per partition (`partition`). Two owners of one partition for a moment are harmless: they decide from the same
//! log, and of two writes to a lease the broker refuses one.

mod broker;
mod jobs;
mod metrics;
mod ownership;
mod partition;
mod policy;

use std::sync::Arc;
use std::time::Duration;

use node::Node;
use node::exit::Exit;
use proto::member::{Member, Role};

pub use crate::ownership::owner;

use crate::broker::Broker;
use crate::jobs::Jobs;
use crate::metrics::Metrics;
use crate::ownership::Ownership;

/// How long a clean stop waits for the batches in hand.
const STOP_LIMIT: Duration = Duration::from_secs(2);

/// Registers the instruments of a scheduler that does not run, so that they can be listed.
///
/// # Errors
/// When one is not valid.
pub fn describe(registry: &prometheus::Registry) -> prometheus::Result<()> {
    let keep = node::settings::Streams::default().retentions();
    jobs::Metrics::register(registry)?;
    Metrics::register(registry).and(Broker::register(registry, keep).map(drop))
}

/// Runs a scheduler until the node is told to stop.
///
/// # Errors
/// When its metrics cannot be registered.
pub async fn run(node: Node) -> anyhow::Result<()> {
    let metrics = Arc::new(Metrics::register(&node.metrics)?);
    let broker = Broker::register(&node.metrics, node.settings.streams.retentions())?;
    tokio::spawn(broker.watch(node.clone()));
    let health = node.health.part("scheduler");
    let members = node::members::follow(node.bus.clone(), node.shutdown.clone());
    let slot = Some(node.settings.worker.slot.clone()).filter(|slot| !slot.is_empty());
    let member = Member { role: Role::Scheduler, id: node.id, slot, turns: 0 };
    let announced =
        tokio::spawn(node::members::announce(node.bus.clone(), member, node.shutdown.clone()));

    let zone = &node.settings.cron.timezone;
    if !scheduler_core::jobs::has_zone(zone) {
        let why = format!(
            "bad cron.timezone {zone:?}: there is no such time zone; write for example Europe/Berlin"
        );
        return Err(anyhow::anyhow!(why).context(Exit::Configuration));
    }
    let jobs = Jobs::new(&node, members.clone(), Arc::new(jobs::Metrics::register(&node.metrics)?));
    tokio::spawn(jobs::keep_time(jobs.clone(), node.shutdown.clone()));
    tokio::spawn(jobs::serve(jobs.clone(), node.shutdown.clone()));
    let mut ownership = Ownership::new(&node, metrics, jobs);
    ownership.follow(members, &health, &node.shutdown).await;

    // The key goes first, so that another scheduler takes over while the last batches here finish.
    let _ = tokio::time::timeout(STOP_LIMIT, async {
        let _ = announced.await;
        ownership.release_all().await;
    })
    .await;
    Ok(())
}
