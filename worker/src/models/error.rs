//! Why a model call fails, whether it is worth another try, and how a person is told.

use std::time::Duration;

use reqwest::StatusCode;

/// The most of a provider's own message that is shown.
const MESSAGE_BYTES_MAX: usize = 300;

/// A model call that gave no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// The key is missing, wrong, or not allowed to use this model.
    #[error("the provider refused the key: {message}")]
    Auth {
        /// What the provider said.
        message: String,
    },
    /// The account has used up what it may use.
    #[error("rate limit or quota reached")]
    Quota {
        /// When the provider said to come back.
        retry_after: Option<Duration>,
    },
    /// The provider has trouble.
    #[error("the provider is overloaded or out of order")]
    Overloaded {
        /// When the provider said to come back.
        retry_after: Option<Duration>,
    },
    /// The conversation is longer than the model takes.
    #[error("the conversation is too long for the model")]
    ContextTooLong,
    /// The provider will not answer this.
    #[error("the provider refused the request: {message}")]
    BadRequest {
        /// What the provider said.
        message: String,
    },
    /// The model will not answer this.
    #[error("the model declined to answer")]
    Declined,
    /// The provider could not be reached, or the connection was cut.
    #[error("no connection to the provider: {message}")]
    Network {
        /// What went wrong.
        message: String,
    },
    /// Nothing came for too long.
    #[error("the provider sent nothing for {} s", after.as_secs())]
    Stalled {
        /// For how long.
        after: Duration,
    },
    /// It answered with neither words nor calls.
    #[error("the model answered with nothing")]
    Empty,
}

impl ModelError {
    /// The names of the kinds, for counting.
    pub(crate) const LABELS: [&'static str; 9] = [
        "auth",
        "quota",
        "overloaded",
        "context_too_long",
        "bad_request",
        "declined",
        "network",
        "stalled",
        "empty",
    ];

    /// Its kind's name.
    pub(crate) const fn label(&self) -> &'static str {
        let index = match self {
            Self::Auth { .. } => 0,
            Self::Quota { .. } => 1,
            Self::Overloaded { .. } => 2,
            Self::ContextTooLong => 3,
            Self::BadRequest { .. } => 4,
            Self::Declined => 5,
            Self::Network { .. } => 6,
            Self::Stalled { .. } => 7,
            Self::Empty => 8,
        };
        Self::LABELS[index]
    }

    /// How long to wait before trying again, given how often it was tried; none if another try cannot help.
    pub(crate) const fn pause(&self, tries: u32) -> Option<Duration> {
        let backoff = Duration::from_millis(500 * (1 << if tries > 6 { 6 } else { tries }));
        match self {
            Self::Quota { retry_after } | Self::Overloaded { retry_after } => match retry_after {
                Some(after) => Some(*after),
                None => Some(backoff),
            },
            Self::Network { .. } | Self::Stalled { .. } | Self::Empty => Some(backoff),
            Self::Auth { .. } | Self::ContextTooLong | Self::BadRequest { .. } | Self::Declined => {
                None
            }
        }
    }

    /// What a person reads: what happened, and what can be done.
    pub(crate) fn for_people(&self) -> String {
        match self {
            Self::Auth { .. } => {
                "I cannot answer: the model provider refused my key. Whoever runs this system should check the API key \
                 and that it may use this model."
                    .into()
            }
            Self::Quota { .. } => {
                "I cannot answer now: the model provider's rate limit or quota is used up. Try again in a few minutes, \
                 or raise the limit at the provider."
                    .into()
            }
            Self::Overloaded { .. } => {
                "I cannot answer now: the model provider is overloaded or out of order. Try again in a few minutes.".into()
            }
            Self::ContextTooLong => {
                "This conversation has become too long for the model. Send /new to begin a fresh one.".into()
            }
            Self::BadRequest { message } => format!(
                "The model provider refused my request: {message}. Send /new to begin a fresh conversation, or ask \
                 whoever runs this system to check the model's name and settings."
            ),
            Self::Declined => "The model declined to answer this. Try to put it differently.".into(),
            Self::Network { .. } => {
                "I cannot reach the model provider. Try again in a moment; if it goes on, whoever runs this system \
                 should check the network and the provider's address."
                    .into()
            }
            Self::Stalled { after } => format!(
                "The model provider stopped sending for {} seconds, more than once. Try again in a moment.",
                after.as_secs()
            ),
            Self::Empty => "The model gave an empty answer, more than once. Try to put it differently.".into(),
        }
    }

    /// Reads the status and the body of a refusal. `kind` is the provider's own name of the error, if it gave one.
    pub(crate) fn of_response(
        status: Option<StatusCode>,
        kind: &str,
        message: &str,
        retry_after: Option<Duration>,
    ) -> Self {
        let said = message.to_ascii_lowercase();
        let too_long =
            ["context length", "context_length", "prompt is too long", "too many tokens"];
        if kind == "context_length_exceeded" || too_long.iter().any(|words| said.contains(words)) {
            return Self::ContextTooLong;
        }
        let message = crate::text::start(message.trim().trim_end_matches('.'), MESSAGE_BYTES_MAX);
        let message = message.to_owned();
        match (kind, status.map(|status| status.as_u16())) {
            ("authentication_error" | "permission_error" | "invalid_api_key", _)
            | (_, Some(401 | 403)) => Self::Auth { message },
            ("insufficient_quota" | "rate_limit_error" | "rate_limit_exceeded", _)
            | (_, Some(402 | 429)) => Self::Quota { retry_after },
            ("overloaded_error" | "api_error" | "server_error" | "timeout_error", _)
            | (_, Some(408 | 500..)) => Self::Overloaded { retry_after },
            (_, Some(413)) => Self::ContextTooLong,
            _ => Self::BadRequest { message },
        }
    }
}

impl From<reqwest::Error> for ModelError {
    fn from(error: reqwest::Error) -> Self {
        // The address may hold a key; the cause says what went wrong.
        let error = error.without_url();
        let cause = std::error::Error::source(&error).map_or_else(String::new, ToString::to_string);
        Self::Network { message: format!("{error} {cause}").trim().to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_told_apart() {
        let of = |status, kind: &str, message: &str| {
            let status = StatusCode::from_u16(status).ok();
            ModelError::of_response(status, kind, message, None).label()
        };
        for (status, kind, message, expected) in [
            (401, "", "bad key", "auth"),
            (400, "invalid_api_key", "bad key", "auth"),
            (429, "rate_limit_error", "slow down", "quota"),
            (429, "insufficient_quota", "pay", "quota"),
            (529, "overloaded_error", "busy", "overloaded"),
            (503, "", "", "overloaded"),
            (400, "context_length_exceeded", "", "context_too_long"),
            (400, "invalid_request_error", "prompt is too long: 9 > 8", "context_too_long"),
            (400, "invalid_request_error", "no such field", "bad_request"),
            (404, "not_found_error", "no such model", "bad_request"),
        ] {
            assert_eq!(of(status, kind, message), expected, "{status} {kind} {message}");
        }
    }

    #[test]
    fn only_what_may_pass_is_tried_again() {
        let after = Some(Duration::from_secs(7));
        assert_eq!(ModelError::Quota { retry_after: after }.pause(0), after);
        assert_eq!(ModelError::Empty.pause(1), Some(Duration::from_secs(1)));
        assert_eq!(ModelError::ContextTooLong.pause(0), None);
    }
}
