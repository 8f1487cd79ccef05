//! A message in, a reply out: once, in the right chat, with the conversation kept.

use talaria_tests::model::{Progress, Step};
use talaria_tests::{Setup, World};

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_answered() {
    let world = World::new(Setup::default()).await;
    let system = world.run_all().await;
    let chat = world.chat(system.door(), "c1");
    world.model.on("hello", [Step::Say("hello yourself".into())]);

    let id = chat.say("hello").await;

    assert_eq!(chat.replies(1).await, ["hello yourself"]);
    let reply = &chat.got("reply")[0];
    assert!(reply.signed, "the callback is signed");
    assert_eq!(reply.text("reply_to"), id);
    assert_eq!(reply.body["final"], true);
    system.stop().await;
    world.model.assert_strict();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_conversation_goes_on_where_it_was() {
    let world = World::new(Setup::default()).await;
    let system = world.run_all().await;
    let chat = world.chat(system.door(), "c1");

    chat.say("my name is Ada").await;
    chat.replies(1).await;
    chat.say("what is my name?").await;
    chat.replies(2).await;

    let call = world.model.call("what is my name?", 1, Progress::Done).await;
    let text = serde_json::to_string(&call.messages).unwrap();
    assert!(text.contains("my name is Ada") && text.contains("you said: my name is Ada"), "{text}");
    world.model.assert_strict();
}

#[tokio::test(flavor = "multi_thread")]
async fn chats_do_not_hear_each_other() {
    let world = World::new(Setup::default()).await;
    let system = world.run_all().await;
    let (one, two) = (world.chat(system.door(), "c1"), world.chat(system.door(), "c2"));

    one.say("a secret").await;
    one.replies(1).await;
    two.say("what did the other say?").await;

    assert_eq!(two.replies(1).await, ["you said: what did the other say?"]);
    let call = world.model.call("what did the other say?", 1, Progress::Done).await;
    assert!(!serde_json::to_string(&call.messages).unwrap().contains("a secret"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_is_run_and_its_result_is_used() {
    let world = World::new(Setup::default()).await;
    let system = world.run_all().await;
    let chat = world.chat(system.door(), "c1");
    world
        .model
        .on("look", [Step::terminal("echo found-$((40 + 2))"), Step::Say("I looked".into())]);

    chat.say("look").await;

    assert_eq!(chat.replies(1).await, ["I looked"]);
    let call = world.model.call("look", 2, Progress::Done).await;
    let result = call.messages.last().unwrap();
    assert_eq!(result["role"], "tool");
    assert!(result["content"].as_str().unwrap().contains("found-42"), "{result}");
    world.model.assert_strict();
}

#[tokio::test(flavor = "multi_thread")]
async fn new_begins_a_fresh_conversation() {
    let world = World::new(Setup::default()).await;
    let system = world.run_all().await;
    let chat = world.chat(system.door(), "c1");

    chat.say("remember the word pineapple").await;
    chat.replies(1).await;
    chat.say("/new").await;
    chat.say("which word?").await;

    let call = world.model.call("which word?", 1, Progress::Done).await;
    assert!(!serde_json::to_string(&call.messages).unwrap().contains("pineapple"));
    world.model.assert_strict();
}
