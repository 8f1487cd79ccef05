//! How long a stop takes, wherever it finds the turn: from the moment at which the worker is told until the turn has stored what there
//! is and has reported. `LATENCY=write cargo test -p talaria-worker how_long_a_stop_takes` writes the table into the docs.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt, stream};
use node::settings::{self, Mcp, Secret, Settings};
use proto::activity::{Activity, State as Doing};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::external::AGENT;
use super::rig::Rig;
use crate::metrics::Ended;
use crate::models;

/// How often each place is measured.
const RUNS: usize = 15;
/// How long any of them may take: far more than it does, since the machine may be busy.
const LIMIT: Duration = Duration::from_secs(10);

/// Where the turn is when it is stopped: what it is asked, and how it looks then.
type Place = (&'static str, &'static str, fn(&Activity) -> bool);

const PLACES: [Place; 9] = [
    ("streaming answer", "stream", |now| now.state == Doing::Streaming),
    ("answer that has not begun", "connect", |now| now.state == Doing::WaitingForModel),
    ("pause before another try", "retry", |now| now.state == Doing::WaitingForQuota),
    ("terminal command", "terminal", |now| now.state == Doing::RunningTool),
    ("approval", "approve", |now| now.state == Doing::WaitingForHuman),
    ("question", "clarify", |now| now.state == Doing::WaitingForHuman),
    ("two sub-agents", "delegate", |now| now.last_activity_desc.contains("asks its model")),
    ("MCP call", "mcp", |now| now.state == Doing::RunningTool),
    ("compression", "/compress", |now| now.state == Doing::Compressing),
];

/// A provider and an MCP server that answer as far as a place wants it, and then wait for ever. Counts what hangs.
async fn answer(State(hanging): State<watch::Sender<usize>>, uri: Uri, body: Bytes) -> Response {
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    if uri.path() == "/mcp" {
        return mcp(&hanging, &body).await;
    }
    let said = |message: &Value| message["content"].as_str().unwrap_or_default().to_owned();
    let user = body["messages"].as_array().into_iter().flatten();
    let user = user.filter(|message| message["role"] == "user").map(said).next_back();
    let user = user.unwrap_or_default();
    let call = |name: &str, arguments: Value| {
        let function = json!({ "name": name, "arguments": arguments.to_string() });
        events(vec![
            json!({ "choices": [{ "delta": { "tool_calls": [{ "index": 0, "id": "c", "function": function }] } }] }),
            json!({ "choices": [{ "delta": {}, "finish_reason": "tool_calls" }] }),
        ])
    };
    let word = json!({ "choices": [{ "delta": { "content": "well " } }] });
    match user.as_str() {
        "terminal" => call("terminal", json!({ "command": "sleep 600" })),
        "approve" => call("terminal", json!({ "command": "rm -rf x" })),
        "clarify" => call("clarify", json!({ "question": "which one?" })),
        "delegate" => {
            call("delegate", json!({ "tasks": [{ "goal": "connect" }, { "goal": "connect" }] }))
        }
        "mcp" => call("mcp_slow_hang", json!({})),
        "talk" => events(vec![
            json!({ "choices": [{ "delta": { "content": "word ".repeat(20_000) }, "finish_reason": "stop" }] }),
        ]),
        "retry" => {
            (StatusCode::TOO_MANY_REQUESTS, [(header::RETRY_AFTER, "60")], "{}").into_response()
        }
        "stream" => {
            let first = stream::iter([Ok::<_, Infallible>(format!("data: {word}\n\n"))]);
            let body = Body::from_stream(first.chain(stream::pending()));
            ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response()
        }
        _ => hang(&hanging).await,
    }
}

async fn hang(hanging: &watch::Sender<usize>) -> Response {
    hanging.send_modify(|count| *count += 1);
    std::future::pending().await
}

async fn mcp(hanging: &watch::Sender<usize>, message: &Value) -> Response {
    let result = match message["method"].as_str() {
        Some("initialize") => json!({
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "slow", "version": "1" },
        }),
        Some("tools/list") => {
            json!({ "tools": [{ "name": "hang", "inputSchema": { "type": "object" } }] })
        }
        Some("tools/call") => return hang(hanging).await,
        _ => return StatusCode::ACCEPTED.into_response(),
    };
    let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
    ([(header::CONTENT_TYPE, "application/json")], answer.to_string()).into_response()
}

fn events(all: Vec<Value>) -> Response {
    let body: String = all.iter().map(|event| format!("data: {event}\n\n")).collect();
    ([(header::CONTENT_TYPE, "text/event-stream")], body + "data: [DONE]\n\n").into_response()
}

