//! Properties of jobs: their times in zones that change their clocks, times that were missed, clocks that are set, and two owners
//! at once.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod owners;
mod records;
mod times;

use proto::access::Admission;
use proto::event::{Address, User};
use proto::id::{JobId, Seq};
use proto::job::{Home, Job};
use proto::session::{ChatKind, SessionKey, SessionParts};
use scheduler_core::jobs::{self, JobLimits, New};

/// 2026-01-01T00:00:00Z
pub(crate) const BEGIN: u64 = 1_767_225_600_000;
pub(crate) const MINUTE: u64 = 60_000;
pub(crate) const HOUR: u64 = 60 * MINUTE;

pub(crate) fn limits() -> JobLimits {
    JobLimits { per_chat: 3, min_interval_ms: MINUTE, prompt_bytes: 100, zone: "UTC".into() }
}

pub(crate) fn home(user: &str) -> Home {
    let parts = SessionParts {
        platform: "test",
        kind: ChatKind::Dm,
        chat: "c",
        thread: None,
        participant: None,
    };
    let address = Address {
        platform: "test".into(),
        account: "a".into(),
        chat: "c".into(),
        kind: ChatKind::Dm,
        thread: None,
    };
    let user = User { id: user.into(), name: None };
    let admission = Admission::default();
    Home { session: SessionKey::new(parts), address, user, admission }
}

pub(crate) fn make(schedule: &str, others: &[Job]) -> Result<Job, String> {
    let new = New {
        id: JobId::of_request(schedule),
        home: home("u"),
        schedule,
        prompt: "look at the mail",
        name: None,
        zone: None,
        at_ms: BEGIN,
        seen: Seq::new(1),
    };
    jobs::add(new, others, &limits())
}
