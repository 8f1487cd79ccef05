//! Stories: what happens to a session, and what follows.

#[path = "../kit/mod.rs"]
mod kit;

mod asks;
mod bursts;
mod commands;
mod edits;
mod jobs;
mod liveness;
mod modes;
mod session;
mod steers;
mod turns;
