//! A request that is not carried out, and how its sender is told.

use axum::Json;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::door::BodyError;
use crate::metrics::Arrival;
use crate::publish::{AcceptError, RETRY_AFTER};

/// Why a request is not carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) status: StatusCode,
    pub(crate) error: String,
    /// Which field is wrong.
    pub(crate) place: Option<String>,
}

impl Problem {
    /// A problem with the request as a whole.
    pub(crate) fn new(status: StatusCode, error: impl Into<String>) -> Self {
        Self { status, error: error.into(), place: None }
    }

    /// A field that is not as it should be.
    pub(crate) fn invalid(place: String, what: &str) -> Self {
        let error = format!("{place}: {what}");
        Self { status: StatusCode::UNPROCESSABLE_ENTITY, error, place: Some(place) }
    }

    /// How it is counted.
    pub(crate) fn arrival(&self) -> Arrival {
        match self.status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::NOT_FOUND => {
                Arrival::Refused
            }
            StatusCode::SERVICE_UNAVAILABLE => Arrival::Unavailable,
            _ => Arrival::Invalid,
        }
    }
}

impl From<BodyError> for Problem {
    fn from(error: BodyError) -> Self {
        Self::new(error.status(), error.to_string())
    }
}

impl From<AcceptError> for Problem {
    fn from(error: AcceptError) -> Self {
        let status = match error {
            AcceptError::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            AcceptError::NotAllowed => StatusCode::FORBIDDEN,
            AcceptError::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self::new(status, error.to_string())
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = match self.arrival() {
            Arrival::Refused => "refused",
            Arrival::Unavailable => "unavailable",
            Arrival::Accepted | Arrival::Duplicate | Arrival::Invalid => "invalid",
        };
        let mut body = json!({ "status": status, "error": self.error });
        if let Some(place) = self.place {
            body["where"] = place.into();
        }
        let mut response = (self.status, Json(body)).into_response();
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, RETRY_AFTER.as_secs().into());
        }
        response
    }
}
