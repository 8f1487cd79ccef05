//! What all turns of a worker share.

use std::sync::Arc;
use std::time::Duration;

use node::Node;
use node::clock::Clock;

use crate::metrics::Metrics;
use crate::models::Model;
use crate::tools::Toolbox;
use crate::tools::picture::Pictures;
use crate::transcript::Shelf;

/// The worker.
pub(crate) struct Shared {
    /// The process.
    pub(crate) node: Node,
    /// Who answers.
    pub(crate) model: Arc<dyn Model>,
    /// What it may do.
    pub(crate) tools: Toolbox,
    /// Where pictures are fetched.
    pub(crate) pictures: Pictures,
    /// Conversations of recent turns.
    pub(crate) shelf: Shelf,
    /// What is counted.
    pub(crate) metrics: Metrics,
    /// The clock of all rights.
    pub(crate) clock: Clock,
}

impl Shared {
    /// Puts the parts together.
    ///
    /// # Errors
    /// When the workspace cannot be used.
    pub(crate) fn new(node: Node, model: Arc<dyn Model>) -> anyhow::Result<Self> {
        let tools = Toolbox::new(&node.settings.worker)?;
        let metrics = Metrics::register(&node.metrics, &tools.names())?;
        let pictures = Pictures::new(node.settings.worker.fetch_private)?;
        let (shelf, clock) = (Shelf::new(), Clock::start());
        Ok(Self { node, model, tools, pictures, shelf, metrics, clock })
    }

    /// How long a right lasts after the last confirmed sign of life was sent: less than the scheduler waits before it gives the turn
    /// to another, so that two never run at once; and more than a scheduler's fail-over takes.
    pub(crate) fn right_lasts(&self) -> Duration {
        self.node.settings.scheduler.lease_ttl.get().mul_f64(0.8)
    }
}
