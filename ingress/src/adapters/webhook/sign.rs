//! The signature of a webhook, both ways: `sha256=` and the hex HMAC-SHA256 of the raw body under the shared secret.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The header that carries it.
pub(crate) const SIGNATURE: &str = "x-talaria-signature";

/// The header's value for a body.
pub(crate) fn signature(secret: &str, body: &[u8]) -> String {
    format!("sha256={}", hex::encode(mac(secret, body).finalize().into_bytes()))
}

/// Whether a header's value is the signature of a body. Takes the same time for any wrong value of the right length.
pub(crate) fn is_signed(secret: &str, body: &[u8], value: &str) -> bool {
    let Some(digits) = value.trim().strip_prefix("sha256=") else { return false };
    let Ok(claimed) = hex::decode(digits) else { return false };
    mac(secret, body).verify_slice(&claimed).is_ok()
}

fn mac(secret: &str, body: &[u8]) -> Hmac<Sha256> {
    let mut mac =
        Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC takes keys of any length");
    mac.update(body);
    mac
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_signature() {
        // RFC 4231, test case 2.
        let digits = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        let body = b"what do ya want for nothing?";
        assert_eq!(signature("Jefe", body), format!("sha256={digits}"));
        assert!(is_signed("Jefe", body, &format!("sha256={digits}")));
        assert!(is_signed("Jefe", body, &format!("sha256={}", digits.to_uppercase())));
    }

    #[test]
    fn anything_else_is_refused() {
        let good = signature("secret", b"body");
        let wrong = [
            String::new(),
            "sha256=".into(),
            "sha256=zz".into(),
            good.replace("sha256=", ""),
            good.replace("sha256=", "sha1="),
            good[..good.len() - 2].into(),
            format!("{good}00"),
            signature("other", b"body"),
            signature("secret", b"body "),
        ];
        for value in wrong {
            assert!(!is_signed("secret", b"body", &value), "{value}");
        }
    }
}
