//! The wire, frozen: one encoding of each kind of message, as a file that a person can read. A change here is a change of the
//! protocol, which two versions that run side by side must survive. `GOLDEN=write cargo test -p talaria-proto` writes them anew.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod samples;

use std::fmt::Debug;
use std::path::PathBuf;

use proto::codec;
use serde::Serialize;
use serde::de::DeserializeOwned;
use talaria_proto as proto;

/// Compares a message with its file: what is encoded today is what stands there, and what stands there is still understood.
#[track_caller]
fn frozen<T: Serialize + DeserializeOwned + PartialEq + Debug>(name: &str, message: &T) {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let file = folder.join(format!("{name}.json"));
    let encoded: serde_json::Value = codec::decode(&codec::encode(message)).unwrap();
    if std::env::var_os("GOLDEN").is_some() {
        std::fs::write(&file, format!("{encoded:#}\n")).unwrap();
    }
    let text = std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let golden: serde_json::Value = codec::decode(&text).unwrap();
    assert_eq!(encoded, golden, "{name} is encoded in another way than before");
    assert_eq!(&codec::decode::<T>(&text).unwrap(), message, "{name} is understood in another way");
}

#[test]
fn every_file_has_a_message() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let source = concat!(include_str!("samples/mod.rs"), include_str!("samples/jobs.rs"));
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        assert!(source.contains(&format!("\"{name}\"")), "{name}.json is no message's file");
    }
}

#[test]
fn an_unknown_field_is_passed_over_and_a_missing_optional_one_is_defaulted() {
    let text = br#"{"of":{"sid":"000000000000000000000000000000ab","turn":1,"attempt":1},"worker":"00000000000000cd","new":1}"#;
    let claim: proto::turn::Claim = codec::decode(text).unwrap();
    assert_eq!(claim, samples::claim());
    let text = br#"{"epoch":1,"kept":[],"lost":[]}"#;
    assert!(codec::decode::<proto::turn::BeatReply>(text).unwrap().controls.is_empty());
}

#[test]
fn poison_is_an_error_that_names_what_was_expected() {
    for poison in
        [&b""[..], b"null", b"{", b"[]", b"\xff", br#"{"message":{}}"#, br#"{"later":{}}"#]
    {
        let error = codec::decode::<proto::inbox::Inbox>(poison).unwrap_err();
        assert_eq!(error.to_string(), "not a valid Inbox");
    }
}
