//! Bytes to messages and back: JSON. Unknown fields are ignored and missing optional ones defaulted, so that two versions can
//! run side by side; a payload that still does not fit is poison, for its reader to count and set aside.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// A payload that is not a message of the expected kind.
#[derive(Debug, thiserror::Error)]
#[error("not a valid {what}")]
pub struct DecodeError {
    /// What was expected.
    pub what: &'static str,
    /// What is wrong with it, and where.
    #[source]
    pub source: serde_json::Error,
}

/// Encodes a message.
#[must_use]
pub fn encode<T: Serialize>(message: &T) -> Vec<u8> {
    serde_json::to_vec(message).expect("our messages have string keys and no failing serializers")
}

/// Decodes a message.
///
/// # Errors
/// When the payload is not JSON of the expected form.
pub fn decode<T: DeserializeOwned>(payload: &[u8]) -> Result<T, DecodeError> {
    serde_json::from_slice(payload).map_err(|source| DecodeError {
        what: std::any::type_name::<T>().rsplit("::").next().unwrap_or("message"),
        source,
    })
}
