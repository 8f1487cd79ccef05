//! The events of a turn, counted, so that a test can act at any one of them.

use std::sync::{Arc, Mutex, PoisonError};

type Act = Box<dyn Fn(usize) + Send>;

#[derive(Default)]
struct Inside {
    seen: Vec<&'static str>,
    act: Option<Act>,
}

/// The counter. Clones share it.
#[derive(Clone, Default)]
pub(super) struct Events(Arc<Mutex<Inside>>);

impl Events {
    /// What to do at each event, given its number; counting begins anew.
    pub(super) fn each(&self, act: impl Fn(usize) + Send + 'static) {
        let mut inside = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *inside = Inside { seen: Vec::new(), act: Some(Box::new(act)) };
    }

    /// Something happens.
    pub(super) fn happen(&self, what: &'static str) {
        let mut inside = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        inside.seen.push(what);
        if let Some(act) = &inside.act {
            act(inside.seen.len());
        }
    }

    /// What has happened.
    pub(super) fn seen(&self) -> Vec<&'static str> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).seen.clone()
    }
}
