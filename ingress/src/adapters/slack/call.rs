//! Calls of Slack's Web API, and what its refusals mean.

use std::time::Duration;

use bytes::Bytes;
use node::settings::{Secret, Slack};
use reqwest::{RequestBuilder, Response, StatusCode, Url, header};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::adapter::{Refusal, Scope, SendError};
use crate::http::{self, Clients, root};

/// How long a file may take.
const FILE: Duration = Duration::from_secs(120);
/// Where Slack keeps files.
const FILES: &str = "slack.com";

/// The Web API for one app.
#[derive(Clone, Debug)]
pub(super) struct Api {
    clients: Clients,
    base: Url,
    bot_token: Secret,
    app_token: Secret,
}

/// With which of its tokens an app calls.
#[derive(Clone, Copy, Debug)]
pub(super) enum As {
    Bot,
    App,
}

impl Api {
    /// None if the address of the API is none.
    pub(super) fn new(clients: Clients, settings: &Slack) -> Option<Self> {
        let base = Url::parse(&settings.base_url).ok().filter(Url::has_host)?;
        let (bot_token, app_token) = (settings.bot_token.clone(), settings.app_token.clone());
        Some(Self { clients, base, bot_token, app_token })
    }

    fn post(&self, method: &str, token: As) -> Result<RequestBuilder, SendError> {
        let base = self.base.as_str().trim_end_matches('/');
        let url = Url::parse(&format!("{base}/{method}"))
            .map_err(|_| SendError::refused(Refusal::Other, "the method's address is none"))?;
        let token = match token {
            As::Bot => &self.bot_token,
            As::App => &self.app_token,
        };
        Ok(self.clients.to(&url).post(url).bearer_auth(token.expose()))
    }

    /// Calls a method that takes JSON.
    pub(super) async fn call<T: DeserializeOwned>(
        &self,
        method: &str,
        arguments: &Value,
        token: As,
    ) -> Result<T, SendError> {
        read(method, self.post(method, token)?.json(arguments).send().await).await
    }

    /// Calls one of the methods that take no JSON.
    pub(super) async fn ask<T: DeserializeOwned>(
        &self,
        method: &str,
        arguments: &[(&str, &str)],
    ) -> Result<T, SendError> {
        let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(arguments).finish();
        let kind = "application/x-www-form-urlencoded";
        let request = self.post(method, As::Bot)?.header(header::CONTENT_TYPE, kind).body(body);
        read(method, request.send().await).await
    }

    /// Puts a file's content where Slack has said. Nobody sees it before the upload is completed.
    pub(super) async fn upload(&self, url: &str, bytes: Bytes) -> Result<(), SendError> {
        let url = Url::parse(url)
            .map_err(|_| SendError::refused(Refusal::Other, "no address to upload to"))?;
        let failed = |error| SendError::Failed { why: root(error) };
        let sent = self.clients.to(&url).post(url).timeout(FILE).body(bytes).send().await;
        let status = sent.map_err(failed)?.status();
        let why = format!("Slack did not take a file: {status}");
        if status.is_success() { Ok(()) } else { Err(SendError::Failed { why }) }
    }

    /// Downloads a file of Slack. The token goes to Slack's own hosts only.
    pub(super) async fn download(&self, url: &str, limit: usize) -> Result<Bytes, SendError> {
        let url = Url::parse(url)
            .map_err(|_| SendError::refused(Refusal::Other, "the file has no address"))?;
        let (host, own) = (url.host_str().unwrap_or_default(), self.base.host_str());
        let is_slacks =
            (host == FILES || host.ends_with(&format!(".{FILES}"))) && url.scheme() == "https";
        let same = Some(host) == own && url.port() == self.base.port();
        if !(same || is_slacks) {
            return Err(SendError::refused(Refusal::Other, "the file is not on Slack"));
        }
        let request = self.clients.to(&url).get(url).bearer_auth(self.bot_token.expose());
        http::file(request.timeout(FILE), limit).await.map_err(|error| match error {
            SendError::Refused { reason: Refusal::Other, why } => {
                let why = format!("{why}; has the app the scope files:read?");
                SendError::refused(Refusal::Other, why)
            }
            error @ (SendError::Flood { .. }
            | SendError::Failed { .. }
            | SendError::Unknown { .. }
            | SendError::Refused { .. }) => error,
        })
    }
}

