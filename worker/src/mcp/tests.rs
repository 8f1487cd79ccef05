//! Our MCP client against a small server over HTTP, and against any real one that the environment names.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use node::settings::{Mcp, Span};
use proto::transcript::CallStatus;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{McpTool, Servers};
use crate::tools::tests::effort;
use crate::tools::{Output, Tool};

/// Answers as a server does; a call of `hang` it never answers. What it is told is passed on.
async fn serve(
    State(told): State<mpsc::UnboundedSender<Value>>,
    Json(message): Json<Value>,
) -> Response {
    let _ = told.send(message.clone());
    let result = match message["method"].as_str() {
        Some("initialize") => json!({
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "fake", "version": "1" },
        }),
        Some("tools/list") => json!({ "tools": [
            { "name": "add.up", "description": "adds", "inputSchema": { "type": "object" } },
            { "name": "hang", "inputSchema": { "type": "object" } },
        ]}),
        Some("tools/call") if message["params"]["name"] == "hang" => std::future::pending().await,
        Some("tools/call") => {
            let numbers = &message["params"]["arguments"];
            let sum = numbers["a"].as_i64().unwrap_or_default()
                + numbers["b"].as_i64().unwrap_or_default();
            json!({ "content": [{ "type": "text", "text": sum.to_string() }], "isError": sum < 0 })
        }
        _ => return StatusCode::ACCEPTED.into_response(),
    };
    let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
    ([(header::CONTENT_TYPE, "application/json")], answer.to_string()).into_response()
}

async fn started() -> (Servers, mpsc::UnboundedReceiver<Value>) {
    let (sender, told) = mpsc::unbounded_channel();
    let app = Router::new().fallback(serve).with_state(sender);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await });
    let up = Mcp { url, ..Mcp::default() };
    // Nothing listens there.
    let down =
        Mcp { url: "http://127.0.0.1:1/mcp".into(), connect: Span::seconds(2), ..Mcp::default() };
    let settings = BTreeMap::from([("calc".to_owned(), up), ("gone".to_owned(), down)]);
    (Servers::new(&settings).unwrap(), told)
}

fn find<'a>(tools: &'a [Arc<McpTool>], name: &str) -> &'a McpTool {
    tools.iter().find(|tool| tool.name() == name).unwrap()
}

#[test]
fn tools_are_listed_once_and_called_and_a_server_that_is_away_is_left_out() {
    node::process::block_on(async {
        let (servers, mut told) = started().await;
        let tools = servers.tools().await;
        let names: Vec<_> = tools.iter().map(|tool| tool.name().to_owned()).collect();
        assert_eq!(names, ["mcp_calc_add_up", "mcp_calc_hang"]);
        let add = find(&tools, "mcp_calc_add_up");
        assert_eq!(add.run(&json!({ "a": 2, "b": 3 }), &effort()).await, Output::done("5"));
        let failed = add.run(&json!({ "a": -2 }), &effort()).await;
        assert_eq!(failed, Output::new(CallStatus::Failed, "-2"));
        assert_eq!(servers.tools().await.len(), 2);
        let mut lists = 0;
        while let Ok(message) = told.try_recv() {
            lists += usize::from(message["method"] == "tools/list");
        }
        assert_eq!(lists, 1, "the list is remembered");
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_stop_is_told_to_the_server() {
    node::process::block_on(async {
        let (servers, mut told) = started().await;
        let tools = servers.tools().await;
        let (hang, effort) = (find(&tools, "mcp_calc_hang"), effort());
        let arguments = json!({});
        let stop = async {
            while let Some(message) = told.recv().await {
                match message["method"].as_str() {
                    Some("tools/call") => effort.cut.cancel(),
                    Some("notifications/cancelled") => return,
                    _ => {}
                }
            }
        };
        let limit = std::time::Duration::from_secs(5);
        let (output, told) =
            tokio::join!(hang.run(&arguments, &effort), tokio::time::timeout(limit, stop));
        assert_eq!(output.status, CallStatus::Interrupted);
        assert!(told.is_ok(), "the server was told");
        Ok(())
    })
    .unwrap();
}

/// A real server over its standard streams: `TALARIA_TEST_MCP="npx -y @modelcontextprotocol/server-everything"`.
#[test]
fn a_real_server_lists_and_answers() {
    let Ok(command) = std::env::var("TALARIA_TEST_MCP") else {
        let word = b"skipped: TALARIA_TEST_MCP names no MCP server\n";
        let _ = std::io::Write::write_all(&mut std::io::stderr(), word);
        return;
    };
    node::process::block_on(async {
        let mut words = command.split_whitespace().map(str::to_owned);
        let command = words.next().unwrap_or_default();
        let server =
            Mcp { command, args: words.collect(), connect: Span::seconds(60), ..Mcp::default() };
        let servers = Servers::new(&BTreeMap::from([("real".to_owned(), server)]))?;
        let tools = servers.tools().await;
        assert!(!tools.is_empty());
        let echo = find(&tools, "mcp_real_echo");
        let output = echo.run(&json!({ "message": "hello there" }), &effort()).await;
        assert!(
            output.status == CallStatus::Done && output.text.contains("hello there"),
            "{output:?}"
        );
        Ok(())
    })
    .unwrap();
}