async fn serve() -> (String, watch::Receiver<usize>) {
    let (hanging, hangs) = watch::channel(0);
    let app = Router::new().fallback(answer).with_state(hanging);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await });
    (url, hangs)
}

async fn rig(url: &str, more: impl FnOnce(&mut Settings)) -> Option<Rig> {
    let model = settings::Model {
        name: "openai:slow".into(),
        openai_base_url: url.to_owned(),
        openai_api_key: Secret::new("key".into()),
        context_tokens: 100_000,
        ..settings::Model::default()
    };
    let server = Mcp { url: format!("{url}/mcp"), ..Mcp::default() };
    let set = |settings: &mut Settings| {
        settings.worker.mcp.insert("slow".into(), server);
        more(settings);
    };
    Rig::start(models::choose(&model).unwrap(), (vec![], set)).await
}

/// One stop, from telling to the report.
async fn stopped(
    rig: &Rig,
    chat: &str,
    place: &Place,
    hangs: &mut watch::Receiver<usize>,
) -> Duration {
    let (_, text, is_there) = place;
    if *text == "/compress" {
        // There must be something to compress.
        for _ in 0..2 {
            assert_eq!(rig.say(chat, "talk").await.turn(1).0.run().await, Ended::Completed);
        }
    }
    let before = *hangs.borrow();
    let asked = rig.say(chat, text).await;
    let (mut turn, hands) = asked.turn(1);
    if *text == "/compress" {
        turn.order.kind = proto::turn::TurnKind::Command;
    }
    let stop = async {
        while !is_there(&hands.gauge.read()) {
            tokio::task::yield_now().await;
        }
        let wanted = match *text {
            "connect" | "mcp" | "/compress" => 1,
            "delegate" => 2,
            _ => 0,
        };
        let _ = hangs.wait_for(|count| *count >= before + wanted).await;
        hands.interrupt();
        Instant::now()
    };
    let both = async { tokio::join!(turn.run(), stop) };
    let (ended, told) = tokio::time::timeout(LIMIT, both).await.expect("it stops");
    assert_eq!(ended, Ended::Interrupted, "{text}");
    told.elapsed()
}

fn row(table: &mut String, name: &str, mut took: Vec<Duration>) {
    took.sort();
    let ms = |at: usize| took[at.min(took.len() - 1)].as_secs_f64() * 1000.0;
    let (median, most) = (ms(took.len() / 2), ms(took.len() - 1));
    let _ = writeln!(table, "| {name} | {median:.1} | {most:.1} |");
}

#[test]
fn how_long_a_stop_takes() {
    node::process::block_on(async {
        let (url, mut hangs) = serve().await;
        let Some(first) = rig(&url, |_| {}).await else { return Ok(()) };
        let mut table =
            String::from("| the turn is in | median ms | longest ms |\n|---|---|---|\n");
        for place in &PLACES {
            let mut took = Vec::new();
            for run in 0..RUNS {
                let chat = format!("{}-{run}", place.1);
                took.push(stopped(&first, &chat, place, &mut hangs).await);
            }
            row(&mut table, place.0, took);
        }
        let agent = |settings: &mut Settings| {
            settings.agent.acp.command = "python3".into();
            settings.agent.acp.args = vec!["-c".into(), AGENT.into()];
        };
        let external: Place = ("external agent (ACP)", "wait", |now| now.state == Doing::Streaming);
        if let Some(second) = rig(&url, agent).await {
            let mut took = Vec::new();
            for run in 0..RUNS {
                took.push(stopped(&second, &format!("acp-{run}"), &external, &mut hangs).await);
            }
            row(&mut table, external.0, took);
        }
        let _ = std::io::Write::write_all(&mut std::io::stderr(), table.as_bytes());
        if std::env::var("LATENCY").is_ok_and(|mode| mode == "write") {
            write(&table)?;
        }
        Ok(())
    })
    .unwrap();
}

/// Puts the table into its place in the docs.
fn write(table: &str) -> std::io::Result<()> {
    const BEGIN: &str = "<!-- cancellation -->\n";
    const END: &str = "<!-- /cancellation -->";
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/docs/performance.md");
    let text = std::fs::read_to_string(page)?;
    let (before, rest) = text.split_once(BEGIN).expect("the mark where the table begins");
    let (_, after) = rest.split_once(END).expect("the mark where it ends");
    std::fs::write(page, format!("{before}{BEGIN}{table}{END}{after}"))
}
