//! Scheduled jobs from outside: made by people, by the agent and by the operator; each due time run once at most, whoever dies.

use node::bus::Bus;
use node::clock::wall_ms;
use proto::job::{Job, JobAction, JobChange, JobEnd};
use proto::member::Role;
use reqwest::StatusCode;
use serde_json::json;
use talaria::cron::ask;
use talaria_tests::model::{Progress, Step};
use talaria_tests::wait::eventually;
use talaria_tests::webhook::{WebhookClient, message};
use talaria_tests::{Chat, Setup, World};

const SERVICE: &str = env!("CARGO_BIN_EXE_service");

fn setup() -> Setup {
    Setup::default().set("cron.min_interval", "1s")
}

/// Sends a command, and returns what is answered.
async fn told(chat: &Chat<'_>, text: &str) -> String {
    let id = chat.say(text).await;
    chat.answered(&id).await.text("text").to_owned()
}

async fn bus(world: &World) -> Bus {
    Bus::connect(&world.settings().nats, "test").await.expect("the broker answers")
}

/// Waits until the only job of the world is as it should be.
async fn job(bus: &Bus, what: &str, is: impl Fn(&Job) -> bool) -> Job {
    eventually(what, || async {
        let mut jobs = ask(bus, None, JobAction::List).await.ok()?.jobs;
        (jobs.len() == 1 && is(&jobs[0])).then(|| jobs.remove(0))
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reminder_reaches_the_chat_once_and_is_gone() {
    let world = World::new(setup()).await;
    let system = world.run_all().await;
    let chat = world.chat(system.door(), "c1");
    let answer = told(&chat, "/cron add name=plants in 1s water the plants").await;
    assert!(answer.contains("\"plants\" is set"), "{answer}");
    let reply = chat.replies(1).await.remove(0);
    assert!(reply.starts_with("[plants]\nyou said: [Scheduled job"), "{reply}");
    assert!(reply.ends_with("water the plants"), "{reply}");
    assert!(chat.got("reply")[0].body["reply_to"].is_null(), "it answers no message");
    assert!(told(&chat, "/cron").await.starts_with("No scheduled jobs"));
    assert_eq!(world.model.count("water the plants"), 1);
    // The chat's own conversation knows nothing of it.
    chat.say("hello").await;
    assert_eq!(chat.replies(2).await[1], "you said: hello");
    assert_eq!(
        world.model.calls().last().unwrap().messages.len(),
        2,
        "instructions and one message"
    );
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_nothing_to_report_sends_nothing() {
    let world = World::new(setup()).await;
    let system = world.run_all().await;
    let chat = world.chat(system.door(), "c1");
    world.model.on("disk", [Step::Say("[SILENT]".into())]);
    told(&chat, "/cron add every 1s look at the disk").await;
    world.model.call("disk", 2, Progress::Done).await;
    let bus = bus(&world).await;
    let silent = |job: &Job| job.last.is_some_and(|last| last.end == JobEnd::Silent);
    let found = job(&bus, "a silent end", silent).await;
    told(&chat, &format!("/cron remove {}", found.id)).await;
    assert_eq!(told(&chat, "/cron list").await.lines().count(), 1);
    let posts = world.callbacks.posts();
    assert!(posts.iter().all(|post| !post.text("text").contains("SILENT")), "{posts:#?}");
    assert!(chat.got("reply").is_empty());
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_in_progress_is_not_overlapped_and_can_be_stopped() {
    let world = World::new(setup()).await;
    let system = world.run_all().await;
    let chat = world.chat(system.door(), "c1");
    world.model.on("slow", [Step::Hold("done".into())]);
    told(&chat, "/cron add name=mill every 1s slow work").await;
    world.model.call("slow", 1, Progress::Open).await;
    let bus = bus(&world).await;
    job(&bus, "two skipped times", |job| job.counts.skipped >= 2).await;
    assert_eq!(world.model.count("slow"), 1, "one run at a time");
    assert!(told(&chat, "/cron").await.contains("running for"));

    assert!(told(&chat, "/cron pause mill").await.contains("is paused"));
    assert!(told(&chat, "/cron stop mill").await.contains("is being stopped"));
    world.model.call("slow", 1, Progress::Closed).await;
    let stopped = job(&bus, "a stopped run", |job| job.run.is_none()).await;
    assert_eq!(stopped.last.map(|last| last.end), Some(JobEnd::Stopped));
    assert!(told(&chat, "/cron run mill").await.contains("runs now"));
    world.model.call("slow", 2, Progress::Open).await;
    world.model.release("slow");
    assert_eq!(chat.replies(1).await, ["[mill]\ndone"]);
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_scheduler_neither_loses_nor_doubles_a_run() {
    let world = World::new(setup().set("scheduler.lease_ttl", "20s")).await;
    let mut first = world.spawn(Role::Scheduler, SERVICE).await;
    let _second = world.spawn(Role::Scheduler, SERVICE).await;
    let _worker = world.spawn(Role::Worker, SERVICE).await;
    let ingress = world.spawn(Role::Ingress, SERVICE).await;
    let chats: Vec<_> = (0..8).map(|n| world.chat(ingress.address(), &format!("c{n}"))).collect();
    for (n, chat) in chats.iter().enumerate() {
        told(chat, &format!("/cron add in 3s tick {n}.")).await;
    }
    told(&chats[0], "/cron add name=beat every 1s beat").await;

    world.model.call("tick", 1, Progress::Done).await;
    first.kill9().await;
    for (n, chat) in chats.iter().enumerate() {
        let came = format!("the reminder {n}");
        let tick = format!("tick {n}.");
        eventually(&came, || async {
            chat.got("reply").iter().any(|post| post.text("text").ends_with(&tick)).then_some(())
        })
        .await;
    }
    // It goes on with its beat, whoever keeps the time.
    let before = world.model.count("beat");
    world.model.call("beat", before + 2, Progress::Done).await;
    let bus = bus(&world).await;
    ask(&bus, None, JobAction::Change { job: "beat".into(), change: JobChange::Pause })
        .await
        .unwrap();
    let beat = job(&bus, "the end of the last run", |job| job.run.is_none()).await;
    assert_eq!(
        beat.counts.runs,
        world.model.count("beat") as u64,
        "each run that began was run once"
    );
    for n in 0..chats.len() {
        assert_eq!(world.model.count(&format!("tick {n}.")), 1, "tick {n}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn times_that_pass_while_no_scheduler_runs_become_one_run() {
    let world = World::new(setup()).await;
    let mut scheduler = world.spawn(Role::Scheduler, SERVICE).await;
    let _worker = world.spawn(Role::Worker, SERVICE).await;
    let ingress = world.spawn(Role::Ingress, SERVICE).await;
    let chat = world.chat(ingress.address(), "c1");
    told(&chat, "/cron add every 2s count").await;
    let bus = bus(&world).await;
    let before = job(&bus, "a first run", |job| job.counts.runs == 1 && job.run.is_none()).await;
    scheduler.kill9().await;
    let late = before.next_ms.expect("it repeats") + 4_500;
    eventually("two times that pass", || async { (wall_ms() > late).then_some(()) }).await;
    let _next = world.spawn(Role::Scheduler, SERVICE).await;
    let after = job(&bus, "a merged run", |job| job.counts.missed >= 2).await;
    assert!(after.counts.runs <= before.counts.runs + 2, "{after:?}");
    world
        .model
        .wait_for("a run that knows what was missed", |calls| {
            calls.iter().find(|call| call.user.contains("more times were missed")).cloned()
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_agent_makes_jobs_and_a_job_makes_none() {
    let world = World::new(setup()).await;
    let system = world.run_all().await;
    let chat = world.chat(system.door(), "c1");
    let add = |schedule: &str, prompt: &str| Step::Call {
        name: "cron".into(),
        arguments: json!({ "action": "add", "schedule": schedule, "prompt": prompt, "name": "tea" }),
    };
    world.model.on("remind me", [add("in 1s", "boil water"), Step::Say("I will.".into())]);
    world.model.on("boil water", [add("in 1s", "more"), Step::Say("Tea!".into())]);
    chat.say("remind me of tea").await;
    assert_eq!(chat.replies(2).await, ["I will.", "[tea]\nTea!"]);
    let results: Vec<_> =
        world.model.calls().iter().flat_map(|call| call.messages.clone()).collect();
    let refused = results.iter().any(|message| {
        message["role"] == "tool" && message["content"].to_string().contains("cannot make another")
    });
    assert!(refused, "{results:#?}");
    assert!(told(&chat, "/cron").await.starts_with("No scheduled jobs"));
    world.model.assert_strict();
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_its_maker_and_the_operator_change_a_job_and_limits_are_said() {
    let world = World::new(Setup::default().set("cron.per_chat", 1)).await;
    let system = world.run_all().await;
    let chat = world.chat(system.door(), "c1");
    told(&chat, "/cron add name=mail tz=Europe/Berlin 0 9 * * 1-5 look at the mail").await;
    assert!(told(&chat, "/cron").await.contains("0 9 * * 1-5 (Europe/Berlin)"));
    assert!(told(&chat, "/cron add @daily more").await.contains("cron.per_chat"));
    assert!(told(&chat, "/cron add every 10s more").await.contains("cron.per_chat"));
    assert!(told(&chat, "/cron add now and then").await.contains("Write for example"));
    let other =
        chat.send(json!({ "user": { "id": "mallory" }, "text": "/cron remove mail" })).await;
    assert!(chat.answered(&other).await.text("text").contains("only they can change it"));

    let bus = bus(&world).await;
    let mail = job(&bus, "the job", |_| true).await;
    let add =
        JobAction::Add { schedule: "@daily".into(), prompt: "x".into(), name: None, zone: None };
    let refused = ask(&bus, Some(mail.home.clone()), add).await.unwrap();
    assert!(!refused.done && refused.text.contains("cron.per_chat"), "{refused:?}");
    let change = JobAction::Change { job: mail.id.to_string(), change: JobChange::Remove };
    assert!(ask(&bus, None, change.clone()).await.unwrap().done);
    let gone = ask(&bus, None, change).await.unwrap();
    assert!(!gone.done && gone.text.contains("There is no job"), "{gone:?}");
    assert!(told(&chat, "/cron add every 10s more").await.contains("cron.min_interval"));
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_jobs_are_for_admins_others_are_refused_and_the_agent_too() {
    let world = World::new(setup().set("cron.who", "admins")).await;
    let system = world.run_all().await;
    let client = WebhookClient::new(system.door());
    let answer = client.post(&message("m1", "c1", "/cron add in 1s x")).await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN, "{}", answer.body);
    let add = Step::Call {
        name: "cron".into(),
        arguments: json!({ "action": "add", "schedule": "in 1s", "prompt": "x" }),
    };
    world.model.on("do it", [add, Step::Say("no".into())]);
    let chat = world.chat(system.door(), "c1");
    chat.say("do it").await;
    assert_eq!(chat.replies(1).await, ["no"]);
    let last = world.model.calls().pop().unwrap().messages.pop().unwrap();
    assert!(last["content"].to_string().contains("Only administrators"), "{last}");
    system.stop().await;
}
