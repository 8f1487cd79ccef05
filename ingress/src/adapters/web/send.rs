//! What a page sends: words, or a decision, which is a command that anyone could type.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use node::clock;
use proto::command::addressed;
use proto::event::{Address, MessageEvent, User};
use proto::id::{AskId, TurnId};
use proto::session::ChatKind;
use serde::Deserialize;
use serde_json::json;

use super::hub::Word;
use super::{Inner, PLATFORM, check_name, session_key};
use crate::adapter::OWN_NAME;
use crate::door;
use crate::problem::Problem;
use crate::publish::{AcceptError, Accepted, Rank};

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
    /// The message that this one replaces.
    #[serde(default)]
    edits: Option<String>,
    /// The message that is taken back.
    #[serde(default)]
    deletes: Option<String>,
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
            _ => addressed(&self.text, OWN_NAME).into_owned(),
        }
    }

    /// Whether it is a message, and not a button or what becomes of an earlier one.
    const fn is_new_words(&self) -> bool {
        self.ask.is_none() && self.edits.is_none() && self.deletes.is_none()
    }

    fn read(body: &[u8]) -> Result<Self, Problem> {
        let mut json = serde_json::Deserializer::from_slice(body);
        let posted: Self = serde_path_to_error::deserialize(&mut json).map_err(|error| {
            Problem::invalid(error.path().to_string(), &error.inner().to_string())
        })?;
        check_name("session", &posted.session)?;
        check_name("id", &posted.id)?;
        for (place, target) in [("edits", &posted.edits), ("deletes", &posted.deletes)] {
            if let Some(target) = target {
                check_name(place, target)?;
            }
            if target.as_ref() == Some(&posted.id) {
                return Err(Problem::invalid(place.into(), "names the event itself"));
            }
        }
        if posted.edits.is_some() && posted.deletes.is_some() {
            return Err(Problem::invalid("deletes".into(), "cannot stand beside edits"));
        }
        if posted.deletes.is_none() && posted.words().trim().is_empty() {
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
    let accepted = match inner.store(&posted).await {
        Ok(accepted) => accepted,
        Err(error) => return Problem::from(error).into_response(),
    };
    let turn = TurnId::from(accepted.seq());
    let (code, status) = match accepted {
        Accepted::Stored { .. } => (StatusCode::ACCEPTED, "accepted"),
        Accepted::Duplicate { .. } => (StatusCode::OK, "duplicate"),
    };
    let answer = json!({ "status": status, "id": posted.id, "turn": turn.to_string() });
    // Other windows see what was written; a button that was pressed is no words.
    if code == StatusCode::ACCEPTED && posted.is_new_words() {
        let text = posted.words();
        inner.hub.tell(Word::User { session: posted.session, id: posted.id, text, turn }).await;
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

    async fn store(&self, posted: &Posted) -> Result<Accepted, AcceptError> {
        let Posted { session, id, edits, deletes, .. } = posted;
        let text = posted.words();
        match (edits, deletes) {
            (Some(message), _) => {
                let (session, id) = (session.clone(), message.clone());
                self.hub.tell(Word::Edit { session, id, text: text.clone() }).await;
                self.publisher.edit(&posted.id, self.event(&posted.session, message, &text)).await
            }
            (None, Some(message)) => {
                let (key, address) = (session_key(session), self.address(session));
                self.publisher.withdraw(id, &address, key, (message.clone(), person())).await
            }
            (None, None) => {
                // Whoever has the token runs this system.
                self.publisher.accept(self.event(session, id, &text), Rank::Admin).await
            }
        }
    }

    fn address(&self, session: &str) -> Address {
        Address {
            platform: PLATFORM.into(),
            account: self.node.id.to_string(),
            chat: session.to_owned(),
            kind: ChatKind::Dm,
            thread: None,
        }
    }

    fn event(&self, session: &str, id: &str, text: &str) -> MessageEvent {
        MessageEvent {
            id: id.to_owned(),
            session: session_key(session),
            address: self.address(session),
            user: person(),
            text: text.to_owned(),
            media: Vec::new(),
            reply_to: None,
            mode: None,
            history: Vec::new(),
            admission: proto::access::Admission::default(),
            accepted_at_ms: clock::wall_ms(),
        }
    }
}

/// Whoever has the token.
fn person() -> User {
    User { id: PERSON.into(), name: None }
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
    fn only_our_own_name_behind_a_command_makes_it_ours() {
        let words = |text: &str| read(json!({ "session": "s", "id": "1", "text": text })).unwrap();
        assert_eq!(words("/stop@TALARIA"), "/stop");
        assert_eq!(words("/stop@otherbot"), "/stop@otherbot");
    }

    #[test]
    fn a_message_can_be_changed_and_taken_back() {
        let posted = |body: serde_json::Value| Posted::read(body.to_string().as_bytes()).unwrap();
        let edit = posted(json!({ "session": "s", "id": "2", "text": "the", "edits": "1" }));
        assert_eq!((edit.edits.as_deref(), edit.is_new_words()), (Some("1"), false));
        let delete = posted(json!({ "session": "s", "id": "2", "deletes": "1" }));
        assert_eq!((delete.deletes.as_deref(), delete.is_new_words()), (Some("1"), false));
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
        says(json!({ "session": "s", "id": "1", "edits": "0" }), "text");
        says(json!({ "session": "s", "id": "1", "text": "x", "edits": "" }), "edits");
        says(json!({ "session": "s", "id": "1", "text": "x", "edits": "1" }), "edits");
        says(json!({ "session": "s", "id": "1", "deletes": "a.b" }), "deletes");
        says(json!({ "session": "s", "id": "1", "edits": "2", "deletes": "3" }), "deletes");
    }
}