async fn read<T: DeserializeOwned>(
    method: &str,
    sent: Result<Response, reqwest::Error>,
) -> Result<T, SendError> {
    let response = sent.map_err(http::unanswered)?;
    let status = response.status();
    let after = response.headers().get(header::RETRY_AFTER);
    let after = after.and_then(|after| after.to_str().ok()?.trim().parse().ok());
    if status == StatusCode::TOO_MANY_REQUESTS {
        return Err(flood(method, after));
    }
    let unknown = |why: String| SendError::Unknown { why };
    let bytes = response.bytes().await.map_err(|error| unknown(root(error)))?;
    let Ok(answer) = serde_json::from_slice::<Value>(&bytes) else {
        return Err(unknown(format!("Slack answered {status} without an explanation")));
    };
    if answer["ok"] != true {
        let error = answer["error"].as_str().unwrap_or_default();
        return Err(meaning(method, error, after));
    }
    serde_json::from_value(answer)
        .map_err(|error| unknown(format!("an answer of Slack to {method} cannot be read: {error}")))
}

/// Slack counts messages by channel, and every other method by workspace.
fn flood(method: &str, after: Option<u64>) -> SendError {
    let scope = if method == "chat.postMessage" { Scope::Chat } else { Scope::Account };
    let why = format!("Slack wants fewer calls of {method}");
    SendError::Flood { after: after.map(Duration::from_secs), scope, why }
}

/// What a refusal means, by its code.
fn meaning(method: &str, error: &str, after: Option<u64>) -> SendError {
    let why = format!("Slack says {error} to {method}");
    let reason = match error {
        "ratelimited" | "rate_limited" => return flood(method, after),
        "internal_error"
        | "service_unavailable"
        | "request_timeout"
        | "team_added_to_org"
        | "upgrade_required" => return SendError::Failed { why },
        // By its reference something may have happened.
        "fatal_error" | "" => return SendError::Unknown { why },
        "invalid_auth"
        | "not_authed"
        | "account_inactive"
        | "token_revoked"
        | "token_expired"
        | "missing_scope"
        | "not_allowed_token_type"
        | "no_permission"
        | "org_login_required"
        | "ekm_access_denied"
        | "access_denied"
        | "app_missing_action_url" => Refusal::Account,
        "channel_not_found"
        | "not_in_channel"
        | "is_archived"
        | "cannot_dm_bot"
        | "messages_tab_disabled"
        | "restricted_action"
        | "restricted_action_thread_locked"
        | "restricted_action_read_only_channel"
        | "user_not_found"
        | "user_disabled" => Refusal::Chat,
        "message_not_found"
        | "cant_update_message"
        | "edit_window_closed"
        | "cant_delete_message"
        | "thread_not_found"
        | "cannot_reply_to_message" => Refusal::Message,
        "invalid_blocks" | "invalid_blocks_format" => Refusal::Markup,
        "msg_too_long" | "msg_blocks_too_long" => Refusal::TooLarge,
        _ => Refusal::Other,
    };
    SendError::Refused { reason, why }
}

/// Whether a refusal says that the message is not there.
pub(super) fn is_gone(error: &SendError) -> bool {
    error.why().contains("says message_not_found")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(error: &str) -> Option<Refusal> {
        match meaning("chat.update", error, None) {
            SendError::Refused { reason, .. } => Some(reason),
            SendError::Flood { .. } | SendError::Failed { .. } | SendError::Unknown { .. } => None,
        }
    }

    #[test]
    fn refusals_are_told_apart() {
        assert_eq!(reason("invalid_auth"), Some(Refusal::Account));
        assert_eq!(reason("account_inactive"), Some(Refusal::Account));
        assert_eq!(reason("channel_not_found"), Some(Refusal::Chat));
        assert_eq!(reason("message_not_found"), Some(Refusal::Message));
        assert_eq!(reason("invalid_blocks"), Some(Refusal::Markup));
        assert_eq!(reason("msg_too_long"), Some(Refusal::TooLarge));
        assert_eq!(reason("something_new"), Some(Refusal::Other));
        assert_eq!(reason("internal_error"), None);
        assert!(matches!(meaning("x", "fatal_error", None), SendError::Unknown { .. }));
    }

    #[test]
    fn a_flood_of_messages_is_the_channels_and_any_other_the_workspaces() {
        let scope = |method| match meaning(method, "ratelimited", Some(7)) {
            SendError::Flood { after, scope, .. } => (after, scope),
            other @ (SendError::Failed { .. }
            | SendError::Unknown { .. }
            | SendError::Refused { .. }) => panic!("{other:?}"),
        };
        assert_eq!(scope("chat.postMessage"), (Some(Duration::from_secs(7)), Scope::Chat));
        assert_eq!(scope("chat.update").1, Scope::Account);
    }
}
