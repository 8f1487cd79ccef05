//! How fast calls may follow each other: a rate with a little room for bursts, and the times of silence that a platform asks for.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::adapter::Rate;

/// The pace of one chat or account. Times are nanoseconds since it was made.
#[derive(Debug)]
pub(crate) struct Pace {
    made: Instant,
    /// Between two calls that come evenly.
    every: u64,
    /// How far ahead of that calls may be.
    burst: u64,
    /// When the next call would come, if all came evenly.
    next: AtomicU64,
    /// Until when there is silence.
    silent: AtomicU64,
}

impl Pace {
    pub(crate) fn new(rate: Rate) -> Self {
        let every = nanos(rate.every());
        Self {
            made: Instant::now(),
            every,
            burst: nanos(rate.per).saturating_sub(every),
            next: AtomicU64::new(0),
            silent: AtomicU64::new(0),
        }
    }

    /// Takes a place in the row, and waits until it comes.
    pub(crate) async fn turn(&self) {
        let now = self.now();
        let begin = |next: u64| next.max(now);
        let place = match self.next.fetch_update(Ordering::AcqRel, Ordering::Acquire, |next| {
            Some(begin(next) + self.every)
        }) {
            Ok(before) | Err(before) => begin(before),
        };
        self.sleep_until(place.saturating_sub(self.burst)).await;
        // The silence may be prolonged while it is waited for.
        loop {
            let silent = self.silent.load(Ordering::Acquire);
            if silent <= self.now() {
                return;
            }
            self.sleep_until(silent).await;
        }
    }

    /// Keeps silence for a time.
    pub(crate) fn hush(&self, time: Duration) {
        self.silent.fetch_max(self.now() + nanos(time), Ordering::AcqRel);
    }

    /// Whether a call could be made at once.
    pub(crate) fn is_free(&self) -> bool {
        let now = self.now();
        self.silent.load(Ordering::Acquire) <= now
            && self.next.load(Ordering::Acquire).saturating_sub(self.burst) <= now
    }

    /// Whether nothing of it need be remembered.
    pub(crate) fn is_rested(&self) -> bool {
        let now = self.now();
        self.silent.load(Ordering::Acquire) <= now && self.next.load(Ordering::Acquire) <= now
    }

    fn now(&self) -> u64 {
        nanos(self.made.elapsed())
    }

    async fn sleep_until(&self, time: u64) {
        if time > self.now() {
            sleep_until(self.made + Duration::from_nanos(time)).await;
        }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_passes_and_then_calls_come_evenly() {
        let pace = Pace::new(Rate { calls: 4, per: Duration::from_secs(2) });
        let began = Instant::now();
        for _ in 0..4 {
            pace.turn().await;
        }
        assert_eq!(began.elapsed(), Duration::ZERO);
        assert!(!pace.is_free());
        for count in 1..=6 {
            pace.turn().await;
            let elapsed = began.elapsed().as_millis();
            assert!((500 * count..500 * count + 20).contains(&elapsed), "{elapsed}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn silence_is_kept_by_all_that_wait_and_can_be_prolonged() {
        let pace = Pace::new(Rate::per_second(30));
        let began = Instant::now();
        pace.hush(Duration::from_secs(3));
        assert!(!pace.is_free());
        let longer = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            pace.hush(Duration::from_secs(5));
            pace.hush(Duration::from_secs(1));
        };
        tokio::join!(pace.turn(), pace.turn(), longer);
        assert!(began.elapsed() >= Duration::from_secs(6), "{:?}", began.elapsed());
        assert!(pace.is_free());
    }
}
