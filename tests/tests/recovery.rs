//! How long it takes until the system works again after something has died, measured from outside: a turn runs, its world breaks,
//! and the clock stops when another process has it or the next message is answered. `RUNS=20 cargo test -p talaria-tests --test
//! recovery -- --nocapture` prints the table that `deploy/docs/reliability.md` keeps.

#![expect(clippy::print_stdout, reason = "the table is for whoever runs it by name")]

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use proto::member::Role;
use talaria_tests::model::{Progress, Step};
use talaria_tests::{Chat, Process, Setup, World};

const SERVICE: &str = env!("CARGO_BIN_EXE_service");
/// The time after which a silent worker's turns are given to another.
const LEASE: Duration = Duration::from_secs(3);

fn runs() -> usize {
    std::env::var("RUNS").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// Prints a line of the table, and holds it against its limit where there were enough runs to speak of one.
fn line(what: &str, mut times: Vec<Duration>, limit: Duration) {
    times.sort();
    let (median, worst) = (times[times.len() / 2], times[times.len() - 1]);
    println!(
        "| {what} | {} | {:.2} s | {:.2} s | {:.1} s |",
        times.len(),
        median.as_secs_f64(),
        worst.as_secs_f64(),
        limit.as_secs_f64(),
    );
    // A single run on a busy machine says nothing of a limit; that it recovers at all was waited for.
    assert!(times.len() < 5 || worst < limit, "{what}: {worst:?} is over {limit:?}");
}

/// A turn that runs on the first of two workers until it is released.
async fn held(world: &World, chat: &Chat<'_>, run: usize) -> String {
    let text = format!("hold-{run}.");
    world.model.on(&text, [Step::Hold("held".into())]);
    chat.say(&text).await;
    world.model.call(&text, 1, Progress::Open).await;
    text
}

/// From a signal to a worker until another one asks the model for its turn.
async fn worker(signal: Signal, limit: Duration, what: &str) {
    let setup = Setup::default().set("scheduler.lease_ttl", "3s").set("worker.drain", "100ms");
    let world = World::new(setup).await;
    let _scheduler = world.spawn(Role::Scheduler, SERVICE).await;
    let ingress = world.spawn(Role::Ingress, SERVICE);
    let mut first = world.spawn(Role::Worker, SERVICE).await;
    let ingress = ingress.await;
    let mut times = Vec::new();
    for run in 0..runs() {
        let chat = world.chat(ingress.address(), &format!("c{run}"));
        let text = held(&world, &chat, run).await;
        let second = world.spawn(Role::Worker, SERVICE).await;
        let struck = Instant::now();
        first.send(signal);
        let call = world.model.call(&text, 2, Progress::Open).await;
        times.push(call.began - struck);
        world.model.release(&text);
        chat.replies(1).await;
        first = second;
    }
    line(what, times, limit);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_worker() {
    worker(Signal::SIGKILL, LEASE + Duration::from_secs(2), "worker, kill -9 (lease_ttl 3 s)")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_worker() {
    // The drain gives the step in hand a tenth of a second here.
    worker(Signal::SIGTERM, Duration::from_secs(1), "worker, SIGTERM").await;
}

/// From a signal to a scheduler until a message said after it is answered, in the chat that waits longest.
async fn scheduler(signal: Signal, limit: Duration, what: &str) {
    let world = World::new(Setup::default().set("scheduler.lease_ttl", "20s")).await;
    let mut first = world.spawn(Role::Scheduler, SERVICE).await;
    let _worker = world.spawn(Role::Worker, SERVICE).await;
    let ingress = world.spawn(Role::Ingress, SERVICE).await;
    // One in each of the partitions, most likely.
    let chats: Vec<_> = (0..8).map(|n| world.chat(ingress.address(), &format!("c{n}"))).collect();
    let mut times = Vec::new();
    for _ in 0..runs() {
        let second: Process = world.spawn(Role::Scheduler, SERVICE).await;
        let struck = Instant::now();
        first.send(signal);
        let mut said = Vec::new();
        for chat in &chats {
            said.push((chat, chat.say("hello").await));
        }
        let mut longest = Duration::ZERO;
        for (chat, id) in said {
            longest = longest.max(chat.answered(&id).await.at.saturating_duration_since(struck));
        }
        times.push(longest);
        first = second;
    }
    line(what, times, limit);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_scheduler() {
    scheduler(Signal::SIGKILL, Duration::from_secs(7), "scheduler, kill -9").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_scheduler() {
    scheduler(Signal::SIGTERM, Duration::from_millis(500), "scheduler, SIGTERM").await;
}

/// Everything at once, the broker too: the turn that ran is resumed, and what waited behind it runs (BEHAVIOUR 14.8).
#[tokio::test(flavor = "multi_thread")]
async fn everything_is_killed_together() {
    let mut world = World::new(Setup::default()).await;
    let mut times = Vec::new();
    for run in 0..runs() {
        let mut all = Vec::new();
        for role in [Role::Scheduler, Role::Worker, Role::Ingress] {
            all.push(world.spawn(role, SERVICE).await);
        }
        let name = format!("c{run}");
        let door = all[2].address();
        let text = held(&world, &world.chat(door, &name), run).await;
        let waits = serde_json::json!({
            "id": format!("{name}-waits"), "text": "/queue and then this"
        });
        world.chat(door, &name).send(waits).await;
        for process in &mut all {
            process.send(Signal::SIGKILL);
        }
        world.nats.kill().await;
        let struck = Instant::now();
        world.nats.restart().await;
        drop(all);
        let mut all = Vec::new();
        for role in [Role::Scheduler, Role::Worker, Role::Ingress] {
            all.push(world.spawn(role, SERVICE).await);
        }
        // Another session need not wait for the one that is resumed.
        let beside = world.chat(all[2].address(), &format!("beside-{run}"));
        beside.say("hello").await;
        beside.replies(1).await;
        let call = world.model.call(&text, 2, Progress::Open).await;
        times.push(call.began - struck);
        world.model.release(&text);
        let chat = world.chat(all[2].address(), &name);
        assert_eq!(chat.replies(2).await, ["held", "you said: and then this"]);
        world.model.assert_strict();
        for process in &mut all {
            process.send(Signal::SIGKILL);
            process.exit_code().await;
        }
    }
    line("everything and the broker, kill -9", times, LEASE + Duration::from_secs(12));
}
