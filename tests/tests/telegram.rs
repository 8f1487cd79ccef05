//! Telegram, against a strict fake of its Bot API: messages in and replies out, drafts, buttons, albums, floods, lost answers,
//! and processes that die or share a token.

use std::time::Duration;

use proto::member::Role;
use serde_json::json;
use talaria_tests::model::Step;
use talaria_tests::telegram::{TOKEN, TelegramServer, Trouble, in_group, private};
use talaria_tests::wait::eventually;
use talaria_tests::{Setup, World};

/// Whom the bot talks to.
const ADA: i64 = 1001;
/// Whom it does not know.
const EVE: i64 = 6666;

const SERVICE: &str = env!("CARGO_BIN_EXE_service");

fn setup(telegram: &TelegramServer) -> Setup {
    Setup::default()
        .set("ingress.telegram.bot.token", TOKEN)
        .set("ingress.telegram.bot.base_url", telegram.url())
        .set("ingress.telegram.bot.poll", "5s")
        .set("ingress.telegram.bot.timeout", "5s")
        .set("access.platform.telegram.allowed_users", json!([ADA.to_string()]))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_answered_and_confirmed_only_when_it_is_stored() {
    let telegram = TelegramServer::start().await;
    let world = World::new(setup(&telegram)).await;
    let system = world.run_all().await;
    // Long enough for a sign that the agent writes.
    let pause = Duration::from_millis(400);
    world.model.on("hello", [Step::Slow("hello **yourself** <b>".into(), pause)]);

    let id = telegram.say(ADA, "hello");

    let shown = telegram.reads(ADA, &["hello yourself <b>"]).await;
    assert_eq!(shown[0].markup, "hello <b>yourself</b> &lt;b&gt;");
    assert_eq!(shown[0].reply_to, Some(id));
    telegram
        .wait_for("the menu of commands", |state| {
            state.calls.iter().any(|call| call.method == "setMyCommands").then_some(())
        })
        .await;
    telegram.wait_for("the confirmation", |state| (state.unconfirmed() == 0).then_some(())).await;
    telegram
        .wait_for("the sign of writing", |state| {
            state.calls.iter().any(|call| call.method == "sendChatAction").then_some(())
        })
        .await;
    system.stop().await;
    telegram.assert_strict();
    world.model.assert_strict();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draft_is_one_message_that_becomes_the_reply() {
    let telegram = TelegramServer::start().await;
    let world = World::new(setup(&telegram)).await;
    let system = world.run_all().await;
    let words: Vec<String> = (0..60).map(|number| format!("word{number}")).collect();
    let text = words.join(" ");
    world.model.on("count", [Step::Slow(text.clone(), Duration::from_millis(80))]);

    telegram.say(ADA, "count");

    let shown = telegram.reads(ADA, &[&text]).await;
    assert!(shown[0].states.len() >= 3, "{:?}", shown[0].states);
    assert!(shown[0].states.iter().all(|state| text.starts_with(state.trim_end())));
    let edits = telegram.calls("editMessageText");
    for pair in edits[..edits.len() - 1].windows(2) {
        assert!(
            pair[1].at - pair[0].at >= Duration::from_millis(1000),
            "edits keep their interval"
        );
    }
    assert_eq!(telegram.calls("sendMessage").len(), 1);
    system.stop().await;
    telegram.assert_strict();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_is_waited_out_without_another_call_and_others_are_served() {
    let telegram = TelegramServer::start().await;
    let world = World::new(setup(&telegram).set("access.allow_all", true)).await;
    let system = world.run_all().await;
    telegram.trouble("sendMessage", [Trouble::Flood(3)]);

    telegram.say(ADA, "one");
    telegram
        .wait_for("the flood", |state| state.calls.iter().any(|c| c.code == 429).then_some(()))
        .await;
    telegram.say(EVE, "two");

    telegram.reads(EVE, &["you said: two"]).await;
    telegram.reads(ADA, &["you said: one"]).await;
    assert_eq!(telegram.floods(), 0, "the chat was left in peace");
    let calls = telegram.calls("sendMessage");
    let of_ada: Vec<_> = calls.iter().filter(|c| c.arguments["chat_id"] == ADA).collect();
    assert!(of_ada[1].at - of_ada[0].at >= Duration::from_secs(3));
    system.stop().await;
    telegram.assert_strict();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_to_a_send_is_labelled_and_one_to_an_edit_is_repeated() {
    let telegram = TelegramServer::start().await;
    let world = World::new(setup(&telegram)).await;
    let system = world.run_all().await;
    telegram.trouble("sendMessage", [Trouble::Lost]);
    telegram.say(ADA, "one");
    telegram.reads(ADA, &["you said: one", "(may be a duplicate) you said: one"]).await;
    system.stop().await;
    telegram.assert_strict();
}

#[tokio::test(flavor = "multi_thread")]
async fn markup_that_is_refused_is_sent_plain() {
    let telegram = TelegramServer::start().await;
    let world = World::new(setup(&telegram)).await;
    let system = world.run_all().await;
    world.model.on("bold", [Step::Say("**bold** words".into())]);
    let why = "Bad Request: can't parse entities: Unsupported start tag";
    telegram.trouble("sendMessage", [Trouble::Refused(400, why)]);
    telegram.say(ADA, "bold");
    let shown = telegram.reads(ADA, &["bold words"]).await;
    assert_eq!(shown[0].markup, "bold words");
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_reply_comes_in_numbered_parts() {
    let telegram = TelegramServer::start().await;
    let world = World::new(setup(&telegram)).await;
    let system = world.run_all().await;
    let code = "let x = 1; // 😀\n".repeat(500);
    world.model.on("long", [Step::Say(format!("Here:\n\n```rust\n{code}```\n\nDone."))]);
    telegram.say(ADA, "long");
    let shown = telegram
        .wait_for("all parts", |state| {
            let last = state.messages.last()?;
            last.text.contains("Done.").then(|| state.messages.clone())
        })
        .await;
    assert!(shown.len() >= 2);
    let count = shown.len();
    for (index, message) in shown.iter().enumerate() {
        assert!(message.text.ends_with(&format!("({}/{count})", index + 1)), "{}", message.text);
        assert!(
            message.markup.contains("<pre><code class=\"language-rust\">"),
            "{}",
            message.markup
        );
    }
    system.stop().await;
    telegram.assert_strict();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_is_approved_by_a_button_and_by_nobody_else() {
    let telegram = TelegramServer::start().await;
    let world = World::new(setup(&telegram)).await;
    let system = world.run_all().await;
    world.model.on("delete", [Step::terminal("rm -rf ./old"), Step::Say("gone".into())]);
    telegram.say(ADA, "delete");
    let question = telegram
        .wait_for("the question", |state| {
            state.messages.iter().find(|message| !message.buttons.is_empty()).cloned()
        })
        .await;
    assert_eq!(question.buttons.len(), 2);

    telegram.press(EVE, &question, &question.buttons[0]);
    telegram
        .wait_for("the answer to Eve", |state| {
            state.calls.iter().any(|call| call.method == "answerCallbackQuery").then_some(())
        })
        .await;
    assert!(telegram.calls("answerCallbackQuery")[0].arguments["text"] != "");
    assert_eq!(telegram.shown(ADA)[0].buttons.len(), 2, "still undecided");

    telegram.press(ADA, &question, &question.buttons[0]);
    telegram
        .wait_for("the reply", |state| {
            state.messages.iter().any(|m| m.text == "gone").then_some(())
        })
        .await;
    telegram
        .wait_for("no buttons", |state| {
            state.messages.iter().all(|message| message.buttons.is_empty()).then_some(())
        })
        .await;
    system.stop().await;
    telegram.assert_strict();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_album_is_one_turn() {
    let telegram = TelegramServer::start().await;
    let world = World::new(setup(&telegram)).await;
    let system = world.run_all().await;
    for number in 0..3 {
        let mut part = private(telegram.message_id(), ADA, "");
        part.as_object_mut().unwrap().remove("text");
        part["media_group_id"] = "album-1".into();
        part["photo"] = json!([
            { "file_id": format!("small-{number}"), "file_unique_id": "s", "width": 90, "height": 90 },
            { "file_id": format!("large-{number}"), "file_unique_id": "l", "width": 900, "height": 900 },
        ]);
        if number == 1 {
            part["caption"] = "what are these?".into();
        }
        telegram.update("message", part);
    }
    telegram
        .wait_for("the reply", |state| {
            state.messages.iter().find(|m| m.text.contains("what are these?")).cloned()
        })
        .await;
    telegram.wait_for("all taken", |state| (state.unconfirmed() == 0).then_some(())).await;
    assert_eq!(telegram.shown(ADA).len(), 1);
    system.stop().await;
    telegram.assert_strict();
}

#[tokio::test(flavor = "multi_thread")]
async fn in_groups_only_what_is_meant_for_the_bot_is_answered() {
    let telegram = TelegramServer::start().await;
    let world = World::new(setup(&telegram)).await;
    let system = world.run_all().await;
    let group = -100_200;
    telegram.update("message", in_group(telegram.message_id(), group, ADA, "not for you"));
    let mut mention = in_group(telegram.message_id(), group, ADA, "@talaria_test_bot hi");
    mention["entities"] = json!([{ "type": "mention", "offset": 0, "length": 17 }]);
    telegram.update("message", mention);
    let only = telegram.wait_for("the answer", |state| state.messages.last().cloned()).await;
    assert!(only.text.ends_with("hi"), "{}", only.text);

    let answer = telegram.shown(group)[0].clone();
    let mut reply = in_group(telegram.message_id(), group, ADA, "and again");
    let me = json!({ "id": talaria_tests::telegram::BOT_ID, "is_bot": true, "first_name": "Bot" });
    reply["reply_to_message"] = json!({
        "message_id": answer.id, "date": 1, "chat": { "id": group, "type": "supergroup" },
        "from": me, "text": answer.text,
    });
    telegram.update("message", reply);
    telegram.wait_for("the second answer", |state| (state.messages.len() == 2).then_some(())).await;
    system.stop().await;
    telegram.assert_strict();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_token_pauses_its_account_and_nothing_else() {
    let telegram = TelegramServer::start().await;
    let world = World::new(
        setup(&telegram)
            .set("ingress.telegram.wrong.token", "99:revoked")
            .set("ingress.telegram.wrong.base_url", telegram.url())
            .set("ingress.telegram.empty.base_url", telegram.url()),
    )
    .await;
    let system = world.run_all().await;
    telegram.say(ADA, "hello");
    telegram.reads(ADA, &["you said: hello"]).await;
    let client = talaria_tests::http::client();
    let get = async |path: &str| {
        let url = format!("http://{}{path}", system.door());
        client.get(url).send().await.unwrap().text().await.unwrap()
    };
    let ready = eventually("both paused", || async {
        let text = get("/readyz").await;
        (text.matches("is paused").count() == 2).then_some(text)
    })
    .await;
    assert!(ready.starts_with("ready\n"), "{ready}");
    assert!(ready.contains("telegram/wrong is paused: Telegram says 401"), "{ready}");
    assert!(ready.contains("telegram/empty is paused: ingress.telegram.empty.token is not set"));
    let metrics = get("/metrics").await;
    let line =
        "talaria_ingress_account{account=\"wrong\",platform=\"telegram\",state=\"paused\"} 1";
    assert!(metrics.contains(line), "{metrics}");
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_share_a_token_and_one_takes_over_when_the_other_dies() {
    let telegram = TelegramServer::start().await;
    let world = World::new(setup(&telegram)).await;
    let _scheduler = world.run(Role::Scheduler).await;
    let _worker = world.run(Role::Worker).await;
    let mut first = world.spawn(Role::Ingress, SERVICE).await;
    telegram.say(ADA, "one");
    telegram.reads(ADA, &["you said: one"]).await;
    let _second = world.spawn(Role::Ingress, SERVICE).await;
    telegram.say(ADA, "two");
    telegram.reads(ADA, &["you said: one", "you said: two"]).await;

    // What is delivered and not recorded would rightly be delivered again, with a label.
    eventually("the record", || async {
        (world.nats.count("OUTBOX").await == Some(0)).then_some(())
    })
    .await;
    first.kill9().await;
    let began = std::time::Instant::now();
    telegram.say(ADA, "three");
    telegram.reads(ADA, &["you said: one", "you said: two", "you said: three"]).await;

    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    telegram.assert_strict();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_dies_in_a_delivery_leaves_no_duplicate_and_no_gap() {
    let telegram = TelegramServer::start().await;
    let world = World::new(setup(&telegram)).await;
    let _scheduler = world.run(Role::Scheduler).await;
    let _worker = world.run(Role::Worker).await;
    let mut first = world.spawn(Role::Ingress, SERVICE).await;
    let long = (0..900).map(|number| format!("line {number}\n\n")).collect::<String>();
    world.model.on("long", [Step::Say(long)]);
    // The second part is being sent, and has not arrived, when the process is killed.
    telegram.trouble("sendMessage", [Trouble::Refused(500, "Internal Server Error")]);
    telegram.say(ADA, "long");
    telegram
        .wait_for("the first try", |state| {
            state.calls.iter().any(|call| call.method == "sendMessage").then_some(())
        })
        .await;
    telegram.wait_for("the first part", |state| (!state.messages.is_empty()).then_some(())).await;
    first.kill9().await;

    let _second = world.spawn(Role::Ingress, SERVICE).await;
    let shown = telegram
        .wait_for("the last line", |state| {
            let last = state.messages.last()?;
            last.text.contains("line 899").then(|| state.messages.clone())
        })
        .await;
    for number in [0, 450, 899] {
        let line = format!("line {number}\n");
        let count = shown
            .iter()
            .filter(|m| m.text.contains(&line) || m.text.contains(&format!("line {number} ")))
            .count();
        let labelled = shown.iter().any(|message| message.text.starts_with("(may be a duplicate)"));
        assert!(count == 1 || labelled, "line {number} is there {count} times");
    }
    telegram.assert_strict();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_picture_is_fetched_when_a_model_that_sees_is_asked() {
    let telegram = TelegramServer::start().await;
    let world = World::new(setup(&telegram).set("model.name", "openai:fake-vision")).await;
    let system = world.run_all().await;
    let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
    // More than one piece.
    png.resize(700_000, 7);
    telegram.put_file("large", &png);
    let mut said = private(telegram.message_id(), ADA, "");
    said.as_object_mut().unwrap().remove("text");
    said["caption"] = "what is this?".into();
    said["photo"] =
        json!([{ "file_id": "large", "file_unique_id": "l", "width": 900, "height": 900 }]);
    telegram.update("message", said);
    telegram.wait_for("the reply", |state| (!state.messages.is_empty()).then_some(())).await;
    assert_eq!(telegram.calls("getFile").len(), 1, "one download for all pieces");
    system.stop().await;
    telegram.assert_strict();
}
