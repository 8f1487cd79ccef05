//! What Slack posts to our door: events, pressed buttons and commands, each signed, and answered within three seconds.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use hmac::{Hmac, KeyInit, Mac};
use node::clock;
use node::settings::SlackMode;
use serde_json::{Map, Value, json};
use sha2::Sha256;
use tokio::time::timeout;

use super::event::Callback;
use super::take::Parcel;
use super::{App, Inner, PLATFORM};
use crate::door;
use crate::problem::Problem;
use crate::publish::AcceptError;

/// The largest body.
const BODY_MAX: usize = 1024 * 1024;
/// How old a request may be, in seconds: one that was recorded is good for nothing later.
const WINDOW: u64 = 300;
/// Slack waits for three seconds, then it sends an event again, and tells people that a button failed.
const PATIENCE: Duration = Duration::from_millis(2700);

pub(super) fn routes(inner: Arc<Inner>) -> Router {
    Router::new().route("/slack/{name}", post(receive)).with_state(inner)
}

async fn receive(
    State(inner): State<Arc<Inner>>,
    Path(name): Path<String>,
    headers: HeaderMap,
    request: Request,
) -> Response {
    match answer(&inner, &name, &headers, request).await {
        Ok(response) => response,
        Err(problem) => {
            inner.metrics.arrived(PLATFORM, problem.arrival());
            problem.into_response()
        }
    }
}

async fn answer(
    inner: &Inner,
    name: &str,
    headers: &HeaderMap,
    request: Request,
) -> Result<Response, Problem> {
    let app = inner.apps.get(name).filter(|app| app.settings.mode == SlackMode::Events);
    let Some(app) = app.filter(|app| app.fault.is_none()) else {
        return Err(Problem::new(StatusCode::NOT_FOUND, "there is no such app"));
    };
    let body = door::read_body(request.into_body(), BODY_MAX).await?;
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let (time, signature) = (header("x-slack-request-timestamp"), header("x-slack-signature"));
    let secret = app.settings.signing_secret.expose();
    let proven = verify(secret, (time, signature), &body, clock::wall_ms() / 1000);
    proven.map_err(|why| Problem::new(StatusCode::UNAUTHORIZED, why))?;

    let parcel = if door::is_json(headers) {
        let Ok(event) = serde_json::from_slice::<Value>(&body) else {
            return Err(Problem::new(StatusCode::BAD_REQUEST, "the body is not JSON"));
        };
        if let Some(challenge) = challenge(&event) {
            return Ok(Json(json!({ "challenge": challenge })).into_response());
        }
        Parcel::Event(event)
    } else {
        form(&body)?
    };
    let said = take(app, parcel).await?;
    Ok(match said {
        Some(said) => Json(json!({ "response_type": "ephemeral", "text": said })).into_response(),
        None => StatusCode::OK.into_response(),
    })
}

async fn take(app: &App, parcel: Parcel) -> Result<Option<&'static str>, AcceptError> {
    timeout(PATIENCE, app.take(parcel)).await.unwrap_or(Err(AcceptError::Unavailable))
}

/// What Slack wants to hear when the address is entered in the app's settings.
fn challenge(body: &Value) -> Option<String> {
    let asked: Callback = serde_json::from_value(body.clone()).ok()?;
    asked.challenge.filter(|_| asked.kind == "url_verification")
}

/// The body of a button (`payload` with JSON) or of a command (a field each).
fn form(body: &[u8]) -> Result<Parcel, Problem> {
    let fields: Map<String, Value> = form_urlencoded::parse(body)
        .map(|(key, value)| (key.into_owned(), Value::from(value.into_owned())))
        .collect();
    if let Some(payload) = fields.get("payload").and_then(Value::as_str) {
        let parsed = serde_json::from_str(payload);
        let bad = |_| Problem::new(StatusCode::BAD_REQUEST, "the payload is not JSON");
        return parsed.map(Parcel::Interaction).map_err(bad);
    }
    if fields.contains_key("command") {
        return Ok(Parcel::Command(Value::Object(fields)));
    }
    Err(Problem::new(StatusCode::BAD_REQUEST, "neither an event, nor a button, nor a command"))
}

/// Whether Slack has signed this, and not long ago.
fn verify(
    secret: &str,
    (time, signature): (Option<&str>, Option<&str>),
    body: &[u8],
    now: u64,
) -> Result<(), &'static str> {
    let (Some(time), Some(signature)) = (time, signature) else {
        return Err("the request is not signed");
    };
    let sent: u64 = time.parse().map_err(|_| "the time of the request is none")?;
    if sent.abs_diff(now) > WINDOW {
        return Err("the request is too old");
    }
    let wrong = "the signature is wrong";
    let signature = signature.strip_prefix("v0=").and_then(|hex| hex::decode(hex).ok());
    let signature = signature.ok_or(wrong)?;
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).map_err(|_| wrong)?;
    for part in [b"v0:".as_slice(), time.as_bytes(), b":", body] {
        mac.update(part);
    }
    // In constant time.
    mac.verify_slice(&signature).map_err(|_| wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of Slack's documentation.
    const SECRET: &str = "8f742231b10e8888abcd99yyyzzz85a5";
    const BODY: &str = "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c";
    const TIME: &str = "1531420618";
    const SIGNATURE: &str = "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503";

    fn at(now: u64, time: &str, signature: &str, body: &str) -> Result<(), &'static str> {
        verify(SECRET, (Some(time), Some(signature)), body.as_bytes(), now)
    }

    #[test]
    fn slacks_own_example_is_proven_and_nothing_else() {
        let now = 1_531_420_618;
        assert_eq!(at(now, TIME, SIGNATURE, BODY), Ok(()));
        assert_eq!(at(now + WINDOW, TIME, SIGNATURE, BODY), Ok(()));
        assert!(at(now + WINDOW + 1, TIME, SIGNATURE, BODY).is_err());
        assert!(at(now - WINDOW - 1, TIME, SIGNATURE, BODY).is_err());
        assert!(at(now, "1531420619", SIGNATURE, BODY).is_err());
        assert!(at(now, TIME, SIGNATURE, "text=other").is_err());
        assert!(at(now, TIME, "v0=00", BODY).is_err());
        assert!(at(now, TIME, &SIGNATURE[3..], BODY).is_err());
        assert!(verify(SECRET, (None, Some(SIGNATURE)), BODY.as_bytes(), now).is_err());
    }
}
