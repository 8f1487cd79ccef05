//! What every process of ours is: its settings, its connection, its health, its logs, and how it starts and ends.

pub mod bucket;
pub mod bus;
pub mod channels;
pub mod clock;
mod connect;
pub mod exit;
pub mod health;
pub mod hooks;
pub mod identities;
pub mod members;
pub mod metric;
pub mod process;
pub mod rollout;
pub mod settings;
mod snapshot;
pub mod telemetry;
pub mod topology;
pub mod trace;
pub mod vitals;

pub use self::process::Node;
