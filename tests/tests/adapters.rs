//! The stories that every adapter must pass, whatever its platform: the same ones through each, by a small harness that knows how
//! people speak there and what they see.

use std::time::Duration;

use serde_json::json;
use talaria_tests::model::Step;
use talaria_tests::telegram::{TOKEN, TelegramServer, Trouble};
use talaria_tests::wait::eventually;
use talaria_tests::{Setup, System, World};

/// One platform as a person sees it. A story is told in one private chat with someone who may speak.
trait Platform {
    /// Its part of the settings.
    fn setup(&self) -> Setup;

    /// Says something; returns the platform's id of the message.
    async fn say(&self, world: &World, system: &System, text: &str) -> String;

    /// Brings the same message again, as the platform does when it is not sure that we have it.
    async fn repeat(&self, world: &World, system: &System, id: &str, text: &str);

    /// The replies of the agent that are there now, in order.
    fn replies(&self, world: &World) -> Vec<String>;

    /// Has the platform ask for silence, once, for a second.
    fn busy_once(&self, world: &World);

    /// Has it take calls again, if it does not by itself.
    fn calm(&self, world: &World);

    /// How often it was called although it had asked for silence.
    fn disturbed(&self) -> usize;
}

/// Telegram by long polling.
struct Telegram(TelegramServer);

const ADA: i64 = 1001;

impl Platform for Telegram {
    fn setup(&self) -> Setup {
        Setup::default()
            .set("ingress.telegram.bot.token", TOKEN)
            .set("ingress.telegram.bot.base_url", self.0.url())
            .set("ingress.telegram.bot.poll", "5s")
            .set("access.platform.telegram.allowed_users", json!([ADA.to_string()]))
    }

    async fn say(&self, _: &World, _: &System, text: &str) -> String {
        self.0.say(ADA, text).to_string()
    }

    async fn repeat(&self, _: &World, _: &System, id: &str, text: &str) {
        let id = id.parse().expect("an id of Telegram");
        self.0.update("message", talaria_tests::telegram::private(id, ADA, text));
        self.0
            .wait_for("it is taken again", |state| (state.unconfirmed() == 0).then_some(()))
            .await;
    }

    fn replies(&self, _: &World) -> Vec<String> {
        self.0.shown(ADA).into_iter().map(|message| message.text).collect()
    }

    fn busy_once(&self, _: &World) {
        self.0.trouble("sendMessage", [Trouble::Flood(1)]);
    }

    fn calm(&self, _: &World) {}

    fn disturbed(&self) -> usize {
        self.0.floods()
    }
}

/// The generic webhook.
struct Webhook;

impl Platform for Webhook {
    fn setup(&self) -> Setup {
        Setup::default()
    }

    async fn say(&self, world: &World, system: &System, text: &str) -> String {
        // Each message has an id of its own, also over several of these chats.
        let id = format!("w-{:016x}", u64::from_be_bytes(node::process::random()));
        self.repeat(world, system, &id, text).await;
        id
    }

    async fn repeat(&self, _: &World, system: &System, id: &str, text: &str) {
        let client = talaria_tests::webhook::WebhookClient::new(system.door());
        let answer = client.message(id, "c1", text).await;
        assert!(answer.status.is_success(), "{}", answer.body);
    }

    fn replies(&self, world: &World) -> Vec<String> {
        let replies = world.callbacks.taken("c1", "reply");
        replies.iter().map(|post| post.text("text").to_owned()).collect()
    }

    fn busy_once(&self, world: &World) {
        world.callbacks.be(talaria_tests::callback::Mood::Busy { retry_after: 1 });
    }

    fn calm(&self, world: &World) {
        world.callbacks.be(talaria_tests::callback::Mood::Fine);
    }

    fn disturbed(&self) -> usize {
        0
    }
}

/// Waits until the replies are these, and no others.
async fn reads(platform: &impl Platform, world: &World, texts: &[&str]) {
    eventually(&format!("the replies {texts:?}"), || async {
        (platform.replies(world) == texts).then_some(())
    })
    .await;
}

/// All stories, one after another, in one system.
async fn passes(platform: &impl Platform) {
    let world = World::new(platform.setup()).await;
    let system = world.run_all().await;

    // A message is answered.
    let id = platform.say(&world, &system, "hello").await;
    reads(platform, &world, &["you said: hello"]).await;

    // A message that comes again is no second one.
    platform.repeat(&world, &system, &id, "hello").await;
    platform.say(&world, &system, "again").await;
    let mut seen = vec!["you said: hello", "you said: again"];
    reads(platform, &world, &seen).await;

    // Text is text, whatever it looks like.
    let strange = "a < b && c > d, 5 * 3 = 15, [x] (y) # z \\ é 😀";
    world.model.on("strange", [Step::Say(strange.into())]);
    platform.say(&world, &system, "strange").await;
    seen.push(strange);
    reads(platform, &world, &seen).await;

    // A platform that asks for silence is left in peace, and the reply comes once.
    platform.busy_once(&world);
    platform.say(&world, &system, "patience").await;
    tokio::time::timeout(Duration::from_secs(30), async {
        while world.nats.count("OUTBOX").await == Some(0) {
            tokio::task::yield_now().await;
        }
    })
    .await
    .expect("the reply is on its way");
    platform.calm(&world);
    seen.push("you said: patience");
    reads(platform, &world, &seen).await;
    assert_eq!(platform.disturbed(), 0);

    // Nothing is left behind.
    eventually("everything is delivered", || async {
        (world.nats.count("OUTBOX").await == Some(0)).then_some(())
    })
    .await;
    system.stop().await;
    world.model.assert_strict();
}

#[tokio::test(flavor = "multi_thread")]
async fn telegram_passes() {
    let platform = Telegram(TelegramServer::start().await);
    passes(&platform).await;
    platform.0.assert_strict();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_webhook_passes() {
    passes(&Webhook).await;
}
