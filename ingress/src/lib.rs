//! Ingress: turns what platforms send into message events, and what comes back into what platforms show.
//!
//! ```text
//! platform -> adapters/ -> gate/ -> publish -> INBOX           allowed, and durable before its sender is told so
//! platform <- adapters/ <- deliver <- OUTBOX                   in order per chat, once, retried, then dead and said so
//! platform <- adapters/ <- deliver <- drafts (volatile)        shown while a turn runs, never after its end
//! ```
//!
//! An adapter knows its platform and nothing of scheduling; `deliver` knows delivery and nothing of platforms; `accounts` sees
//! to it that one process in the cluster works for each account; `markup` makes of the agent's text what platforms show.

pub mod adapter;
pub mod gate;
pub mod metrics;
pub mod publish;
pub mod registry;

mod access;
mod accounts;
mod adapters;
mod deliver;
mod door;
mod http;
mod markup;
mod media;
mod problem;
mod ready;
mod socket;
mod text;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use node::{Node, health, members};
use proto::member::{Member, Role};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::accounts::{Board, Keeper, keep};
use crate::adapter::Adapter;
use crate::gate::Gates;
use crate::metrics::Metrics;
use crate::problem::Problem;
use crate::publish::Publisher;
use crate::registry::Parts;

/// For how long platforms may bring the same message again.
const REMEMBERED: Duration = Duration::from_secs(3600);
/// How long all parts together may take to end. Each has a shorter limit of its own.
const FINISH: Duration = Duration::from_secs(6);
/// How long hooks may take at the end to hear what they have not heard.
const HOOKS: Duration = Duration::from_secs(2);

/// Registers the instruments of an ingress that does not run, with one platform and one account, so that they can be listed.
pub fn describe(registry: &prometheus::Registry) {
    let metrics = Metrics::new(registry);
    metrics.announce("web");
    Board::new(metrics.accounts).account("web", "default").connected();
}

/// Runs ingress behind a listener until the node is told to stop.
///
/// # Errors
/// When a part of it fails that it cannot do without.
pub async fn run(node: Node, listener: TcpListener) -> anyhow::Result<()> {
    run_with(node, listener, Vec::new()).await
}

/// The same with more adapters, for benches and tests: they are delivered to like any other.
///
/// # Errors
/// When a part of it fails that it cannot do without.
pub async fn run_with(
    node: Node,
    listener: TcpListener,
    extra: Vec<Arc<dyn Adapter>>,
) -> anyhow::Result<()> {
    // Callbacks may go over TLS.
    node::process::install_tls();
    let light = node.health.part("ingress");
    let metrics = Metrics::new(&node.metrics);
    let publisher =
        Publisher::new(node.bus.clone(), metrics.clone()).with_hooks(node.hooks.clone());
    if node.settings.streams.duplicate_window.get() < REMEMBERED {
        tracing::warn!(
            "platforms repeat messages for up to an hour, but streams.duplicate_window = {}: some may be answered twice",
            node.settings.streams.duplicate_window
        );
    }
    let gates = Gates::new(node.clone(), publisher.clone(), metrics.clone());
    let parts = Parts { node: node.clone(), publisher, gates, metrics: metrics.clone() };
    let mut adapters = registry::build(&parts);
    adapters.extend(extra);

    node.hooks.tell("gateway:startup", || {
        let platforms: Vec<_> = adapters.iter().map(|adapter| adapter.platform()).collect();
        serde_json::json!({ "platforms": platforms, "process": node.id })
    });
    let hooks = node.hooks.clone();

    let mut tasks = JoinSet::new();
    let mut desks = Vec::new();
    let board = Board::new(metrics.accounts.clone());
    let mut app = health::routes(node.health.clone(), node.metrics.clone());
    for adapter in adapters {
        metrics.announce(adapter.platform());
        app = app.merge(adapter.routes());
        for account in adapter.accounts() {
            let (up, is_up) = watch::channel(false);
            desks.push(is_up);
            let status = board.account(adapter.platform(), &account.name);
            let (node, metrics, adapter) = (node.clone(), metrics.clone(), adapter.clone());
            tasks.spawn(keep(Keeper { node, metrics, adapter, account, status, up }));
        }
    }
    if let Ok(address) = listener.local_addr() {
        tracing::info!(%address, accounts = desks.len(), "the front door is open");
    }
    let member = Member { role: Role::Ingress, id: node.id, slot: None, turns: 0 };
    let stop = node.shutdown.clone();
    tasks.spawn(members::announce(node.bus.clone(), member, stop.clone()));
    tasks.spawn(ready::watch(node.clone(), light, desks, board));
    tasks.spawn(door::serve(listener, with_fallback(app), stop.clone()));

    // No part ends by itself: if one does, it has failed, and so have we.
    let outcome = tokio::select! {
        // When the parts end because they were told to, both are ready.
        biased;
        () = stop.cancelled() => Ok(()),
        Some(ended) = tasks.join_next() => Err(match ended {
            Ok(()) => anyhow::anyhow!("a part of ingress ended by itself"),
            Err(error) => anyhow::Error::new(error).context("a part of ingress failed"),
        }),
    };
    stop.cancel();
    let rest = async { while tasks.join_next().await.is_some() {} };
    if tokio::time::timeout(FINISH, rest).await.is_err() {
        tracing::warn!("some of ingress did not end in time");
    }
    hooks.flush(HOOKS).await;
    outcome
}

fn with_fallback(app: Router) -> Router {
    app.fallback(async || Problem::new(StatusCode::NOT_FOUND, "there is nothing at this address"))
}
