//! The pauses between tries to connect: 30 s, doubling to 300 s; from the first again once a connection was up.

use std::time::Duration;

/// The first pause.
const FIRST: Duration = Duration::from_secs(30);
/// The longest.
const LAST: Duration = Duration::from_secs(300);

/// The pauses.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
}

impl Backoff {
    /// The pause after one more failure. A connection that was up is tried again at once, the first time.
    pub(crate) fn next(&mut self, was_up: bool) -> Duration {
        if was_up {
            self.failures = 0;
            return Duration::from_secs(1);
        }
        let pause = FIRST.saturating_mul(2_u32.saturating_pow(self.failures)).min(LAST);
        self.failures = self.failures.saturating_add(1);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_limit_and_begin_again_after_success() {
        let mut backoff = Backoff::default();
        let seconds =
            |pauses: &[Duration]| pauses.iter().map(Duration::as_secs).collect::<Vec<_>>();
        let pauses: Vec<_> = (0..6).map(|_| backoff.next(false)).collect();
        assert_eq!(seconds(&pauses), [30, 60, 120, 240, 300, 300]);
        assert_eq!(backoff.next(true).as_secs(), 1);
        assert_eq!(backoff.next(false).as_secs(), 30);
    }
}
