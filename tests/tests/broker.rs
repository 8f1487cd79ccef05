//! A broker in trouble: back-pressure reaches the platform, readiness says it, and everything goes on by itself afterwards
//! (case B17).

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use proto::member::Role;
use reqwest::StatusCode;
use talaria_tests::process::Place;
use talaria_tests::proxy::{Line, Proxy};
use talaria_tests::wait::eventually;
use talaria_tests::webhook::WebhookClient;
use talaria_tests::{Process, Setup, World};

const SERVICE: &str = env!("CARGO_BIN_EXE_service");

async fn readiness(process: &Process) -> (StatusCode, String) {
    let url = format!("http://{}/readyz", process.address());
    let answer = talaria_tests::http::client().get(url).send().await.unwrap();
    (answer.status(), answer.text().await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_broker_is_said_by_readiness_and_to_the_platform_and_is_found_again() {
    let world = World::new(Setup::default().set("scheduler.lease_ttl", "20s")).await;
    let mut lines = Vec::new();
    let mut all = Vec::new();
    for role in [Role::Scheduler, Role::Worker, Role::Ingress] {
        let line = Proxy::start(world.nats.address()).await;
        let place = Place { nats: Some(line.address()), ..Place::default() };
        all.push(world.spawn_at(role, SERVICE, &place));
        lines.push(line);
    }
    for process in &mut all {
        process.ready().await;
    }
    let door = all[2].address();
    let chat = world.chat(door, "c1");
    chat.say("before").await;
    chat.replies(1).await;

    for cut in [Line::Cut, Line::Frozen] {
        lines.iter().for_each(|line| line.be(cut));
        let refused = WebhookClient::new(door).message("refused", "c1", "/queue meanwhile").await;
        assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE, "{cut:?}: {}", refused.body);
        if cut == Line::Cut {
            for process in &all {
                eventually("it says that it is not ready", || async {
                    let (status, why) = readiness(process).await;
                    (status == StatusCode::SERVICE_UNAVAILABLE && !why.is_empty()).then_some(())
                })
                .await;
            }
        }
        lines.iter().for_each(|line| line.be(Line::Fine));
        for process in &mut all {
            process.ready().await;
        }
    }
    // The platform sends it again under the same id, and it is run once, whether or not it had been stored.
    let again = WebhookClient::new(door).message("refused", "c1", "/queue meanwhile").await;
    assert!(again.status.is_success(), "{}", again.body);
    chat.say("/queue after").await;
    let expected = ["before", "meanwhile", "after"].map(|text| format!("you said: {text}"));
    assert_eq!(chat.replies(3).await, expected);
    assert_eq!(world.model.calls().len(), 3, "each is run once");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_store_refuses_and_is_used_again_when_there_is_room() {
    let world = World::new(Setup::default()).await;
    let system = world.run_all().await;
    let chat = world.chat(system.door(), "c1");
    chat.say("before").await;
    chat.replies(1).await;
    let jetstream = world.nats.jetstream().await;
    let stream = jetstream.get_stream("INBOX").await.unwrap();
    let roomy = stream.get_info().await.unwrap().config;
    let messages = i64::try_from(stream.get_info().await.unwrap().state.messages).unwrap();
    let full = async_nats::jetstream::stream::Config { max_messages: messages, ..roomy.clone() };
    jetstream.update_stream(full).await.unwrap();

    let client = WebhookClient::new(system.door());
    let refused = client.message("m1", "c1", "is there room?").await;
    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE, "{}", refused.body);

    jetstream.update_stream(roomy).await.unwrap();
    let taken = client.message("m1", "c1", "is there room?").await;
    assert_eq!(taken.status, StatusCode::ACCEPTED, "{}", taken.body);
    assert_eq!(chat.replies(2).await, ["you said: before", "you said: is there room?"]);
    system.stop().await;
}
