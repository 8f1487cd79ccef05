//! Cases B20 and B23: an album is one turn, and two chats are two sessions whatever their ids look like.

use std::net::SocketAddr;

use futures_util::future::join_all;
use proto::member::Role;
use reqwest::StatusCode;
use serde_json::{Value, json};
use talaria_tests::model::Progress;
use talaria_tests::webhook::WebhookClient;
use talaria_tests::{Setup, World};

const SERVICE: &str = env!("CARGO_BIN_EXE_service");

/// One part of an album; nobody can fetch the picture, which must not split it.
fn part(number: u32, caption: &str) -> Value {
    let photo = json!({
        "url": format!("http://127.0.0.1:1/{number}.png"), "kind": "photo", "mime": "image/png",
        "group": "album-1",
    });
    json!({ "text": caption, "media": [photo] })
}

#[tokio::test(flavor = "multi_thread")]
async fn b20_an_album_is_one_turn_in_its_place_and_words_in_between_are_the_next() {
    let world = World::new(Setup::default().set("scheduler.album_quiet", "500ms")).await;
    let system = world.run_all().await;
    let chat = world.chat(system.door(), "c1");
    let first = chat.send(part(1, "")).await;
    chat.send(part(2, "my three pictures")).await;
    let words = chat.say("and a question").await;
    chat.send(part(3, "")).await;

    chat.reply_to(&words).await;
    assert_eq!(chat.replies(2).await.len(), 2);
    assert_eq!(chat.got("reply")[0].text("reply_to"), first);
    assert_eq!(world.model.calls().len(), 2);
    assert_eq!(world.model.count("my three pictures"), 1);
    system.stop().await;
    world.model.assert_strict();
}

#[tokio::test(flavor = "multi_thread")]
async fn b20_stop_is_not_held_up_by_the_window_and_drops_the_album() {
    let world = World::new(Setup::default().set("scheduler.album_quiet", "20s")).await;
    let system = world.run_all().await;
    let chat = world.chat(system.door(), "c1");
    chat.send(part(1, "my pictures")).await;
    chat.send(part(2, "")).await;
    let stop = chat.say("/stop").await;
    assert!(chat.answered(&stop).await.text("text").starts_with("Stopped"));
    let next = chat.say("next").await;
    assert_eq!(chat.reply_to(&next).await, "you said: next");
    assert_eq!(world.model.count("my pictures"), 0);
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b20_a_crash_in_the_middle_of_an_album_still_gives_one_turn() {
    let world = World::new(Setup::default().set("scheduler.album_quiet", "1500ms")).await;
    let mut scheduler = world.spawn(Role::Scheduler, SERVICE).await;
    let _worker = world.spawn(Role::Worker, SERVICE).await;
    let ingress = world.spawn(Role::Ingress, SERVICE).await;
    let chat = world.chat(ingress.address(), "c1");
    let first = chat.send(part(1, "my pictures")).await;
    chat.send(part(2, "")).await;
    scheduler.kill9().await;
    let _next = world.spawn(Role::Scheduler, SERVICE).await;
    chat.send(part(3, "")).await;
    chat.reply_to(&first).await;
    assert_eq!(world.model.calls().len(), 1);
    assert_eq!(chat.got("reply").len(), 1);
}

/// Says something in a chat given as the platform gives it, and waits for the model to have answered.
async fn say(world: &World, door: SocketAddr, id: &str, chat: &Value, text: &str) {
    let client = WebhookClient::new(door);
    let body = json!({ "id": id, "chat": chat, "user": { "id": "u1" }, "text": text });
    let answer = client.post(&body).await;
    assert_eq!(answer.status, StatusCode::ACCEPTED, "{body}: {}", answer.body);
    world.model.call(text, 1, Progress::Done).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b23_chats_whose_ids_look_alike_are_different_sessions() {
    let dm = |id: &str| json!({ "id": id, "type": "dm" });
    let thread = |id: &str, thread: &str| json!({ "id": id, "type": "dm", "thread": thread });
    let long = "x".repeat(600);
    let pairs = [
        (thread("a:b", "c"), thread("a", "b:c")),
        (dm("a_b"), dm("a:b")),
        (dm("a.b"), dm("a_b2")),
        (dm("C0AB"), dm("c0ab")),
        (dm("room/1"), dm("room_1")),
        (dm("t"), thread("t", "")),
        (json!({ "id": "-100123", "type": "group" }), dm("100123")),
        (dm("\u{e9}"), dm("e\u{301}")),
        (dm("\u{1F600}"), dm("\u{1F601}")),
        (dm("*"), dm(">")),
        (dm("a b"), dm("a  b")),
        (dm(&long), dm(&format!("{long}x"))),
        (dm(".."), dm("a..b")),
        (dm(".a"), dm("a.")),
        (dm("../../etc"), dm("nul\u{0}byte")),
    ];
    let world = World::new(Setup::default()).await;
    let system = world.run_all().await;
    let (world, door) = (&world, system.door());
    join_all(pairs.iter().enumerate().map(|(n, (one, other))| async move {
        let secret = format!("secret-{n}.");
        say(world, door, &format!("{n}-1"), one, &secret).await;
        let question = format!("question-{n}.");
        say(world, door, &format!("{n}-2"), other, &question).await;
        let call = world.model.call(&question, 1, Progress::Done).await;
        let seen = serde_json::to_string(&call.messages).unwrap();
        assert!(!seen.contains(&secret), "{one} and {other} are one session");
    }))
    .await;
    system.stop().await;
}
