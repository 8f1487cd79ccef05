//! The acceptance list of BEHAVIOUR 14.1 to 14.5 as far as it is seen from outside; the number in a name is that of its line.
//! What is not here is in `busy`, `stop` and the `cases_…` files, or in the stories of the core.

use proto::command::{Control, Message, Name, REGISTRY, Who};
use serde_json::json;
use talaria_tests::model::{Progress, Step};
use talaria_tests::{Chat, Setup, System, World};

async fn running(world: &World) -> (System, Chat<'_>) {
    let system = world.run_all().await;
    let chat = world.chat(system.door(), "c1");
    world.model.on("first", [Step::Hold("one".into())]);
    chat.say("first").await;
    world.model.call("first", 1, Progress::Open).await;
    (system, chat)
}

#[tokio::test(flavor = "multi_thread")]
async fn h14_2_line_30_every_command_is_answered_while_a_turn_runs_and_none_reaches_the_model() {
    let world = World::new(Setup::default()).await;
    let (system, chat) = running(&world).await;
    for spec in REGISTRY.iter().filter(|spec| spec.who == Who::Anyone && !spec.help.is_empty()) {
        if matches!(spec.name, Name::Control(_) | Name::Message(_)) {
            continue;
        }
        for word in spec.words {
            let id = chat.say(&format!("/{word}")).await;
            assert!(!chat.answered(&id).await.text("text").is_empty(), "/{word}");
        }
    }
    world.model.call("first", 1, Progress::Open).await;
    world.model.release("first");
    assert_eq!(chat.replies(1).await, ["one"], "nothing was disturbed");
    assert!(world.model.calls().iter().all(|call| !call.user.contains('/')));
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn h14_1_lines_10_and_11_start_does_nothing_and_shows_nothing() {
    let world = World::new(Setup::default()).await;
    let (system, chat) = running(&world).await;
    chat.say("/start").await;
    let status = chat.say("/status").await;
    assert!(chat.answered(&status).await.text("text").contains("running"));
    world.model.release("first");
    assert_eq!(chat.replies(1).await, ["one"]);
    assert_eq!(chat.got("notice").len(), 1, "only the status");
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn h14_2_line_27_background_runs_beside_the_turn_and_answers_here() {
    let world = World::new(Setup::default()).await;
    let (system, chat) = running(&world).await;
    let beside = chat.say("/background count to three").await;
    assert_eq!(chat.reply_to(&beside).await, "you said: count to three");
    let roster = chat.say("/agents").await;
    let text = chat.answered(&roster).await.text("text").to_owned();
    assert!(text.contains("running") && text.contains("@background"), "{text}");
    world.model.release("first");
    assert_eq!(chat.reply_to("c1-1").await, "one");
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn h14_2_line_34_unknown_commands_and_paths_are_text() {
    let world = World::new(Setup::default()).await;
    let system = world.run_all().await;
    let chat = world.chat(system.door(), "c1");
    for text in ["/nosuchword at all", "/etc/hosts is a file", "please stop the music"] {
        let id = chat.say(text).await;
        assert_eq!(chat.reply_to(&id).await, format!("you said: {text}"));
    }
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn h14_2_line_37_a_command_is_not_queued_as_words() {
    let world = World::new(Setup::default()).await;
    let (system, chat) = running(&world).await;
    let refused = chat.say("/queue /new").await;
    assert!(chat.answered(&refused).await.text("text").contains("is a command"));
    world.model.release("first");
    let next = chat.say("next").await;
    chat.reply_to(&next).await;
    assert_eq!(world.model.calls().len(), 2);
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn h14_3_line_42_five_rapid_messages_all_survive_in_order() {
    let world = World::new(Setup::default().set("agent.busy_mode", "queue")).await;
    let (system, chat) = running(&world).await;
    for text in ["b", "c", "d", "e", "f"] {
        chat.say(text).await;
    }
    world.model.release("first");
    let replies = chat.replies(6).await;
    assert_eq!(replies[1..], ["b", "c", "d", "e", "f"].map(|text| format!("you said: {text}")));
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn h14_3_line_45_another_senders_picture_does_not_join() {
    let world = World::new(Setup::default().set("scheduler.album_quiet", "300ms")).await;
    let system = world.run_all().await;
    let chat = world.chat(system.door(), "c1");
    let photo =
        json!([{ "url": "http://127.0.0.1:1/a.png", "kind": "photo", "mime": "image/png" }]);
    let room = json!({ "id": "c1", "type": "group", "thread": "t" });
    let by = |user: &str| json!({ "chat": room, "user": { "id": user }, "text": format!("from {user}"), "media": photo });
    let (one, two) = (chat.send(by("u1")).await, chat.send(by("u2")).await);
    chat.reply_to(&one).await;
    chat.reply_to(&two).await;
    assert_eq!(world.model.calls().len(), 2);
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn h14_4_line_51_interrupting_messages_stay_two_turns() {
    let world = World::new(Setup::default()).await;
    let (system, chat) = running(&world).await;
    chat.say("second").await;
    let third = chat.say("/queue third").await;
    chat.reply_to(&third).await;
    assert_eq!(chat.replies(2).await, ["you said: second", "you said: third"]);
    system.stop().await;
    world.model.assert_strict();
}

#[tokio::test(flavor = "multi_thread")]
async fn h14_4_line_55_one_acknowledgement_for_many_messages() {
    let world = World::new(Setup::default().set("agent.busy_mode", "queue")).await;
    let (system, chat) = running(&world).await;
    chat.say("b").await;
    assert!(chat.ack(1).await.contains("Queued"));
    chat.say("c").await;
    world.model.release("first");
    chat.replies(3).await;
    assert_eq!(chat.got("ack").len(), 1);
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_mode_of_a_session_is_chosen_by_busy_and_rollback_leaves_no_trace() {
    let world = World::new(Setup::default()).await;
    let (system, chat) = running(&world).await;
    let chosen = chat.say("/busy rollback").await;
    assert!(chat.answered(&chosen).await.text("text").contains("rollback"));
    let second = chat.say("second").await;
    assert_eq!(chat.reply_to(&second).await, "you said: second");
    let call = world.model.call("second", 1, Progress::Done).await;
    let seen = serde_json::to_string(&call.messages).unwrap();
    assert!(!seen.contains("first"), "the turn that was taken back left a trace: {seen}");
    let back = chat.say("/busy reject").await;
    chat.answered(&back).await;
    assert!(matches!(REGISTRY[0].name, Name::Control(Control::Stop)));
    assert!(REGISTRY.iter().any(|spec| spec.name == Name::Message(Message::Queue)));
    system.stop().await;
    world.model.assert_strict();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queued_message_can_be_changed_and_taken_back() {
    let world = World::new(Setup::default().set("agent.busy_mode", "queue")).await;
    let (system, chat) = running(&world).await;
    let second = chat.say("secnod").await;
    let third = chat.say("third").await;
    chat.send(json!({ "edits": second, "text": "second" })).await;
    chat.send(json!({ "deletes": third })).await;
    let fourth = chat.say("fourth").await;
    world.model.release("first");
    assert_eq!(chat.reply_to(&fourth).await, "you said: fourth");
    assert_eq!(chat.replies(3).await, ["one", "you said: second", "you said: fourth"]);
    system.stop().await;
}
