//! `talaria explain` as an operator runs it: the path of a message as text and as JSON, and a plain sentence when there is none.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::path::Path;
use std::process::{Output, Stdio};

use node::Node;
use node::settings::Settings;
use proto::codec;
use proto::id::{Attempt, ProcessId, Seq, TurnId};
use proto::receipt::{Decided, End, Fact, Fate, Receipt};
use proto::session::{ChatKind, SessionKey, SessionParts};
use proto::subject;
use proto::turn::Outcome;
use serde_json::Value;
use talaria::nats_server::{Server, obtain};
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

const TOOLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.talaria/tools");

#[tokio::test(flavor = "multi_thread")]
async fn the_path_of_a_message_is_told_and_of_an_unknown_one_nothing_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let binary = obtain(Path::new(TOOLS)).await.unwrap();
    let server = Server::start(&binary, folder.path(), None).await.unwrap();
    let settings = Settings { nats: server.access(), ..Settings::default() };
    let node = Node::connect(settings, "test", CancellationToken::new()).await.unwrap();
    record(&node).await;

    let told = explain(&server, folder.path(), &["m1"]).await;
    assert_eq!(told.status.code(), Some(0), "{told:?}");
    let text = String::from_utf8(told.stdout).unwrap();
    for part in ["started, since nothing ran", "attempt 1: run by worker", "it was answered"] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
    assert!(!text.contains("m2"), "{text}");

    let told = explain(&server, folder.path(), &["m1", "--json"]).await;
    let json: Value = serde_json::from_slice(&told.stdout).unwrap();
    assert_eq!(json["paths"][0]["fate"], "answered", "{json:#}");
    assert_eq!(json["paths"][0]["steps"].as_array().unwrap().len(), 4, "{json:#}");

    let told = explain(&server, folder.path(), &["unheard-of"]).await;
    assert_eq!(told.status.code(), Some(1), "{told:?}");
    let error = String::from_utf8(told.stderr).unwrap();
    assert!(error.contains("nothing is known of message \"unheard-of\""), "{error}");
    server.stop().await;
}

/// What a scheduler would have recorded: a message that was answered, and another one.
async fn record(node: &Node) {
    let parts = SessionParts {
        platform: "test",
        kind: ChatKind::Dm,
        chat: "c1",
        thread: None,
        participant: None,
    };
    let session = SessionKey::new(parts);
    let (turn, attempt) = (TurnId::new(1), Attempt::FIRST);
    let settled = |message: &str, fate, turn| Fact::Settled { message: message.into(), fate, turn };
    let facts = [
        Fact::Decided { seq: Seq::new(1), message: "m1".into(), decision: Decided::Started },
        Fact::Claimed { turn, attempt, worker: ProcessId::new(7) },
        Fact::Decided { seq: Seq::new(2), message: "m2".into(), decision: Decided::Done },
        settled("m2", Fate::Done, None),
        Fact::Ended { turn, attempt, end: End::Reported { outcome: Outcome::Completed } },
        settled("m1", Fate::Answered, Some(turn)),
    ];
    // Two writes of the lease, each with what it made true.
    for facts in [&facts[..4], &facts[4..]] {
        let subject = subject::event(session.sid());
        let receipt = Receipt { session: session.clone(), facts: facts.to_vec() };
        let receipt = codec::encode(&receipt);
        node.bus.stream().publish(subject, receipt.into()).await.unwrap().await.unwrap();
    }
}

async fn explain(server: &Server, folder: &Path, args: &[&str]) -> Output {
    let access = server.access();
    Command::new(env!("CARGO_BIN_EXE_talaria"))
        .arg("explain")
        .args(args)
        .args(["--nats", &access.url])
        .env("TALARIA__NATS__USER", &access.user)
        .env("TALARIA__NATS__PASSWORD", access.password.expose())
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .await
        .unwrap()
}
