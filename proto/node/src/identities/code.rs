//! Pairing codes: six digits from the operating system's randomness, kept salted and hashed, compared in constant time.

use proto::identity::{HiddenCode, Request};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::process::random;

/// How many codes there are.
const CODES: u32 = 1_000_000;

/// A fresh code, each of the million as likely as any other.
pub(super) fn fresh() -> String {
    // What does not divide evenly is drawn again.
    const FAIR: u32 = u32::MAX - u32::MAX % CODES;
    loop {
        let drawn = u32::from_be_bytes(random());
        if drawn < FAIR {
            return format!("{:06}", drawn % CODES);
        }
    }
}

/// A code as it is stored, for one person on one platform.
pub(super) fn hidden(platform: &str, id: &str, code: &str) -> HiddenCode {
    let salt = hex::encode(random::<16>());
    let hash = hash(&salt, platform, id, code);
    HiddenCode { salt, hash }
}

/// Whether a request has this code.
pub(super) fn is_of(request: &Request, code: &str) -> bool {
    request.code.as_ref().is_some_and(|hidden| {
        let hash = hash(&hidden.salt, &request.platform, &request.id, code);
        hash.as_bytes().ct_eq(hidden.hash.as_bytes()).into()
    })
}

fn hash(salt: &str, platform: &str, id: &str, code: &str) -> String {
    let mut hash = Sha256::new();
    for part in [salt, platform, id, code] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    hex::encode(hash.finalize())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proto::event::Address;
    use proto::session::{ChatKind, SessionKey, SessionParts};

    use super::*;

    fn request(platform: &str, id: &str, code: Option<HiddenCode>) -> Request {
        let kind = ChatKind::Dm;
        let parts = SessionParts { platform, kind, chat: "c", thread: None, participant: None };
        Request {
            platform: platform.into(),
            id: id.into(),
            name: None,
            address: Address {
                platform: platform.into(),
                account: "a".into(),
                chat: "c".into(),
                kind,
                thread: None,
            },
            session: SessionKey::new(parts),
            asked_at_ms: 0,
            code,
        }
    }

    #[test]
    fn codes_are_six_digits_and_differ() {
        let codes: HashSet<String> = (0..200).map(|_| fresh()).collect();
        assert!(
            codes.iter().all(|code| code.len() == 6 && code.bytes().all(|b| b.is_ascii_digit()))
        );
        assert!(codes.len() > 190, "{} of 200 differ", codes.len());
    }

    #[test]
    fn a_code_is_bound_to_its_person_and_cannot_be_read_back() {
        let code = hidden("telegram", "7", "123456");
        let asked = request("telegram", "7", Some(code.clone()));
        assert!(is_of(&asked, "123456"));
        for wrong in ["123457", "12345", "", "0123456"] {
            assert!(!is_of(&asked, wrong), "{wrong:?}");
        }
        assert!(!is_of(&request("telegram", "8", Some(code.clone())), "123456"));
        assert!(!is_of(&request("signal", "7", Some(code.clone())), "123456"));
        assert!(!is_of(&request("telegram", "7", None), "123456"));
        assert!(!format!("{asked:?}").contains("123456"));
        assert_ne!(hidden("telegram", "7", "123456").hash, code.hash, "the salt differs");
    }
}
