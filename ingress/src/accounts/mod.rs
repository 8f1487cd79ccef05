//! The accounts that this process was configured with: each is held by one process in the cluster at a time ([`lease`]), which
//! keeps its connection up and delivers for it ([`keeper`]). No account waits for another, and none keeps another from working.

mod backoff;
mod keeper;
mod lease;
mod status;

pub(crate) use self::keeper::{Keeper, keep};
pub(crate) use self::status::{Board, Status};
