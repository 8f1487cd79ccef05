//! Slack, against a strict fake of its Web API, Socket Mode and Events API: messages in and replies out, drafts, buttons,
//! threads, requests that are not Slack's, floods, lost answers and sockets that end.

use std::time::Duration;

use serde_json::{Value, json};
use talaria_tests::model::{Progress, Step};
use talaria_tests::slack::{APP_TOKEN, BOT, BOT_TOKEN, SECRET, SlackServer, Trouble, callback};
use talaria_tests::wait::eventually;
use talaria_tests::{Setup, System, World};

/// Whom the app talks to.
const ADA: &str = "U0ADA";
/// Whom it does not know.
const EVE: &str = "U0EVE";
/// Ada's private chat.
const DIRECT: &str = "D0ADA";
/// A channel.
const CHANNEL: &str = "C0ONE";

const JSON: &str = "application/json";
const FORM: &str = "application/x-www-form-urlencoded";
const NOW: (&str, Duration) = (SECRET, Duration::ZERO);

fn setup(slack: &SlackServer, mode: &str) -> Setup {
    Setup::default()
        .set("ingress.slack.app.bot_token", BOT_TOKEN)
        .set("ingress.slack.app.app_token", APP_TOKEN)
        .set("ingress.slack.app.signing_secret", SECRET)
        .set("ingress.slack.app.mode", mode)
        .set("ingress.slack.app.base_url", slack.url())
        .set("ingress.slack.app.timeout", "5s")
        .set("access.platform.slack.allowed_users", json!([ADA]))
}

async fn start(mode: &str) -> (SlackServer, World, System) {
    let slack = SlackServer::start().await;
    let world = World::new(setup(&slack, mode)).await;
    let system = world.run_all().await;
    (slack, world, system)
}

fn event(event: &Value) -> (&'static str, String) {
    (JSON, callback(event).to_string())
}

