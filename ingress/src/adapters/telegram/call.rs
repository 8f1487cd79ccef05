//! Calls of the Bot API, and what its refusals mean.

use std::time::Duration;

use bytes::Bytes;
use node::settings::{Secret, Telegram};
use reqwest::{Response, StatusCode, Url};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::adapter::{Refusal, Scope, SendError};
use crate::http::{self, Clients, root};

/// The Bot API for one bot.
#[derive(Clone, Debug)]
pub(super) struct Bot {
    clients: Clients,
    base: Url,
    token: Secret,
}

/// What the API answers.
#[derive(Debug, Deserialize)]
struct Answer {
    ok: bool,
    #[serde(default)]
    result: Value,
    #[serde(default)]
    error_code: u16,
    #[serde(default)]
    description: String,
    #[serde(default)]
    parameters: Parameters,
}

#[derive(Debug, Default, Deserialize)]
struct Parameters {
    #[serde(default)]
    retry_after: Option<u64>,
    #[serde(default)]
    migrate_to_chat_id: Option<i64>,
}

impl Bot {
    /// None if the address of the API is none.
    pub(super) fn new(clients: Clients, settings: &Telegram) -> Option<Self> {
        let base = Url::parse(&settings.base_url).ok()?;
        Some(Self { clients, base, token: settings.token.clone() })
    }

    fn url(&self, kind: &str, rest: &str) -> Result<Url, SendError> {
        let base = self.base.as_str().trim_end_matches('/');
        Url::parse(&format!("{base}{kind}/bot{}/{rest}", self.token.expose())).map_err(|_| {
            SendError::Refused { reason: Refusal::Account, why: "the token is malformed".into() }
        })
    }

    /// Calls a method; `wait` is how long its answer may take beyond the usual time.
    pub(super) async fn call<T: DeserializeOwned>(
        &self,
        method: &str,
        arguments: &Value,
        wait: Option<Duration>,
    ) -> Result<T, SendError> {
        let url = self.url("", method)?;
        let mut request = self.clients.to(&url).post(url).json(arguments);
        if let Some(wait) = wait {
            request = request.timeout(wait);
        }
        read(request.send().await).await
    }

    /// Downloads a file of the API's file server.
    pub(super) async fn download(&self, path: &str, limit: usize) -> Result<Bytes, SendError> {
        let url = self.url("/file", path)?;
        http::file(self.clients.to(&url).get(url), limit).await
    }
}

async fn read<T: DeserializeOwned>(sent: Result<Response, reqwest::Error>) -> Result<T, SendError> {
    let response = sent.map_err(http::unanswered)?;
    let status = response.status();
    let unknown = |why: String| SendError::Unknown { why };
    let bytes = response.bytes().await.map_err(|error| unknown(root(error)))?;
    let Ok(answer) = serde_json::from_slice::<Answer>(&bytes) else {
        return Err(unknown(format!("Telegram answered {status} without an explanation")));
    };
    if !answer.ok {
        return Err(meaning(status, answer));
    }
    serde_json::from_value(answer.result)
        .map_err(|error| unknown(format!("an answer of Telegram cannot be read: {error}")))
}

/// What a refusal means. The API tells many of them apart only by their words.
fn meaning(status: StatusCode, answer: Answer) -> SendError {
    let code = if answer.error_code == 0 { status.as_u16() } else { answer.error_code };
    let why = format!("Telegram says {code}: {}", answer.description);
    let words = answer.description.to_lowercase();
    let says = |any: &[&str]| any.iter().any(|phrase| words.contains(phrase));
    if let Some(chat) = answer.parameters.migrate_to_chat_id {
        return SendError::Refused { reason: Refusal::Moved(chat.to_string()), why };
    }
    let reason = match code {
        429 => {
            let after = answer.parameters.retry_after.map(Duration::from_secs);
            return SendError::Flood { after, scope: Scope::Chat, why };
        }
        500.. => return SendError::Failed { why },
        401 => Refusal::Account,
        // A token of the wrong form is no path of the API.
        404 if words == "not found" => Refusal::Account,
        403 => Refusal::Chat,
        409 => return SendError::Failed { why },
        _ if says(&["can't parse entities", "can't find end of", "unsupported start tag"]) => {
            Refusal::Markup
        }
        _ if says(&[
            "message to edit not found",
            "message can't be edited",
            "replied message not found",
            "message to be replied not found",
            "message to delete not found",
            "message can't be deleted",
        ]) =>
        {
            Refusal::Message
        }
        _ if says(&[
            "chat not found",
            "peer_id_invalid",
            "user is deactivated",
            "rights to send",
            "chat_write_forbidden",
            "thread not found",
            "topic_closed",
            "topic_deleted",
            "bot was kicked",
        ]) =>
        {
            Refusal::Chat
        }
        _ if says(&["too long", "too big", "too large"]) => Refusal::TooLarge,
        _ => Refusal::Other,
    };
    SendError::Refused { reason, why }
}

/// Whether a refused edit says that there is nothing to change.
pub(super) fn is_unchanged(error: &SendError) -> bool {
    error.why().to_lowercase().contains("message is not modified")
}

/// Whether another process elsewhere asks for the bot's updates.
pub(super) fn is_conflict(error: &SendError) -> bool {
    error.why().contains("says 409")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(code: u16, description: &str, parameters: Value) -> SendError {
        let answer = json!({ "ok": false, "error_code": code, "description": description, "parameters": parameters });
        meaning(StatusCode::from_u16(code).unwrap(), serde_json::from_value(answer).unwrap())
    }

    fn reason(code: u16, description: &str) -> Refusal {
        match refused(code, description, json!({})) {
            SendError::Refused { reason, .. } => reason,
            other @ (SendError::Flood { .. }
            | SendError::Failed { .. }
            | SendError::Unknown { .. }) => panic!("{other:?}"),
        }
    }

    #[test]
    fn refusals_are_told_apart() {
        let flood = refused(429, "Too Many Requests: retry after 7", json!({ "retry_after": 7 }));
        let SendError::Flood { after, scope, .. } = flood else { panic!("{flood:?}") };
        assert_eq!((after, scope), (Some(Duration::from_secs(7)), Scope::Chat));
        let moved = refused(
            400,
            "Bad Request: group chat was upgraded to a supergroup chat",
            json!({ "migrate_to_chat_id": -1_001_234_i64 }),
        );
        let SendError::Refused { reason: Refusal::Moved(to), .. } = moved else { panic!() };
        assert_eq!(to, "-1001234");
        assert_eq!(reason(401, "Unauthorized"), Refusal::Account);
        assert_eq!(reason(404, "Not Found"), Refusal::Account);
        assert_eq!(reason(403, "Forbidden: bot was blocked by the user"), Refusal::Chat);
        assert_eq!(reason(400, "Bad Request: chat not found"), Refusal::Chat);
        assert_eq!(
            reason(400, "Bad Request: can't parse entities: Unsupported start tag \"x\""),
            Refusal::Markup
        );
        assert_eq!(reason(400, "Bad Request: message to edit not found"), Refusal::Message);
        assert_eq!(reason(400, "Bad Request: message is too long"), Refusal::TooLarge);
        assert_eq!(reason(400, "Bad Request: BUTTON_DATA_INVALID"), Refusal::Other);
        assert!(matches!(
            refused(500, "Internal Server Error", json!({})),
            SendError::Failed { .. }
        ));
        assert!(is_conflict(&refused(
            409,
            "Conflict: terminated by other getUpdates request",
            json!({})
        )));
        assert!(is_unchanged(&refused(400, "Bad Request: message is not modified: …", json!({}))));
    }
}
