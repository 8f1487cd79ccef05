//! `web_fetch`: a page of the public web as text. Addresses of this machine and of private networks are refused after the name is
//! resolved, and again at each redirect, so that a page cannot lead the agent inside.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, TryStreamExt};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{CONTENT_TYPE, LOCATION};
use reqwest::{Response, Url, redirect};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Effort, Output, Tool, arguments, html};
use crate::activity::Tracker;
use crate::models::ToolSpec;

/// How long a page may take altogether.
const LIMIT: Duration = Duration::from_secs(30);
/// The most of a page that is read; most of it is markup.
const PAGE_BYTES_MAX: usize = 2 * 1024 * 1024;
/// How many redirects are followed.
const REDIRECTS_MAX: usize = 5;

/// The tool.
pub(super) struct WebFetch {
    http: reqwest::Client,
    private: bool,
}

#[derive(Deserialize)]
struct Call {
    url: String,
}

/// A page that is not fetched.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchError {
    /// Neither http nor https.
    #[error("only http and https addresses can be fetched")]
    Scheme,
    /// Not an address.
    #[error("not an address: {0}")]
    Address(String),
    /// Not of the public internet.
    #[error("{0} belongs to this machine or to a private network; that is not allowed")]
    Private(String),
    /// It leads on and on.
    #[error("too many redirects")]
    Redirects,
    /// The server refused.
    #[error("HTTP status {0}")]
    Status(u16),
    /// Not what was wanted.
    #[error("this is {0}, which cannot be read")]
    NotText(String),
    /// It is more than is taken.
    #[error("it is too large")]
    TooLarge,
    /// It did not work.
    #[error("{0}")]
    Http(String),
}

impl From<reqwest::Error> for FetchError {
    fn from(error: reqwest::Error) -> Self {
        let mut text = error.to_string();
        let mut cause = std::error::Error::source(&error);
        while let Some(inner) = cause {
            text = format!("{text}: {inner}");
            cause = inner.source();
        }
        Self::Http(text)
    }
}

impl WebFetch {
    /// `private` allows addresses that are otherwise refused.
    pub(super) fn new(private: bool) -> anyhow::Result<Self> {
        let mut builder =
            crate::http::builder().redirect(redirect::Policy::none()).timeout(LIMIT).no_proxy();
        if !private {
            builder = builder.dns_resolver(Arc::new(Public));
        }
        Ok(Self { http: builder.build().context("no HTTP client")?, private })
    }

    async fn fetch(&self, call: &Value, effort: &Effort) -> Output {
        let call: Call = match arguments(call) {
            Ok(call) => call,
            Err(output) => return output,
        };
        match self.page(&call.url, effort).await {
            Ok(text) if text.is_empty() => Output::done("[the page has no text]"),
            Ok(text) => Output::done(text),
            Err(error) => Output::failed(error),
        }
    }

    async fn page(&self, address: &str, effort: &Effort) -> Result<String, FetchError> {
        let response = self.get(address, &effort.tracker).await?;
        read(response, effort).await
    }

    /// Asks for an address, following redirects.
    pub(super) async fn get(
        &self,
        address: &str,
        tracker: &Tracker,
    ) -> Result<Response, FetchError> {
        let mut url: Url = address.parse().map_err(|_| FetchError::Address(address.to_owned()))?;
        for _ in 0..=REDIRECTS_MAX {
            self.allowed(&url)?;
            let response = self.http.get(url.clone()).send().await?;
            tracker.touch();
            let location = response.headers().get(LOCATION).and_then(|to| to.to_str().ok());
            match location.filter(|_| response.status().is_redirection()) {
                Some(to) => {
                    url = url.join(to).map_err(|_| FetchError::Address(to.to_owned()))?;
                }
                None => return Ok(response),
            }
        }
        Err(FetchError::Redirects)
    }

    /// Names are judged when they are resolved; an address that is written out is never resolved.
    fn allowed(&self, url: &Url) -> Result<(), FetchError> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(FetchError::Scheme);
        }
        let host = url.host_str().unwrap_or_default();
        let literal = host.trim_matches(['[', ']']).parse::<IpAddr>();
        match literal {
            Ok(ip) if !self.private && !is_public(ip) => Err(FetchError::Private(host.to_owned())),
            _ => Ok(()),
        }
    }
}

impl Tool for WebFetch {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "web_fetch".into(),
            description: "Fetches a page of the web and returns its text.".into(),
            parameters: json!({ "type": "object", "required": ["url"], "properties": {
                "url": { "type": "string", "description": "http or https" },
            }}),
        }
    }

    fn is_read_only(&self) -> bool {
        true
    }

    fn limit(&self, _arguments: &Value) -> Option<Duration> {
        Some(LIMIT)
    }

    fn summary(&self, call: &Value) -> String {
        call["url"].as_str().unwrap_or_default().to_owned()
    }

    fn run<'a>(&'a self, call: &'a Value, effort: &'a Effort) -> BoxFuture<'a, Output> {
        effort.until_cut(self.fetch(call, effort)).boxed()
    }
}