fn form(fields: &[(&str, &str)]) -> (&'static str, String) {
    let mut url = reqwest::Url::parse("http://x/").expect("an address");
    url.query_pairs_mut().extend_pairs(fields);
    (FORM, url.query().expect("some fields").to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_over_the_socket_is_answered_and_acknowledged() {
    let (slack, world, system) = start("socket").await;
    world
        .model
        .on("hello", [Step::Say("hello **yourself** <b> & [a link](https://a.b/?c=1&d=2)".into())]);
    slack.say(DIRECT, ADA, "hello &amp; welcome");
    let shown = slack
        .reads(DIRECT, &["hello *yourself* &lt;b&gt; &amp; <https://a.b/?c=1&amp;d=2|a link>"])
        .await;
    assert_eq!(shown[0].thread, None);
    slack.all_acknowledged().await;
    assert_eq!(
        world.model.call("hello", 1, Progress::Done).await.user.matches("hello & welcome").count(),
        1
    );
    slack.say("D0EVE", EVE, "let me in");
    let code = slack.wait_for("a pairing code", |state| state.messages.get(1).cloned()).await;
    assert_eq!(code.channel, "D0EVE");
    assert_eq!(world.model.count("let me in"), 0);
    system.stop().await;
    slack.assert_strict();
    world.model.assert_strict();
}

#[tokio::test(flavor = "multi_thread")]
async fn only_slacks_own_requests_are_taken_and_each_once() {
    let (slack, world, system) = start("events").await;
    let door = system.door();
    let challenge =
        json!({ "type": "url_verification", "token": "x", "challenge": "abc" }).to_string();
    assert_eq!(
        slack.post(door, (JSON, challenge), NOW).await,
        (200, json!({ "challenge": "abc" }).to_string())
    );
    let message = slack.message(CHANNEL, ADA, &format!("<@{BOT}> hello"));
    let old = (SECRET, Duration::from_secs(301));
    for (secret, status) in [(("other", Duration::ZERO), 401), (old, 401), (NOW, 200)] {
        assert_eq!(slack.post(door, event(&message), secret).await.0, status);
    }
    // The same again as Slack would after a lost answer, and as the mention beside the message.
    let mut mention = message.clone();
    mention["type"] = "app_mention".into();
    mention.as_object_mut().unwrap().remove("channel_type");
    for again in [&message, &mention] {
        assert_eq!(slack.post(door, event(again), NOW).await.0, 200);
    }
    let shown = slack.reads(CHANNEL, &["you said: name of U0ADA: hello"]).await;
    assert_eq!(shown[0].thread.as_deref(), message["ts"].as_str());
    // One more, so that what the others might have caused would come before its reply.
    let mut more = slack.message(CHANNEL, ADA, "and now?");
    more["thread_ts"] = message["ts"].clone();
    assert_eq!(slack.post(door, event(&more), NOW).await.0, 200);
    slack
        .reads(CHANNEL, &["you said: name of U0ADA: hello", "you said: name of U0ADA: and now?"])
        .await;
    assert_eq!(world.model.count("hello"), 1);
    assert_eq!(slack.post(door, (JSON, "not JSON".into()), NOW).await.0, 400);
    system.stop().await;
    slack.assert_strict();
}

#[tokio::test(flavor = "multi_thread")]
async fn threads_are_conversations_of_their_own_and_need_one_mention() {
    let (slack, world, system) = start("socket").await;
    slack.say(CHANNEL, ADA, "not for you");
    let one = slack.say(CHANNEL, ADA, &format!("<@{BOT}> my secret is 42"));
    slack.reads(CHANNEL, &["you said: name of U0ADA: my secret is 42"]).await;
    let two = slack.say(CHANNEL, ADA, &format!("<@{BOT}> what is it?"));
    let shown = slack
        .wait_for("the second answer", |state| {
            (state.messages.len() == 2).then(|| state.messages.clone())
        })
        .await;
    let threads: Vec<_> = shown.iter().map(|message| message.thread.clone().unwrap()).collect();
    assert_eq!(threads, [one.clone(), two]);
    let mut third = slack.message(CHANNEL, ADA, "go on");
    third["thread_ts"] = one.clone().into();
    slack.envelope("events_api", callback(&third));
    let last = slack.wait_for("the third answer", |state| state.messages.get(2).cloned()).await;
    assert_eq!(last.thread, Some(one));
    let of = |text: &'static str| world.model.call(text, 1, Progress::Done);
    let knows = |call: talaria_tests::model::Call| {
        serde_json::to_string(&call.messages).unwrap().contains("my secret is 42")
    };
    assert!(!knows(of("what is it?").await) && knows(of("go on").await));
    assert_eq!(world.model.count("not for you"), 0);
    system.stop().await;
    slack.assert_strict();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draft_becomes_the_reply_and_a_new_message_interrupts() {
    let (slack, world, system) = start("socket").await;
    world.model.on(
        "slowly",
        [Step::Hold("These are the first words of a long answer that goes on".into())],
    );
    slack.say(DIRECT, ADA, "slowly");
    slack.wait_for("a draft", |state| state.messages.first().cloned()).await;
    world.model.release("slowly");
    let shown =
        slack.reads(DIRECT, &["These are the first words of a long answer that goes on"]).await;
    assert_eq!(shown.len(), 1, "the draft and the reply are one message");

    world.model.on("for ever", [Step::Hold("I begin".into())]);
    slack.say(DIRECT, ADA, "for ever");
    world.model.call("for ever", 1, Progress::Open).await;
    slack.say(DIRECT, ADA, "something else");
    world.model.call("for ever", 1, Progress::Closed).await;
    slack
        .wait_for("the answer to the second", |state| {
            state.messages.iter().any(|m| m.text.contains("you said: something else")).then_some(())
        })
        .await;
    system.stop().await;
    slack.assert_strict();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_is_approved_by_a_button_and_by_nobody_else() {
    let (slack, world, system) = start("socket").await;
    world.model.on("delete", [Step::terminal("rm -rf ./old"), Step::Say("gone".into())]);
    slack.say(CHANNEL, ADA, &format!("<@{BOT}> delete"));
    let question = slack
        .wait_for("the question", |state| {
            state.messages.iter().find(|message| !message.buttons().is_empty()).cloned()
        })
        .await;
    let approve = question.buttons()[0].clone();
    slack.envelope("interactive", slack.press(EVE, &question, &approve));
    let told = slack
        .wait_for("what Eve is told", |state| {
            state.calls.iter().find(|call| call.method == "chat.postEphemeral").cloned()
        })
        .await;
    assert_eq!(
        (&told.arguments["user"], &told.arguments["thread_ts"]),
        (&json!(EVE), &json!(question.thread))
    );
    assert_eq!(slack.shown(CHANNEL)[0].buttons().len(), 2, "still undecided");

    slack.envelope("interactive", slack.press(ADA, &question, &approve));
    slack
        .wait_for("the reply, and no buttons", |state| {
            let gone = state.messages.iter().any(|message| message.text == "gone");
            let none = state.messages.iter().all(|message| message.buttons().is_empty());
            (gone && none).then_some(())
        })
        .await;
    slack.all_acknowledged().await;
    system.stop().await;
    slack.assert_strict();
}

#[tokio::test(flavor = "multi_thread")]
async fn buttons_and_commands_come_to_the_door_as_well() {
    let (slack, world, system) = start("events").await;
    let door = system.door();
    world.model.on("delete", [Step::terminal("rm -rf ./old"), Step::Say("kept".into())]);
    slack.post(door, event(&slack.message(DIRECT, ADA, "delete")), NOW).await;
    let question = slack
        .wait_for("the question", |state| {
            state.messages.iter().find(|message| !message.buttons().is_empty()).cloned()
        })
        .await;
    let press = slack.press(ADA, &question, &question.buttons()[1]).to_string();
    assert_eq!(
        slack.post(door, form(&[("payload", &press)]), ("other", Duration::ZERO)).await.0,
        401
    );
    assert_eq!(slack.post(door, form(&[("payload", &press)]), NOW).await.0, 200);
    slack
        .wait_for("the reply", |state| {
            state.messages.iter().any(|m| m.text == "kept").then_some(())
        })
        .await;

    let command = |user, text, trigger| {
        form(&[
            ("command", "/talaria"),
            ("text", text),
            ("user_id", user),
            ("user_name", "someone"),
            ("channel_id", CHANNEL),
            ("channel_name", "one"),
            ("trigger_id", trigger),
            ("response_url", "https://hooks.slack.com/x"),
            ("team_id", "T0"),
        ])
    };
    let (status, told) = slack.post(door, command(EVE, "status", "t1"), NOW).await;
    assert!(status == 200 && told.contains("ephemeral"), "{status} {told}");
    assert_eq!(
        slack.post(door, command(ADA, "what is up?", "t2"), NOW).await,
        (200, String::new())
    );
    assert_eq!(slack.post(door, command(ADA, "what is up?", "t2"), NOW).await.0, 200);
    slack.reads(CHANNEL, &["you said: what is up?"]).await;
    assert_eq!(world.model.count("what is up?"), 1);
    system.stop().await;
    slack.assert_strict();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_that_ends_loses_nothing_and_doubles_nothing() {
    let (slack, world, system) = start("socket").await;
    slack.lose_receipts();
    slack.say(DIRECT, ADA, "one");
    slack.reads(DIRECT, &["you said: one"]).await;
    slack.cut(false);
    slack.say(DIRECT, ADA, "two");
    slack.reads(DIRECT, &["you said: one", "you said: two"]).await;
    slack.all_acknowledged().await;
    slack.cut(true);
    slack.say(DIRECT, ADA, "three");
    slack.reads(DIRECT, &["you said: one", "you said: two", "you said: three"]).await;
    slack.wait_for("three sockets", |state| (state.sockets == 3).then_some(())).await;
    assert_eq!(world.model.count("one"), 1);
    system.stop().await;
    slack.assert_strict();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_is_waited_out_and_others_are_served() {
    let slack = SlackServer::start().await;
    let world = World::new(setup(&slack, "socket").set("access.allow_all", true)).await;
    let system = world.run_all().await;
    slack.trouble("chat.postMessage", [Trouble::Flood(3)]);
    slack.say(DIRECT, ADA, "one");
    let first = slack
        .wait_for("the flood", |state| {
            state.calls.iter().find(|call| call.method == "chat.postMessage" && !call.ok).cloned()
        })
        .await;
    slack.say("D0EVE", EVE, "two");
    slack.reads("D0EVE", &["you said: two"]).await;
    slack.reads(DIRECT, &["you said: one"]).await;
    let calls = slack.calls("chat.postMessage");
    let again = calls.iter().find(|call| call.ok && call.arguments["channel"] == DIRECT).unwrap();
    assert!(again.at - first.at >= Duration::from_secs(3));
    system.stop().await;
    slack.assert_strict();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_whose_answer_was_lost_is_looked_for_and_not_sent_twice() {
    let (slack, _world, system) = start("socket").await;
    slack.trouble("chat.postMessage", [Trouble::Lost]);
    slack.say(DIRECT, ADA, "one");
    slack.reads(DIRECT, &["you said: one"]).await;
    slack.say(DIRECT, ADA, "two");
    slack.reads(DIRECT, &["you said: one", "you said: two"]).await;
    assert_eq!(slack.calls("conversations.history").len(), 1);
    system.stop().await;
    slack.assert_strict();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_is_taken_back_while_it_waits_is_not_answered() {
    let (slack, world, system) = start("socket").await;
    world.model.on("busy", [Step::Hold("working".into())]);
    slack.say(DIRECT, ADA, "busy");
    world.model.call("busy", 1, Progress::Open).await;
    let waiting = slack.say(DIRECT, ADA, "!queue forget this");
    slack.all_acknowledged().await;
    let deleted = json!({
        "type": "message", "subtype": "message_deleted", "channel": DIRECT, "channel_type": "im",
        "ts": slack.ts(), "event_ts": slack.ts(), "deleted_ts": waiting, "hidden": true,
        "previous_message": { "type": "message", "user": ADA, "text": "!queue forget this", "ts": waiting },
    });
    slack.envelope("events_api", callback(&deleted));
    slack.say(DIRECT, ADA, "!queue the last");
    slack.all_acknowledged().await;
    world.model.release("busy");
    slack
        .wait_for("the last answer", |state| {
            state.messages.iter().any(|m| m.text == "you said: the last").then_some(())
        })
        .await;
    assert_eq!(world.model.count("forget this"), 0);
    system.stop().await;
    slack.assert_strict();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_fetched_when_a_turn_reads_it() {
    let (slack, world, system) = start("socket").await;
    slack.put_file("F01", b"the magic word is xyzzy");
    let mut shared = slack.message(DIRECT, ADA, "what is the word?");
    shared["subtype"] = "file_share".into();
    shared["files"] = json!([{
        "id": "F01", "name": "note.txt", "mimetype": "text/plain", "mode": "hosted", "size": 23,
        "url_private": "https://files.slack.com/files-pri/T0-F01/note.txt",
    }]);
    slack.envelope("events_api", callback(&shared));
    let call = world.model.call("what is the word?", 1, Progress::Done).await;
    let messages = serde_json::to_string(&call.messages).unwrap();
    assert!(messages.contains("the magic word is xyzzy"), "{messages}");
    system.stop().await;
    slack.assert_strict();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_token_pauses_its_account_and_nothing_else() {
    let slack = SlackServer::start().await;
    let setup = setup(&slack, "socket")
        .set("ingress.slack.revoked.bot_token", "xoxb-revoked")
        .set("ingress.slack.revoked.app_token", "xapp-other")
        .set("ingress.slack.revoked.base_url", slack.url())
        .set("ingress.slack.half.bot_token", "xoxb-half")
        .set("ingress.slack.half.base_url", slack.url());
    let world = World::new(setup).await;
    let system = world.run_all().await;
    slack.say(DIRECT, ADA, "hello");
    slack.reads(DIRECT, &["you said: hello"]).await;
    let url = format!("http://{}/readyz", system.door());
    let ready = eventually("both paused", || async {
        let answer = talaria_tests::http::client().get(&url).send().await.ok()?;
        let text = answer.text().await.ok()?;
        (text.matches("is paused").count() == 2).then_some(text)
    })
    .await;
    assert!(
        ready.contains("slack/revoked is paused: Slack says invalid_auth to auth.test"),
        "{ready}"
    );
    assert!(ready.contains("ingress.slack.half.app_token is not set"), "{ready}");
    system.stop().await;
}
