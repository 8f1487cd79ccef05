//! A tool of an MCP server as one of ours: its progress is ours, and a stop is told to the server.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt};
use proto::transcript::CallStatus;
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientRequest, ContentBlock, Request, ServerResult,
    Tool as Remote,
};
use rmcp::service::PeerRequestOptions;
use serde_json::{Map, Value};

use super::server::Server;
use crate::models::ToolSpec;
use crate::tools::{Effort, Output, Tool, passed};

/// The longest name that providers take.
const NAME_BYTES_MAX: usize = 64;

/// The tool.
pub(crate) struct McpTool {
    server: Arc<Server>,
    remote: Cow<'static, str>,
    spec: ToolSpec,
}

impl McpTool {
    pub(super) fn new(server: Arc<Server>, tool: &Remote) -> Self {
        let name = format!("mcp_{}_{}", server.name, tool.name);
        let fits =
            |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
        let name: String = name.chars().map(fits).take(NAME_BYTES_MAX).collect();
        let description = tool.description.as_deref().unwrap_or_default().to_owned();
        let parameters = Value::Object((*tool.input_schema).clone());
        let spec = ToolSpec { name: name.into(), description, parameters };
        Self { server, remote: tool.name.clone(), spec }
    }

    /// How models call it.
    pub(crate) fn name(&self) -> &str {
        &self.spec.name
    }

    async fn call(&self, arguments: &Value, effort: &Effort) -> Output {
        let Some(arguments) = arguments.as_object() else {
            return Output::failed("the arguments are not a JSON object");
        };
        let reached = tokio::select! {
            biased;
            () = effort.cut.cancelled() => return Output::new(CallStatus::Interrupted, "[interrupted]"),
            reached = self.server.peer() => reached,
        };
        let Some((peer, progress)) = reached else {
            return Output::failed(format_args!(
                "the server {:?} cannot be reached",
                self.server.name
            ));
        };
        let params =
            CallToolRequestParams::new(self.remote.clone()).with_arguments(arguments.clone());
        let request = ClientRequest::CallToolRequest(Request::new(params));
        let mut handle =
            match peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await {
                Ok(handle) => handle,
                Err(error) => return Output::failed(error),
            };
        let mut advances = progress.subscribe(handle.progress_token.clone()).await;
        let limit = self.limit(&Value::Null);
        let late = passed(limit);
        tokio::pin!(late);
        let mut furthest = f64::NEG_INFINITY;
        let why = loop {
            tokio::select! {
                biased;
                () = effort.cut.cancelled() => break Output::new(CallStatus::Interrupted, "[interrupted]"),
                answer = &mut handle.rx => return match answer {
                    Ok(Ok(ServerResult::CallToolResult(result))) => told(result),
                    Ok(Ok(_)) => Output::failed("the server answered something else"),
                    Ok(Err(error)) => Output::failed(error),
                    Err(_) => Output::failed("the server has gone"),
                },
                Some(step) = advances.next() => {
                    // Saying the same again is no progress.
                    if step.progress > furthest {
                        furthest = step.progress;
                        effort.tracker.touch();
                    }
                }
                limit = &mut late => {
                    break Output::failed(format_args!("no answer within {} s", limit.as_secs()));
                }
            }
        };
        let reason = Some("the call is no longer wanted".to_owned());
        // A server that cannot be told has gone.
        let _ = tokio::time::timeout(Duration::from_millis(200), handle.cancel(reason)).await;
        why
    }
}

impl Tool for McpTool {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    fn is_read_only(&self) -> bool {
        self.server.settings.read_only
    }

    fn limit(&self, _arguments: &Value) -> Option<Duration> {
        self.server.settings.timeout.limit()
    }

    fn summary(&self, arguments: &Value) -> String {
        format!("{} {}", self.remote, crate::text::start(&arguments.to_string(), 100))
    }

    fn run<'a>(&'a self, arguments: &'a Value, effort: &'a Effort) -> BoxFuture<'a, Output> {
        self.call(arguments, effort).boxed()
    }
}

/// A result as text.
fn told(result: CallToolResult) -> Output {
    let part = |block: ContentBlock| {
        if let ContentBlock::Text(text) = block {
            return text.text;
        }
        if matches!(block, ContentBlock::Image(_) | ContentBlock::Audio(_)) {
            return "[a picture or a sound]".into();
        }
        serde_json::to_string(&block).unwrap_or_else(|_| "[a resource]".into())
    };
    let mut text = result.content.into_iter().map(part).collect::<Vec<_>>().join("\n");
    if text.is_empty() {
        text = result.structured_content.unwrap_or_else(|| Value::Object(Map::new())).to_string();
    }
    let status = if result.is_error == Some(true) { CallStatus::Failed } else { CallStatus::Done };
    Output::new(status, text)
}
