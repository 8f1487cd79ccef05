//! What all turns of a worker share.

use std::sync::Arc;
use std::time::Duration;

use moka::sync::Cache;
use node::Node;
use node::clock::SleepClock;

use crate::mcp::{self, Servers};
use crate::metrics::Metrics;
use crate::models::{Model, ToolSpec};
use crate::speech::Speech;
use crate::tools::Toolbox;
use crate::tools::attachment::Attachments;
use crate::tools::background::Background;
use crate::transcript::Shelf;
use crate::turn::Desk;

/// The worker.
pub(crate) struct Shared {
    /// The process.
    pub(crate) node: Node,
    /// Who answers.
    pub(crate) model: Arc<dyn Model>,
    /// Models that sessions have chosen, by name.
    named: Cache<String, Arc<dyn Model>>,
    /// What it may do.
    pub(crate) tools: Toolbox,
    /// Whose tools it may call beside its own.
    pub(crate) servers: Servers,
    /// What sessions run in the background.
    pub(crate) background: Background,
    /// Where what comes along with messages is fetched.
    pub(crate) attachments: Attachments,
    /// What turns sound into words, and words into sound.
    pub(crate) speech: Arc<Speech>,
    /// Conversations of recent turns.
    pub(crate) shelf: Shelf,
    /// What is counted.
    pub(crate) metrics: Metrics,
    /// The clock of all rights.
    pub(crate) clock: SleepClock,
}

impl Shared {
    /// Puts the parts together.
    ///
    /// # Errors
    /// When the workspace cannot be used.
    pub(crate) fn new(node: Node, model: Arc<dyn Model>) -> anyhow::Result<Self> {
        let background = Background::new();
        let speech = Arc::new(Speech::new(&node.settings.worker.speech)?);
        let tools = Toolbox::new(&node.settings.worker, background.clone(), Arc::clone(&speech))?;
        let servers = Servers::new(&node.settings.worker.mcp)?;
        let own = Desk::ALL.map(Desk::name).into_iter().chain([mcp::LABEL]);
        let names: Vec<&str> = tools.names().into_iter().chain(own).collect();
        let metrics = Metrics::register(&node.metrics, &names)?;
        metrics.capacity.set(i64::try_from(node.settings.worker.capacity).unwrap_or(i64::MAX));
        metrics.sandbox.with_label_values(&[tools.held().label()]).set(1);
        let attachments =
            Attachments::new(node.settings.worker.fetch_private)?.with_platforms(node.bus.clone());
        let (shelf, clock) = (Shelf::new(), SleepClock::start());
        let named = Cache::new(64);
        Ok(Self {
            servers,
            node,
            model,
            named,
            tools,
            background,
            attachments,
            speech,
            shelf,
            metrics,
            clock,
        })
    }

    /// The model that a session has chosen; the worker's own where it has chosen none, or one that cannot be had any more.
    pub(crate) fn model_named(&self, name: Option<&str>) -> Arc<dyn Model> {
        name.and_then(|name| self.find_model(name).ok()).unwrap_or_else(|| Arc::clone(&self.model))
    }

    /// The model of that name.
    ///
    /// # Errors
    /// When the name is not of a known form, or its provider has no key.
    pub(crate) fn find_model(&self, name: &str) -> anyhow::Result<Arc<dyn Model>> {
        if let Some(model) = self.named.get(name) {
            return Ok(model);
        }
        let settings =
            node::settings::Model { name: name.to_owned(), ..self.node.settings.model.clone() };
        let model = crate::models::choose(&settings)?;
        self.named.insert(name.to_owned(), Arc::clone(&model));
        Ok(model)
    }

    /// The model that looks at pictures for one that cannot see, if the operator has named one.
    pub(crate) fn eyes(&self) -> Option<Arc<dyn Model>> {
        let name = Some(&self.node.settings.worker.vision_model).filter(|name| !name.is_empty())?;
        let found = self.find_model(name);
        found.inspect_err(|error| tracing::warn!("bad worker.vision_model: {error:#}")).ok()
    }

    /// The tools of an agent at this depth.
    pub(crate) fn specs(&self, depth: u8) -> Arc<[ToolSpec]> {
        let deepest = self.node.settings.agent.delegate_depth;
        let can_see = self.model.sees() || !self.node.settings.worker.vision_model.is_empty();
        let is_there =
            |desk: &Desk| desk.is_for(depth, deepest) && (*desk != Desk::Look || can_see);
        let own = Desk::ALL.into_iter().filter(is_there).map(Desk::spec);
        self.tools.specs().iter().cloned().chain(own).collect()
    }

    /// How long a right lasts after the last confirmed sign of life was sent: less than the scheduler waits before it gives the turn
    /// to another, so that two never run at once; and more than a scheduler's fail-over takes.
    pub(crate) fn right_lasts(&self) -> Duration {
        self.node.settings.scheduler.lease_ttl.get().mul_f64(0.8)
    }
}
