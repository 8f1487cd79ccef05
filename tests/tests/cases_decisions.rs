//! Cases B11 and B13: plain words disturb neither sub-agents nor open decisions, and `/stop` ends both.

use proto::member::Role;
use serde_json::json;
use talaria_tests::model::{Progress, Step};
use talaria_tests::wait::eventually;
use talaria_tests::{Chat, Setup, World};

const SERVICE: &str = env!("CARGO_BIN_EXE_service");

async fn delegating<'a>(world: &'a World, chat: &Chat<'a>) {
    let tasks = json!({ "tasks": [{ "goal": "child-x" }, { "goal": "child-y" }] });
    let call = Step::Call { name: "delegate".into(), arguments: tasks };
    world.model.on("parent", [call, Step::Say("both are done".into())]);
    world.model.on("child-x", [Step::Hold("x".into())]);
    world.model.on("child-y", [Step::Hold("y".into())]);
    chat.say("parent").await;
    for child in ["child-x", "child-y"] {
        world.model.call(child, 1, Progress::Open).await;
    }
    // The scheduler knows it from the next heartbeat on.
    eventually("the status says that sub-agents are at work", || async {
        let status = chat.say("/status").await;
        chat.answered(&status).await.text("text").contains("sub-agents at work").then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b11_a_plain_message_waits_for_sub_agents_and_says_so() {
    let world = World::new(Setup::default()).await;
    let system = world.run_all().await;
    let chat = world.chat(system.door(), "c1");
    delegating(&world, &chat).await;
    let remark = chat.say("also tell me the time").await;
    assert!(chat.answered(&remark).await.text("text").contains("Sub-agents are at work"));
    world.model.release("child-x");
    world.model.release("child-y");

    assert_eq!(chat.replies(2).await, ["both are done", "you said: also tell me the time"]);
    system.stop().await;
    world.model.assert_strict();
}

#[tokio::test(flavor = "multi_thread")]
async fn b11_stop_ends_the_sub_agents_too() {
    let world = World::new(Setup::default()).await;
    let system = world.run_all().await;
    let chat = world.chat(system.door(), "c1");
    delegating(&world, &chat).await;
    chat.say("/stop").await;
    for child in ["child-x", "child-y"] {
        world.model.call(child, 1, Progress::Closed).await;
    }
    let next = chat.say("next").await;
    assert_eq!(chat.reply_to(&next).await, "you said: next");
    assert_eq!(chat.replies(1).await.len(), 1);
    system.stop().await;
    world.model.assert_strict();
}

/// A turn that asks before it removes each of these folders.
async fn asking(world: &World, chat: &Chat<'_>, folders: &[&str]) {
    let mut steps = Vec::new();
    for folder in folders {
        std::fs::create_dir_all(world.workspace().join(folder)).expect("a folder");
        steps.push(Step::terminal(&format!("rm -rf {folder}")));
    }
    steps.push(Step::Say("cleaned".into()));
    world.model.on("clean up", steps);
    chat.say("clean up").await;
    assert!(chat.question(1).await.contains(folders[0]));
}

#[tokio::test(flavor = "multi_thread")]
async fn b13_two_questions_of_one_turn_are_answered_one_after_the_other() {
    let world = World::new(Setup::default()).await;
    let system = world.run_all().await;
    let chat = world.chat(system.door(), "c1");
    asking(&world, &chat, &["one", "two"]).await;
    let first = chat.say("/approve").await;
    assert_eq!(chat.answered(&first).await.text("text"), "Approved.");
    assert!(chat.question(2).await.contains("two"));
    chat.say("/approve").await;
    assert_eq!(chat.replies(1).await, ["cleaned"]);
    assert!(!world.workspace().join("one").exists() && !world.workspace().join("two").exists());
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b13_stop_ends_the_wait_and_the_tool_is_not_run() {
    let world = World::new(Setup::default()).await;
    let system = world.run_all().await;
    let chat = world.chat(system.door(), "c1");
    asking(&world, &chat, &["one"]).await;
    let stop = chat.say("/stop").await;
    assert!(chat.answered(&stop).await.text("text").starts_with("Stopped"));
    let next = chat.say("next").await;
    assert_eq!(chat.reply_to(&next).await, "you said: next");
    assert!(world.workspace().join("one").exists());
    assert_eq!(chat.replies(1).await.len(), 1);
    system.stop().await;
    world.model.assert_strict();
}

#[tokio::test(flavor = "multi_thread")]
async fn b13_plain_words_decide_nothing_and_are_kept() {
    let world = World::new(Setup::default()).await;
    let system = world.run_all().await;
    let chat = world.chat(system.door(), "c1");
    asking(&world, &chat, &["one"]).await;
    let words = chat.say("yes, but what does it do?").await;
    assert!(chat.answered(&words).await.text("text").contains("A decision is open"));
    assert!(world.workspace().join("one").exists());
    chat.say("/deny keep it").await;
    assert_eq!(chat.replies(2).await, ["cleaned", "you said: yes, but what does it do?"]);
    assert!(world.workspace().join("one").exists());
    let call = world.model.call("clean up", 2, Progress::Done).await;
    assert!(serde_json::to_string(&call.messages).unwrap().contains("keep it"), "with the reason");
    system.stop().await;
    world.model.assert_strict();
}

#[tokio::test(flavor = "multi_thread")]
async fn b13_a_question_of_a_killed_worker_is_put_again_under_a_new_id() {
    let world = World::new(Setup::default()).await;
    let _scheduler = world.spawn(Role::Scheduler, SERVICE).await;
    let mut first = world.spawn(Role::Worker, SERVICE).await;
    let ingress = world.spawn(Role::Ingress, SERVICE).await;
    let chat = world.chat(ingress.address(), "c1");
    // The killed one's call has no outcome; the model wants it again, and so the person is asked again.
    asking(&world, &chat, &["one", "one"]).await;
    let _second = world.spawn(Role::Worker, SERVICE).await;
    first.kill9().await;
    let again = chat.question(2).await;
    assert!(again.contains("one"), "{again}");
    assert!(world.workspace().join("one").exists(), "nothing was done without an answer");
    chat.say("/approve").await;
    assert_eq!(chat.replies(1).await, ["cleaned"]);
    world.model.assert_strict();
}

#[tokio::test(flavor = "multi_thread")]
async fn b13_a_decision_on_nothing_is_a_notice_and_no_turn() {
    let world = World::new(Setup::default()).await;
    let system = world.run_all().await;
    let chat = world.chat(system.door(), "c1");
    for text in ["/approve", "/deny", "/approve all", "/approve 1-1-1"] {
        let id = chat.say(text).await;
        assert!(chat.answered(&id).await.text("text").contains("Nothing waits"), "{text}");
    }
    assert!(world.model.calls().is_empty());
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b13_a_late_or_doubled_decision_changes_nothing() {
    let world = World::new(Setup::default()).await;
    let system = world.run_all().await;
    let chat = world.chat(system.door(), "c1");
    asking(&world, &chat, &["one"]).await;
    chat.say("/deny").await;
    let late = chat.say("/approve").await;
    assert!(chat.answered(&late).await.text("text").contains("Nothing waits"));
    assert_eq!(chat.replies(1).await, ["cleaned"]);
    assert!(world.workspace().join("one").exists());
    system.stop().await;
}
