//! Time as the core sees it: milliseconds of the driver's monotonic clock, given with each input.

/// A moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// So many milliseconds after the clock started.
    #[must_use]
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms)
    }

    /// Milliseconds since the clock started.
    #[must_use]
    pub const fn ms(self) -> u64 {
        self.0
    }

    /// The moment `ms` later.
    #[must_use]
    pub const fn after(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// How many milliseconds have passed since `earlier`; 0 if none have.
    #[must_use]
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}
