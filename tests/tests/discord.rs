//! Discord, against a strict fake of its gateway and its REST API: messages in and replies out, drafts, buttons and commands,
//! threads, requests that are not Discord's, floods, lost answers, and sessions that break.

use std::time::Duration;

use proto::member::Role;
use serde_json::json;
use talaria_tests::discord::{BOT, Cut, DiscordServer, TOKEN, Trouble};
use talaria_tests::model::{Progress, Step};
use talaria_tests::wait::eventually;
use talaria_tests::{Setup, System, World};

/// Whom the bot talks to.
const ADA: &str = "1001";
/// Whom it does not know.
const EVE: &str = "6666";
/// Private chats.
const DIRECT: &str = "4001";
const OTHER: &str = "4002";
/// A channel, and two threads in it.
const CHANNEL: &str = "5001";
const THREADS: [&str; 2] = ["5101", "5102"];

fn setup(discord: &DiscordServer) -> Setup {
    Setup::default()
        .set("ingress.discord.bot.token", TOKEN)
        .set("ingress.discord.bot.public_key", discord.public_key())
        .set("ingress.discord.bot.base_url", discord.url())
        .set("ingress.discord.bot.timeout", "5s")
        .set("access.platform.discord.allowed_users", json!([ADA]))
}

async fn start_with(
    adapt: impl FnOnce(Setup, &DiscordServer) -> Setup,
) -> (DiscordServer, World, System) {
    let discord = DiscordServer::start().await;
    discord.channel(CHANNEL, 0, Some("5000"));
    THREADS.iter().for_each(|thread| discord.channel(thread, 11, Some(CHANNEL)));
    let world = World::new(adapt(setup(&discord), &discord)).await;
    let system = world.run_all().await;
    discord.connected().await;
    (discord, world, system)
}

