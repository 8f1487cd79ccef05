//! Cases B01 to B05: messages that come while a turn runs, ends or is resumed are answered once each, in order.

use std::time::Duration;

use futures_util::future::join_all;
use proto::member::Role;
use serde_json::json;
use talaria_tests::model::{Progress, Step};
use talaria_tests::{Setup, World};

const SERVICE: &str = env!("CARGO_BIN_EXE_service");

#[tokio::test(flavor = "multi_thread")]
async fn b01_a_message_at_the_very_end_of_a_turn_is_answered_once() {
    let world = World::new(Setup::default()).await;
    let system = world.run_all().await;
    // The second message comes from 10 ms before the first one's model is done until 10 ms after.
    let runs = (0..21_u64).map(|step| {
        let (world, door) = (&world, system.door());
        async move {
            let chat = world.chat(door, &format!("c{step}"));
            let first = format!("first-{step}.");
            world.model.on(&first, [Step::Hold("one".into())]);
            chat.say(&first).await;
            world.model.call(&first, 1, Progress::Open).await;
            let release = async {
                tokio::time::sleep(Duration::from_millis(10)).await;
                world.model.release(&first);
            };
            let say = async {
                tokio::time::sleep(Duration::from_millis(step)).await;
                chat.say(&format!("second-{step}.")).await
            };
            let ((), second) = tokio::join!(release, say);
            assert_eq!(chat.reply_to(&second).await, format!("you said: second-{step}."));
            (step, chat)
        }
    });
    let chats = join_all(runs).await;
    for (step, chat) in chats {
        assert_eq!(world.model.count(&format!("second-{step}.")), 1, "step {step}");
        let replies: Vec<_> =
            chat.got("reply").iter().map(|post| post.text("text").to_owned()).collect();
        let second = format!("you said: second-{step}.");
        assert_eq!(replies.last(), Some(&second), "step {step}");
        assert!(replies.len() == 1 || replies == ["one".to_owned(), second], "{replies:?}");
    }
    system.stop().await;
    world.model.assert_strict();
}

