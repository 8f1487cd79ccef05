//! The HTTP clients of models and tools.

use std::time::Duration;

use anyhow::Context;

/// How long connecting may take.
pub(crate) const CONNECT: Duration = Duration::from_secs(10);

/// A client for one provider. It follows no redirect: a key is for the address that was configured.
///
/// # Errors
/// When TLS cannot be set up.
pub(crate) fn client() -> anyhow::Result<reqwest::Client> {
    builder().redirect(reqwest::redirect::Policy::none()).build().context("no HTTP client")
}

/// A client with our timeouts, to be completed.
pub(crate) fn builder() -> reqwest::ClientBuilder {
    // A process that was not started by `node::process` has no TLS provider yet; one that was keeps its own.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .connect_timeout(CONNECT)
        .user_agent(concat!("talaria/", env!("CARGO_PKG_VERSION")))
}
