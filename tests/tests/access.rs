//! Who may talk to the agent, on every path and at every moment, with a broker and through the generic webhook: unknown people
//! are paired, what waits is judged again, and a channel has its own words.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use node::bus::Bus;
use node::identities;
use node::topology;
use proto::access::Rules;
use proto::member::Role;
use proto::topology::INBOX;
use reqwest::StatusCode;
use serde_json::{Value, json};
use talaria::access::pair;
use talaria_tests::callback::Post;
use talaria_tests::model::{Progress, Step};
use talaria_tests::webhook::{Answer, NAME, WebhookClient, message};
use talaria_tests::{Setup, System, World};

fn hook(key: &str) -> String {
    format!("ingress.webhook.{NAME}.{key}")
}

/// A hook that nobody is listed for, and that answers who asks.
fn closed() -> Setup {
    Setup::default().set(&hook("allow_all"), false).set(&hook("pair"), true)
}

async fn bus(world: &World) -> Bus {
    let settings = world.settings();
    let bus = Bus::connect(&settings.nats, "test").await.unwrap();
    topology::ensure(bus, &settings.streams).await.unwrap()
}

/// A text message of someone, in their private chat unless the chat says otherwise.
fn from(user: &str, id: &str, chat: &str, text: &str) -> Value {
    let mut body = message(id, chat, text);
    body["user"] = json!({ "id": user, "name": format!("Name of {user}") });
    body
}

async fn post(system: &System, body: Value) -> Answer {
    WebhookClient::new(system.door()).post(&body).await
}

async fn notice(world: &World, chat: &str, nth: usize) -> Post {
    let what = format!("notice {nth} in {chat}");
    let found = |posts: &Vec<Post>| {
        let mut of =
            posts.iter().filter(|post| post.chat() == chat && post.text("kind") == "notice");
        of.nth(nth - 1).cloned()
    };
    world.callbacks.wait_for(&what, found).await
}

