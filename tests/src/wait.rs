//! Waiting for conditions: always with a deadline that says what did not come, never for a fixed time.

use std::future::Future;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

/// How long anything may take before a test fails: generous, since machines that run tests are busy.
pub const DEADLINE: Duration = Duration::from_secs(30);
/// How often a condition is looked at that cannot be waited for.
const LOOK: Duration = Duration::from_millis(20);

/// Asks again and again until there is an answer.
///
/// # Panics
/// When there is none before the deadline; `what` says which was waited for.
pub async fn eventually<T, F: Future<Output = Option<T>>>(
    what: &str,
    mut ask: impl FnMut() -> F,
) -> T {
    let end = Instant::now() + DEADLINE;
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(Instant::now() < end, "this did not come within {DEADLINE:?}: {what}");
        sleep(LOOK).await;
    }
}

/// Waits until a watched value has an answer.
///
/// # Panics
/// When it has none before the deadline; the message shows the value.
pub async fn watched<S: std::fmt::Debug, T>(
    what: &str,
    mut value: watch::Receiver<S>,
    mut look: impl FnMut(&S) -> Option<T>,
) -> T {
    let mut found = None;
    let waiting = value.wait_for(|now| {
        found = look(now);
        found.is_some()
    });
    let ended = timeout(DEADLINE, waiting).await;
    let came = matches!(ended, Ok(Ok(_)));
    drop(ended);
    match found {
        Some(answer) if came => answer,
        _ => panic!(
            "this did not come within {DEADLINE:?}: {what}; there is {:#?}",
            &*value.borrow()
        ),
    }
}
