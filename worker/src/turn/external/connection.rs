//! The conversation with an external agent: begin, one prompt, and what comes back.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::schema::{
    AgentCapabilities, CancelNotification, ContentBlock, ContentChunk, InitializeRequest,
    LoadSessionRequest, NewSessionRequest, PermissionOption, PromptRequest,
    RequestPermissionRequest, RequestPermissionResponse, ResumeSessionRequest, SessionId,
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
    /// Its session, which it may know again later.
    Session(String),
}

/// What the program is told.
pub(super) struct Told {
    /// Its session that knows the conversation, if there is one.
    pub(super) session: Option<String>,
    /// The person's words, for a session that knows the rest.
    pub(super) news: String,
    /// The conversation so far and the person's words, for one that knows nothing.
    pub(super) all: String,
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
    told: Told,
    cut: CancellationToken,
    heard: UnboundedSender<Heard>,
) -> Result<StopReason, Error> {
    let (stdin, stdout) = program.ends().ok_or_else(Error::internal_error)?;
    let transport = ByteStreams::new(stdin.compat_write(), stdout.compat());
    let folder = program.folder.clone();
    let (asked, begun) = (heard.clone(), heard.clone());
    // What a session that is loaded repeats is no news.
    let is_news = Arc::new(AtomicBool::new(false));
    let listening = Arc::clone(&is_news);
    Client
        .v1()
        .name("talaria")
        .on_receive_notification(
            async move |told: SessionNotification, _| {
                if listening.load(Ordering::Acquire) {
                    // When no one listens any more, the turn is over.
                    let _ = heard.send(of_update(told.update));
                }
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
            let open = open(&agent, &folder, told);
            let (session, text) =
                tokio::time::timeout(BEGIN, open).await.map_err(|_| Error::internal_error())??;
            is_news.store(true, Ordering::Release);
            let _ = begun.send(Heard::Session(session.to_string()));
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

/// Opens the session that knows the conversation, or a new one; returns it with what it is to be told.
async fn open(
    agent: &ConnectionTo<Agent>,
    folder: &Path,
    told: Told,
) -> Result<(SessionId, String), Error> {
    let hello = InitializeRequest::new(ProtocolVersion::V1);
    let able = agent.send_request(hello).block_task().await?.agent_capabilities;
    if let Some(session) = told.session
        && reopen(agent, folder, &session, &able).await
    {
        return Ok((SessionId::new(session), told.news));
    }
    let opened = agent.send_request(NewSessionRequest::new(folder)).block_task().await?;
    Ok((opened.session_id, told.all))
}

/// Has the agent take up a session again; false if it cannot.
async fn reopen(
    agent: &ConnectionTo<Agent>,
    folder: &Path,
    session: &str,
    able: &AgentCapabilities,
) -> bool {
    let id = SessionId::new(session);
    let outcome = if able.session_capabilities.resume.is_some() {
        let request = ResumeSessionRequest::new(id, folder);
        agent.send_request(request).block_task().await.map(drop)
    } else if able.load_session {
        agent.send_request(LoadSessionRequest::new(id, folder)).block_task().await.map(drop)
    } else {
        return false;
    };
    outcome
        .inspect_err(|error| tracing::info!(%error, "an external agent no longer has its session"))
        .is_ok()
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
