//! Access to the chat page and the API: whoever has the token. Compared in constant time, never shown.

use axum::http::{HeaderMap, header};
use node::settings::Secret;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// How long a browser remembers that it was let in, in seconds.
const COOKIE_AGE: u32 = 30 * 24 * 3600;

/// The token, as hashes: comparing those takes the same time for any guess, of any length.
#[derive(Clone)]
pub(crate) struct Access {
    token: [u8; 32],
    /// What the cookie says: derived from the token, so that a stolen cookie is not the API's bearer token.
    cookie: String,
    /// Cookies do not know ports: two systems on one host must not overwrite each other's.
    cookie_name: String,
}

impl Access {
    /// None if there is no token, and so no access at all.
    pub(crate) fn new(token: &Secret) -> Option<Self> {
        let token = token.given()?;
        let cookie = hex::encode(hash(&["cookie", token]));
        let cookie_name = format!("talaria_{}", &hex::encode(hash(&["name", token]))[..8]);
        Some(Self { token: hash(&[token]), cookie, cookie_name })
    }

    /// Whether this is the token.
    pub(crate) fn is_token(&self, guess: &str) -> bool {
        hash(&[guess]).ct_eq(&self.token).into()
    }

    /// Whether the request has `Authorization: Bearer <token>`.
    pub(crate) fn has_bearer(&self, headers: &HeaderMap) -> bool {
        let value = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let split = value.and_then(|value| value.split_once(' '));
        split.is_some_and(|(scheme, token)| {
            scheme.eq_ignore_ascii_case("bearer") && self.is_token(token.trim())
        })
    }

    /// Whether the request has our cookie.
    pub(crate) fn has_cookie(&self, headers: &HeaderMap) -> bool {
        let expected = hash(&[&self.cookie]);
        headers
            .get_all(header::COOKIE)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(';'))
            .filter_map(|pair| pair.trim().split_once('='))
            .any(|(name, value)| name == self.cookie_name && hash(&[value]).ct_eq(&expected).into())
    }

    /// The header that lets a browser in: readable by no script, sent from no other site.
    pub(crate) fn set_cookie(&self, headers: &HeaderMap) -> String {
        let secure = headers.get("x-forwarded-proto").is_some_and(|proto| proto == "https");
        format!(
            "{}={}; Path=/; HttpOnly; SameSite=Strict; Max-Age={COOKIE_AGE}{}",
            self.cookie_name,
            self.cookie,
            if secure { "; Secure" } else { "" }
        )
    }
}

fn hash(parts: &[&str]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access() -> Access {
        Access::new(&Secret::new("s3cret".into())).unwrap()
    }

    fn headers(name: header::HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, value.parse().unwrap())])
    }

    #[test]
    fn without_a_token_nobody_is_let_in() {
        assert!(Access::new(&Secret::default()).is_none());
    }

    #[test]
    fn only_the_token_is_the_token() {
        let access = access();
        assert!(access.has_bearer(&headers(header::AUTHORIZATION, "Bearer s3cret")));
        assert!(access.has_bearer(&headers(header::AUTHORIZATION, "bearer s3cret")));
        for wrong in ["Bearer s3cre", "Bearer s3cret2", "Bearer ", "Basic s3cret", "s3cret"] {
            assert!(!access.has_bearer(&headers(header::AUTHORIZATION, wrong)), "{wrong}");
        }
        assert!(!access.has_bearer(&HeaderMap::new()));
    }

    #[test]
    fn the_cookie_that_is_set_lets_in_and_is_not_the_token() {
        let access = access();
        let set = access.set_cookie(&HeaderMap::new());
        assert!(!set.contains("s3cret"));
        let pair = set.split(';').next().unwrap();
        assert!(access.has_cookie(&headers(header::COOKIE, &format!("other=1; {pair}"))));
        assert!(!access.has_cookie(&headers(header::COOKIE, "other=1")));
        assert!(!access.has_cookie(&headers(header::COOKIE, &format!("{pair}0"))));
    }
}
