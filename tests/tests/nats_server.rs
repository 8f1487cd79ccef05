//! The broker that tests and `cargo up` obtain and start: it keeps its data, its port and its secret, and leaves nothing behind.

use std::path::Path;

use async_nats::jetstream::stream::Config;
use talaria::data::kept_secret;
use talaria::nats_server::{Server, StartError, Version, obtain};
use talaria_tests::nats::{NatsServer, TOOLS};

#[tokio::test]
async fn a_killed_server_comes_back_with_its_data_on_its_port() {
    let mut nats = NatsServer::start().await;
    let url = nats.access().url.clone();
    let context = nats.jetstream().await;
    let stream = Config { name: "S".into(), subjects: vec!["s".into()], ..Config::default() };
    context.create_stream(stream).await.unwrap();
    context.publish("s", "kept".into()).await.unwrap().await.unwrap();

    nats.kill().await;
    nats.restart().await;

    assert_eq!(nats.access().url, url);
    assert_eq!(nats.count("S").await, Some(1));
}

#[tokio::test]
async fn without_the_secret_nobody_gets_in() {
    let nats = NatsServer::start().await;
    let error = async_nats::connect(&nats.access().url).await.unwrap_err();
    assert_eq!(error.kind(), async_nats::ConnectErrorKind::AuthorizationViolation);
}

#[tokio::test]
async fn a_server_that_lost_its_parent_is_stopped_by_the_next_one() {
    let binary = obtain(Path::new(TOOLS)).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let orphan = Server::start(&binary, folder.path(), None).await.unwrap();
    let port = orphan.port();
    let first = orphan.connect().await.unwrap().server_info().server_id;

    // The first one still holds the store; two servers on one would ruin it.
    let heir = Server::start(&binary, folder.path(), Some(port)).await.unwrap();

    assert_ne!(first, heir.connect().await.unwrap().server_info().server_id);
    heir.stop().await;
    drop(orphan);
}

#[tokio::test]
async fn a_server_that_cannot_start_says_why() {
    let binary = obtain(Path::new(TOOLS)).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let error = Server::start(&binary, folder.path(), Some(port)).await.unwrap_err();
    assert!(matches!(error, StartError::Ended { .. }), "{error}");
    assert!(error.to_string().contains("address already in use"), "{error}");
}

#[tokio::test]
async fn many_can_obtain_one_at_the_same_time() {
    let folder = tempfile::tempdir().unwrap();
    let all = futures_util::future::join_all((0..4).map(|_| obtain(folder.path()))).await;
    for binary in all {
        let binary = binary.unwrap();
        assert!(binary.version >= Version::OLDEST);
        assert_eq!(Version::of(&binary.path).await.unwrap(), binary.version);
    }
}

#[test]
fn a_secret_is_made_once() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("secret");
    assert_eq!(kept_secret(&file).unwrap(), kept_secret(&file).unwrap());
}
