//! `talaria explain`: the path of a message is found in the receipts, also of one that was queued, merged, stopped or retried.

use node::bus::Bus;
use proto::member::Role;
use proto::receipt::{Fact, Fate};
use talaria::explain::{Path, paths};
use talaria_tests::model::{Progress, Step};
use talaria_tests::wait::eventually;
use talaria_tests::{Setup, World};

const SERVICE: &str = env!("CARGO_BIN_EXE_service");

/// The one path of a message, once it has an end: receipts are best effort, and may be a moment behind.
async fn path(world: &World, id: &str) -> Path {
    let bus = Bus::connect(&world.settings().nats, "test").await.expect("the broker answers");
    eventually(&format!("an end of {id}"), || async {
        let mut found = paths(&bus, id).await.ok()?;
        (found.len() == 1 && found[0].fate.is_some()).then(|| found.remove(0))
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_paths_of_answered_queued_stopped_and_refused_messages_are_told() {
    let world = World::new(Setup::default().set("scheduler.queue_limit", 1)).await;
    let system = world.run_all().await;
    let chat = world.chat(system.door(), "c1");
    world.model.on("first", [Step::Hold("one".into())]);
    let first = chat.say("first").await;
    world.model.call("first", 1, Progress::Open).await;
    let queued = chat.say("/queue second").await;
    let refused = chat.say("/queue third").await;
    world.model.release("first");
    chat.replies(2).await;

    let told = path(&world, &first).await;
    assert_eq!((told.fate, told.turns.len()), (Some(Fate::Answered), 1));
    assert!(told.steps.iter().any(|step| matches!(step.fact, Fact::Claimed { .. })), "{told}");
    let text = told.to_string();
    assert!(text.contains("started, since nothing ran") && text.contains("completed"), "{text}");
    let told = path(&world, &queued).await;
    assert!(told.to_string().contains("queued"), "{told}");
    assert_eq!(told.fate, Some(Fate::Answered));
    let told = path(&world, &refused).await;
    assert_eq!((told.fate, told.turns.len()), (Some(Fate::Refused), 0), "{told}");
    let bus = Bus::connect(&world.settings().nats, "test").await.unwrap();
    assert!(paths(&bus, "never heard of").await.unwrap().is_empty());
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_path_of_a_retried_message_names_both_attempts() {
    let world = World::new(Setup::default()).await;
    let _scheduler = world.spawn(Role::Scheduler, SERVICE).await;
    let mut first = world.spawn(Role::Worker, SERVICE).await;
    let ingress = world.spawn(Role::Ingress, SERVICE).await;
    let chat = world.chat(ingress.address(), "c1");
    world.model.on("work", [Step::Hold("working".into())]);
    let id = chat.say("work").await;
    world.model.call("work", 1, Progress::Open).await;
    let _second = world.spawn(Role::Worker, SERVICE).await;
    first.kill9().await;
    world.model.call("work", 2, Progress::Open).await;
    world.model.release("work");
    chat.replies(1).await;

    let text = path(&world, &id).await.to_string();
    assert!(text.contains("attempt 2 follows") && text.contains("attempt 2: completed"), "{text}");
}
