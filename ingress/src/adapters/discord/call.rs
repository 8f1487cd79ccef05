//! Calls of Discord's REST API, and what its refusals mean.

use std::time::Duration;

use bytes::Bytes;
use node::settings::{Discord, Secret};
use reqwest::multipart::Form;
use reqwest::{Method, Response, StatusCode, Url, header};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::adapter::{Refusal, Scope, SendError};
use crate::http::{self, Clients, root};

/// Who calls: Discord refuses calls without this form.
const AGENT: &str =
    concat!("DiscordBot (https://talaria.invalid, ", env!("CARGO_PKG_VERSION"), ")");
/// Where Discord keeps files.
const FILES: [&str; 2] = ["cdn.discordapp.com", "media.discordapp.net"];
/// How long a file may take.
const FILE: Duration = Duration::from_secs(120);

/// The API for one bot.
#[derive(Clone, Debug)]
pub(super) struct Api {
    clients: Clients,
    base: Url,
    token: Secret,
}

/// What goes along with a call.
#[derive(Debug)]
pub(super) enum Body<'a> {
    Nothing,
    Json(&'a Value),
    Form(Form),
}

/// What the API answers to a call that it refuses.
#[derive(Debug, Default, Deserialize)]
struct Failure {
    #[serde(default)]
    code: u32,
    #[serde(default)]
    message: String,
    #[serde(default)]
    retry_after: Option<f64>,
    #[serde(default)]
    global: bool,
}

impl Api {
    /// None if the address of the API is none.
    pub(super) fn new(clients: Clients, settings: &Discord) -> Option<Self> {
        let base = Url::parse(&settings.base_url).ok().filter(Url::has_host)?;
        Some(Self { clients, base, token: settings.token.clone() })
    }

    /// Calls the API. A call without an answer of its own answers null.
    pub(super) async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Body<'_>,
    ) -> Result<T, SendError> {
        let base = self.base.as_str().trim_end_matches('/');
        let url = Url::parse(&format!("{base}/{path}"))
            .map_err(|_| SendError::refused(Refusal::Other, "the call's address is none"))?;
        let request = self
            .clients
            .to(&url)
            .request(method, url)
            .header(header::USER_AGENT, AGENT)
            .header(header::AUTHORIZATION, format!("Bot {}", self.token.expose()));
        let request = match body {
            Body::Nothing => request,
            Body::Json(json) => request.json(json),
            Body::Form(form) => request.multipart(form).timeout(FILE),
        };
        read(request.send().await).await
    }

    pub(super) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, SendError> {
        self.call(Method::GET, path, Body::Nothing).await
    }

    pub(super) async fn post(&self, path: &str, json: &Value) -> Result<Value, SendError> {
        self.call(Method::POST, path, Body::Json(json)).await
    }

    /// Downloads a file of Discord, from its own hosts only.
    pub(super) async fn download(&self, url: &str, limit: usize) -> Result<Bytes, SendError> {
        let url = Url::parse(url)
            .map_err(|_| SendError::refused(Refusal::Other, "the file has no address"))?;
        let host = url.host_str().unwrap_or_default();
        let same = Some(host) == self.base.host_str() && url.port() == self.base.port();
        let is_discords = FILES.contains(&host) && url.scheme() == "https";
        if !(same || is_discords) {
            return Err(SendError::refused(Refusal::Other, "the file is not on Discord"));
        }
        // What is there is public to whoever knows the address: no token is shown.
        http::file(self.clients.to(&url).get(url).timeout(FILE), limit).await
    }
}

async fn read<T: DeserializeOwned>(sent: Result<Response, reqwest::Error>) -> Result<T, SendError> {
    let response = sent.map_err(http::unanswered)?;
    let status = response.status();
    let after = response.headers().get(header::RETRY_AFTER);
    let after: Option<f64> = after.and_then(|after| after.to_str().ok()?.trim().parse().ok());
    let unknown = |why: String| SendError::Unknown { why };
    let bytes = response.bytes().await.map_err(|error| unknown(root(error)))?;
    if !status.is_success() {
        let failure = serde_json::from_slice::<Failure>(&bytes).ok();
        return Err(meaning(status, failure, after));
    }
    let body = if bytes.is_empty() { b"null".as_slice() } else { &bytes };
    serde_json::from_slice(body)
        .map_err(|error| unknown(format!("an answer of Discord cannot be read: {error}")))
}

/// What a refusal means, by its code.
fn meaning(status: StatusCode, failure: Option<Failure>, after: Option<f64>) -> SendError {
    // Without an explanation it is not the API that answers, but what stands before it.
    let explained = failure.is_some();
    let Failure { code, message, retry_after, global } = failure.unwrap_or_default();
    let why = format!("Discord says {} ({code}): {message}", status.as_u16());
    let reason = match (status.as_u16(), code) {
        (429, _) => {
            let scope = if global || !explained { Scope::Account } else { Scope::Chat };
            let after = retry_after.or(after).and_then(|s| Duration::try_from_secs_f64(s).ok());
            return SendError::Flood { after, scope, why };
        }
        (500.., _) => return SendError::Unknown { why },
        (401, _) => Refusal::Account,
        (413, _) | (_, 40005) => Refusal::TooLarge,
        // Unknown, or too old to be changed so often, or not ours.
        (_, 10008 | 30046 | 50005) => Refusal::Message,
        (_, 10003 | 10004 | 50001 | 50007 | 50013 | 50083 | 50278) => Refusal::Chat,
        (_, 50035) if message.contains("message_reference") => Refusal::Message,
        _ => Refusal::Other,
    };
    SendError::Refused { reason, why }
}

/// Whether a refusal says that the message is not there.
pub(super) fn is_gone(error: &SendError) -> bool {
    error.why().contains("(10008)")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refusal(status: u16, body: Value) -> SendError {
        let status = StatusCode::from_u16(status).unwrap();
        meaning(status, serde_json::from_value(body).ok(), Some(9.0))
    }

    #[test]
    fn refusals_are_told_apart() {
        let reason = |status, code| match refusal(status, json!({ "code": code, "message": "m" })) {
            SendError::Refused { reason, .. } => reason,
            other @ (SendError::Flood { .. }
            | SendError::Failed { .. }
            | SendError::Unknown { .. }) => panic!("{other:?}"),
        };
        assert_eq!(reason(401, 0), Refusal::Account);
        assert_eq!(reason(403, 50007), Refusal::Chat);
        assert_eq!(reason(404, 10003), Refusal::Chat);
        assert_eq!(reason(404, 10008), Refusal::Message);
        assert_eq!(reason(400, 50035), Refusal::Other);
        assert!(matches!(refusal(502, json!("x")), SendError::Unknown { .. }));
        assert!(is_gone(&refusal(404, json!({ "code": 10008, "message": "Unknown Message" }))));
    }

    #[test]
    fn a_flood_is_the_chats_unless_it_is_said_to_be_global() {
        let flood = |body| match refusal(429, body) {
            SendError::Flood { after, scope, .. } => (after.unwrap(), scope),
            other @ (SendError::Failed { .. }
            | SendError::Unknown { .. }
            | SendError::Refused { .. }) => panic!("{other:?}"),
        };
        let (half, nine) = (Duration::from_millis(500), Duration::from_secs(9));
        assert_eq!(flood(json!({ "retry_after": 0.5, "global": false })), (half, Scope::Chat));
        assert_eq!(flood(json!({ "retry_after": 0.5, "global": true })), (half, Scope::Account));
        assert_eq!(flood(json!("<html>")), (nine, Scope::Account));
    }
}
