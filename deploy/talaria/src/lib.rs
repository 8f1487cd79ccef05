//! The operator's side of Talaria: running the whole system on one machine, showing its settings, measuring it. The tests use
//! the same parts.
//!
//! Here is everything that is about one machine and one person at a terminal; what every process of ours needs is in `node`.

pub mod access;
pub mod bench;
pub mod cli;
pub mod config;
pub mod console;
pub mod cron;
pub mod data;
pub mod deliveries;
pub mod doctor;
pub mod explain;
pub mod init;
pub mod nats_server;
pub mod permissions;
pub mod platforms;
pub mod services;
pub mod status;
pub mod up;
