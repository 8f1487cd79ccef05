//! Two clocks: long is not stuck, stuck is not for ever, and whoever waits can see which of them it is (BEHAVIOUR 14.6).

use std::time::Duration;

use talaria_tests::model::{Progress, Step};
use talaria_tests::wait::eventually;
use talaria_tests::{Setup, World};

/// BEHAVIOUR 14.6: silence of the provider is warned of once, then ended with a diagnosis, and the next message is answered.
#[tokio::test(flavor = "multi_thread")]
async fn a_silent_provider_is_warned_of_and_timed_out_with_a_diagnosis() {
    let setup = Setup::default()
        .set("agent.timeout", "2s")
        .set("agent.timeout_warning", "1s")
        .set("agent.notify_interval", "500ms");
    let world = World::new(setup).await;
    let system = world.run_all().await;
    let chat = world.chat(system.door(), "c1");
    world.model.on("hang", [Step::Hold("I begin".into())]);
    chat.say("hang").await;
    world.model.call("hang", 1, Progress::Closed).await;
    let texts = eventually("a diagnosis", || {
        let texts: Vec<_> =
            chat.got("notice").iter().map(|post| post.text("text").to_owned()).collect();
        async move { texts.iter().any(|text| text.starts_with("Stopped")).then_some(texts) }
    })
    .await;
    let like = |part: &str| texts.iter().filter(|text| text.contains(part)).count();
    assert_eq!(like("No progress for"), 1, "{texts:#?}");
    assert!(like("Still working") >= 1, "{texts:#?}");
    assert_eq!(like("waiting for the model's provider"), 1, "{texts:#?}");
    assert_eq!(like("at step 1 of 90"), 1, "{texts:#?}");
    chat.say("still there?").await;
    chat.replies(1).await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn status_and_agents_say_what_a_turn_does_and_how_it_gets_on() {
    let world = World::new(Setup::default()).await;
    let system = world.run_all().await;
    let chat = world.chat(system.door(), "c1");
    world.model.on("beside", [Step::terminal("sleep 600")]);
    world.model.on("work", [Step::terminal("sleep 601")]);
    chat.say("/background beside").await;
    chat.say("work").await;
    let parts =
        ["step 1 of 90, running terminal (sleep 601)", "1 of 90 model calls; last progress"];
    for (command, parts) in [
        ("/status", parts.to_vec()),
        ("/agents", [&parts[..], &["running terminal (sleep 600)"][..]].concat()),
    ] {
        eventually(&format!("{command} says it"), || async {
            let id = chat.say(command).await;
            let text = chat.answered(&id).await.text("text").to_owned();
            parts.iter().all(|part| text.contains(part)).then_some(())
        })
        .await;
    }
    let id = chat.say("/extend 30").await;
    assert!(chat.answered(&id).await.text("text").contains("1 h 0 min"));
    chat.say("/stop").await;
    let _ = tokio::time::timeout(Duration::from_secs(1), system.stop()).await;
}
