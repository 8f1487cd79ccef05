//! Interactions that Discord posts to our door: each signed, and answered within three seconds.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use ed25519_dalek::{Signature, VerifyingKey};
use node::clock;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::event::Interaction;
use super::{Inner, PLATFORM};
use crate::door;
use crate::problem::Problem;

/// The largest body.
const BODY_MAX: usize = 512 * 1024;
/// How old a request may be, in seconds: one that was recorded is good for nothing later.
const WINDOW: u64 = 300;
/// Discord waits for three seconds.
const PATIENCE: Duration = Duration::from_millis(2700);
/// The type of the interaction with which Discord tries an address, and of its answer.
const PING: u8 = 1;

pub(super) fn routes(inner: Arc<Inner>) -> Router {
    Router::new().route("/discord/{name}", post(receive)).with_state(inner)
}

async fn receive(
    State(inner): State<Arc<Inner>>,
    Path(name): Path<String>,
    headers: HeaderMap,
    request: Request,
) -> Response {
    match answer(&inner, &name, &headers, request).await {
        Ok(answer) => Json(answer).into_response(),
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
) -> Result<Value, Problem> {
    let bot = inner.bots.get(name).filter(|bot| bot.fault.is_none());
    let Some((bot, key)) = bot.and_then(|bot| Some((bot, bot.key.as_ref()?))) else {
        return Err(Problem::new(StatusCode::NOT_FOUND, "there is no such bot"));
    };
    let body = door::read_body(request.into_body(), BODY_MAX).await?;
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let proof = (header("x-signature-timestamp"), header("x-signature-ed25519"));
    let proven = verify(key, proof, &body, clock::wall_ms() / 1000);
    proven.map_err(|why| Problem::new(StatusCode::UNAUTHORIZED, why))?;
    let bad = |_| Problem::new(StatusCode::BAD_REQUEST, "the body is not an interaction");
    let raw: Value = serde_json::from_slice(&body).map_err(bad)?;
    let interaction = Interaction::deserialize(&raw).map_err(bad)?;
    if interaction.kind == PING {
        return Ok(json!({ "type": PING }));
    }
    let slow = |_| Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the broker does not answer");
    let (answer, _) = timeout(PATIENCE, bot.interaction(&interaction, &raw)).await.map_err(slow)?;
    Ok(answer)
}

/// Whether Discord has signed this, and not long ago.
fn verify(
    key: &VerifyingKey,
    (time, signature): (Option<&str>, Option<&str>),
    body: &[u8],
    now: u64,
) -> Result<(), &'static str> {
    let (Some(time), Some(signature)) = (time, signature) else {
        return Err("the request is not signed");
    };
    let sent: u64 = time.parse().map_err(|_| "the time of the request is none")?;
    let wrong = |_| "the signature is wrong";
    let mut bytes = [0; 64];
    hex::decode_to_slice(signature, &mut bytes).map_err(|_| "the signature is wrong")?;
    let signed = [time.as_bytes(), body].concat();
    key.verify_strict(&signed, &Signature::from_bytes(&bytes)).map_err(wrong)?;
    if sent.abs_diff(now) > WINDOW { Err("the request is too old") } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use ed25519_dalek::{Signer, SigningKey};

    use super::*;

    #[test]
    fn only_what_is_signed_now_is_proven() {
        let key = SigningKey::from_bytes(&[7; 32]);
        let public = key.verifying_key();
        let signature = hex::encode(key.sign(b"1000{}").to_bytes());
        let at = |now, time: &str, body: &str| {
            verify(&public, (Some(time), Some(&signature)), body.as_bytes(), now)
        };
        assert_eq!(at(1000, "1000", "{}"), Ok(()));
        assert_eq!(at(1300, "1000", "{}"), Ok(()));
        assert!(at(1301, "1000", "{}").is_err());
        assert!(at(1000, "1001", "{}").is_err());
        assert!(at(1000, "1000", "{ }").is_err());
        let other = SigningKey::from_bytes(&[8; 32]).verifying_key();
        let proof = (Some("1000"), Some(signature.as_str()));
        assert!(verify(&other, proof, b"{}", 1000).is_err());
        assert!(verify(&public, (Some("1000"), None), b"{}", 1000).is_err());
        assert!(verify(&public, (Some("1000"), Some("00")), b"{}", 1000).is_err());
    }
}
