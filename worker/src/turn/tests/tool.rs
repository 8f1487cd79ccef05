//! Tools whose calls are events.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::events::Events;
use crate::models::ToolSpec;
use crate::tools::danger::Danger;
use crate::tools::{Effort, Output, Tool};

/// How a test tool behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    /// Changes nothing.
    Looks,
    /// One at a time.
    Acts,
    /// Asks first.
    Dares,
    /// Breaks down.
    Panics,
    /// Says much.
    Talks,
    /// Never ends by itself.
    Hangs,
}

pub(super) struct Probe {
    pub(super) name: &'static str,
    pub(super) manner: Manner,
    pub(super) events: Events,
}

impl Tool for Probe {
    fn spec(&self) -> ToolSpec {
        let parameters = json!({ "type": "object", "properties": {} });
        ToolSpec { name: self.name.into(), description: "for tests".into(), parameters }
    }

    fn is_read_only(&self) -> bool {
        self.manner == Manner::Looks
    }

    fn danger(&self, _arguments: &Value) -> Option<Danger> {
        (self.manner == Manner::Dares).then_some(Danger { why: "is a test" })
    }

    fn summary(&self, _arguments: &Value) -> String {
        self.name.into()
    }

    fn run<'a>(&'a self, _arguments: &'a Value, effort: &'a Effort) -> BoxFuture<'a, Output> {
        effort
            .until_cut(async {
                self.events.happen("tool begins");
                assert!(self.manner != Manner::Panics, "as the test wants it");
                if self.manner == Manner::Hangs {
                    std::future::pending::<()>().await;
                }
                // A stop at an event is seen at the next await, as with a real tool.
                tokio::task::yield_now().await;
                self.events.happen("tool works");
                tokio::task::yield_now().await;
                self.events.happen("tool ends");
                let text = if self.manner == Manner::Talks {
                    "much to say. ".repeat(150)
                } else {
                    "ok".into()
                };
                Output::done(text)
            })
            .boxed()
    }
}
