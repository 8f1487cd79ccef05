//! The adapters there are: one line each.

use std::sync::Arc;

use node::Node;

use crate::adapter::Adapter;
use crate::adapters::{api, web, webhook};
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

const REGISTRY: &[(&str, Build)] =
    &[("web", web::build), ("api", api::build), ("webhook", webhook::build)];

/// Builds all adapters. One that cannot be built never keeps the others from working.
pub(crate) fn build(parts: &Parts) -> Vec<Arc<dyn Adapter>> {
    let mut adapters = Vec::new();
    for (name, build) in REGISTRY {
        match build(parts) {
            Ok(adapter) => adapters.push(adapter),
            Err(error) => tracing::error!("the adapter {name} is off: {error:#}"),
        }
    }
    adapters
}
