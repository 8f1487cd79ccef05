//! Processes that die: what was accepted is answered, once.

use proto::member::Role;
use talaria_tests::model::{Progress, Step};
use talaria_tests::{Setup, World};

const SERVICE: &str = env!("CARGO_BIN_EXE_service");

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_of_a_killed_worker_is_resumed_by_another() {
    let world = World::new(Setup::default()).await;
    let _scheduler = world.spawn(Role::Scheduler, SERVICE).await;
    let mut first = world.spawn(Role::Worker, SERVICE).await;
    let ingress = world.spawn(Role::Ingress, SERVICE).await;
    let chat = world.chat(ingress.address(), "c1");
    world.model.on("work", [Step::Hold("working".into())]);

    chat.say("work").await;
    world.model.call("work", 1, Progress::Open).await;
    let _second = world.spawn(Role::Worker, SERVICE).await;
    first.kill9().await;

    world.model.call("work", 1, Progress::Closed).await;
    world.model.call("work", 2, Progress::Open).await;
    world.model.release("work");
    assert_eq!(chat.replies(1).await, ["working"]);
    assert_eq!(chat.got("reply")[0].body["attempt"], 2);
    world.model.assert_strict();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_of_a_killed_worker_gets_a_result_before_the_turn_goes_on() {
    let world = World::new(Setup::default()).await;
    let _scheduler = world.spawn(Role::Scheduler, SERVICE).await;
    let mut first = world.spawn(Role::Worker, SERVICE).await;
    let ingress = world.spawn(Role::Ingress, SERVICE).await;
    let chat = world.chat(ingress.address(), "c1");
    world
        .model
        .on("run it", [Step::terminal("echo $$ > shell; sleep 600"), Step::Say("ran".into())]);

    chat.say("run it").await;
    let pid = world.pid_in("shell").await;
    let _second = world.spawn(Role::Worker, SERVICE).await;
    first.kill9().await;

    assert_eq!(chat.replies(1).await, ["ran"]);
    world.model.assert_strict();
    // What a killed worker leaves running, nobody knows of any more; the test does.
    let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::SIGKILL);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_was_frozen_says_nothing_when_it_wakes_up() {
    let world = World::new(Setup::default()).await;
    let _scheduler = world.spawn(Role::Scheduler, SERVICE).await;
    let first = world.spawn(Role::Worker, SERVICE).await;
    let ingress = world.spawn(Role::Ingress, SERVICE).await;
    let chat = world.chat(ingress.address(), "c1");
    world.model.on("work", [Step::Hold("working".into())]);

    chat.say("work").await;
    world.model.call("work", 1, Progress::Open).await;
    first.pause();
    let _second = world.spawn(Role::Worker, SERVICE).await;
    world.model.call("work", 2, Progress::Open).await;
    world.model.release("work");
    assert_eq!(chat.replies(1).await, ["working"]);
    first.resume();

    chat.say("and now?").await;
    assert_eq!(chat.replies(2).await, ["working", "you said: and now?"]);
    world.model.assert_strict();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_scheduler_loses_and_doubles_nothing() {
    // Longer than the fail-over, so that no turn is given up meanwhile.
    let world = World::new(Setup::default().set("scheduler.lease_ttl", "20s")).await;
    let mut scheduler = world.spawn(Role::Scheduler, SERVICE).await;
    let _worker = world.spawn(Role::Worker, SERVICE).await;
    let ingress = world.spawn(Role::Ingress, SERVICE).await;
    let chats: Vec<_> = (0..8).map(|n| world.chat(ingress.address(), &format!("c{n}"))).collect();

    for round in 0..3 {
        for chat in &chats {
            chat.say(&format!("/queue round {round}")).await;
        }
        scheduler.kill9().await;
        scheduler = world.spawn(Role::Scheduler, SERVICE).await;
    }

    let expected: Vec<_> = (0..3).map(|round| format!("you said: round {round}")).collect();
    for chat in &chats {
        assert_eq!(chat.replies(3).await, expected);
    }
    assert_eq!(world.model.calls().len(), 24, "each turn is run once");
    world.model.assert_strict();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_goes_on_while_its_scheduler_is_replaced() {
    let world = World::new(Setup::default().set("scheduler.lease_ttl", "20s")).await;
    let mut scheduler = world.spawn(Role::Scheduler, SERVICE).await;
    let _worker = world.spawn(Role::Worker, SERVICE).await;
    let ingress = world.spawn(Role::Ingress, SERVICE).await;
    let chat = world.chat(ingress.address(), "c1");
    world.model.on("work", [Step::Hold("working".into())]);

    chat.say("work").await;
    world.model.call("work", 1, Progress::Open).await;
    scheduler.kill9().await;
    let _next = world.spawn(Role::Scheduler, SERVICE).await;
    world.model.release("work");

    assert_eq!(chat.replies(1).await, ["working"]);
    assert_eq!(world.model.count("work"), 1);
    assert_eq!(chat.got("reply")[0].body["attempt"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_broker_loses_nothing() {
    let mut world = World::new(Setup::default().set("scheduler.lease_ttl", "20s")).await;
    let system = world.run_all().await;
    let door = system.door();
    world.model.on("work", [Step::Hold("working".into())]);
    world.chat(door, "c1").say("work").await;
    world.model.call("work", 1, Progress::Open).await;

    world.nats.kill().await;
    world.nats.restart().await;
    world.model.release("work");

    assert_eq!(world.chat(door, "c1").replies(1).await, ["working"]);
    let other = world.chat(door, "c2");
    other.say("hello").await;
    assert_eq!(other.replies(1).await, ["you said: hello"]);
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_is_asked_to_stop_hands_its_turn_over() {
    let world = World::new(Setup::default().set("worker.drain", "1s")).await;
    let _scheduler = world.spawn(Role::Scheduler, SERVICE).await;
    let mut first = world.spawn(Role::Worker, SERVICE).await;
    let ingress = world.spawn(Role::Ingress, SERVICE).await;
    let chat = world.chat(ingress.address(), "c1");
    world.model.on("work", [Step::Hold("working".into())]);

    chat.say("work").await;
    world.model.call("work", 1, Progress::Open).await;
    let _second = world.spawn(Role::Worker, SERVICE).await;
    first.terminate().await;

    world.model.call("work", 2, Progress::Open).await;
    world.model.release("work");
    assert_eq!(chat.replies(1).await, ["working"]);
    assert!(chat.got("notice").is_empty(), "users see nothing of it");
    world.model.assert_strict();
}
