//! The clocks: the only place that asks what time it is.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::time::{ClockId, clock_gettime};

/// A monotonic clock that counts milliseconds from when it was made, and not while the machine sleeps: sleep is not idleness.
/// Decisions use this one.
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

/// A monotonic clock that also counts while the machine sleeps: rights that others take away meanwhile lapse by this one.
#[derive(Clone, Copy, Debug)]
pub struct SleepClock(Duration);

impl SleepClock {
    /// Starts counting.
    #[must_use]
    pub fn start() -> Self {
        Self(since_boot())
    }

    /// Milliseconds since the start.
    #[must_use]
    pub fn now_ms(self) -> u64 {
        u64::try_from(since_boot().saturating_sub(self.0).as_millis()).unwrap_or(u64::MAX)
    }
}

/// How long ago the machine was started, sleep included.
///
/// # Panics
/// When the system has no such clock, which Linux has had since 2.6.39.
fn since_boot() -> Duration {
    clock_gettime(ClockId::CLOCK_BOOTTIME).expect("the system has a boot clock").into()
}

/// The time of day in milliseconds since 1970: for people to read, and for the due times of jobs; nothing else is decided by it.
#[must_use]
pub fn wall_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX))
}
