//! The adapters there are: one line each.

use std::sync::Arc;

use node::Node;

use crate::adapter::{Adapter, Capabilities};
use crate::adapters::{api, discord, slack, telegram, web, webhook};
use crate::gate::Gates;
use crate::metrics::Metrics;
use crate::publish::Publisher;

/// What an adapter is built from.
#[derive(Clone, Debug)]
pub(crate) struct Parts {
    pub(crate) node: Node,
    pub(crate) publisher: Publisher,
    /// For what people send whom only the platform knows.
    pub(crate) gates: Gates,
    pub(crate) metrics: Metrics,
}

type Build = fn(&Parts) -> anyhow::Result<Arc<dyn Adapter>>;

/// One platform: its name, what it can do, how its adapter is built.
struct Entry(&'static str, &'static Capabilities, Build);

const REGISTRY: &[Entry] = &[
    Entry("web", &web::CAPABILITIES, web::build),
    Entry("api", &api::CAPABILITIES, api::build),
    Entry("webhook", &webhook::CAPABILITIES, webhook::build),
    Entry("telegram", &telegram::CAPABILITIES, telegram::build),
    Entry("slack", &slack::CAPABILITIES, slack::build),
    Entry("discord", &discord::CAPABILITIES, discord::build),
];

/// Builds all adapters. One that cannot be built never keeps the others from working.
pub(crate) fn build(parts: &Parts) -> Vec<Arc<dyn Adapter>> {
    let mut adapters = Vec::new();
    for Entry(name, _, build) in REGISTRY {
        match build(parts) {
            Ok(adapter) => adapters.push(adapter),
            Err(error) => tracing::error!("the adapter {name} is off: {error:#}"),
        }
    }
    adapters
}

/// All platforms by name, with what each can do.
pub fn platforms() -> impl Iterator<Item = (&'static str, &'static Capabilities)> {
    REGISTRY.iter().map(|Entry(name, capabilities, _)| (*name, *capabilities))
}
