//! What a page sends: words, or a decision, which is a command that anyone could type.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use node::clock;
use proto::event::{Address, MessageEvent, User};
use proto::id::{AskId, TurnId};
use proto::session::ChatKind;
use serde::Deserialize;
use serde_json::json;

use super::hub::Word;
use super::{Inner, PLATFORM, check_name, session_key};
use crate::door;
use crate::problem::Problem;
use crate::publish::Accepted;

/// Who writes on the page: whoever has the token is one person.
const PERSON: &str = "owner";

#[derive(Debug, Deserialize)]
struct Posted {
    session: String,
    id: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    ask: Option<AskId>,
    #[serde(default)]
    decision: Option<Choice>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Choice {
    Approve,
    Deny,
}

impl Posted {
    /// The words: a decision is the command that anyone could type.
    fn words(&self) -> String {
        match (self.ask, self.decision) {
            (Some(ask), Some(Choice::Approve)) => format!("/approve {ask}"),
            (Some(ask), Some(Choice::Deny)) => format!("/deny {ask}"),
            _ => self.text.clone(),
        }
    }

    fn read(body: &[u8]) -> Result<Self, Problem> {
        let mut json = serde_json::Deserializer::from_slice(body);
        let posted: Self = serde_path_to_error::deserialize(&mut json).map_err(|error| {
            Problem::invalid(error.path().to_string(), &error.inner().to_string())
        })?;
        check_name("session", &posted.session)?;
        check_name("id", &posted.id)?;
        if posted.words().trim().is_empty() {
            return Err(Problem::invalid("text".into(), "is empty"));
        }
        Ok(posted)
    }
}

/// Takes what a page sends.
pub(crate) async fn send(
    State(inner): State<Arc<Inner>>,
    headers: HeaderMap,
    request: Request,
) -> Response {
    let posted = match inner.read(&headers, request).await {
        Ok(posted) => posted,
        Err(problem) => {
            inner.metrics.arrived(PLATFORM, problem.arrival());
            return problem.into_response();
        }
    };
    let text = posted.words();
    let Posted { session, id, ask, .. } = posted;
    let accepted = match inner.publisher.accept(inner.event(&session, &id, &text)).await {
        Ok(accepted) => accepted,
        Err(error) => return Problem::from(error).into_response(),
    };
    let turn = TurnId::from(accepted.seq());
    let (code, status) = match accepted {
        Accepted::Stored { .. } => (StatusCode::ACCEPTED, "accepted"),
        Accepted::Duplicate { .. } => (StatusCode::OK, "duplicate"),
    };
    let answer = json!({ "status": status, "id": id, "turn": turn.to_string() });
    // Other windows see what was written; a button that was pressed is no words.
    if code == StatusCode::ACCEPTED && ask.is_none() {
        inner.hub.tell(Word::User { session, id, text, turn }).await;
    }
    (code, Json(answer)).into_response()
}

impl Inner {
    async fn read(&self, headers: &HeaderMap, request: Request) -> Result<Posted, Problem> {
        self.check(headers)?;
        if !door::is_json(headers) {
            let why = "the body must be application/json";
            return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, why));
        }
        let limit = self.node.settings.ingress.body_limit.min(self.node.bus.payload_limit());
        Posted::read(&door::read_body(request.into_body(), limit).await?)
    }

    fn event(&self, session: &str, id: &str, text: &str) -> MessageEvent {
        MessageEvent {
            id: id.to_owned(),
            session: session_key(session),
            address: Address {
                platform: PLATFORM.into(),
                account: self.node.id.to_string(),
                chat: session.to_owned(),
                kind: ChatKind::Dm,
                thread: None,
            },
            user: User { id: PERSON.into(), name: None },
            text: text.to_owned(),
            media: Vec::new(),
            reply_to: None,
            mode: None,
            history: Vec::new(),
            accepted_at_ms: clock::wall_ms(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: serde_json::Value) -> Result<String, Problem> {
        Posted::read(body.to_string().as_bytes()).map(|posted| posted.words())
    }

    #[test]
    fn a_decision_is_a_command() {
        let words = read(json!({ "session": "s", "id": "1", "ask": "7-1-2", "decision": "deny" }));
        assert_eq!(words.unwrap(), "/deny 7-1-2");
        let words = read(json!({ "session": "s", "id": "1", "text": "/approve 7-1-2" }));
        assert_eq!(words.unwrap(), "/approve 7-1-2");
    }

    #[test]
    fn mistakes_are_named() {
        let says = |body, what: &str| {
            assert_eq!(read(body).unwrap_err().place.as_deref(), Some(what));
        };
        says(json!({ "session": "a.b", "id": "1", "text": "x" }), "session");
        says(json!({ "session": "s", "id": "", "text": "x" }), "id");
        says(json!({ "session": "s", "id": "1", "text": " " }), "text");
        says(json!({ "session": "s", "id": "1", "text": 7 }), "text");
        says(json!({ "session": "s", "id": "1", "ask": "x", "decision": "deny" }), "ask");
    }
}
