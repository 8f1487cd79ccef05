//! The fence: a worker that was frozen past its lease may do nothing more when it wakes up, whatever it was in the middle of
//! (cases B05 to B09 and B12).

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use proto::member::Role;
use talaria_tests::model::{Progress, Step};
use talaria_tests::wait::eventually;
use talaria_tests::{Setup, World};

const SERVICE: &str = env!("CARGO_BIN_EXE_service");

/// The last sequences of everything that a worker writes: conversations, profiles, reports.
async fn written(world: &World) -> [u64; 3] {
    let jetstream = world.nats.jetstream().await;
    let mut last = [0; 3];
    for (at, stream) in ["TRANSCRIPT", "KV_sessions", "INBOX"].into_iter().enumerate() {
        let stream = jetstream.get_stream(stream).await.unwrap();
        last[at] = stream.get_info().await.unwrap().state.last_sequence;
    }
    last
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_wakes_up_after_its_lease_writes_reports_shows_and_runs_nothing() {
    let setup = Setup::default().set("ingress.webhook.test.drafts", true);
    let world = World::new(setup).await;
    let _scheduler = world.spawn(Role::Scheduler, SERVICE).await;
    let frozen = world.spawn(Role::Worker, SERVICE).await;
    let ingress = world.spawn(Role::Ingress, SERVICE).await;
    let (talks, works) = (world.chat(ingress.address(), "c1"), world.chat(ingress.address(), "c2"));
    // One is in the middle of an answer, the other in the middle of a tool that has more to do.
    world.model.on("talk", [Step::Hold("once upon a time".into())]);
    let tool =
        "echo $$ >> pids; n=0; while [ $n -lt 6000 ]; do sleep 0.1; n=$((n+1)); echo $n; done";
    world.model.on("work", [Step::terminal(tool), Step::Say("worked".into())]);
    talks.say("talk").await;
    works.say("work").await;
    world.model.call("talk", 1, Progress::Open).await;
    let pid = world.pid_in("pids").await;

    frozen.pause();
    let other = world.spawn(Role::Worker, SERVICE).await;
    // Their lease passes and the other worker takes both. What the provider says meanwhile waits in the frozen one's sockets.
    world.model.call("talk", 2, Progress::Open).await;
    world.model.release("talk");
    assert_eq!(talks.replies(1).await, ["once upon a time"]);
    // A result of unknown outcome is in the conversation, and the model was asked what to do.
    assert_eq!(works.replies(1).await, ["worked"]);
    eventually("nothing runs", || async {
        let running = other.metric("talaria_worker_turns_running").await;
        (running == 0.0).then_some(())
    })
    .await;
    let before = written(&world).await;
    let posts = world.callbacks.posts().len();

    frozen.resume();
    eventually("both turns are lost", || async {
        let lost = frozen.metric("talaria_worker_turns_total{outcome=\"lost\"}").await;
        (lost == 2.0).then_some(())
    })
    .await;
    eventually("its tool is stopped", || async move { gone(pid) }).await;
    // A sign that it works again, and that whatever it had to say would have come before.
    talks.say("and now?").await;
    assert_eq!(talks.replies(2).await, ["once upon a time", "you said: and now?"]);
    let late = world.callbacks.posts().split_off(posts);
    let stale = late.iter().filter(|post| post.text("reply_to") != "c1-2");
    assert_eq!(stale.count(), 0, "nothing of the old attempts is shown: {late:#?}");
    let after = written(&world).await;
    // The new turn: a message, its entries, its report; nothing else.
    assert_eq!(after[2] - before[2], 2, "no report of an old attempt");
    let entries = transcript(&world).await;
    let revived =
        entries.iter().filter(|(sequence, attempt)| *sequence > before[0] && *attempt == 1);
    let asked_after = 2;
    assert_eq!(revived.count(), asked_after, "only the new turn's own entries: {entries:?}");
    assert_eq!(world.model.count("work"), 2);
    world.model.assert_strict();
}

/// The entries of all conversations: their places and their attempts.
async fn transcript(world: &World) -> Vec<(u64, u64)> {
    let stream = world.nats.jetstream().await.get_stream("TRANSCRIPT").await.unwrap();
    let last = stream.get_info().await.unwrap().state.last_sequence;
    let mut entries = Vec::new();
    for sequence in 1..=last {
        let Ok(message) = stream.get_raw_message(sequence).await else { continue };
        let entry: serde_json::Value = serde_json::from_slice(&message.payload).unwrap();
        entries.push((sequence, entry["attempt"].as_u64().unwrap_or_default()));
    }
    entries
}

#[tokio::test(flavor = "multi_thread")]
async fn b07_a_session_whose_worker_died_is_free_by_itself_and_what_waits_runs_in_order() {
    let world = World::new(Setup::default().set("agent.busy_mode", "queue")).await;
    let _schedulers =
        [world.spawn(Role::Scheduler, SERVICE).await, world.spawn(Role::Scheduler, SERVICE).await];
    let mut first = world.spawn(Role::Worker, SERVICE).await;
    let ingress = world.spawn(Role::Ingress, SERVICE).await;
    let chat = world.chat(ingress.address(), "c1");
    world.model.on("first", [Step::Hold("one".into())]);
    chat.say("first").await;
    world.model.call("first", 1, Progress::Open).await;
    first.kill9().await;
    for text in ["b", "c", "d"] {
        chat.say(text).await;
    }
    let _second = world.spawn(Role::Worker, SERVICE).await;
    world.model.call("first", 2, Progress::Open).await;
    world.model.release("first");
    assert_eq!(chat.replies(4).await, ["one", "you said: b", "you said: c", "you said: d"]);
    assert!(chat.got("notice").is_empty());
}

fn gone(pid: i32) -> Option<()> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    (stat.is_empty() || stat.contains(") Z ")).then_some(())
}