/// The six digits in a notice.
fn code_in(post: &Post) -> String {
    let digits = |word: &&str| word.len() == 6 && word.bytes().all(|b| b.is_ascii_digit());
    let mut words = post.text("text").split(|c: char| !c.is_ascii_digit());
    words.find(|word| digits(word)).expect("a code").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn someone_unknown_is_paired_by_a_code_and_can_be_shut_out_again() {
    let world = World::new(closed()).await;
    let system = world.run_all().await;
    let bus = bus(&world).await;

    let refused = post(&system, from("ann", "1", "ann-dm", "hello")).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.body);
    let told = notice(&world, "ann-dm", 1).await;
    let code = code_in(&told);
    assert!(told.text("text").contains(&format!("talaria pair approve webhook {code}")));

    // Who asks again is not answered again, and groups are never.
    assert_eq!(post(&system, from("ann", "2", "ann-dm", "hello?")).await.status, 403);
    let mut in_group = from("bob", "3", "room", "hello");
    in_group["chat"]["type"] = json!("group");
    assert_eq!(post(&system, in_group).await.status, 403);
    assert_eq!(world.nats.count(INBOX).await, Some(0), "nothing of theirs is stored");

    let requests = identities::requests(&bus, Some("webhook")).await.unwrap();
    let stored = serde_json::to_string(&requests[0].record).unwrap();
    assert_eq!(requests.len(), 1, "{stored}");
    assert!(!stored.contains(&code), "the code is not stored: {stored}");

    let wrong = if code == "000000" { "000001" } else { "000000" };
    let error = pair::approve(&bus, "webhook", wrong).await.unwrap_err().to_string();
    assert!(error.contains("4 more wrong codes"), "{error}");
    pair::approve(&bus, "signal", &code).await.unwrap_err();
    let person = pair::approve(&bus, "webhook", &code).await.unwrap();
    assert_eq!((person.id.as_str(), person.name.as_deref()), ("ann", Some("Name of ann")));
    assert!(notice(&world, "ann-dm", 2).await.text("text").contains("let in"));
    pair::approve(&bus, "webhook", &code).await.unwrap_err();

    let accepted = post(&system, from("ann", "4", "ann-dm", "and now?")).await;
    assert_eq!(accepted.status, StatusCode::ACCEPTED, "{}", accepted.body);
    let chat = world.chat(system.door(), "ann-dm");
    assert_eq!(chat.reply_to("4").await, "you said: and now?");
    assert_eq!(post(&system, from("bob", "5", "room", "me too")).await.status, 403);

    identities::revoke(&bus, "webhook", "ann").await.unwrap();
    assert_eq!(post(&system, from("ann", "6", "ann-dm", "still?")).await.status, 403);
    identities::allow(&bus, "webhook", "ann", None).await.unwrap();
    assert_eq!(post(&system, from("ann", "7", "ann-dm", "again?")).await.status, 202);
    chat.reply_to("7").await;
    assert_eq!(chat.got("notice").len(), 2, "one code and one welcome");
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_few_may_ask_at_once_and_wrong_codes_lock_the_platform() {
    let world = World::new(closed()).await;
    let system = world.run_all().await;
    let bus = bus(&world).await;
    let mut codes = Vec::new();
    for user in ["a", "b", "c"] {
        post(&system, from(user, user, user, "hello")).await;
        codes.push(code_in(&notice(&world, user, 1).await));
    }
    post(&system, from("d", "d", "d", "hello")).await;
    assert!(notice(&world, "d", 1).await.text("text").contains("too many others"));
    assert_eq!(identities::requests(&bus, None).await.unwrap().len(), 4);

    let wrong = ["000000", "111111", "222222", "333333", "444444", "555555", "666666", "777777"];
    let wrong: Vec<&str> =
        wrong.into_iter().filter(|code| !codes.iter().any(|right| right == code)).take(5).collect();
    for code in wrong {
        pair::approve(&bus, "webhook", code).await.unwrap_err();
    }
    let error = pair::approve(&bus, "webhook", &codes[0]).await.unwrap_err().to_string();
    assert!(error.contains("locked") && error.contains("--user"), "{error}");
    assert_eq!(post(&system, from("a", "a2", "a", "well?")).await.status, 403);
    assert_eq!(post(&system, from("e", "e", "e", "hello")).await.status, 403);
    identities::allow(&bus, "webhook", "a", None).await.unwrap();
    assert_eq!(post(&system, from("a", "a3", "a", "well?")).await.status, 202);
    // Whatever was said to the last one would have come before the reply to the first.
    world.chat(system.door(), "a").reply_to("a3").await;
    assert!(world.callbacks.taken("e", "notice").is_empty(), "a locked platform gives no codes");
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_of_someone_who_is_shut_out_is_refused_when_it_is_taken_up() {
    let setup = Setup::default()
        .set(&hook("allow_all"), false)
        .set(&hook("allowed_users"), json!(["ann", "eve"]))
        .set(&hook("busy_mode"), "queue");
    let world = World::new(setup).await;
    let system = world.run_all().await;
    let bus = bus(&world).await;
    world.model.on("long story", [Step::Hold("once".into())]);
    // A thread that is a chat of its own: both speak in one session.
    let say = |user: &str, id: &str, text: &str| {
        let mut body = from(user, id, "room", text);
        body["chat"]["type"] = json!("thread");
        body
    };
    let chat = world.chat(system.door(), "room");
    assert_eq!(post(&system, say("ann", "1", "tell a long story")).await.status, 202);
    world.model.call("long story", 1, Progress::Open).await;
    assert_eq!(post(&system, say("eve", "2", "secrets please")).await.status, 202);
    assert_eq!(post(&system, say("eve", "3", "/model openai:other")).await.status, 202);
    assert_eq!(post(&system, say("ann", "4", "thank you")).await.status, 202);
    identities::revoke(&bus, "webhook", "eve").await.unwrap();

    // From now on nothing of theirs is taken: no words, no command, no edit, no withdrawal, no answer to a question.
    for body in [
        say("eve", "5", "hello"),
        say("eve", "6", "/stop"),
        say("eve", "7", "/approve"),
        json!({ "edits": "2", "text": "other secrets" }),
        json!({ "deletes": "4", "text": null }),
    ] {
        let mut whole = say("eve", "8", "x");
        for (key, value) in body.as_object().unwrap() {
            whole[key] = value.clone();
        }
        let answer = post(&system, whole).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{body}: {}", answer.body);
    }
    world.model.release("long story");
    assert_eq!(chat.reply_to("1").await, "once");
    assert!(chat.reply_to("2").await.contains("may not talk to me any more"));
    assert_eq!(chat.reply_to("4").await, "you said: Name of ann: thank you");
    assert_eq!(world.model.count("secrets"), 0, "the model never saw it");
    system.stop().await;
    world.model.assert_strict();
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_taken_from_a_list_is_refused_too_and_who_is_added_is_not() {
    let setup =
        Setup::default().set(&hook("allow_all"), false).set(&hook("allowed_users"), json!(["ann"]));
    let world = World::new(setup).await;
    let scheduler = world.run(Role::Scheduler).await;
    let ingress = world.start(Role::Ingress).await;
    let client = WebhookClient::new(ingress.address());
    let bus = bus(&world).await;
    assert_eq!(client.post(&from("ann", "1", "ann-dm", "hello")).await.status, 202);

    // As another configuration of ingress would publish it, before there is a worker.
    let rules = Rules { users: vec!["bob".into()], ..Rules::default() };
    identities::publish_rules(&bus, "webhook", NAME, &rules).await.unwrap();
    let worker = world.run(Role::Worker).await;
    let chat = world.chat(ingress.address(), "ann-dm");
    assert!(chat.reply_to("1").await.contains("may not talk to me any more"));
    assert!(world.model.calls().is_empty());

    let rules = Rules { users: vec!["ann".into()], ..Rules::default() };
    identities::publish_rules(&bus, "webhook", NAME, &rules).await.unwrap();
    assert_eq!(client.post(&from("ann", "2", "ann-dm", "hello")).await.status, 202);
    assert_eq!(chat.reply_to("2").await, "you said: hello");
    tokio::join!(ingress.stop(), worker.stop());
    scheduler.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_channel_has_its_own_words_and_several_people_are_told_apart() {
    let channel = |key: &str| format!("access.platform.webhook.channel.C0AB.{key}");
    let setup = Setup::default()
        .set(&channel("prompt"), "In this channel you answer in rhyme.")
        .set("access.platform.webhook.group_sessions_per_user", false);
    let world = World::new(setup).await;
    let system = world.run_all().await;
    let say = |user: &str, id: &str, chat: &str, text: &str| {
        let mut body = from(user, id, chat, text);
        body["chat"]["type"] = json!("group");
        body
    };
    post(&system, say("ann", "1", "C0AB", "hello")).await;
    let chat = world.chat(system.door(), "C0AB");
    assert_eq!(chat.reply_to("1").await, "you said: Name of ann: hello");
    post(&system, say("bob", "2", "C0AB", "hello too")).await;
    assert_eq!(chat.reply_to("2").await, "you said: Name of bob: hello too");
    post(&system, say("bob", "3", "c0ab", "elsewhere")).await;
    world.chat(system.door(), "c0ab").reply_to("3").await;

    let calls = world.model.calls();
    let system_of = |call: usize| calls[call].messages[0]["content"].to_string();
    assert!(system_of(0).contains("answer in rhyme"), "{}", system_of(0));
    assert!(!system_of(2).contains("answer in rhyme"), "ids differ in case");
    let heard = calls[1].messages.iter().filter(|message| message["role"] == "user").count();
    assert_eq!(heard, 2, "one conversation: {:#?}", calls[1].messages);
    system.stop().await;
}
