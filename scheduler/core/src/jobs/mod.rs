//! Scheduled jobs: when they are due, and what becomes of their records. Pure, as everything here: the time of day is an
//! argument, and the time zones are compiled in, so that every scheduler computes the same times.
//!
//! ```text
//!             due, and no run in progress          its session has ended the turn
//!   Active ──────── claim ───────▶ Active + run ──────────── end ───────────▶ Active (a one-shot: Done)
//!     │ ▲                              │ due again: skipped
//!   pause, resume                      ▼
//!   Paused        remove, in any of these: Removed
//! ```
//!
//! A claim moves the next due time past the claimed one in the same write that says that a run is in progress. Of two owners
//! who claim at once the broker refuses one, and whoever finds a claim may write its message: the log takes it once.

mod command;
mod record;
mod runs;
mod schedule;
mod wording;

pub use self::command::read_command;
pub use self::record::{
    Changed, Due, JobLimits, New, add, change, claim, due, ended, lost, skip, wake,
};
pub(crate) use self::runs::{LastWord, end_of_job};
pub use self::schedule::{has_zone, local, next_after, read_schedule};
pub use self::wording::{added, label, list, prompt};
pub(crate) use self::wording::{job_parked, no_one_to_ask};
