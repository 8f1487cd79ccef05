//! `talaria doctor` and `talaria status` as an operator runs them: with nothing running, and with the whole system.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Output, Stdio};

use node::Node;
use node::settings::Settings;
use serde_json::Value;
use talaria::nats_server::{Server, obtain};
use talaria::services::Running;
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

const TOOLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.talaria/tools");

#[tokio::test(flavor = "multi_thread")]
async fn what_works_what_is_weaker_and_what_is_broken_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let binary = obtain(Path::new(TOOLS)).await.unwrap();
    let server = Server::start(&binary, folder.path(), None).await.unwrap();

    let told = talaria(&server, folder.path(), &["doctor", "--json"]).await;
    assert_eq!(told.status.code(), Some(1), "{told:?}");
    assert_eq!(grade(&told, "streams"), "broken");
    assert!(mend(&told, "streams").contains("start a service once"), "{told:?}");

    let settings = Settings { nats: server.access(), ..Settings::default() };
    let model = worker::models::choose(&settings.model).unwrap();
    let node = Node::connect(settings, "test", CancellationToken::new()).await.unwrap();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let running = Running::start(&node, listener, model, Vec::new());
    node.health.ready().await;

    let told = talaria(&server, folder.path(), &["doctor", "--json"]).await;
    assert_eq!(told.status.code(), Some(2), "one broker is weaker than the promise: {told:?}");
    for check in ["broker", "clock", "streams", "ownership", "consumers", "canary", "model"] {
        assert_eq!(grade(&told, check), "fine", "{check}: {told:?}");
    }
    for check in ["limits", "replicas", "placement", "worker"] {
        assert_eq!(grade(&told, check), "weaker", "{check}: {told:?}");
        assert!(!mend(&told, check).is_empty(), "{check}");
    }
    assert_eq!(grade(&told, "sync"), "unknown");
    let passed = "stored, decided, claimed by a worker, ended, answered";
    assert!(found(&told, "canary").starts_with(passed), "{told:?}");

    let told = talaria(&server, folder.path(), &["status", "--json"]).await;
    let status: Value = serde_json::from_slice(&told.stdout).unwrap();
    assert_eq!(status["members"].as_array().unwrap().len(), 3, "{status:#}");
    assert_eq!((&status["unowned"], &status["turns_running"]), (&Value::Array(vec![]), &0.into()));
    assert_eq!(status["members"][1]["partitions"], 64, "{status:#}");

    running.drain().await.unwrap();
    let told = talaria(&server, folder.path(), &["doctor", "--json", "--no-canary"]).await;
    assert_eq!(told.status.code(), Some(1), "nobody is alive: {told:?}");
    for check in ["ingress", "scheduler", "worker", "ownership"] {
        assert_eq!(grade(&told, check), "broken", "{check}: {told:?}");
    }
    let told = talaria(&server, folder.path(), &["status"]).await;
    let text = String::from_utf8(told.stdout).unwrap();
    assert!(text.contains("nobody is alive\n\n0 of 64 partitions"), "{text}");
    server.stop().await;
}

fn finding(told: &Output, check: &str) -> Value {
    let object: Value = serde_json::from_slice(&told.stdout).unwrap();
    let findings = object["findings"].as_array().unwrap();
    let found = findings.iter().find(|finding| finding["check"] == check);
    found.unwrap_or_else(|| panic!("nothing on {check} in {object:#}")).clone()
}

fn grade(told: &Output, check: &str) -> String {
    finding(told, check)["grade"].as_str().unwrap().to_owned()
}

fn found(told: &Output, check: &str) -> String {
    finding(told, check)["found"].as_str().unwrap().to_owned()
}

fn mend(told: &Output, check: &str) -> String {
    finding(told, check)["mend"].as_str().unwrap_or_default().to_owned()
}

async fn talaria(server: &Server, folder: &Path, args: &[&str]) -> Output {
    let access = server.access();
    Command::new(env!("CARGO_BIN_EXE_talaria"))
        .args(args)
        .current_dir(folder)
        .env("TALARIA__NATS__URL", &access.url)
        .env("TALARIA__NATS__USER", &access.user)
        .env("TALARIA__NATS__PASSWORD", access.password.expose())
        .stdin(Stdio::null())
        .output()
        .await
        .unwrap()
}