async fn start() -> (DiscordServer, World, System) {
    start_with(|setup, _| setup).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_answered_under_its_own_and_the_menu_has_our_commands() {
    let (discord, world, system) = start().await;
    world.model.on("hello", [Step::Say("hello **yourself** & `code`".into())]);
    let id = discord.say(DIRECT, ADA, "hello");
    let shown = discord.reads(DIRECT, &["hello **yourself** & `code`"]).await;
    assert_eq!(shown[0].reply_to, Some(id));
    discord.say(OTHER, EVE, "let me in");
    let code = discord.wait_for("a pairing code", |state| state.messages.get(1).cloned()).await;
    assert_eq!(code.channel, OTHER);
    assert_eq!(world.model.count("let me in"), 0);
    discord
        .wait_for("the commands", |state| {
            state.commands.iter().any(|command| command["name"] == "stop").then_some(())
        })
        .await;
    discord.wait_for("heartbeats", |state| (state.beats > 1).then_some(())).await;
    system.stop().await;
    discord.assert_strict();
    world.model.assert_strict();
}

#[tokio::test(flavor = "multi_thread")]
async fn threads_are_conversations_of_their_own_and_need_one_mention() {
    let (discord, world, system) = start().await;
    let mention = |text: &str| format!("<@{BOT}> {text}");
    discord.say(CHANNEL, ADA, "not for you");
    discord.say(THREADS[0], ADA, &mention("my secret is 42"));
    discord.reads(THREADS[0], &["you said: nick1001: my secret is 42"]).await;
    discord.say(THREADS[1], ADA, &mention("what is it?"));
    discord
        .wait_for("the second answer", |state| {
            state.messages.iter().any(|message| message.channel == THREADS[1]).then_some(())
        })
        .await;
    discord.say(THREADS[0], ADA, "go on");
    discord
        .wait_for("the third answer", |state| {
            let there = state.messages.iter().filter(|message| message.channel == THREADS[0]);
            (there.count() == 2).then_some(())
        })
        .await;
    let of = |text: &'static str| world.model.call(text, 1, Progress::Done);
    let knows = |call: talaria_tests::model::Call| {
        serde_json::to_string(&call.messages).unwrap().contains("my secret is 42")
    };
    assert!(!knows(of("what is it?").await) && knows(of("go on").await));
    assert_eq!(world.model.count("not for you"), 0);
    system.stop().await;
    discord.assert_strict();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draft_becomes_the_reply_and_a_new_message_interrupts() {
    let (discord, world, system) = start().await;
    let words = "These are the first words of a long answer that goes on";
    world.model.on("slowly", [Step::Hold(words.into())]);
    discord.say(DIRECT, ADA, "slowly");
    discord.wait_for("a draft", |state| state.messages.first().cloned()).await;
    world.model.release("slowly");
    assert_eq!(discord.reads(DIRECT, &[words]).await.len(), 1, "one message");

    world.model.on("for ever", [Step::Hold("I begin".into())]);
    discord.say(DIRECT, ADA, "for ever");
    world.model.call("for ever", 1, Progress::Open).await;
    discord.say(DIRECT, ADA, "something else");
    world.model.call("for ever", 1, Progress::Closed).await;
    discord
        .wait_for("the answer to the second", |state| {
            let said = |content: &str| content.contains("you said: something else");
            state.messages.iter().any(|message| said(&message.content)).then_some(())
        })
        .await;
    system.stop().await;
    discord.assert_strict();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_is_approved_by_a_button_and_by_nobody_else() {
    let (discord, world, system) = start().await;
    world.model.on("delete", [Step::terminal("rm -rf ./old"), Step::Say("gone".into())]);
    discord.say(CHANNEL, ADA, &format!("<@{BOT}> delete"));
    let question = discord
        .wait_for("the question", |state| {
            state.messages.iter().find(|message| !message.buttons().is_empty()).cloned()
        })
        .await;
    let approve = question.buttons()[0].clone();
    let eves = discord.press(EVE, &question, &approve);
    discord.dispatch("INTERACTION_CREATE", eves.clone());
    let id = eves["id"].as_str().unwrap().to_owned();
    let told = discord.wait_for("what Eve is told", |state| state.answers.get(&id).cloned()).await;
    assert_eq!((&told["type"], &told["data"]["flags"]), (&json!(4), &json!(64)));
    discord
        .wait_for("the buttons", |state| {
            let there = state.messages.iter().find(|message| message.id == question.id)?;
            (there.buttons().len() == 2).then_some(())
        })
        .await;

    discord.dispatch("INTERACTION_CREATE", discord.press(ADA, &question, &approve));
    discord
        .wait_for("the reply, and no buttons", |state| {
            let gone = state.messages.iter().any(|message| message.content == "gone");
            let none = state.messages.iter().all(|message| message.buttons().is_empty());
            (gone && none).then_some(())
        })
        .await;
    system.stop().await;
    discord.assert_strict();
}

#[tokio::test(flavor = "multi_thread")]
async fn interactions_come_to_the_door_if_they_are_signed_now() {
    let (discord, world, system) = start().await;
    let door = system.door();
    let now = (Duration::ZERO, false);
    let ping = json!({ "id": "1", "token": "t", "type": 1, "version": 1, "application_id": BOT });
    assert_eq!(discord.post(door, &ping, now).await, (200, json!({ "type": 1 })));
    let chosen = discord.choose(ADA, DIRECT, "queue", "what is up?");
    for (age, spoilt) in [(Duration::ZERO, true), (Duration::from_secs(301), false)] {
        assert_eq!(discord.post(door, &chosen, (age, spoilt)).await.0, 401);
    }
    for _ in 0..2 {
        let (status, answer) = discord.post(door, &chosen, now).await;
        assert_eq!((status, &answer["data"]["flags"]), (200, &json!(64)), "{answer}");
    }
    discord.reads(DIRECT, &["you said: what is up?"]).await;
    // The same over the gateway is still the same.
    discord.dispatch("INTERACTION_CREATE", chosen);
    let refused = discord.post(door, &discord.choose(EVE, DIRECT, "queue", "me too"), now).await.1;
    assert!(refused["data"]["content"].as_str().unwrap().contains("may not"), "{refused}");
    discord.say(DIRECT, ADA, "the last");
    discord.reads(DIRECT, &["you said: what is up?", "you said: the last"]).await;
    assert_eq!(world.model.count("what is up?") + world.model.count("me too"), 1);
    system.stop().await;
    discord.assert_strict();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_breaks_is_resumed_and_loses_and_doubles_nothing() {
    let (discord, world, system) = start().await;
    let mut expected = Vec::new();
    for (number, cut) in [Cut::Silently, Cut::Reconnect, Cut::Closed(4000)].into_iter().enumerate()
    {
        discord.cut(cut);
        // While nobody listens.
        discord.say(DIRECT, ADA, &format!("/queue number {number}"));
        expected.push(format!("you said: number {number}"));
        let texts: Vec<&str> = expected.iter().map(String::as_str).collect();
        discord.reads(DIRECT, &texts).await;
    }
    discord.wait_for("resumes", |state| (state.resumed >= 3).then_some(())).await;
    discord.wait_for("one session", |state| (state.begun == 1).then_some(())).await;
    for number in 0..3 {
        assert_eq!(world.model.count(&format!("number {number}")), 1);
    }
    // One that cannot be resumed begins anew.
    discord.cut(Cut::Invalid);
    discord.wait_for("a new session", |state| (state.begun == 2).then_some(())).await;
    discord.say(DIRECT, ADA, "and now?");
    discord
        .wait_for("the answer", |state| {
            state.messages.iter().any(|m| m.content == "you said: and now?").then_some(())
        })
        .await;
    system.stop().await;
    discord.assert_strict();
}

#[tokio::test(flavor = "multi_thread")]
async fn another_process_goes_on_where_the_first_has_stopped() {
    let (discord, world, system) = start().await;
    discord.say(DIRECT, ADA, "one");
    discord.reads(DIRECT, &["you said: one"]).await;
    let System { scheduler, worker, ingress } = system;
    ingress.stop().await;
    discord.say(DIRECT, ADA, "two");
    let ingress = world.run(Role::Ingress).await;
    discord.reads(DIRECT, &["you said: one", "you said: two"]).await;
    discord.wait_for("a resume", |state| (state.resumed == 1).then_some(())).await;
    assert_eq!(world.model.count("one"), 1);
    System { scheduler, worker, ingress }.stop().await;
    discord.assert_strict();
}

#[tokio::test(flavor = "multi_thread")]
async fn floods_are_waited_out_in_their_chat_or_everywhere() {
    let (discord, _world, system) =
        start_with(|setup, _| setup.set("access.allow_all", true)).await;
    discord.trouble([Trouble::Flood { after: 2.5, global: false }]);
    discord.say(DIRECT, ADA, "one");
    let first = discord
        .wait_for("the flood", |state| state.calls.iter().find(|c| c.status == 429).cloned())
        .await;
    discord.say(OTHER, EVE, "two");
    discord.reads(OTHER, &["you said: two"]).await;
    discord.reads(DIRECT, &["you said: one"]).await;
    let again = discord.sends();
    let again = again.iter().find(|c| c.status == 200 && c.what.contains(DIRECT)).unwrap();
    assert!(again.at - first.at >= Duration::from_millis(2500));

    discord.trouble([Trouble::Flood { after: 2.5, global: true }]);
    discord.say(DIRECT, ADA, "three");
    let first = discord
        .wait_for("the second flood", |state| {
            state.calls.iter().filter(|call| call.status == 429).nth(1).cloned()
        })
        .await;
    discord.say(OTHER, EVE, "four");
    discord.reads(OTHER, &["you said: two", "you said: four"]).await;
    discord.reads(DIRECT, &["you said: one", "you said: three"]).await;
    let sends = discord.sends();
    assert!(
        sends.iter().all(|c| c.at <= first.at || c.at - first.at >= Duration::from_millis(2500))
    );
    system.stop().await;
    discord.assert_strict();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_whose_answer_was_lost_is_not_there_twice() {
    let (discord, _world, system) = start().await;
    discord.trouble([Trouble::Lost]);
    discord.say(DIRECT, ADA, "one");
    discord.reads(DIRECT, &["you said: one"]).await;
    discord.say(DIRECT, ADA, "two");
    discord.reads(DIRECT, &["you said: one", "you said: two"]).await;
    assert_eq!(discord.sends().len(), 3);
    system.stop().await;
    discord.assert_strict();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_is_taken_back_while_it_waits_is_not_answered() {
    let (discord, world, system) = start().await;
    world.model.on("busy", [Step::Hold("working".into())]);
    discord.say(DIRECT, ADA, "busy");
    world.model.call("busy", 1, Progress::Open).await;
    let waiting = discord.say(DIRECT, ADA, "/queue forget this");
    discord.dispatch("MESSAGE_DELETE", json!({ "id": waiting, "channel_id": DIRECT }));
    discord.say(DIRECT, ADA, "/queue the last");
    let inbox = async || world.nats.count("INBOX").await.filter(|count| *count >= 4);
    eventually("all of it is stored", inbox).await;
    world.model.release("busy");
    discord
        .wait_for("the last answer", |state| {
            state.messages.iter().any(|m| m.content == "you said: the last").then_some(())
        })
        .await;
    assert_eq!(world.model.count("forget this"), 0);
    system.stop().await;
    discord.assert_strict();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_fetched_when_a_turn_reads_it() {
    let (discord, world, system) = start().await;
    let message = discord.message(DIRECT, ADA, "what is the word?");
    let message = discord.attach(message, "note.txt", b"the magic word is xyzzy");
    discord.dispatch("MESSAGE_CREATE", message);
    let call = world.model.call("what is the word?", 1, Progress::Done).await;
    let messages = serde_json::to_string(&call.messages).unwrap();
    assert!(messages.contains("the magic word is xyzzy"), "{messages}");
    system.stop().await;
    discord.assert_strict();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_needs_a_person_pauses_its_account_and_nothing_else() {
    let (discord, _world, system) = start_with(|setup, discord| {
        setup
            .set("ingress.discord.revoked.base_url", discord.url())
            .set("ingress.discord.revoked.token", "some.other.token")
            .set("ingress.discord.half.public_key", "00")
            .set("ingress.discord.half.token", "a.third.token")
    })
    .await;
    discord.say(DIRECT, ADA, "hello");
    discord.reads(DIRECT, &["you said: hello"]).await;
    discord.cut(Cut::Closed(4014));
    let url = format!("http://{}/readyz", system.door());
    let ready = eventually("paused", || async {
        let answer = talaria_tests::http::client().get(&url).send().await.ok()?;
        let text = answer.text().await.ok()?;
        (text.matches("is paused").count() == 3).then_some(text)
    })
    .await;
    assert!(ready.contains("discord/revoked is paused: Discord says 401"), "{ready}");
    assert!(ready.contains("Message Content Intent"), "{ready}");
    assert!(
        ready.contains("ingress.discord.half.public_key is not a key of 64 hex digits"),
        "{ready}"
    );
    system.stop().await;
}