async fn read(response: Response, effort: &Effort) -> Result<String, FetchError> {
    if !response.status().is_success() {
        return Err(FetchError::Status(response.status().as_u16()));
    }
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.unwrap_or("text/plain").to_ascii_lowercase();
    if !["text/", "json", "xml", "javascript"].iter().any(|known| kind.contains(known)) {
        return Err(FetchError::NotText(kind));
    }
    let mut page = Vec::new();
    let mut chunks = response.bytes_stream();
    while let Some(chunk) = chunks.try_next().await? {
        effort.tracker.touch();
        page.extend_from_slice(&chunk[..chunk.len().min(PAGE_BYTES_MAX - page.len())]);
        if page.len() == PAGE_BYTES_MAX {
            break;
        }
    }
    let page = String::from_utf8_lossy(&page);
    Ok(if kind.contains("html") { html::text(&page) } else { page.into_owned() })
}

/// Resolves names to public addresses only.
struct Public;

impl Resolve for Public {
    fn resolve(&self, name: Name) -> Resolving {
        async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let public: Vec<SocketAddr> = found.filter(|address| is_public(address.ip())).collect();
            if public.is_empty() {
                return Err(FetchError::Private(name.as_str().to_owned()).into());
            }
            Ok(Box::new(public.into_iter()) as Addrs)
        }
        .boxed()
    }
}

/// Whether an address is one of the public internet.
fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => match embedded_v4(ip) {
            Some(ip) => is_public_v4(ip),
            // Global unicast is 2000::/3; everything inside is someone's, except what is for documentation.
            None => ip.segments()[0] & 0xe000 == 0x2000 && ip.segments()[..2] != [0x2001, 0x0db8],
        },
    }
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let [a, b, c, _] = ip.octets();
    let shared = a == 100 && (64..128).contains(&b);
    let special = a == 0 || a >= 240 || (a, b, c) == (192, 0, 0) || (a == 198 && b & 0xfe == 18);
    !(ip.is_loopback()
        || ip.is_private()
        || ip.is_link_local()
        || ip.is_multicast()
        || ip.is_documentation()
        || shared
        || special)
}

/// The IPv4 address that some IPv6 addresses stand for: mapped, NAT64 and 6to4.
fn embedded_v4(ip: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, c, d, e, f, high, low] = ip.segments();
    let from = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Ipv4Addr::new(a, b, c, d)
    };
    if a == 0x2002 {
        return Some(from(b, c));
    }
    let nat64 = [a, b, c, d, e, f] == [0x64, 0xff9b, 0, 0, 0, 0];
    ip.to_ipv4_mapped().or_else(|| nat64.then(|| from(high, low)))
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::response::{Html, Redirect};
    use axum::routing::get;
    use proto::transcript::CallStatus;

    use super::super::tests::effort;
    use super::*;

    #[test]
    fn only_the_public_internet_is_public() {
        for (ip, expected) in [
            ("1.1.1.1", true),
            ("127.0.0.1", false),
            ("10.1.2.3", false),
            ("172.16.0.1", false),
            ("192.168.1.1", false),
            ("169.254.169.254", false),
            ("100.64.0.1", false),
            ("0.0.0.0", false),
            ("255.255.255.255", false),
            ("2606:4700::1", true),
            ("::1", false),
            ("::", false),
            ("fe80::1", false),
            ("fd00::1", false),
            ("::ffff:127.0.0.1", false),
            ("64:ff9b::7f00:1", false),
            ("2002:7f00:1::", false),
        ] {
            assert_eq!(is_public(ip.parse().unwrap()), expected, "{ip}");
        }
    }

    #[test]
    fn pages_are_fetched_where_allowed_and_refused_where_not() {
        node::process::block_on(async {
            let app = Router::new()
                .route("/", get(|| async { Html("<p>hello</p>") }))
                .route("/to", get(|| async { Redirect::to("/") }))
                .route("/loop", get(|| async { Redirect::to("/loop") }))
                .route("/file", get(|| async { Redirect::to("file:///etc/passwd") }));
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
            let port = listener.local_addr()?.port();
            tokio::spawn(async move { axum::serve(listener, app).await });
            let (open, closed) = (WebFetch::new(true)?, WebFetch::new(false)?);
            let fetch = async |tool: &WebFetch, url: String| {
                tool.run(&json!({ "url": url }), &effort()).await
            };
            let at = |path: &str| format!("http://127.0.0.1:{port}{path}");
            assert_eq!(fetch(&open, at("/to")).await, Output::done("hello"));
            assert_eq!(fetch(&open, at("/loop")).await.text, "error: too many redirects");
            assert_eq!(fetch(&open, at("/none")).await.text, "error: HTTP status 404");
            assert!(fetch(&open, at("/file")).await.text.contains("only http"));
            for url in
                [at("/"), format!("http://localhost:{port}/"), format!("http://2130706433:{port}/")]
            {
                let output = fetch(&closed, url).await;
                assert_eq!(output.status, CallStatus::Failed);
                assert!(output.text.contains("private network"), "{}", output.text);
            }
            Ok(())
        })
        .unwrap();
    }
}
