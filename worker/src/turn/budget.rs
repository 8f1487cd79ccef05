//! The model calls that a turn may make: one purse for the agent and all its sub-agents.

use std::sync::atomic::{AtomicU32, Ordering};

/// The purse.
#[derive(Debug)]
pub(crate) struct Budget {
    used: AtomicU32,
    limit: u32,
}

impl Budget {
    /// So many calls.
    pub(crate) const fn new(limit: u32) -> Self {
        Self { used: AtomicU32::new(0), limit }
    }

    /// Takes one call out; false if there is none left.
    pub(super) fn take(&self) -> bool {
        let more = |used| (used < self.limit).then_some(used + 1);
        self.used.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).is_ok()
    }

    /// Counts calls that were made before this attempt.
    pub(super) fn spend(&self, calls: u32) {
        self.used.fetch_add(calls, Ordering::AcqRel);
    }

    /// The calls made so far.
    pub(super) fn used(&self) -> u32 {
        self.used.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_takes_counts_and_what_is_gone_is_gone() {
        let budget = Budget::new(3);
        budget.spend(1);
        assert!(budget.take() && budget.take());
        assert!(!budget.take());
        assert_eq!(budget.used(), 3);
    }
}
