//! Messages that come while a turn starts or runs: they wait, interrupt or stop it, as asked, and are never lost.

use proto::member::Role;
use talaria_tests::model::{Progress, Step};
use talaria_tests::wait::eventually;
use talaria_tests::{Setup, World};

#[tokio::test(flavor = "multi_thread")]
async fn a_second_message_during_start_is_queued_and_starts_no_second_turn() {
    let world = World::new(Setup::default()).await;
    let scheduler = world.run(Role::Scheduler).await;
    let ingress = world.start(Role::Ingress).await;
    let chat = world.chat(ingress.address(), "c1");

    // Without a worker the turn stays in its start.
    chat.say("first").await;
    chat.say("second").await;
    assert!(!chat.ack(1).await.is_empty(), "one is told that the message waits");
    assert_eq!(world.nats.count("TURNS").await, Some(1), "one turn is ordered");

    let worker = world.run(Role::Worker).await;
    assert_eq!(chat.replies(2).await, ["you said: first", "you said: second"]);
    let calls = world.model.calls();
    assert_eq!(calls.len(), 2);
    assert!(calls[0].ended <= Some(calls[1].began), "one turn at a time: {calls:#?}");
    worker.stop().await;
    ingress.stop().await;
    scheduler.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_interrupts_a_streaming_answer() {
    let world = World::new(Setup::default()).await;
    let system = world.run_all().await;
    let chat = world.chat(system.door(), "c1");
    world.model.on("long story", [Step::Hold("once upon a time".into())]);

    chat.say("tell a long story").await;
    world.model.call("long story", 1, Progress::Open).await;
    chat.say("a short one, please").await;

    world.model.call("long story", 1, Progress::Closed).await;
    assert_eq!(chat.replies(1).await, ["you said: a short one, please"]);
    assert_eq!(world.model.count("long story"), 1, "the first turn is not run again");
    system.stop().await;
    world.model.assert_strict();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_interrupts_a_running_tool_and_its_processes_end() {
    let world = World::new(Setup::default()).await;
    let system = world.run_all().await;
    let chat = world.chat(system.door(), "c1");
    let command = "sleep 600 & echo $! > child; echo $$ > shell; wait";
    world.model.on("run it", [Step::terminal(command), Step::Say("it ran".into())]);

    chat.say("run it").await;
    let pids = [world.pid_in("shell").await, world.pid_in("child").await];
    chat.say("never mind").await;

    assert_eq!(chat.replies(1).await, ["you said: never mind"]);
    for pid in pids {
        eventually("the tool's process is gone", || async move { gone(pid) }).await;
    }
    // The call has its one result, or the provider would have refused the next request.
    world.model.assert_strict();
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn queue_never_interrupts() {
    let world = World::new(Setup::default()).await;
    let system = world.run_all().await;
    let chat = world.chat(system.door(), "c1");
    world.model.on("first", [Step::Hold("one".into())]);

    chat.say("first").await;
    world.model.call("first", 1, Progress::Open).await;
    chat.say("/queue and then this").await;
    chat.ack(1).await;
    world.model.call("first", 1, Progress::Open).await;
    world.model.release("first");

    assert_eq!(chat.replies(2).await, ["one", "you said: and then this"]);
    assert_eq!(world.model.call("first", 1, Progress::Done).await.progress, Progress::Done);
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn in_queue_mode_no_message_interrupts() {
    let world = World::new(Setup::default().set("agent.busy_mode", "queue")).await;
    let system = world.run_all().await;
    let chat = world.chat(system.door(), "c1");
    world.model.on("first", [Step::Hold("one".into())]);

    chat.say("first").await;
    world.model.call("first", 1, Progress::Open).await;
    chat.say("second").await;
    chat.ack(1).await;
    world.model.release("first");

    assert_eq!(chat.replies(2).await, ["one", "you said: second"]);
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_queue_refuses_and_says_so() {
    let setup = Setup::default().set("scheduler.queue_limit", 2);
    let world = World::new(setup).await;
    let system = world.run_all().await;
    let chat = world.chat(system.door(), "c1");
    world.model.on("first", [Step::Hold("one".into())]);

    chat.say("first").await;
    world.model.call("first", 1, Progress::Open).await;
    for text in ["/queue two", "/queue three", "/queue four"] {
        chat.say(text).await;
    }
    world
        .callbacks
        .wait_for("the refusal", |posts| {
            posts.iter().any(|post| post.text("reply_to") == "c1-4").then_some(())
        })
        .await;
    world.model.release("first");

    assert_eq!(chat.replies(3).await, ["one", "you said: two", "you said: three"]);
    assert_eq!(world.model.count("four"), 0);
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queued_message_survives_a_restart_of_everything() {
    let world = World::new(Setup::default()).await;
    let system = world.run_all().await;
    let chat = world.chat(system.door(), "c1");
    world.model.on("first", [Step::Hold("one".into())]);
    chat.say("first").await;
    world.model.call("first", 1, Progress::Open).await;
    chat.say("/queue second").await;
    chat.ack(1).await;

    system.stop().await;
    world.model.release("first");
    let system = world.run_all().await;

    assert_eq!(chat.replies(2).await, ["one", "you said: second"]);
    system.stop().await;
    world.model.assert_strict();
}

fn gone(pid: i32) -> Option<()> {
    use nix::sys::signal::kill;
    use nix::unistd::Pid;
    kill(Pid::from_raw(pid), None).is_err().then_some(())
}
