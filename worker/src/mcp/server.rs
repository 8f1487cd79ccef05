//! One MCP server: its connection, and the list of its tools as long as the server does not say that it has changed.

use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use node::settings::Mcp;
use rmcp::handler::client::progress::ProgressDispatcher;
use rmcp::model::{
    ClientCapabilities, ClientConfig, Implementation, ProgressNotificationParam, Tool,
};
use rmcp::service::{NotificationContext, Peer, RunningService};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{ClientHandler, RoleClient, ServiceExt};
use tokio::process::Command;
use tokio::sync::Mutex;

use crate::tools::environment;

/// After how long a server that could not be reached is tried again.
const PAUSE: Duration = Duration::from_secs(30);

/// Our end of a connection.
#[derive(Clone, Default)]
pub(super) struct Client {
    /// Who waits for the progress of which call.
    pub(super) progress: ProgressDispatcher,
    /// Whether the list of tools is old.
    is_old: Arc<AtomicBool>,
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        let us = Implementation::new("talaria", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), us)
    }

    async fn on_progress(
        &self,
        progress: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.progress.handle_notification(progress).await;
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.is_old.store(true, Ordering::Release);
    }
}

/// A connection that works.
struct Link {
    service: RunningService<RoleClient, Client>,
    tools: Arc<[Tool]>,
}

/// How things stand with a server.
enum State {
    Never,
    Failed(Instant),
    Up(Link),
}

/// The server.
pub(super) struct Server {
    pub(super) name: String,
    pub(super) settings: Mcp,
    /// Held while connecting: whoever comes meanwhile waits for the same try.
    state: Mutex<State>,
}

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("it did not answer within {0:?}")]
    Late(Duration),
    #[error("it cannot be started: {0}")]
    Start(#[from] std::io::Error),
    #[error("it did not begin as it should: {0}")]
    Begin(Box<rmcp::service::ClientInitializeError>),
    #[error("it did not list its tools: {0}")]
    List(#[from] rmcp::ServiceError),
}

impl Server {
    pub(super) fn new(name: &str, settings: &Mcp) -> Self {
        Self { name: name.to_owned(), settings: settings.clone(), state: Mutex::new(State::Never) }
    }

    /// Its tools; none if it cannot be reached.
    pub(super) async fn tools(self: &Arc<Self>) -> Arc<[Tool]> {
        self.reached().await.map_or_else(|| Arc::from([]), |(_, _, tools)| tools)
    }

    /// The connection for a call.
    pub(super) async fn peer(&self) -> Option<(Peer<RoleClient>, ProgressDispatcher)> {
        self.reached().await.map(|(peer, client, _)| (peer, client.progress))
    }

    async fn reached(&self) -> Option<(Peer<RoleClient>, Client, Arc<[Tool]>)> {
        let mut state = self.state.lock().await;
        let is_wanted = match &*state {
            State::Never => true,
            State::Failed(at) => at.elapsed() > PAUSE,
            State::Up(link) => {
                link.service.is_transport_closed()
                    || link.service.service().is_old.load(Ordering::Acquire)
            }
        };
        if is_wanted {
            *state = self.next(std::mem::replace(&mut *state, State::Never)).await;
        }
        match &*state {
            State::Up(link) => Some((
                link.service.peer().clone(),
                link.service.service().clone(),
                Arc::clone(&link.tools),
            )),
            State::Never | State::Failed(_) => None,
        }
    }

    /// Lists the tools anew, over a new connection if the old one is closed.
    async fn next(&self, state: State) -> State {
        let limit = self.settings.connect.get();
        let renewed = async {
            let service = match state {
                State::Up(link) if !link.service.is_transport_closed() => link.service,
                State::Never | State::Failed(_) | State::Up(_) => self.connect().await?,
            };
            service.service().is_old.store(false, Ordering::Release);
            let tools = service.list_all_tools().await?;
            Ok(Link { service, tools: tools.into() })
        };
        let outcome =
            tokio::time::timeout(limit, renewed).await.unwrap_or(Err(Failure::Late(limit)));
        match outcome {
            Ok(link) => {
                tracing::info!(
                    server = self.name,
                    tools = link.tools.len(),
                    "an MCP server is there"
                );
                State::Up(link)
            }
            Err(error) => {
                tracing::warn!(server = self.name, %error, "an MCP server is left out for now");
                State::Failed(Instant::now())
            }
        }
    }

    async fn connect(&self) -> Result<RunningService<RoleClient, Client>, Failure> {
        let client = Client::default();
        let begun = if self.settings.url.is_empty() {
            let mut command = Command::new(&self.settings.command);
            let given = self.settings.env.iter().map(|(name, value)| (name, value.expose()));
            command.args(&self.settings.args).env_clear().envs(environment()).envs(given);
            let (transport, _) =
                TokioChildProcess::builder(command).stderr(Stdio::null()).spawn()?;
            client.serve(transport).await
        } else {
            let mut config =
                StreamableHttpClientTransportConfig::with_uri(self.settings.url.as_str());
            if let Some(token) = self.settings.token.given() {
                config = config.auth_header(token);
            }
            client.serve(StreamableHttpClientTransport::from_config(config)).await
        };
        begun.map_err(|error| Failure::Begin(Box::new(error)))
    }
}
