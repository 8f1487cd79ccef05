//! `/stop`: whatever a session does, it stops, says so, and is free for the next message.

use proto::member::Role;
use talaria_tests::model::{Progress, Step};
use talaria_tests::wait::eventually;
use talaria_tests::{Setup, World};

#[tokio::test(flavor = "multi_thread")]
async fn stop_while_nothing_runs_says_so() {
    let world = World::new(Setup::default()).await;
    let system = world.run_all().await;
    let chat = world.chat(system.door(), "c1");
    let stop = chat.say("/stop").await;
    assert!(!chat.answered(&stop).await.text("text").is_empty());
    assert!(world.model.calls().is_empty(), "a command is never fed to a model");
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stop_while_starting_withdraws_the_turn_and_clears_the_queue() {
    let world = World::new(Setup::default()).await;
    let scheduler = world.run(Role::Scheduler).await;
    let ingress = world.start(Role::Ingress).await;
    let chat = world.chat(ingress.address(), "c1");

    chat.say("first").await;
    chat.say("second").await;
    let stop = chat.say("/stop").await;
    chat.answered(&stop).await;

    let worker = world.run(Role::Worker).await;
    chat.say("third").await;
    assert_eq!(chat.replies(1).await, ["you said: third"]);
    assert_eq!((world.model.count("first"), world.model.count("second")), (0, 0));
    worker.stop().await;
    ingress.stop().await;
    scheduler.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stop_while_streaming_closes_the_connection_and_clears_the_queue() {
    let world = World::new(Setup::default()).await;
    let system = world.run_all().await;
    let chat = world.chat(system.door(), "c1");
    world.model.on("first", [Step::Hold("one".into())]);

    chat.say("first").await;
    world.model.call("first", 1, Progress::Open).await;
    chat.say("/queue second").await;
    let stop = chat.say("/stop").await;
    world.model.call("first", 1, Progress::Closed).await;
    chat.answered(&stop).await;
    chat.say("third").await;

    assert_eq!(chat.replies(1).await, ["you said: third"]);
    assert_eq!(world.model.count("second"), 0);
    system.stop().await;
    world.model.assert_strict();
}

#[tokio::test(flavor = "multi_thread")]
async fn stop_while_a_tool_runs_ends_its_processes() {
    let world = World::new(Setup::default()).await;
    let system = world.run_all().await;
    let chat = world.chat(system.door(), "c1");
    world
        .model
        .on("run it", [Step::terminal("echo $$ > shell; sleep 600"), Step::Say("ran".into())]);

    chat.say("run it").await;
    let pid = world.pid_in("shell").await;
    let stop = chat.say("/stop").await;
    chat.answered(&stop).await;

    eventually("the tool's process is gone", || async move {
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), None).is_err().then_some(())
    })
    .await;
    chat.say("still there?").await;
    assert_eq!(chat.replies(1).await, ["you said: still there?"]);
    assert_eq!(world.model.count("run it"), 1, "the model is not asked again");
    system.stop().await;
    world.model.assert_strict();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plain_stop_is_the_command() {
    let world = World::new(Setup::default()).await;
    let system = world.run_all().await;
    let chat = world.chat(system.door(), "c1");
    world.model.on("first", [Step::Hold("one".into())]);

    chat.say("first").await;
    world.model.call("first", 1, Progress::Open).await;
    chat.say("Stop!").await;

    world.model.call("first", 1, Progress::Closed).await;
    assert_eq!(world.model.calls().len(), 1);
    system.stop().await;
}
