//! The HTTP client that models use.

use std::time::Duration;

use anyhow::Context;

/// How long connecting may take.
pub(crate) const CONNECT: Duration = Duration::from_secs(10);

/// A client with our timeouts. A process makes one for each purpose and clones it.
///
/// # Errors
/// When TLS cannot be set up.
pub(crate) fn client() -> anyhow::Result<reqwest::Client> {
    builder().build().context("no HTTP client")
}

/// The same, to be changed first.
pub(crate) fn builder() -> reqwest::ClientBuilder {
    // A process that was not started by `node::process` has no TLS provider yet; one that was keeps its own.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .connect_timeout(CONNECT)
        .user_agent(concat!("talaria/", env!("CARGO_PKG_VERSION")))
}
