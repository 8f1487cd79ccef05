//! What a person approves for more than once, what no one allows in time, and messages to other chats.

use serde_json::json;
use talaria_tests::model::{Progress, Step};
use talaria_tests::{Chat, Setup, World};

/// Has a turn remove a folder, which is asked about unless it is approved already.
async fn remove(world: &World, chat: &Chat<'_>, folder: &str) -> String {
    std::fs::create_dir_all(world.workspace().join(folder)).expect("a folder");
    let said = format!("remove {folder}.");
    let steps =
        [Step::terminal(&format!("rm -rf {folder}")), Step::Say(format!("{folder} is gone"))];
    world.model.on(&said, steps);
    chat.say(&said).await
}

fn is_there(world: &World, folder: &str) -> bool {
    world.workspace().join(folder).exists()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_for_the_session_lasts_until_it_is_reset() {
    let world = World::new(Setup::default()).await;
    let system = world.run_all().await;
    let (chat, other) = (world.chat(system.door(), "c1"), world.chat(system.door(), "c2"));
    remove(&world, &chat, "one").await;
    assert!(chat.question(1).await.contains("/approve session"));
    chat.say("/approve session").await;
    assert_eq!(chat.replies(1).await, ["one is gone"]);
    remove(&world, &chat, "two").await;
    assert_eq!(chat.replies(2).await[1], "two is gone");
    assert_eq!(chat.got("question").len(), 1);
    // Another session knows nothing of it.
    remove(&world, &other, "three").await;
    other.question(1).await;
    other.say("/deny").await;
    other.replies(1).await;
    assert!(is_there(&world, "three") && !is_there(&world, "one") && !is_there(&world, "two"));
    chat.say("/new").await;
    chat.replies(3).await;
    remove(&world, &chat, "four").await;
    chat.question(2).await;
    chat.say("/deny").await;
    chat.replies(4).await;
    assert!(is_there(&world, "four"));
    system.stop().await;
    world.model.assert_strict();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_for_good_is_the_persons_in_every_chat() {
    let world = World::new(Setup::default()).await;
    let system = world.run_all().await;
    let (chat, other) = (world.chat(system.door(), "c1"), world.chat(system.door(), "c2"));
    let send = async |chat: &Chat<'_>, user: &str, folder: &str| {
        std::fs::create_dir_all(world.workspace().join(folder)).expect("a folder");
        let said = format!("remove {folder}.");
        let steps = [Step::terminal(&format!("rm -rf {folder}")), Step::Say("gone".into())];
        world.model.on(&said, steps);
        chat.send(json!({ "text": said, "user": { "id": user } })).await
    };
    send(&chat, "ada", "one").await;
    chat.question(1).await;
    chat.send(json!({ "text": "/approve always", "user": { "id": "ada" } })).await;
    assert_eq!(chat.replies(1).await, ["gone"]);
    let two = send(&other, "ada", "two").await;
    assert_eq!(other.reply_to(&two).await, "gone");
    assert!(other.got("question").is_empty());
    // Someone else is asked.
    let third = world.chat(system.door(), "c3");
    send(&third, "bob", "three").await;
    third.question(1).await;
    assert!(is_there(&world, "three") && !is_there(&world, "two"));
    third.send(json!({ "text": "/stop", "user": { "id": "bob" } })).await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_one_allows_in_time_is_not_to_be_tried_in_another_way() {
    let world = World::new(Setup::default().set("agent.approval_timeout", "300ms")).await;
    let system = world.run_all().await;
    let chat = world.chat(system.door(), "c1");
    remove(&world, &chat, "one").await;
    assert_eq!(chat.replies(1).await, ["one is gone"]);
    assert!(is_there(&world, "one"));
    let call = world.model.call("remove one", 2, Progress::Done).await;
    let result = call.messages.last().expect("a result")["content"].to_string();
    assert!(result.contains("No one allowed this in time"), "{result}");
    assert!(result.contains("do not try to reach the same in another way"), "{result}");
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_to_another_chat_is_asked_about_and_sent_once() {
    let world = World::new(Setup::default()).await;
    let system = world.run_all().await;
    let (chat, other) = (world.chat(system.door(), "c1"), world.chat(system.door(), "c2"));
    other.say("hello").await;
    other.replies(1).await;
    let tell = |to: &str| Step::Call {
        name: "send_message".into(),
        arguments: json!({ "to": to, "text": "lunch is ready" }),
    };
    world
        .model
        .on("tell them", [tell("webhook:nowhere"), tell("webhook:c2"), Step::Say("told".into())]);
    chat.say("tell them").await;
    assert!(chat.question(1).await.contains("webhook:nowhere: lunch is ready"));
    chat.say("/approve session").await;
    assert_eq!(chat.replies(1).await, ["told"]);
    let calls = world.model.calls();
    let results = calls.last().expect("a call").messages.iter();
    let results: Vec<String> = results
        .filter(|message| message["role"] == "tool")
        .map(|message| message["content"].to_string())
        .collect();
    assert!(results[0].contains("no chat of webhook is called"), "{results:?}");
    assert!(results[1].contains("On its way to webhook:c2"), "{results:?}");
    let notice = world.chat(system.door(), "c2");
    let got = talaria_tests::wait::eventually("the message in the other chat", || {
        let found =
            notice.got("notice").into_iter().find(|post| post.text("text") == "lunch is ready");
        async move { found }
    })
    .await;
    assert_eq!(got.chat(), "c2");
    assert_eq!(chat.got("question").len(), 1, "the second one was approved with the first");
    system.stop().await;
    world.model.assert_strict();
}
