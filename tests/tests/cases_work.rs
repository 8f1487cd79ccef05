//! Cases B06a, B14 and B16: work that takes long, is silent, or is cut off by a crash is neither run twice nor given up, and leaves a
//! conversation that a strict provider takes.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use node::Node;
use proto::member::Role;
use serde_json::json;
use talaria_tests::model::Step;
use talaria_tests::{Setup, World};
use tokio_util::sync::CancellationToken;
use worker::models::{Answer, Model, ModelError, Request, Words};

const SERVICE: &str = env!("CARGO_BIN_EXE_service");

fn lines(folder: &Path, file: &str) -> usize {
    std::fs::read_to_string(folder.join(file)).unwrap_or_default().lines().count()
}

/// Blocks the thread that it runs on, as no well-behaved code does, and counts how often it begins.
struct Blocking {
    lasts: Duration,
    begun: Arc<AtomicU32>,
}

impl Model for Blocking {
    fn call<'a>(
        &'a self,
        _request: Request<'a>,
        _words: Words,
    ) -> BoxFuture<'a, Result<Answer, ModelError>> {
        async {
            self.begun.fetch_add(1, Ordering::SeqCst);
            std::thread::sleep(self.lasts);
            Ok(Answer { text: "done".into(), ..Answer::default() })
        }
        .boxed()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 6)]
