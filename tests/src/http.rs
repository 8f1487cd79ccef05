//! The tests' HTTP client.

use crate::wait::DEADLINE;

/// A client that goes straight to this machine, whatever proxy the environment names.
///
/// # Panics
/// When no client can be built.
#[must_use]
pub fn client() -> reqwest::Client {
    node::process::install_tls();
    reqwest::Client::builder().no_proxy().timeout(DEADLINE).build().expect("a client")
}
