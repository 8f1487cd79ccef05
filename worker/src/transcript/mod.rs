//! The conversation: as it is stored, as it is kept in memory between turns, and as a model sees it.

mod fold;
mod load;
mod log;
mod opening;
mod render;
mod shelf;
mod weight;

pub(crate) use self::fold::Fold;
pub(crate) use self::load::past;
pub(crate) use self::log::{AppendError, Log, patiently, rightful};
pub(crate) use self::opening::{Beginning, next_piece, own_part};
pub(crate) use self::render::rendered;
pub(crate) use self::shelf::{Kept, Shelf};
pub(crate) use self::weight::tokens;

/// The result of a call whose worker was lost.
pub(crate) const OUTCOME_UNKNOWN: &str = "[outcome unknown: the process that ran this was lost, so it may or may not have \
                                          happened; check before doing it again]";

/// Said of a call that was cut off or left out because its worker stopped; to the model that goes on elsewhere.
pub(crate) const CALL_AGAIN: &str =
    "[the process that ran this was stopped; call it again if it is still needed]";

#[cfg(test)]
pub(crate) use self::opening::tests;
