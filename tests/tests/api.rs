//! The OpenAI-compatible API, by hand and with the official Python client, which is skipped where it cannot be installed.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::path::Path;

use reqwest::StatusCode;
use serde_json::{Value, json};
use talaria_tests::model::{Progress, Step};
use talaria_tests::world::TOKEN;
use talaria_tests::{Setup, System, World, http, python};

/// What the Python client does; each line of its output is compared.
const SCRIPT: &str = r#"
import sys
from openai import OpenAI
client = OpenAI(base_url=sys.argv[1], api_key=sys.argv[2], max_retries=0)
print("models", len(client.models.list().data) > 0)
ask = [{"role": "user", "content": "hello"}]
whole = client.chat.completions.create(model="talaria", messages=ask)
print("whole", whole.choices[0].message.content, whole.choices[0].finish_reason)
pieces = client.chat.completions.create(model="talaria", messages=ask, stream=True)
text = [c.choices[0].delta.content or "" for c in pieces if c.choices]
print("streamed", "".join(text), len([t for t in text if t]) > 0)
history = [{"role": "user", "content": "my name is Ada"}, {"role": "assistant", "content": "hello Ada"},
           {"role": "user", "content": "and my name?"}]
client.chat.completions.create(model="talaria", messages=history)
session = {"X-Session-Id": "s1"}
for words in ["my word is plum", "which word?"]:
    client.chat.completions.create(model="talaria", messages=[{"role": "user", "content": words}], extra_headers=session)
try:
    OpenAI(base_url=sys.argv[1], api_key="wrong", max_retries=0).models.list()
except Exception as error:
    print("refused", type(error).__name__)
"#;

#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
async fn the_official_python_client_works() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("openai");
    let made = tokio::task::spawn_blocking(move || python::with_packages(&folder, &["openai"]));
    let python = match made.await.unwrap() {
        Ok(python) => python,
        Err(why) => return eprintln!("skipped: {why}"),
    };
    let world = World::new(Setup::default()).await;
    let system = world.run_all().await;
    world.model.on("hello", [Step::Say("hello yourself".into())]);
    let base = format!("http://{}/v1", system.door());

    let mut command = tokio::process::Command::new(python);
    command.args(["-c", SCRIPT, &base, TOKEN]).env("NO_PROXY", "127.0.0.1").kill_on_drop(true);
    let output = command.output().await.unwrap();

    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let lines: Vec<&str> = out.lines().collect();
    let expected = [
        "models True",
        "whole hello yourself stop",
        "streamed hello yourself True",
        "refused AuthenticationError",
    ];
    assert_eq!(lines, expected, "{err}");
    // Without a session the request's own messages are the history; with one it is kept here.
    let sent = said(&world, "and my name?").await;
    assert!(sent.contains("my name is Ada") && sent.contains("hello Ada"), "{sent}");
    let sent = said(&world, "which word?").await;
    assert!(sent.contains("my word is plum"), "{sent}");
    system.stop().await;
    world.model.assert_strict();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_hangs_up_interrupts_its_turn() {
    let world = World::new(Setup::default()).await;
    let system = world.run_all().await;
    world.model.on("long story", [Step::Hold("once upon a time".into())]);

    let mut answer =
        ask(&system, &json!({ "stream": true, "messages": user("a long story") })).await;
    assert_eq!(answer.status(), StatusCode::OK);
    let mut streamed = String::new();
    while !streamed.contains("upon") {
        streamed += &String::from_utf8_lossy(&answer.chunk().await.unwrap().expect("more"));
    }
    world.model.call("long story", 1, Progress::Open).await;
    drop(answer);

    world.model.call("long story", 1, Progress::Closed).await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_token_opens_it_and_only_sense_is_taken() {
    let world = World::new(Setup::default()).await;
    let system = world.run_all().await;
    let url = format!("http://{}/v1/chat/completions", system.door());
    let body = json!({ "messages": user("hello") });
    for token in [None, Some("wrong")] {
        let mut request = http::client().post(&url).json(&body);
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        assert_eq!(request.send().await.unwrap().status(), StatusCode::UNAUTHORIZED);
    }
    for nonsense in [json!({}), json!({ "messages": [] }), json!({ "messages": "hello" })] {
        let answer = ask(&system, &nonsense).await;
        assert!(answer.status().is_client_error(), "{nonsense}: {}", answer.status());
        let said: Value = answer.json().await.unwrap();
        assert!(said["error"]["message"].is_string(), "{said}");
    }
    assert_eq!(world.nats.count("INBOX").await, Some(0));
    system.stop().await;
}

async fn ask(system: &System, body: &Value) -> reqwest::Response {
    let url = format!("http://{}/v1/chat/completions", system.door());
    http::client().post(url).bearer_auth(TOKEN).json(body).send().await.unwrap()
}

fn user(text: &str) -> Value {
    json!([{ "role": "user", "content": text }])
}

/// Everything that the model was sent when a person last said this.
async fn said(world: &World, text: &str) -> String {
    let call = world.model.call(text, 1, Progress::Done).await;
    serde_json::to_string(&call.messages).unwrap()
}
