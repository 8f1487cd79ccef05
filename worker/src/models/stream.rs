//! The HTTP side that both providers share: send, read the refusal or the events, notice silence.

use std::time::Duration;

use eventsource_stream::{Event, EventStream, Eventsource};
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, TryStreamExt};
use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{RequestBuilder, Response};
use serde_json::Value;

use super::ModelError;

/// The most of a refusal's body that is read.
const BODY_BYTES_MAX: usize = 64 * 1024;

/// The events of a streaming answer. Dropping it closes the connection.
pub(super) struct Events {
    events: EventStream<BoxStream<'static, reqwest::Result<bytes::Bytes>>>,
    stall: Option<Duration>,
}

impl Events {
    /// Sends a request and waits until the provider begins to answer.
    pub(super) async fn open(
        request: RequestBuilder,
        stall: Option<Duration>,
    ) -> Result<Self, ModelError> {
        let response = within(stall, request.send()).await??;
        if !response.status().is_success() {
            return Err(refusal(response).await);
        }
        let events = response.bytes_stream().boxed().eventsource();
        Ok(Self { events, stall })
    }

    /// The next event; none at the end of the stream.
    pub(super) async fn next(&mut self) -> Result<Option<Event>, ModelError> {
        within(self.stall, self.events.try_next())
            .await?
            .map_err(|error| ModelError::Network { message: format!("broken answer: {error}") })
    }
}

/// A stream that ended before the answer did.
pub(super) fn cut_off() -> ModelError {
    ModelError::Network { message: "the answer was cut off".into() }
}

/// Reads the JSON of an event.
pub(super) fn json(event: &Event) -> Result<Value, ModelError> {
    serde_json::from_str(&event.data).map_err(|_| ModelError::Network {
        message: "the provider sent something that is not JSON".into(),
    })
}

/// An error object in the provider's usual form, `{"type": …, "code": …, "message": …}`.
pub(super) fn error_of(error: &Value) -> (&str, &str) {
    let text = |key: &str| error[key].as_str().filter(|text| !text.is_empty());
    (text("code").or_else(|| text("type")).unwrap_or_default(), text("message").unwrap_or_default())
}

async fn within<F: Future>(stall: Option<Duration>, future: F) -> Result<F::Output, ModelError> {
    match stall {
        None => Ok(future.await),
        Some(after) => {
            tokio::time::timeout(after, future).await.map_err(|_| ModelError::Stalled { after })
        }
    }
}

async fn refusal(response: Response) -> ModelError {
    let (status, after) = (response.status(), retry_after(response.headers()));
    let mut body = Vec::new();
    let mut chunks = response.bytes_stream();
    while let Ok(Some(chunk)) = chunks.try_next().await {
        body.extend_from_slice(&chunk[..chunk.len().min(BODY_BYTES_MAX - body.len())]);
        if body.len() == BODY_BYTES_MAX {
            break;
        }
    }
    let body = String::from_utf8_lossy(&body);
    let json: Value = serde_json::from_str(&body).unwrap_or_default();
    let (kind, message) = match &json["error"] {
        // Some compatible servers say `{"error": "words"}`, some `{"message": …}`, some plain text.
        Value::String(words) => ("", words.as_str()),
        error @ Value::Object(_) => error_of(error),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
            ("", json["message"].as_str().unwrap_or(&body))
        }
    };
    let message = if message.is_empty() { status.as_str() } else { message };
    ModelError::of_response(Some(status), kind, message, after)
}

/// `Retry-After` in seconds. Its other form, a date, is not used by the providers and would need a common clock.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse::<f64>().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}
