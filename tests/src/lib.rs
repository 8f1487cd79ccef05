//! The harness of the system tests: a real nats-server, our services in this process or as processes, and fakes of what is
//! outside: platforms ([`webhook`] with [`callback`], [`telegram`]) and a model provider ([`model`]).
//!
//! A test makes a [`world::World`], runs services in it, says something in a [`chat::Chat`], and waits for what must follow.
//! Everything is on free ports and in temporary folders, so that tests can run at the same time.

pub mod browser;
pub mod callback;
pub mod chat;
pub mod discord;
pub mod http;
pub mod model;
pub mod nats;
pub mod npm;
pub mod otlp;
pub mod process;
pub mod prometheus;
pub mod proxy;
pub mod python;
pub mod secured;
pub mod service;
pub mod slack;
pub mod telegram;
pub mod wait;
pub mod webhook;
pub mod world;

pub use self::chat::Chat;
pub use self::process::Process;
pub use self::service::Service;
pub use self::world::{Setup, System, World};
