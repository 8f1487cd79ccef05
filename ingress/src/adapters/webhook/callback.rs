//! What a webhook sends: one signed POST for each thing to deliver, and what its answer means.

use std::time::{Duration, SystemTime};

use proto::event::Address;
use proto::outbound::{Draft, Kind, Outbound};
use reqwest::header::{CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use reqwest::{StatusCode, Url};
use serde_json::{Value, json};

use super::sign;
use crate::adapter::DeliverError;
use crate::http::{Clients, root};

/// How long the whole request may take.
pub(crate) const REQUEST: Duration = Duration::from_secs(20);
/// How long to keep quiet when the other end says "too many" without saying for how long.
const QUIET: Duration = Duration::from_secs(5);

/// The body for something to deliver; none if it shows nothing.
pub(crate) fn outbound(outbound: &Outbound, chat_name: Option<&str>) -> Option<Value> {
    let kind = match outbound.kind {
        Kind::Reply => "reply",
        Kind::Notice => "notice",
        Kind::Ack => "ack",
        Kind::Question => "question",
        Kind::Closed => return None,
    };
    Some(json!({
        "id": outbound.id,
        "chat": chat(&outbound.address, chat_name),
        "session": outbound.session,
        "turn": outbound.turn.map(|turn| turn.to_string()),
        "attempt": outbound.attempt,
        "kind": kind,
        "text": outbound.text,
        "final": true,
        "reply_to": outbound.reply_to,
        "replaces": outbound.replaces,
        "media": [],
    }))
}

/// The body for the text so far of a running turn. Its id tells one state of the text from another.
pub(crate) fn draft(draft: &Draft, chat_name: Option<&str>) -> Value {
    let (turn, attempt) = (draft.of.turn, draft.of.attempt);
    json!({
        "id": format!("{turn}-{attempt}-draft-{}", draft.text.len()),
        "chat": chat(&draft.address, chat_name),
        "session": draft.session,
        "turn": turn.to_string(),
        "attempt": attempt,
        "kind": "draft",
        "text": draft.text,
        "final": false,
        "reply_to": draft.reply_to,
        "media": [],
    })
}

fn chat(address: &Address, name: Option<&str>) -> Value {
    let mut chat = json!({ "id": address.chat, "type": address.kind });
    if let Some(name) = name {
        chat["name"] = name.into();
    }
    if let Some(thread) = &address.thread {
        chat["thread"] = thread.as_str().into();
    }
    chat
}

/// Posts a body.
pub(crate) async fn post(
    clients: &Clients,
    url: &str,
    secret: &str,
    body: &Value,
) -> Result<(), DeliverError> {
    let Ok(url) = Url::parse(url) else {
        return Err(DeliverError::Dead { why: "callback_url is not an address".into() });
    };
    let bytes = body.to_string().into_bytes();
    let sent = clients
        .to(&url)
        .post(url)
        .header(CONTENT_TYPE, "application/json")
        .header(sign::SIGNATURE, sign::signature(secret, &bytes))
        .body(bytes)
        .send()
        .await;
    match sent {
        Ok(answer) => meaning(answer.status(), answer.headers()),
        Err(error) if error.is_builder() => {
            Err(DeliverError::Dead { why: "callback_url cannot be posted to".into() })
        }
        Err(error) => {
            Err(DeliverError::Retry { after: None, why: format!("no answer: {}", root(error)) })
        }
    }
}

/// What a status means for a delivery.
fn meaning(status: StatusCode, headers: &HeaderMap) -> Result<(), DeliverError> {
    let why = format!("the callback answered {status}");
    if status.is_success() {
        return Ok(());
    }
    if status == StatusCode::TOO_MANY_REQUESTS {
        let after = retry_after(headers).unwrap_or(QUIET);
        return Err(DeliverError::Retry { after: Some(after), why });
    }
    if status.is_server_error() || status == StatusCode::REQUEST_TIMEOUT {
        return Err(DeliverError::Retry { after: retry_after(headers), why });
    }
    Err(DeliverError::Dead { why })
}

/// `Retry-After`, in either of its forms.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = value.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = httpdate::parse_http_date(value).ok()?;
    Some(date.duration_since(SystemTime::now()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use proto::id::{Attempt, OutboundId, TurnId};
    use proto::session::{ChatKind, SessionKey, SessionParts};

    use super::*;

    fn headers(retry_after: &str) -> HeaderMap {
        HeaderMap::from_iter([(RETRY_AFTER, retry_after.parse().unwrap())])
    }

    fn retry(status: u16, after: &str) -> Option<Option<Duration>> {
        match meaning(StatusCode::from_u16(status).unwrap(), &headers(after)) {
            Err(DeliverError::Retry { after, .. }) => Some(after),
            Ok(()) | Err(DeliverError::Dead { .. } | DeliverError::Gone { .. }) => None,
        }
    }

    #[test]
    fn statuses_mean_delivered_again_or_never() {
        let dead = |status: u16| {
            let status = StatusCode::from_u16(status).unwrap();
            matches!(meaning(status, &HeaderMap::new()), Err(DeliverError::Dead { .. }))
        };
        assert!(meaning(StatusCode::NO_CONTENT, &HeaderMap::new()).is_ok());
        assert_eq!(retry(429, "2"), Some(Some(Duration::from_secs(2))));
        assert_eq!(retry(429, "soon"), Some(Some(QUIET)));
        assert_eq!(retry(429, "-1"), Some(Some(QUIET)));
        assert_eq!(retry(429, "Thu, 01 Jan 1970 00:00:00 GMT"), Some(Some(Duration::ZERO)));
        assert_eq!(retry(503, "7"), Some(Some(Duration::from_secs(7))));
        assert_eq!(retry(500, ""), Some(None));
        assert!([301, 400, 401, 404, 410, 422].into_iter().all(dead));
    }

    #[test]
    fn the_body_is_the_contract() {
        let parts = SessionParts {
            platform: "webhook/demo",
            kind: ChatKind::Group,
            chat: "c1",
            thread: Some("t1"),
            participant: None,
        };
        let mut reply = Outbound {
            id: OutboundId::of_turn(TurnId::new(12), "reply"),
            session: SessionKey::new(parts),
            address: Address {
                platform: "webhook".into(),
                account: "demo".into(),
                chat: "c1".into(),
                kind: ChatKind::Group,
                thread: Some("t1".into()),
            },
            reply_to: Some("evt-1".into()),
            turn: Some(TurnId::new(12)),
            attempt: Some(Attempt::FIRST),
            kind: Kind::Reply,
            text: "hello".into(),
            ask: None,
            replaces: None,
        };
        let expected = json!({
            "id": "t12-reply", "chat": { "id": "c1", "type": "group", "name": "Room", "thread": "t1" },
            "session": "webhook/demo:group:c1:t1", "turn": "t12", "attempt": 1, "kind": "reply",
            "text": "hello", "final": true, "reply_to": "evt-1", "replaces": null, "media": [],
        });
        assert_eq!(outbound(&reply, Some("Room")), Some(expected));
        reply.kind = Kind::Closed;
        assert_eq!(outbound(&reply, None), None);
    }
}
