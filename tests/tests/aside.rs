//! A lease that cannot be read: the session waits, everyone else goes on, and nothing that was said to it is lost.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use async_nats::jetstream::kv::Store;
use futures_util::TryStreamExt;
use proto::member::Role;
use talaria_tests::{Setup, World};

const SERVICE: &str = env!("CARGO_BIN_EXE_service");

async fn leases(world: &World) -> Store {
    world.nats.jetstream().await.get_key_value("leases").await.unwrap()
}

/// The key of the only lease there is.
async fn key_of(store: &Store) -> String {
    let keys: Vec<String> = store.keys().await.unwrap().try_collect().await.unwrap();
    keys.into_iter().find(|key| !key.starts_with("checkpoint")).expect("a lease")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_for_a_broken_lease_waits_and_is_run_in_order_once_it_is_mended() {
    let world = World::new(Setup::default()).await;
    let mut scheduler = world.spawn(Role::Scheduler, SERVICE).await;
    let worker = world.run(Role::Worker).await;
    let ingress = world.start(Role::Ingress).await;
    let (chat, other) = (world.chat(ingress.address(), "c1"), world.chat(ingress.address(), "c2"));
    chat.say("before").await;
    chat.replies(1).await;
    let store = leases(&world).await;
    let key = key_of(&store).await;
    let good = store.get(&key).await.unwrap().unwrap();

    // The scheduler has it in memory, so another one takes over.
    scheduler.kill9().await;
    store.put(&key, "{\"broken\":".into()).await.unwrap();
    let mut scheduler = world.spawn(Role::Scheduler, SERVICE).await;
    for text in ["/queue one", "/queue two"] {
        let id = chat.say(text).await;
        assert!(chat.answered(&id).await.text("text").contains("Your message is kept"));
    }
    other.say("hello").await;
    assert_eq!(other.replies(1).await, ["you said: hello"]);
    // It is not forgotten with the process that noticed it; the checkpoint is written at a clean end.
    scheduler.terminate().await;
    let _scheduler = world.spawn(Role::Scheduler, SERVICE).await;
    let id = chat.say("/queue three").await;
    chat.answered(&id).await;
    assert_eq!(chat.got("reply").len(), 1, "nothing runs meanwhile");

    store.put(&key, good).await.unwrap();
    let expected = ["before", "one", "two", "three"].map(|text| format!("you said: {text}"));
    assert_eq!(chat.replies(4).await, expected);
    assert_eq!(world.model.calls().len(), 5, "each is run once");
    worker.stop().await;
    ingress.stop().await;
    world.model.assert_strict();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_lease_that_is_deleted_is_begun_anew_with_what_waited() {
    let world = World::new(Setup::default()).await;
    let mut scheduler = world.spawn(Role::Scheduler, SERVICE).await;
    let worker = world.run(Role::Worker).await;
    let ingress = world.start(Role::Ingress).await;
    let chat = world.chat(ingress.address(), "c1");
    chat.say("before").await;
    chat.replies(1).await;
    // A clean end: without its lease a session knows what it has seen from the checkpoint alone.
    scheduler.terminate().await;
    let store = leases(&world).await;
    let key = key_of(&store).await;
    store.put(&key, "no JSON".into()).await.unwrap();
    let _scheduler = world.spawn(Role::Scheduler, SERVICE).await;
    let id = chat.say("after").await;
    assert!(chat.answered(&id).await.text("text").contains("Your message is kept"));

    store.delete(&key).await.unwrap();
    assert_eq!(chat.replies(2).await, ["you said: before", "you said: after"]);
    worker.stop().await;
    ingress.stop().await;
}
