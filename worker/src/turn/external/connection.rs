//! The conversation with an external agent: begin, one prompt, and what comes back.

use std::time::Duration;

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::schema::{
    CancelNotification, ContentBlock, ContentChunk, InitializeRequest, NewSessionRequest,
    PermissionOption, PromptRequest, RequestPermissionRequest, RequestPermissionResponse,
    SessionNotification, SessionUpdate, StopReason, TextContent,
};
use agent_client_protocol::v1::{ConnectionTo, Responder};
use agent_client_protocol::{Agent, ByteStreams, Client, Error};
use tokio::sync::mpsc::UnboundedSender;
use tokio_util::compat::{TokioAsyncReadCompatExt, TokioAsyncWriteCompatExt};
use tokio_util::sync::CancellationToken;

use super::program::Program;

/// How long it may take to be ready for a prompt.
const BEGIN: Duration = Duration::from_secs(30);

/// What comes back.
pub(super) enum Heard {
    /// Words for the person.
    Words(String),
    /// It advances.
    Busy,
    /// It uses a tool.
    Tool(String),
    /// It wants permission.
    Asked(Box<Permission>),
}

/// A request for permission.
pub(super) struct Permission {
    pub(super) title: String,
    pub(super) options: Vec<PermissionOption>,
    pub(super) responder: Responder<RequestPermissionResponse>,
}

/// Has the program answer a prompt. After the cut it is told to stop, and still waited for.
pub(super) async fn prompt(
    program: &mut Program,
    text: String,
    cut: CancellationToken,
    heard: UnboundedSender<Heard>,
) -> Result<StopReason, Error> {
    let (stdin, stdout) = program.ends().ok_or_else(Error::internal_error)?;
    let transport = ByteStreams::new(stdin.compat_write(), stdout.compat());
    let folder = program.folder.clone();
    let asked = heard.clone();
    Client
        .v1()
        .name("talaria")
        .on_receive_notification(
            async move |told: SessionNotification, _| {
                // When no one listens any more, the turn is over.
                let _ = heard.send(of_update(told.update));
                Ok(())
            },
            agent_client_protocol::on_receive_notification!(),
        )
        .on_receive_request(
            async move |request: RequestPermissionRequest, responder, _| {
                let title = request.tool_call.fields.title.unwrap_or_else(|| "use a tool".into());
                let _ = asked.send(Heard::Asked(Box::new(Permission {
                    title,
                    options: request.options,
                    responder,
                })));
                Ok(())
            },
            agent_client_protocol::on_receive_request!(),
        )
        .connect_with(transport, async move |agent: ConnectionTo<Agent>| {
            let begun = async {
                agent
                    .send_request(InitializeRequest::new(ProtocolVersion::V1))
                    .block_task()
                    .await?;
                agent.send_request(NewSessionRequest::new(folder)).block_task().await
            };
            let begun =
                tokio::time::timeout(BEGIN, begun).await.map_err(|_| Error::internal_error())??;
            let session = begun.session_id;
            let words = vec![ContentBlock::Text(TextContent::new(text))];
            let answer =
                agent.send_request(PromptRequest::new(session.clone(), words)).block_task();
            tokio::pin!(answer);
            let answered = tokio::select! {
                biased;
                () = cut.cancelled() => None,
                answered = &mut answer => Some(answered),
            };
            let answered = match answered {
                Some(answered) => answered?,
                None => {
                    agent.send_notification(CancelNotification::new(session))?;
                    answer.await?
                }
            };
            Ok(answered.stop_reason)
        })
        .await
}

fn of_update(update: SessionUpdate) -> Heard {
    if let SessionUpdate::AgentMessageChunk(ContentChunk {
        content: ContentBlock::Text(text),
        ..
    }) = update
    {
        return Heard::Words(text.text);
    }
    if let SessionUpdate::ToolCall(call) = update {
        return Heard::Tool(call.title);
    }
    Heard::Busy
}
