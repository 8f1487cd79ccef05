//! Stopping on purpose: what runs is handed over, what was accepted is run, and nobody notices (case B18, BEHAVIOUR 14.7).

use std::time::Duration;

use futures_util::TryStreamExt;
use proto::member::Role;
use talaria_tests::model::{Progress, Step};
use talaria_tests::wait::eventually;
use talaria_tests::{Process, Setup, World};

const SERVICE: &str = env!("CARGO_BIN_EXE_service");
const HOOK: &str = "ingress.webhook.test";

/// Looks after processes as a supervisor does: whoever ends with 75 is started again. Returns who did, in order, when `over`.
async fn supervise(
    world: &World,
    mut processes: Vec<Process>,
    over: impl Fn() -> bool,
) -> (Vec<Role>, Vec<Process>) {
    let mut order = Vec::new();
    let end = tokio::time::Instant::now() + Duration::from_secs(90);
    while !over() {
        assert!(tokio::time::Instant::now() < end, "only these have restarted: {order:?}");
        let ended = processes.iter_mut().position(|process| process.has_ended().is_some());
        if let Some(at) = ended {
            let mut gone = processes.remove(at);
            assert_eq!(gone.has_ended(), Some(75), "the {} wants to be started again", gone.role());
            assert!(processes.iter_mut().all(|other| other.has_ended().is_none()), "one at a time");
            order.push(gone.role());
            processes.push(world.spawn(gone.role(), SERVICE).await);
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    (order, processes)
}

#[tokio::test(flavor = "multi_thread")]
async fn restart_drains_the_fleet_one_process_at_a_time_and_says_how_far_it_is() {
    let setup = Setup::default()
        .set(&format!("{HOOK}.admins"), vec!["u1".to_owned()])
        .set("worker.drain", "300ms")
        .set("scheduler.lease_ttl", "20s");
    let world = World::new(setup).await;
    let mut processes = Vec::new();
    let ingress = world.spawn(Role::Ingress, SERVICE);
    let others = [Role::Scheduler, Role::Scheduler, Role::Worker, Role::Worker];
    for role in others {
        processes.push(world.spawn(role, SERVICE).await);
    }
    let ingress = ingress.await;
    let door = ingress.address();
    processes.push(ingress);
    let (chat, other) = (world.chat(door, "c1"), world.chat(door, "c2"));
    world.model.on("work", [Step::Hold("working".into())]);
    chat.say("work").await;
    world.model.call("work", 1, Progress::Open).await;
    other.say("before").await;

    // Each is known to be there.
    let members = world.nats.jetstream().await.get_key_value("members").await.unwrap();
    eventually("five members", || async {
        let keys: Vec<String> = members.keys().await.unwrap().try_collect().await.unwrap();
        (keys.len() == 5).then_some(())
    })
    .await;
    let restart = chat.say("/restart").await;
    let said = chat.answered(&restart).await.text("text").to_owned();
    assert!(said.starts_with("Restarting"), "{said}");
    // Accepted while everything goes: it is run all the same.
    other.say("/queue meanwhile").await;
    let again = other.say("/restart").await;
    let done = || chat.got("notice").iter().any(|post| post.text("text").starts_with("Restarted"));
    let (order, _processes) = supervise(&world, processes, done).await;

    let roles = [Role::Worker, Role::Worker, Role::Scheduler, Role::Scheduler, Role::Ingress];
    assert_eq!(order, roles);
    assert!(other.answered(&again).await.text("text").contains("under way already"));
    let notices = chat.got("notice");
    let first = notices[0].text("id").to_owned();
    assert_eq!(notices.len(), 7, "an answer, five steps and an end: {notices:#?}");
    assert!(notices[1..].iter().all(|post| post.text("replaces") == first), "one message, edited");
    world.model.release("work");
    assert_eq!(chat.replies(1).await, ["working"]);
    assert_eq!(other.replies(2).await, ["you said: before", "you said: meanwhile"]);
    world.model.assert_strict();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_is_handed_over_at_a_step_boundary_and_its_drafts_go_on_in_the_same_message() {
    let setup = Setup::default().set(&format!("{HOOK}.drafts"), true);
    let world = World::new(setup).await;
    let _scheduler = world.spawn(Role::Scheduler, SERVICE).await;
    let first = world.spawn(Role::Worker, SERVICE).await;
    let ingress = world.spawn(Role::Ingress, SERVICE).await;
    let chat = world.chat(ingress.address(), "c1");
    let tool = "touch begun; while [ ! -e go ]; do sleep 0.02; done; echo x >> runs";
    world.model.on("build", [Step::terminal(tool), Step::Hold("built".into())]);
    chat.say("build").await;
    world.file("begun").await;
    let _second = world.spawn(Role::Worker, SERVICE).await;
    first.ask_to_stop();
    std::fs::write(world.workspace().join("go"), "").unwrap();

    // The tool came to its end, and the next step is the other worker's.
    world.model.call("build", 2, Progress::Open).await;
    eventually("a draft of the second attempt", || {
        let drafts = world.callbacks.posts();
        let shown =
            drafts.iter().any(|post| post.text("kind") == "draft" && post.body["attempt"] == 2);
        async move { shown.then_some(()) }
    })
    .await;
    world.model.release("build");
    assert_eq!(chat.replies(1).await, ["built"]);
    let reply = &chat.got("reply")[0];
    assert_eq!(reply.body["attempt"], 2);
    let drafts = chat.got("draft");
    assert!(drafts.iter().all(|draft| draft.text("turn") == reply.text("turn")), "{drafts:#?}");
    let runs = std::fs::read_to_string(world.workspace().join("runs")).unwrap();
    assert_eq!(runs, "x\n", "the tool ran once");
    assert!(chat.got("notice").is_empty(), "users see nothing of it");
    world.model.assert_strict();
}

#[tokio::test(flavor = "multi_thread")]
async fn hand_overs_use_up_no_attempts() {
    let setup = Setup::default().set("worker.drain", "100ms").set("scheduler.attempts", 1);
    let world = World::new(setup).await;
    let _scheduler = world.spawn(Role::Scheduler, SERVICE).await;
    let ingress = world.start(Role::Ingress).await;
    let chat = world.chat(ingress.address(), "c1");
    world.model.on("work", [Step::Hold("working".into())]);
    let mut worker = world.spawn(Role::Worker, SERVICE).await;
    chat.say("work").await;
    for hand_over in 1..=4 {
        world.model.call("work", hand_over, Progress::Open).await;
        let next = world.spawn(Role::Worker, SERVICE).await;
        worker.terminate().await;
        worker = next;
    }
    world.model.call("work", 5, Progress::Open).await;
    world.model.release("work");
    assert_eq!(chat.replies(1).await, ["working"]);
    assert_eq!(chat.got("reply")[0].body["attempt"], 5);
    ingress.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b18_what_is_said_during_a_drain_is_run_afterwards_once_and_in_order() {
    let setup = Setup::default().set("worker.drain", "200ms").set("agent.busy_mode", "queue");
    let world = World::new(setup).await;
    let mut processes = Vec::new();
    for role in [Role::Scheduler, Role::Worker] {
        processes.push(world.spawn(role, SERVICE).await);
    }
    let mut ingress = world.spawn(Role::Ingress, SERVICE).await;
    let (s1, s2) = (world.chat(ingress.address(), "s1"), world.chat(ingress.address(), "s2"));
    world.model.on("first", [Step::Hold("one".into())]);
    s1.say("first").await;
    world.model.call("first", 1, Progress::Open).await;
    processes[1].ask_to_stop();
    s1.say("second").await;
    s2.say("third").await;
    for process in &mut processes {
        if process.has_ended().is_none() && process.role() == Role::Scheduler {
            process.ask_to_stop();
        }
        assert_eq!(process.exit_code().await, Some(0));
    }
    ingress.terminate().await;
    let _next = [
        world.spawn(Role::Scheduler, SERVICE).await,
        world.spawn(Role::Worker, SERVICE).await,
        world.spawn(Role::Ingress, SERVICE).await,
    ];
    world.model.call("first", 2, Progress::Open).await;
    world.model.release("first");
    assert_eq!(s1.replies(2).await, ["one", "you said: second"]);
    assert_eq!(s2.replies(1).await, ["you said: third"]);
    world.model.assert_strict();
}
