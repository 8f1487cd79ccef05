//! Cases B09, B10 and B12: `/stop` frees a session whatever its worker does, and nothing of what it stopped is heard again.

use std::time::Duration;

use futures_util::future::join_all;
use proto::member::Role;
use talaria_tests::model::{Progress, Step};
use talaria_tests::{Setup, World};

const SERVICE: &str = env!("CARGO_BIN_EXE_service");

#[tokio::test(flavor = "multi_thread")]
async fn b09_a_worker_that_no_longer_listens_is_left_behind() {
    let world = World::new(Setup::default().set("scheduler.stop_deadline", "300ms")).await;
    let _scheduler = world.spawn(Role::Scheduler, SERVICE).await;
    let hung = world.spawn(Role::Worker, SERVICE).await;
    let ingress = world.spawn(Role::Ingress, SERVICE).await;
    let chat = world.chat(ingress.address(), "c1");
    world.model.on("first", [Step::Hold("one".into())]);
    chat.say("first").await;
    world.model.call("first", 1, Progress::Open).await;
    hung.pause();
    let _other = world.spawn(Role::Worker, SERVICE).await;
    let stop = chat.say("/stop").await;
    assert!(chat.answered(&stop).await.text("text").starts_with("Stopped"));
    let second = chat.say("second").await;
    assert_eq!(chat.reply_to(&second).await, "you said: second");

    // B12 too: what the stopped one still says is thrown away, and the next answer is not.
    world.model.release("first");
    hung.resume();
    let third = chat.say("third").await;
    assert_eq!(chat.reply_to(&third).await, "you said: third");
    assert_eq!(chat.replies(2).await.len(), 2);
    let call = world.model.call("third", 1, Progress::Done).await;
    let seen = serde_json::to_string(&call.messages).unwrap();
    assert!(!seen.contains("\"one\""), "a late result is not in the conversation: {seen}");
    world.model.assert_strict();
}

#[tokio::test(flavor = "multi_thread")]
async fn b09_stop_clears_what_waits_and_says_how_much() {
    let world = World::new(Setup::default()).await;
    let system = world.run_all().await;
    let chat = world.chat(system.door(), "c1");
    world.model.on("first", [Step::Hold("one".into())]);
    chat.say("first").await;
    world.model.call("first", 1, Progress::Open).await;
    for text in ["/queue b", "/queue c", "/queue d"] {
        chat.say(text).await;
    }
    let stop = chat.say("/stop").await;
    assert!(chat.answered(&stop).await.text("text").contains("3 queued messages were dropped"));
    let next = chat.say("next").await;
    assert_eq!(chat.reply_to(&next).await, "you said: next");
    assert_eq!(chat.replies(1).await, ["you said: next"]);
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b10_stop_at_any_moment_of_the_start_leaves_no_trace_of_the_turn() {
    let world = World::new(Setup::default()).await;
    let system = world.run_all().await;
    let runs = (0..20_u64).map(|step| {
        let (world, door) = (&world, system.door());
        async move {
            let chat = world.chat(door, &format!("c{step}"));
            world.model.on(&format!("first-{step}."), [Step::Hold("one".into())]);
            chat.say(&format!("first-{step}.")).await;
            // From at once until the model is being asked.
            tokio::time::sleep(Duration::from_millis(step)).await;
            let stop = chat.say("/stop").await;
            assert!(chat.answered(&stop).await.text("text").starts_with("Stopped"));
            let second = chat.say(&format!("second-{step}.")).await;
            assert_eq!(chat.reply_to(&second).await, format!("you said: second-{step}."));
            assert_eq!(chat.got("reply").len(), 1, "step {step}");
        }
    });
    join_all(runs).await;
    system.stop().await;
    world.model.assert_strict();
}

#[tokio::test(flavor = "multi_thread")]
async fn b10_an_order_that_arrives_after_the_stop_is_not_run() {
    let world = World::new(Setup::default()).await;
    let _scheduler = world.spawn(Role::Scheduler, SERVICE).await;
    let ingress = world.start(Role::Ingress).await;
    let mut frozen = world.spawn(Role::Worker, SERVICE).await;
    frozen.pause();
    let chat = world.chat(ingress.address(), "c1");
    chat.say("first").await;
    let stop = chat.say("/stop").await;
    assert!(chat.answered(&stop).await.text("text").starts_with("Stopped"));
    // The order is redelivered, since the one that may have it dies.
    frozen.kill9().await;
    let _other = world.spawn(Role::Worker, SERVICE).await;
    let second = chat.say("second").await;
    assert_eq!(chat.reply_to(&second).await, "you said: second");
    assert_eq!(world.model.count("first"), 0);
    assert_eq!(chat.got("reply").len(), 1);
    ingress.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b12_nothing_is_shown_of_a_stopped_turn_and_the_next_answer_is_not_swallowed() {
    let world = World::new(Setup::default()).await;
    let system = world.run_all().await;
    let runs = (0..10_u64).map(|step| {
        let (world, door) = (&world, system.door());
        async move {
            let chat = world.chat(door, &format!("c{step}"));
            let first = format!("first-{step}.");
            world.model.on(&first, [Step::Hold("one".into())]);
            chat.say(&first).await;
            world.model.call(&first, 1, Progress::Open).await;
            // The model ends at about the moment of the stop.
            let release = async {
                tokio::time::sleep(Duration::from_millis(step)).await;
                world.model.release(&first);
            };
            let ((), stop) = tokio::join!(release, chat.say("/stop"));
            let told = chat.answered(&stop).await;
            let second = chat.say(&format!("second-{step}.")).await;
            chat.reply_to(&second).await;
            let replies = chat.got("reply");
            let late = replies.iter().filter(|post| post.at > told.at);
            assert_eq!(late.count(), 1, "after the stop only the second is answered: {replies:?}");
        }
    });
    join_all(runs).await;
    system.stop().await;
    world.model.assert_strict();
}
