//! A model with another one behind it, which answers when the first cannot.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::{Answer, Model, ModelError, Request, Words};

/// One link.
pub(super) struct Link {
    pub(super) model: Arc<dyn Model>,
    pub(super) context: u64,
    pub(super) sees: bool,
    pub(super) next: Option<Arc<dyn Model>>,
}

impl Model for Link {
    fn call<'a>(
        &'a self,
        request: Request<'a>,
        words: Words,
    ) -> BoxFuture<'a, Result<Answer, ModelError>> {
        self.model.call(request, words)
    }

    fn provider(&self) -> &'static str {
        self.model.provider()
    }

    fn name(&self) -> &str {
        self.model.name()
    }

    fn context_tokens(&self) -> u64 {
        self.context
    }

    fn sees(&self) -> bool {
        self.sees
    }

    fn fallback(&self) -> Option<Arc<dyn Model>> {
        self.next.clone()
    }
}
