//! The heart of the scheduler: what a session does with an input. Pure, deterministic and total.
//!
//! ```text
//!   input ──▶ Session::step(policy, now) ──▶ the lease (with its effects) + signals
//!                 ▲                                     │
//!                 └──────────── Input::Tick ◀── deadline ┘
//! ```
//!
//! The contract with the driver, in four steps:
//! 1. Apply inputs with [`Session::step`]; it never fails, and ignores what is stale or repeated.
//! 2. If it says that the lease changed, write the lease by compare-and-set before anything else becomes visible.
//! 3. Then publish `lease.effects` (publishing them again is harmless), and then act on the signals (losing them is harmless:
//!    the lease holds what is wanted, and heartbeats repeat it).
//! 4. Before the next step, call [`Session::effects_are_out`]. Call `step` with [`Input::Tick`] at [`Session::deadline`].
//!
//! What is absent on purpose: a clock, I/O, async, logging, randomness, unordered maps.

mod asks;
mod bursts;
mod check;
mod choices;
mod commands;
mod edits;
mod fates;
mod input;
pub mod jobs;
mod liveness;
mod messages;
mod policy;
mod session;
mod status;
mod time;
mod turns;
mod wording;

pub use self::input::{Input, Signal};
pub use self::policy::{Edits, Policy, TimeoutSetting, Window};
pub use self::session::Session;
pub use self::time::Time;
pub use self::wording::{because, outcome};