async fn b06a_a_turn_that_blocks_its_thread_keeps_its_right_and_is_run_once() {
    let world = World::new(Setup::default().set("scheduler.lease_ttl", "1s")).await;
    let scheduler = world.run(Role::Scheduler).await;
    let ingress = world.start(Role::Ingress).await;
    let begun = Arc::new(AtomicU32::new(0));
    let stop = CancellationToken::new();
    let mut workers = Vec::new();
    for name in ["one", "two"] {
        let node = Node::connect(world.settings(), name, stop.clone()).await.expect("a broker");
        let model = Blocking { lasts: Duration::from_secs(3), begun: Arc::clone(&begun) };
        workers.push(tokio::spawn(worker::run_with(node, Arc::new(model))));
    }
    ingress.ready().await;
    let chat = world.chat(ingress.address(), "c1");
    chat.say("work").await;
    assert_eq!(chat.replies(1).await, ["done"]);
    assert_eq!(begun.load(Ordering::SeqCst), 1, "no other worker was given the turn");
    assert_eq!(chat.got("reply")[0].body["attempt"], 1);
    stop.cancel();
    for worker in workers {
        worker.await.expect("it does not panic").expect("it ends cleanly");
    }
    ingress.stop().await;
    scheduler.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b06a_a_long_command_is_not_started_by_another_worker() {
    let world = World::new(Setup::default().set("scheduler.lease_ttl", "1s")).await;
    let _scheduler = world.spawn(Role::Scheduler, SERVICE).await;
    let _one = world.spawn(Role::Worker, SERVICE).await;
    let _two = world.spawn(Role::Worker, SERVICE).await;
    let ingress = world.spawn(Role::Ingress, SERVICE).await;
    let chat = world.chat(ingress.address(), "c1");
    let command = Step::terminal("echo begun >> starts; sleep 3");
    world.model.on("work", [command, Step::Say("done".into())]);
    chat.say("work").await;
    assert_eq!(chat.replies(1).await, ["done"]);
    assert_eq!(lines(&world.workspace(), "starts"), 1);
    assert_eq!(chat.got("reply")[0].body["attempt"], 1);
    assert_eq!(world.model.count("work"), 2, "one call before and one after the command");
}

/// What the model was told came out of the call that it made for these words.
fn result(world: &World, said: &str) -> String {
    let calls = world.model.calls();
    let after = calls.iter().filter(|call| call.user.contains(said)).nth(1);
    after.and_then(|call| call.messages.last()).expect("a second call")["content"].to_string()
}

/// A world in which a second without progress is too much.
async fn impatient() -> World {
    let setup = Setup::default().set("agent.timeout", "1s").set("agent.timeout_warning", "0");
    World::new(setup).await
}

#[tokio::test(flavor = "multi_thread")]
async fn b14_a_silent_tool_is_judged_by_its_own_deadline() {
    let world = impatient().await;
    let system = world.run_all().await;
    let chat = world.chat(system.door(), "c1");
    let silent = Step::terminal("sleep 2.5; echo really done");
    world.model.on("build it", [silent.clone(), Step::Say("built".into())]);
    chat.say("build it").await;
    assert_eq!(chat.replies(1).await, ["built"]);
    assert!(result(&world, "build it").contains("really done"));

    // The same in a sub-agent.
    let tasks = json!({ "tasks": [{ "goal": "the child builds" }] });
    let delegate = Step::Call { name: "delegate".into(), arguments: tasks };
    world.model.on("have it built", [delegate, Step::Say("was built".into())]);
    world.model.on("the child builds", [silent, Step::Say("built too".into())]);
    chat.say("have it built").await;
    assert_eq!(chat.replies(2).await[1], "was built");
    assert!(result(&world, "the child builds").contains("really done"));

    // A tool that never returns ends at its deadline, as an error that the model is told of; the turn goes on.
    let endless = json!({ "command": "sleep 600", "timeout_seconds": 2 });
    let endless = Step::Call { name: "terminal".into(), arguments: endless };
    world.model.on("hang", [endless, Step::Say("it took too long".into())]);
    chat.say("hang").await;
    assert_eq!(chat.replies(3).await[2], "it took too long");
    assert!(result(&world, "hang").contains("after 2 s"));
    assert!(chat.got("notice").is_empty(), "no one was told of a timeout");
    system.stop().await;
    world.model.assert_strict();
}

#[tokio::test(flavor = "multi_thread")]
async fn b14_a_model_that_only_reasons_advances() {
    let world = impatient().await;
    let system = world.run_all().await;
    let chat = world.chat(system.door(), "c1");
    let think = Step::Think { lasts: Duration::from_secs(2), then: "forty-two".into() };
    world.model.on("think", [think]);
    chat.say("think").await;
    assert_eq!(chat.replies(1).await, ["forty-two"]);
    assert!(chat.got("notice").is_empty());
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b16_a_worker_killed_inside_a_tool_leaves_a_session_that_goes_on() {
    let world = World::new(Setup::default()).await;
    let _scheduler = world.spawn(Role::Scheduler, SERVICE).await;
    let mut first = world.spawn(Role::Worker, SERVICE).await;
    let ingress = world.spawn(Role::Ingress, SERVICE).await;
    let chat = world.chat(ingress.address(), "c1");
    let terminal = |command: &str| ("terminal".to_owned(), json!({ "command": command }));
    let calls = vec![
        terminal("echo one >> first; echo one"),
        terminal("echo $$ >> second; echo $$ > shell; sleep 600"),
    ];
    let both = Step::Calls { text: "Both at once.".into(), calls };
    world.model.on("do both", [both, Step::Say("one of two".into())]);
    chat.say("do both").await;
    let pid = world.pid_in("shell").await;
    first.kill9().await;
    chat.say("/queue and then").await;
    let mut second = world.spawn(Role::Worker, SERVICE).await;
    assert_eq!(
        chat.replies(2).await,
        ["Both at once.\n\none of two", "you said: and then"],
        "the turn goes on, and what waited is answered"
    );
    second.kill9().await;
    let _third = world.spawn(Role::Worker, SERVICE).await;
    let last = chat.say("still there?").await;
    assert_eq!(chat.reply_to(&last).await, "you said: still there?");

    assert_eq!(lines(&world.workspace(), "first"), 1, "what was done is not done again");
    assert_eq!(lines(&world.workspace(), "second"), 1, "nor what was cut off");
    world.model.assert_strict();
    let calls = world.model.calls();
    let asked = calls.last().expect("a call");
    let results: Vec<String> = asked
        .messages
        .iter()
        .filter(|message| message["role"] == "tool")
        .map(|message| message["content"].to_string())
        .collect();
    assert_eq!(results.len(), 2, "{results:?}");
    assert!(results[0].contains("one"), "{results:?}");
    assert!(results[1].contains("not known") || results[1].contains("unknown"), "{results:?}");
    // What a killed worker leaves running, nobody knows of any more; the test does.
    let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::SIGKILL);
}
