//! The chat page in a real browser: send, see the answer stream in, interrupt it, stop it. Skipped where no browser is.

use talaria_tests::browser::Browser;
use talaria_tests::model::{Progress, Step};
use talaria_tests::world::TOKEN;
use talaria_tests::{Setup, World};

/// All messages on the page, those of the agent, and those of the person.
const ANSWERS: &str = "#log .message[data-kind=reply], #log .message[data-kind=draft]";
const OWN: &str = "#log .message[data-kind=user]";

#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
async fn a_person_can_send_watch_interrupt_and_stop() {
    let browser = match Browser::start().await {
        Ok(browser) => browser,
        Err(why) => return eprintln!("skipped: {why} (apt install chromium chromium-driver)"),
    };
    let world = World::new(Setup::default()).await;
    let system = world.run_all().await;
    world.model.on("hello", [Step::Say("hello yourself".into())]);
    world.model.on("long story", [Step::Hold("once upon a time".into())]);
    let page = format!("http://{}/?token={TOKEN}", system.door());

    browser.open(&page).await;
    say(&browser, "hello").await;
    shows(&browser, ANSWERS, "hello yourself").await;
    shows(&browser, OWN, "hello").await;

    // The answer is on the page before it is complete.
    say(&browser, "tell a long story").await;
    shows(&browser, ANSWERS, "once upon a time").await;
    state(&browser, "running").await;
    world.model.call("long story", 1, Progress::Open).await;

    say(&browser, "something shorter").await;
    world.model.call("long story", 1, Progress::Closed).await;
    shows(&browser, ANSWERS, "you said: something shorter").await;

    say(&browser, "another long story").await;
    world.model.call("long story", 2, Progress::Open).await;
    state(&browser, "running").await;
    browser.click("#stop").await;
    world.model.call("long story", 2, Progress::Closed).await;
    state(&browser, "idle").await;

    browser.close().await;
    system.stop().await;
    world.model.assert_strict();
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_token_there_is_no_page_and_no_chat() {
    let world = World::new(Setup::default()).await;
    let system = world.run_all().await;
    let client = talaria_tests::http::client();
    for query in ["", "?token=wrong"] {
        let url = format!("http://{}/{query}", system.door());
        let answer = client.get(url).send().await.unwrap();
        let refused = answer.status() == reqwest::StatusCode::UNAUTHORIZED;
        let text = answer.text().await.unwrap();
        assert!(refused || !text.contains("id=\"input\""), "{query:?} shows the page");
    }
    assert_eq!(world.nats.count("INBOX").await, Some(0));
    system.stop().await;
}

async fn say(browser: &Browser, text: &str) {
    browser.write("#input", text).await;
    browser.click("#send").await;
}

async fn shows(browser: &Browser, selector: &str, text: &str) {
    browser
        .wait_for(&format!("the page shows {text:?}"), selector, |texts| {
            texts.iter().any(|shown| shown.contains(text)).then_some(())
        })
        .await;
}

async fn state(browser: &Browser, wanted: &str) {
    let script = "return document.querySelector('#state').dataset.state";
    talaria_tests::wait::eventually(&format!("the page says {wanted}"), async || {
        (browser.script(script).await == wanted).then_some(())
    })
    .await;
}
