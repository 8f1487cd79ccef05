//! A user of the broker for each service: the system works, and none of them can do what is another's. TLS both ways.

use std::time::Duration;

use async_nats::jetstream;
use node::bus::{Bus, ConnectError};
use node::settings::{Secret, Settings};
use proto::member::Role;
use proto::permission::User;
use proto::topology::{INBOX, OUTBOX, TURNS};
use serde_json::json;
use talaria_tests::model::Step;
use talaria_tests::secured::SecuredNats;
use talaria_tests::wait::DEADLINE;
use talaria_tests::world::TOKEN;
use talaria_tests::{Service, Setup, System, World, http, webhook};
use tokio::time::timeout;

const INGRESS: User = User::Service(Role::Ingress);
const SCHEDULER: User = User::Service(Role::Scheduler);
const WORKER: User = User::Service(Role::Worker);

fn settings(world: &World, nats: &SecuredNats, user: User) -> Settings {
    let mut settings = world.settings();
    settings.nats = nats.access(user);
    settings.streams.create = false;
    settings
}

async fn run_all(world: &World, nats: &SecuredNats) -> System {
    let start = |role| Service::start(role, settings(world, nats, User::Service(role)));
    let operator = settings(world, nats, User::Operator);
    let pools = [operator.worker.pool.clone()];
    // The services start first, and wait for the streams.
    let (scheduler, worker, ingress, created) = tokio::join!(
        Box::pin(start(Role::Scheduler)),
        Box::pin(start(Role::Worker)),
        Box::pin(start(Role::Ingress)),
        Box::pin(talaria::init::create(&operator, &pools)),
    );
    created.expect("the operator may create everything");
    for service in [&scheduler, &worker, &ingress] {
        service.ready().await;
    }
    System { scheduler, worker, ingress }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_system_works_with_a_user_for_each_service() {
    let nats = SecuredNats::start().await;
    let world = World::new(Setup::default()).await;
    let system = run_all(&world, &nats).await;
    let chat = world.chat(system.door(), "c1");

    // What each path needs of the broker: a turn with a tool, a question and its answer, a command, a fresh conversation, a
    // background session, the API with a conversation of its own, the page's history.
    world.model.on("look", [Step::terminal("echo found"), Step::Say("I looked".into())]);
    chat.say("look").await;
    assert_eq!(chat.replies(1).await, ["I looked"]);
    chat.say("and again").await;
    chat.replies(2).await;
    let status = chat.say("/status").await;
    chat.answered(&status).await;
    let fresh = chat.say("/new").await;
    chat.answered(&fresh).await;
    chat.say("hello").await;
    chat.replies(3).await;
    let aside = chat.say("/background count").await;
    chat.answered(&aside).await;
    speak_elsewhere(&world, &system).await;
    let api = http::client()
        .post(format!("http://{}/v1/chat/completions", system.door()))
        .bearer_auth(TOKEN)
        .header("X-Session-Id", "s1")
        .json(&json!({ "model": "talaria", "messages": [{ "role": "user", "content": "hi" }] }))
        .send()
        .await
        .expect("the API answers");
    assert!(api.status().is_success(), "{}", api.status());
    let history = page_history(&system).await;
    assert!(history.status().is_success(), "{}", history.status());

    system.stop().await;
    assert_eq!(nats.refusals(), Vec::<String>::new(), "the broker refused what a service needs");
    world.model.assert_strict();
}

/// A message to another chat, which is asked about and approved for good.
async fn speak_elsewhere(world: &World, system: &System) {
    let (from, to) = (world.chat(system.door(), "from"), world.chat(system.door(), "to"));
    to.say("hello").await;
    to.replies(1).await;
    let arguments = json!({ "to": "webhook:to", "text": "lunch is ready" });
    let send = Step::Call { name: "send_message".into(), arguments };
    world.model.on("tell them", [send, Step::Say("told".into())]);
    from.say("tell them").await;
    from.question(1).await;
    let status = from.say("/status").await;
    from.answered(&status).await;
    from.say("/approve always").await;
    assert_eq!(from.replies(1).await, ["told"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn people_are_let_in_with_a_user_for_each_service() {
    let nats = SecuredNats::start().await;
    let hook = |key: &str| format!("ingress.webhook.{}.{key}", webhook::NAME);
    let setup = Setup::default().set(&hook("allow_all"), false).set(&hook("pair"), true);
    let world = World::new(setup).await;
    let system = run_all(&world, &nats).await;
    let client = webhook::WebhookClient::new(system.door());
    assert_eq!(client.message("1", "c1", "hello").await.status, 403);
    let notice = |nth: usize| {
        world.callbacks.wait_for("a notice", move |posts| {
            let mut notices = posts.iter().filter(|post| post.text("kind") == "notice");
            notices.nth(nth).map(|post| post.text("text").to_owned())
        })
    };
    let told = notice(0).await;
    let code = told.split("Your code is ").nth(1).and_then(|rest| rest.get(..6)).expect("a code");
    let operator = settings(&world, &nats, User::Operator);
    let bus = Bus::connect(&operator.nats, "operator").await.expect("the operator gets in");
    talaria::access::pair::approve(&bus, "webhook", code).await.expect("the code is right");
    assert!(notice(1).await.contains("let in"));
    assert_eq!(client.message("2", "c1", "hello").await.status, 202);
    assert_eq!(world.chat(system.door(), "c1").replies(1).await, ["you said: hello"]);
    node::channels::find(&bus, "webhook:c1").await.expect("the chat is known");
    system.stop().await;
    assert_eq!(nats.refusals(), Vec::<String>::new(), "the broker refused what is needed");
}

/// Opens the page as a browser would, and asks for a conversation.
async fn page_history(system: &System) -> reqwest::Response {
    let page = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build();
    let page = page.expect("a client");
    let door = system.door();
    let entered = page.get(format!("http://{door}/?token={TOKEN}")).send().await;
    let entered = entered.expect("the page answers");
    let cookie = entered.headers()["set-cookie"].to_str().expect("a cookie").to_owned();
    let cookie = cookie.split(';').next().unwrap_or_default().to_owned();
    let history =
        page.get(format!("http://{door}/web/history?session=s1")).header("cookie", cookie);
    history.send().await.expect("the page answers")
}

/// Publishes as a user and returns whether the broker refused it.
async fn refused(nats: &SecuredNats, user: User, subject: &str) -> bool {
    let (client, mut errors) = nats.connect(user).await;
    client.publish(subject.to_owned(), "{}".into()).await.expect("sent");
    client.flush().await.expect("the broker has read it");
    // Answers come in order: after this one, a refusal has come or there is none.
    client.subscribe("not.allowed.to.anyone").await.expect("sent");
    answer(user, &mut errors, subject).await
}

async fn cannot_listen(nats: &SecuredNats, user: User, subject: &str) -> bool {
    let (client, mut errors) = nats.connect(user).await;
    let _heard = client.subscribe(subject.to_owned()).await.expect("sent");
    client.subscribe("not.allowed.to.anyone").await.expect("sent");
    answer(user, &mut errors, subject).await
}

/// Whether a refusal of the subject comes before that of the last thing that was asked, which nobody may do.
async fn answer(
    user: User,
    errors: &mut tokio::sync::mpsc::UnboundedReceiver<String>,
    subject: &str,
) -> bool {
    loop {
        let said = timeout(DEADLINE, errors.recv()).await.expect("the broker answers");
        let said = said.unwrap_or_else(|| panic!("the connection of {user} is closed"));
        if said.contains(subject) {
            return true;
        }
        if said.contains("not.allowed.to.anyone") {
            return false;
        }
    }
}

/// A session.
const SID: &str = "0123456789abcdef0123456789abcdef";

/// What each must not publish.
fn forbidden() -> Vec<(User, String)> {
    vec![
        (INGRESS, format!("$KV.leases.1.{SID}")),
        (INGRESS, "$KV.leases.checkpoint.1".to_owned()),
        (INGRESS, format!("turn.default.{SID}")),
        (INGRESS, "$KV.identities.person.web.1".to_owned()),
        (INGRESS, format!("transcript.{SID}.1")),
        (INGRESS, "scheduler.1.claim".to_owned()),
        (INGRESS, "worker.1.control".to_owned()),
        (INGRESS, "$KV.members.worker.1".to_owned()),
        (INGRESS, "$JS.API.CONSUMER.CREATE.KV_members.x.$KV.members.*.*".to_owned()),
        (WORKER, format!("$KV.leases.1.{SID}")),
        (WORKER, format!("outbox.webhook.demo.{SID}")),
        (WORKER, format!("turn.default.{SID}")),
        (WORKER, "worker.1.control".to_owned()),
        (WORKER, "$KV.fleet.restart".to_owned()),
        (WORKER, format!("event.{SID}")),
        (WORKER, "$JS.API.CONSUMER.CREATE.OUTBOX.x.outbox.webhook.*.*".to_owned()),
        (WORKER, "$JS.API.CONSUMER.MSG.NEXT.OUTBOX.deliver-webhook-demo".to_owned()),
        (WORKER, "$JS.API.STREAM.MSG.GET.OUTBOX".to_owned()),
        (WORKER, format!("$JS.API.DIRECT.GET.OUTBOX.outbox.webhook.demo.{SID}")),
        (WORKER, "$JS.API.CONSUMER.CREATE.TURNS.x.turn.other.*".to_owned()),
        (WORKER, "$KV.members.scheduler.1".to_owned()),
        (SCHEDULER, format!("transcript.{SID}.1")),
        (SCHEDULER, format!("$KV.sessions.{SID}")),
        (SCHEDULER, "$JS.API.DIRECT.GET.TRANSCRIPT".to_owned()),
        (INGRESS, "$JS.API.STREAM.DELETE.INBOX".to_owned()),
        (WORKER, "$JS.API.STREAM.PURGE.INBOX".to_owned()),
        (SCHEDULER, "$JS.API.STREAM.UPDATE.KV_leases".to_owned()),
        (User::Operator, format!("$KV.leases.1.{SID}")),
        (User::Operator, format!("transcript.{SID}.1")),
    ]
}

/// What each must not hear.
const DEAF: [(User, &str); 12] = [
    (WORKER, "outbox.>"),
    (WORKER, "inbox.>"),
    (WORKER, "_INBOX.>"),
    (WORKER, "_INBOX_talaria-scheduler.>"),
    (WORKER, "scheduler.*.claim"),
    (WORKER, "event.*"),
    (WORKER, ">"),
    (INGRESS, "outbox.>"),
    (INGRESS, "_INBOX_talaria-worker.>"),
    (INGRESS, "$KV.leases.>"),
    (SCHEDULER, "draft.*.*"),
    (SCHEDULER, "_INBOX.>"),
];

#[tokio::test(flavor = "multi_thread")]
async fn no_service_can_do_what_is_anothers() {
    let nats = SecuredNats::start().await;
    let world = World::new(Setup::default()).await;
    let operator = settings(&world, &nats, User::Operator);
    talaria::init::create(&operator, &["default".to_owned()]).await.expect("created");
    let forbidden = forbidden();
    for (user, subject) in &forbidden {
        if *user == User::Operator {
            // Nothing that it listens to is refused, so its refusals are counted in the broker's log.
            let (client, _errors) = nats.connect(*user).await;
            client.publish(subject.clone(), "{}".into()).await.expect("sent");
            client.flush().await.expect("the broker has read it");
            let found = nats.refusals().iter().any(|line| line.contains(subject.as_str()));
            assert!(found, "{user} may publish to {subject}");
        } else {
            assert!(refused(&nats, *user, subject).await, "{user} may publish to {subject}");
        }
    }
    for (user, subject) in DEAF {
        assert!(cannot_listen(&nats, user, subject).await, "{user} may listen to {subject}");
    }
    // The test itself can fail: what is allowed is not refused.
    assert!(!refused(&nats, INGRESS, &format!("inbox.1.{SID}")).await);
    assert!(!cannot_listen(&nats, WORKER, "worker.*.control").await);

    // And nothing of all that has been stored.
    let (client, _errors) = nats.connect(User::Operator).await;
    let context = jetstream::new(client);
    for (stream, count) in [(INBOX, 1), (TURNS, 0), (OUTBOX, 0), ("KV_leases", 0)] {
        let info = context.get_stream(stream).await.expect("it exists").cached_info().clone();
        assert_eq!(info.state.messages, count, "{stream}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_password_or_the_certificate_nobody_gets_in() {
    let nats = SecuredNats::start().await;
    let connect = |access| async move { Bus::connect(&access, "talaria-worker").await };

    let mut access = nats.access(WORKER);
    access.password = Secret::new("wrong".to_owned());
    let error = connect(access).await.expect_err("a wrong password");
    assert!(matches!(error, ConnectError::Refused { .. }), "{error:?}");
    assert!(error.to_string().contains("nats.password"), "{error}");

    let mut access = nats.access(WORKER);
    (access.cert_file, access.key_file) = (None, None);
    connect(access).await.expect_err("no certificate");

    let mut access = nats.access(WORKER);
    access.ca_file = None;
    let error = connect(access).await.expect_err("an unknown authority");
    assert!(matches!(error, ConnectError::Tls { .. }), "{error:?}");

    let mut access = nats.access(WORKER);
    access.key_file = None;
    let error = connect(access).await.expect_err("half a certificate");
    assert!(matches!(error, ConnectError::HalfACertificate), "{error:?}");

    connect(nats.access(WORKER)).await.expect("as it should be");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_one_creates_is_waited_for_and_then_named() {
    let nats = SecuredNats::start().await;
    let world = World::new(Setup::default()).await;
    let stop = tokio_util::sync::CancellationToken::new();
    let connecting = node::Node::connect(settings(&world, &nats, WORKER), "talaria-worker", stop);
    // It waits rather than failing at once, and asks for nothing that it may not.
    assert!(timeout(Duration::from_secs(2), Box::pin(connecting)).await.is_err());
    assert_eq!(nats.refusals(), Vec::<String>::new());
}
