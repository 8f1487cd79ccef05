//! The clocks: the only place that asks what time it is.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// A monotonic clock that counts milliseconds from when it was made. Decisions use this one.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Instant);

impl Clock {
    /// Starts counting.
    #[must_use]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// Milliseconds since the start.
    #[must_use]
    pub fn now_ms(self) -> u64 {
        u64::try_from(self.0.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// The time of day in milliseconds since 1970: for people to read, never to decide by.
#[must_use]
pub fn wall_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX))
}
