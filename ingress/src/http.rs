//! The HTTP clients with which adapters reach other hosts. Certificates are those of the system (`SSL_CERT_FILE` is respected),
//! a proxy that the environment names is used, but never to reach this machine itself.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use anyhow::Context;
use node::settings::Network;
use reqwest::{Client, ClientBuilder, Url, redirect};

/// How long connecting may take.
const CONNECT: Duration = Duration::from_secs(5);

/// A pair of clients: one for the world, one for this machine.
#[derive(Clone, Debug)]
pub(crate) struct Clients {
    outside: Client,
    loopback: Client,
}

impl Clients {
    /// Builds them. A request may take `timeout` unless it says otherwise itself.
    pub(crate) fn new(network: &Network, timeout: Duration) -> anyhow::Result<Self> {
        Self::build(network, |builder| builder.timeout(timeout))
    }

    /// A pair for connections that become WebSockets, which HTTP/2 has none of, and which last.
    pub(crate) fn for_sockets(network: &Network) -> anyhow::Result<Self> {
        Self::build(network, ClientBuilder::http1_only)
    }

    fn build(
        network: &Network,
        adapt: impl Fn(ClientBuilder) -> ClientBuilder,
    ) -> anyhow::Result<Self> {
        let builder = || {
            let builder = adapt(Client::builder())
                .connect_timeout(CONNECT)
                // What is secret or signed goes where the operator said, and nowhere else.
                .redirect(redirect::Policy::none())
                .user_agent(concat!("talaria/", env!("CARGO_PKG_VERSION")));
            if network.force_ipv4 {
                return builder.local_address(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
            }
            builder
        };
        let built = builder().build().and_then(|outside| {
            let loopback = builder().no_proxy().build()?;
            Ok(Self { outside, loopback })
        });
        built.context("no HTTP client; are the system's certificates readable?")
    }

    /// The one for an address.
    pub(crate) fn to(&self, url: &Url) -> &Client {
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        let loopback = host.parse().is_ok_and(|address: IpAddr| address.is_loopback());
        if loopback || host == "localhost" { &self.loopback } else { &self.outside }
    }
}

/// What went wrong at the bottom of it. The address may hold a secret: it is not repeated.
pub(crate) fn root(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(error) = source {
        text = error.to_string();
        source = error.source();
    }
    text
}
