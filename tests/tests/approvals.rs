//! The acceptance list of BEHAVIOUR 14.9, what a turn asks of a person, as it is seen from outside; the number in a name is that
//! of its line. Lines 110, 111, 113, 114, 117 and 118 are in `cases_decisions` (case B13) and in the core's stories of asks.

use serde_json::json;
use talaria_tests::model::{Progress, Step};
use talaria_tests::{Chat, Setup, World};

/// A turn whose three sub-agents each ask before they remove a folder.
async fn three_ask(world: &World, chat: &Chat<'_>) {
    let names = ["one", "two", "three"];
    let goals = names.map(|name| json!({ "goal": format!("child-{name}") }));
    let call = Step::Call { name: "delegate".into(), arguments: json!({ "tasks": goals }) };
    world.model.on("parent", [call, Step::Say("all are done".into())]);
    for name in names {
        std::fs::create_dir_all(world.workspace().join(name)).expect("a folder");
        let steps = [Step::terminal(&format!("rm -rf {name}")), Step::Say("gone".into())];
        world.model.on(&format!("child-{name}"), steps);
    }
    chat.say("parent").await;
    chat.question(3).await;
}

fn folders(world: &World) -> usize {
    ["one", "two", "three"].iter().filter(|name| world.workspace().join(name).exists()).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn h14_9_lines_112_and_116_one_all_decides_what_three_sub_agents_ask() {
    let world = World::new(Setup::default()).await;
    let system = world.run_all().await;
    let chat = world.chat(system.door(), "c1");
    three_ask(&world, &chat).await;
    let all = chat.say("/approve all").await;
    assert_eq!(chat.answered(&all).await.text("text"), "Approved, all 3.");
    assert_eq!(chat.replies(1).await, ["all are done"]);
    assert_eq!(folders(&world), 0);
    system.stop().await;
    world.model.assert_strict();
}

#[tokio::test(flavor = "multi_thread")]
async fn h14_9_line_119_the_end_of_a_turn_ends_every_wait_and_nothing_is_run() {
    let world = World::new(Setup::default()).await;
    let system = world.run_all().await;
    let chat = world.chat(system.door(), "c1");
    three_ask(&world, &chat).await;
    let stop = chat.say("/stop").await;
    assert!(chat.answered(&stop).await.text("text").starts_with("Stopped"));
    let late = chat.say("/approve all").await;
    assert_eq!(chat.answered(&late).await.text("text"), "Nothing waits for a decision.");
    let next = chat.say("next").await;
    assert_eq!(chat.reply_to(&next).await, "you said: next");
    assert_eq!(folders(&world), 3);
    system.stop().await;
    world.model.assert_strict();
}

#[tokio::test(flavor = "multi_thread")]
async fn h14_9_line_115_an_approval_that_no_one_gives_in_time_is_a_refusal_that_says_so() {
    let world = World::new(Setup::default().set("agent.approval_timeout", "300ms")).await;
    let system = world.run_all().await;
    let chat = world.chat(system.door(), "c1");
    std::fs::create_dir_all(world.workspace().join("one")).expect("a folder");
    world.model.on("clean up", [Step::terminal("rm -rf one"), Step::Say("left it".into())]);
    chat.say("clean up").await;
    chat.question(1).await;
    assert_eq!(chat.replies(1).await, ["left it"]);
    assert_eq!(folders(&world), 1);
    let call = world.model.call("clean up", 2, Progress::Done).await;
    let seen = serde_json::to_string(&call.messages).expect("JSON");
    assert!(seen.contains("No one allowed this in time"), "{seen}");
    assert!(!seen.contains("Approved"), "{seen}");
    let late = chat.say("/approve").await;
    assert_eq!(chat.answered(&late).await.text("text"), "Nothing waits for a decision.");
    system.stop().await;
    world.model.assert_strict();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_answered_by_the_next_plain_words_and_by_nothing_else() {
    let world = World::new(Setup::default()).await;
    let system = world.run_all().await;
    let chat = world.chat(system.door(), "c1");
    let arguments = json!({ "question": "Which colour?", "options": ["red", "blue"] });
    let asking = Step::Call { name: "clarify".into(), arguments };
    world.model.on("paint it", [asking, Step::Say("painted".into())]);
    chat.say("paint it").await;
    assert!(chat.question(1).await.contains("2. blue"));
    let status = chat.say("/status").await;
    assert!(chat.answered(&status).await.text("text").contains("your next message is it"));
    chat.say("2").await;
    assert_eq!(chat.replies(1).await, ["painted"]);
    let call = world.model.call("paint it", 2, Progress::Done).await;
    let seen = serde_json::to_string(&call.messages).expect("JSON");
    assert!(seen.contains("They answered: blue (option 2)"), "{seen}");
    let next = chat.say("next").await;
    assert_eq!(chat.reply_to(&next).await, "you said: next");
    assert_eq!(chat.got("ack").len(), 0, "an answer goes without saying");
    system.stop().await;
    world.model.assert_strict();
}
