//! Figures: percentiles of durations, and rates.

use std::time::Duration;

use serde::Serialize;

/// The middle and the bad end of a set of durations, in one unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Percentiles {
    /// Half of them are shorter.
    pub p50: f64,
    /// One in a hundred is longer.
    pub p99: f64,
}

/// A set of durations.
#[derive(Clone, Debug, Default)]
pub(super) struct Durations(Vec<Duration>);

impl Durations {
    pub(super) fn push(&mut self, duration: Duration) {
        self.0.push(duration);
    }

    /// In microseconds.
    pub(super) fn micros(&self) -> Percentiles {
        self.scaled(1e6)
    }

    /// In milliseconds.
    pub(super) fn millis(&self) -> Percentiles {
        self.scaled(1e3)
    }

    fn scaled(&self, per_second: f64) -> Percentiles {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let at = |percent: usize| {
            let index = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
            sorted.get(index).map_or(0.0, |d| rounded(d.as_secs_f64() * per_second))
        };
        Percentiles { p50: at(50), p99: at(99) }
    }
}

/// How many a second.
pub(super) fn rate(count: usize, time: Duration) -> f64 {
    let count = u32::try_from(count).map_or(f64::MAX, f64::from);
    (count / time.as_secs_f64().max(1e-9)).round()
}

/// To three decimals: more would be noise.
pub(super) fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_sorted_values() {
        let mut durations = Durations::default();
        (1..=100).rev().for_each(|ms| durations.push(Duration::from_millis(ms)));
        assert_eq!(durations.millis(), Percentiles { p50: 51.0, p99: 100.0 });
        assert_eq!(durations.micros().p50, 51_000.0);
        assert_eq!(Durations::default().millis(), Percentiles::default());
    }
}
