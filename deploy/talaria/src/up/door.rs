//! The front door's address, and waiting until someone would answer behind it.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, bail};
use node::health::Board;
use tokio::net::TcpListener;
use tokio::time::timeout;

use crate::console;

/// Where the door is if nothing else is said.
const PORT: u16 = 8420;
/// How many ports after it are tried before any free one is taken.
const NEIGHBOURS: u16 = 20;
/// After how long one says what is still missing.
const SLOW: Duration = Duration::from_secs(5);

/// Takes the address that was asked for; else the usual one, or the next that is free.
///
/// # Errors
/// When an address that was asked for cannot be listened on.
pub(super) async fn open(asked: Option<SocketAddr>) -> anyhow::Result<TcpListener> {
    if let Some(address) = asked {
        return TcpListener::bind(address).await.with_context(|| {
            format!("cannot listen on {address}; choose another address with --listen")
        });
    }
    for port in (PORT..PORT + NEIGHBOURS).chain([0]) {
        match TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await {
            Err(error) if error.kind() == ErrorKind::AddrInUse => {}
            outcome => return outcome.context("cannot listen on 127.0.0.1"),
        }
    }
    bail!("no free port on 127.0.0.1; choose one with --listen")
}

/// Waits until a message would be answered, and says from time to time what it waits for.
pub(super) async fn ready(health: &Board) {
    while timeout(SLOW, health.ready()).await.is_err() {
        for (part, trouble) in health.troubles() {
            console::note(&format!("waiting for {part}: {trouble}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_next_free_port_is_taken_unless_one_was_asked_for() {
        let first = open(None).await.unwrap();
        let second = open(None).await.unwrap();
        assert_ne!(first.local_addr().unwrap(), second.local_addr().unwrap());
        let error = open(Some(first.local_addr().unwrap())).await.unwrap_err();
        assert!(error.to_string().contains("--listen"), "{error:#}");
    }
}
