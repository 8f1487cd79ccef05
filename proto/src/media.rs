//! Files of platforms, by reference: an event names one, and whoever needs it asks the account that can fetch it, piece by piece.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::id::IdError;
use crate::subject;

/// What every reference begins with.
const SCHEME: &str = "media:";

/// The largest piece of a file in one answer, in bytes: well below what a broker takes, also as base64.
pub const PIECE_MAX: usize = 512 * 1024;

/// A file on a platform, as the `url` of a [`Media`](crate::event::Media): `media:<platform>/<account>/<what the adapter needs>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediaRef {
    /// The platform.
    pub platform: String,
    /// The account that can fetch it.
    pub account: String,
    /// What the adapter needs for that.
    pub reference: String,
}

impl fmt::Display for MediaRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (platform, account) = (subject::token(&self.platform), subject::token(&self.account));
        write!(f, "{SCHEME}{platform}/{account}/{}", self.reference)
    }
}

impl FromStr for MediaRef {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let parts = text.strip_prefix(SCHEME).map(|rest| rest.splitn(3, '/'));
        let mut parts = parts.into_iter().flatten();
        let mut name = || subject::name_of(parts.next()?);
        match (name(), name()) {
            (Some(platform), Some(account)) => {
                let reference = parts.next().filter(|reference| !reference.is_empty());
                reference.map(|reference| Self { platform, account, reference: reference.into() })
            }
            _ => None,
        }
        .ok_or_else(|| IdError { what: "media reference", text: text.to_owned() })
    }
}

/// Asks for a piece of a file (`media.<platform>.<account>`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    /// Which file.
    pub reference: String,
    /// Where the piece begins, in bytes.
    pub offset: u64,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// A piece.
    Piece {
        /// The bytes from `offset` on, at most [`PIECE_MAX`] of them, as base64.
        data: String,
        /// How large the whole file is, bytes.
        total: u64,
        /// Its MIME type, when the platform says so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mime: Option<String>,
    },
    /// It cannot be had.
    Refused {
        /// Why.
        why: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_comes_back_as_it_went() {
        let reference = MediaRef {
            platform: "telegram".into(),
            account: "my bot/1".into(),
            reference: "AgAD/x:y".into(),
        };
        let text = reference.to_string();
        assert!(text.starts_with("media:telegram/"), "{text}");
        assert_eq!(text.parse(), Ok(reference));
        for wrong in ["", "media:", "media:a/b", "media:a/b/", "https://a/b/c", "media:a=/b/c"] {
            assert!(wrong.parse::<MediaRef>().is_err(), "{wrong}");
        }
    }
}
