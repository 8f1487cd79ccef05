//! Hooks of an operator: they hear of what happens, in order, and may refuse or rewrite commands.

use std::path::PathBuf;

use serde_json::{Value, json};
use talaria_tests::model::Step;
use talaria_tests::wait::eventually;
use talaria_tests::{Setup, World};

/// A world with a hook that writes down what it hears, and one that judges `/model`.
async fn heard_world() -> (World, PathBuf, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("heard");
    let write = format!("cat >> {0}; echo >> {0}", file.display());
    let judge = r#"case "$(cat)" in
        *'/model bad'*) echo '{"decision":"deny","message":"Not that one."}' ;;
        *'/model alias'*) echo '{"decision":"rewrite","text":"/model default"}' ;;
        *'/undo'*) echo 'not json' ;;
    esac"#;
    let setup = Setup::default()
        .set("hooks.audit.events", json!(["session:*", "agent:*", "gateway:startup"]))
        .set("hooks.audit.command", "sh")
        .set("hooks.audit.args", json!(["-c", write]))
        .set("hooks.judge.events", json!(["command:*"]))
        .set("hooks.judge.command", "sh")
        .set("hooks.judge.args", json!(["-c", judge]));
    (World::new(setup).await, file, folder)
}

/// Waits until this many events were heard.
async fn heard(file: &PathBuf, count: usize) -> Vec<Value> {
    eventually(&format!("{count} events"), || {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        async move {
            let events: Vec<Value> =
                text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
            (events.len() >= count).then_some(events)
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_hears_of_the_life_of_a_session_in_order() {
    let (world, file, _folder) = heard_world().await;
    let system = world.run_all().await;
    let chat = world.chat(system.door(), "c1");
    world.model.on("work", [Step::terminal("true"), Step::Say("worked".into())]);
    chat.say("work").await;
    assert_eq!(chat.replies(1).await, ["worked"]);
    chat.say("/new").await;
    let events = heard(&file, 7).await;
    let names: Vec<&str> = events.iter().filter_map(|event| event["event"].as_str()).collect();
    assert_eq!(
        names,
        [
            "gateway:startup",
            "session:start",
            "agent:start",
            "agent:step",
            "agent:end",
            "session:end",
            "session:reset"
        ]
    );
    assert!(events[0]["platforms"].as_array().is_some_and(|all| all.contains(&json!("webhook"))));
    assert_eq!(events[2]["message"], "work");
    assert_eq!(events[2]["chat_id"], "c1");
    assert_eq!(events[3]["tool_names"], json!(["terminal"]));
    assert_eq!(
        (&events[4]["outcome"], &events[4]["response"]),
        (&json!("completed"), &json!("worked"))
    );
    assert!(events.iter().skip(1).all(|event| event["session_id"] == events[1]["session_id"]));
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_refuses_and_rewrites_commands_and_its_failure_breaks_nothing() {
    let (world, _file, _folder) = heard_world().await;
    let system = world.run_all().await;
    let chat = world.chat(system.door(), "c1");
    let bad = chat.say("/model bad").await;
    assert_eq!(chat.answered(&bad).await.text("text"), "Not that one.");
    let why = chat.say("/why").await;
    assert!(chat.answered(&why).await.text("text").contains("does not allow it"));
    let alias = chat.say("/model alias").await;
    assert!(chat.reply_to(&alias).await.contains("answered by"), "as /model default");
    let undo = chat.say("/undo").await;
    assert!(chat.reply_to(&undo).await.contains("nothing to take back"), "as without a hook");
    let hello = chat.say("hello").await;
    assert_eq!(chat.reply_to(&hello).await, "you said: hello");
    system.stop().await;
}
