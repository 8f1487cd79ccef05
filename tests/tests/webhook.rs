//! The generic webhook's contract: what is answered to whom, what is delivered how, and that what is refused leaves no trace.

use std::time::Duration;

use proto::member::Role;
use reqwest::StatusCode;
use serde_json::json;
use talaria_tests::callback::Mood;
use talaria_tests::webhook::{SECRET, WebhookClient, message, sign};
use talaria_tests::{Setup, World};

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_comes_twice_is_one_turn_even_after_a_restart() {
    let world = World::new(Setup::default()).await;
    let system = world.run_all().await;
    let client = WebhookClient::new(system.door());
    let first = client.message("evt-1", "c1", "hello").await;
    assert_eq!(
        (first.status, first.body),
        (StatusCode::ACCEPTED, json!({ "status": "accepted", "id": "evt-1" }))
    );
    let second = client.message("evt-1", "c1", "hello").await;
    assert_eq!((second.status, &second.body["status"]), (StatusCode::OK, &json!("duplicate")));
    let chat = world.chat(system.door(), "c1");
    chat.replies(1).await;
    let talaria_tests::System { ingress, scheduler, worker } = system;

    ingress.stop().await;
    let ingress = world.run(Role::Ingress).await;
    let third = WebhookClient::new(ingress.address()).message("evt-1", "c1", "hello").await;
    assert_eq!((third.status, &third.body["status"]), (StatusCode::OK, &json!("duplicate")));

    // One more message, so that anything the third delivery might cause would come before its reply.
    let chat = world.chat(ingress.address(), "c1");
    chat.say("bye").await;
    assert_eq!(chat.replies(2).await, ["you said: hello", "you said: bye"]);
    assert_eq!(world.model.count("hello"), 1);
    tokio::join!(ingress.stop(), worker.stop());
    scheduler.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_leaves_no_trace() {
    let setup = Setup::default().set("ingress.body_limit", 4096);
    let world = World::new(setup).await;
    let system = world.run_all().await;
    let client = WebhookClient::new(system.door());
    let good = message("evt-1", "c1", "hello").to_string();
    let large = message("evt-2", "c1", &"x".repeat(8192)).to_string();
    let signed = |body: &str| Some(sign(SECRET, body.as_bytes()));
    let cases = [
        ("no signature", good.clone(), None, StatusCode::UNAUTHORIZED),
        (
            "a foreign signature",
            good.clone(),
            Some(sign("other", good.as_bytes())),
            StatusCode::UNAUTHORIZED,
        ),
        ("the signature of another body", good.clone(), signed("{}"), StatusCode::UNAUTHORIZED),
        ("half a signature", good.clone(), Some("sha256=00".into()), StatusCode::UNAUTHORIZED),
        ("too large", large.clone(), signed(&large), StatusCode::PAYLOAD_TOO_LARGE),
        ("not JSON", "hello".into(), signed("hello"), StatusCode::UNPROCESSABLE_ENTITY),
        ("an empty object", "{}".into(), signed("{}"), StatusCode::UNPROCESSABLE_ENTITY),
    ];
    for (case, body, signature, status) in cases {
        let answer = client.raw(body, signature.as_deref()).await;
        assert_eq!(answer.status, status, "{case}: {}", answer.body);
    }
    assert_eq!(world.nats.count("INBOX").await, Some(0));
    assert!(world.model.calls().is_empty() && world.callbacks.posts().is_empty());
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_is_refused() {
    let setup = Setup::default()
        .set("ingress.webhook.test.allow_all", false)
        .set("ingress.webhook.test.allowed_users", json!(["u2"]));
    let world = World::new(setup).await;
    let system = world.run_all().await;
    let client = WebhookClient::new(system.door());
    let answer = client.message("evt-1", "c1", "hello").await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN);
    let mut known = message("evt-2", "c1", "hello");
    known["user"]["id"] = json!("u2");
    assert_eq!(client.post(&known).await.status, StatusCode::ACCEPTED);
    assert_eq!(world.chat(system.door(), "c1").replies(1).await, ["you said: hello"]);
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_hook_is_not_there() {
    let world = World::new(Setup::default()).await;
    let system = world.run_all().await;
    let url = format!("http://{}/webhook/other", system.door());
    let answer = talaria_tests::http::client().post(url).body("{}").send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::NOT_FOUND);
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_platform_gets_each_reply_once_and_in_order() {
    let world = World::new(Setup::default()).await;
    let system = world.run_all().await;
    let chat = world.chat(system.door(), "c1");
    world.callbacks.be(Mood::Broken);

    chat.say("/queue one").await;
    chat.say("/queue two").await;
    let refused = |posts: &Vec<talaria_tests::callback::Post>| (posts.len() >= 2).then_some(());
    world.callbacks.wait_for("two refused tries", refused).await;
    world.callbacks.be(Mood::Fine);

    assert_eq!(chat.replies(2).await, ["you said: one", "you said: two"]);
    let posts = world.callbacks.posts();
    let first = &posts[0];
    let again = posts.iter().find(|post| post.taken).unwrap();
    assert_eq!(first.text("id"), again.text("id"), "a try keeps its id");
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_busy_platform_is_left_alone_for_as_long_as_it_says() {
    let world = World::new(Setup::default()).await;
    let system = world.run_all().await;
    let chat = world.chat(system.door(), "c1");
    world.callbacks.be(Mood::Busy { retry_after: 2 });

    chat.say("hello").await;
    let first = world.callbacks.wait_for("a refused try", |posts| posts.first().cloned()).await;
    world.callbacks.be(Mood::Fine);

    assert_eq!(chat.replies(1).await, ["you said: hello"]);
    let posts = world.callbacks.posts();
    assert_eq!(posts.len(), 2, "{posts:#?}");
    assert!(posts[1].at.duration_since(first.at) >= Duration::from_secs(2));
    system.stop().await;
}
