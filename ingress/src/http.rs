//! The HTTP clients with which adapters reach other hosts. Certificates are those of the system (`SSL_CERT_FILE` is respected),
//! a proxy that the environment names is used, but never to reach this machine itself.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use anyhow::Context;
use bytes::Bytes;
use node::settings::Network;
use reqwest::{Client, ClientBuilder, RequestBuilder, StatusCode, Url, redirect};

use crate::adapter::{Refusal, SendError};

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

/// What a request without an answer means: one that never left did nothing, any other may have been carried out.
pub(crate) fn unanswered(error: reqwest::Error) -> SendError {
    if error.is_connect() || error.is_builder() {
        SendError::Failed { why: root(error) }
    } else {
        SendError::Unknown { why: root(error) }
    }
}

/// The file that a request is answered with, of at most `limit` bytes.
pub(crate) async fn file(request: RequestBuilder, limit: usize) -> Result<Bytes, SendError> {
    let failed = |error| SendError::Failed { why: root(error) };
    let mut response = request.send().await.map_err(failed)?;
    if response.status() != StatusCode::OK {
        let why = format!("the file server answered {}", response.status());
        return Err(SendError::refused(Refusal::Other, why));
    }
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(failed)? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > limit {
            let why = format!("the file is larger than {limit} bytes");
            return Err(SendError::refused(Refusal::TooLarge, why));
        }
    }
    Ok(bytes.into())
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