#[tokio::test(flavor = "multi_thread")]
async fn b02_follow_ups_in_queue_mode_keep_a_turn_each_in_order() {
    let setup = Setup::default().set("agent.busy_mode", "queue").set("scheduler.queue_limit", 4);
    let world = World::new(setup).await;
    let system = world.run_all().await;
    let chat = world.chat(system.door(), "c1");
    world.model.on("long job", [Step::Hold("one".into())]);
    chat.say("long job").await;
    world.model.call("long job", 1, Progress::Open).await;
    chat.say("what is 2+2").await;
    chat.say("what is 3+3").await;
    let voice =
        json!([{ "url": "http://127.0.0.1:1/voice.ogg", "kind": "voice", "mime": "audio/ogg" }]);
    let fourth = chat.send(json!({ "text": "hear this", "media": voice })).await;
    let fifth = chat.send(json!({ "text": "and this", "media": voice })).await;
    let refused = chat.say("one too many").await;
    assert!(chat.answered(&refused).await.text("text").contains("Not taken"));
    world.model.release("long job");

    chat.replies(5).await;
    let answered: Vec<_> =
        chat.got("reply").iter().map(|post| post.text("reply_to").to_owned()).collect();
    assert_eq!(answered, ["c1-1", "c1-2", "c1-3", fourth.as_str(), fifth.as_str()]);
    assert_eq!(world.model.count("one too many"), 0);
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b03_a_message_right_after_the_reply_needs_no_third_one_to_be_answered() {
    const ROUNDS: usize = 12;
    let world = World::new(Setup::default()).await;
    let system = world.run_all().await;
    let chats = (0..8_u64).map(|number| {
        let (world, door) = (&world, system.door());
        async move {
            let chat = world.chat(door, &format!("c{number}"));
            for round in 1..=ROUNDS {
                chat.say(&format!("round {round}")).await;
                chat.replies(round).await;
                // Up to 4 ms later, in steps, as the next round is said.
                tokio::time::sleep(Duration::from_micros(number * 500)).await;
            }
        }
    });
    join_all(chats).await;
    assert_eq!(world.model.calls().len(), 8 * ROUNDS, "each is run once");
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b03_also_when_the_scheduler_is_replaced_between_reply_and_message() {
    let world = World::new(Setup::default().set("scheduler.lease_ttl", "20s")).await;
    let mut scheduler = world.spawn(Role::Scheduler, SERVICE).await;
    let _worker = world.spawn(Role::Worker, SERVICE).await;
    let ingress = world.spawn(Role::Ingress, SERVICE).await;
    let chat = world.chat(ingress.address(), "c1");
    chat.say("a").await;
    chat.replies(1).await;
    scheduler.kill9().await;
    chat.say("b").await;
    let _next = world.spawn(Role::Scheduler, SERVICE).await;
    assert_eq!(chat.replies(2).await, ["you said: a", "you said: b"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn b04_a_hint_during_the_last_answer_is_another_step_or_the_next_turn() {
    let world = World::new(Setup::default().set("agent.busy_mode", "steer")).await;
    let system = world.run_all().await;
    let chat = world.chat(system.door(), "c1");
    world.model.on("tell me", [Step::Hold("once upon a time".into())]);
    chat.say("tell me").await;
    world.model.call("tell me", 1, Progress::Open).await;
    chat.say("in French").await;
    assert!(chat.ack(1).await.contains("Passed on"));
    world.model.release("tell me");

    world.model.call("in French", 1, Progress::Done).await;
    system.stop().await;
    assert_eq!(world.model.count("in French"), 1);
    world.model.assert_strict();
}

#[tokio::test(flavor = "multi_thread")]
async fn b04_a_hint_between_tools_is_seen_before_the_next_one() {
    let world = World::new(Setup::default()).await;
    let system = world.run_all().await;
    let chat = world.chat(system.door(), "c1");
    let wait = "touch one; until test -e go; do read -t 0.02 x < /dev/null || true; done";
    let steps = [Step::terminal(wait), Step::terminal("touch two"), Step::Say("ran both".into())];
    world.model.on("run", steps);
    world.model.on("skip the rest", [Step::Say("skipped".into())]);
    chat.say("run").await;
    world.file("one").await;
    chat.say("/steer skip the rest").await;
    chat.ack(1).await;
    std::fs::write(world.workspace().join("go"), "").unwrap();

    chat.replies(1).await;
    assert!(chat.ack(2).await.contains("has seen"), "the receipt");
    assert!(world.model.count("skip the rest") >= 1);
    system.stop().await;
    world.model.assert_strict();
}

#[tokio::test(flavor = "multi_thread")]
async fn b04_a_hint_after_the_final_words_is_the_next_turn() {
    let world = World::new(Setup::default()).await;
    let system = world.run_all().await;
    let chats = (0..10_u64).map(|number| {
        let (world, door) = (&world, system.door());
        async move {
            let chat = world.chat(door, &format!("c{number}"));
            let hint = chat.say(&format!("tell-{number}.")).await;
            chat.answered(&hint).await;
            let hint = chat.say(&format!("/steer hint-{number}.")).await;
            chat.answered(&hint).await;
            world.model.call(&format!("hint-{number}."), 1, Progress::Done).await;
        }
    });
    join_all(chats).await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b05_a_message_that_meets_a_resumed_turn_makes_no_second_agent() {
    let world = World::new(Setup::default()).await;
    let mut scheduler = world.spawn(Role::Scheduler, SERVICE).await;
    let mut worker = world.spawn(Role::Worker, SERVICE).await;
    let ingress = world.spawn(Role::Ingress, SERVICE).await;
    let chats: Vec<_> =
        (0..6_u64).map(|n| (n, world.chat(ingress.address(), &format!("c{n}")))).collect();
    world.model.on("first", [Step::Hold("one".into())]);
    for (number, chat) in &chats {
        chat.say(&format!("first-{number}.")).await;
        world.model.call(&format!("first-{number}."), 1, Progress::Open).await;
    }
    worker.kill9().await;
    scheduler.kill9().await;
    let restart = async {
        tokio::join!(world.spawn(Role::Scheduler, SERVICE), world.spawn(Role::Worker, SERVICE))
    };
    let say = join_all(chats.iter().map(|(number, chat)| async move {
        tokio::time::sleep(Duration::from_millis(number * 60)).await;
        chat.say(&format!("/queue second-{number}.")).await
    }));
    let (_services, _) = tokio::join!(restart, say);
    for (number, _) in &chats {
        world.model.call(&format!("first-{number}."), 2, Progress::Open).await;
    }
    world.model.release("first");
    for (number, chat) in &chats {
        assert_eq!(
            chat.replies(2).await,
            ["one".to_owned(), format!("you said: second-{number}.")]
        );
        let open = |call: &&talaria_tests::model::Call| call.user.contains(&format!("-{number}."));
        let calls = world.model.calls();
        let of: Vec<_> = calls.iter().filter(open).collect();
        assert_eq!(of.len(), 3, "the killed attempt, the resumed one, and the second turn");
        assert!(of[1].ended <= Some(of[2].began), "one at a time");
    }
    world.model.assert_strict();
}
