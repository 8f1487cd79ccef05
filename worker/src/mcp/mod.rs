//! Tools of MCP servers. A server is reached when an agent first needs its tools, within a deadline; what it offers is remembered;
//! one that cannot be reached is left out and tried again later, so that it never holds anyone up for long.

mod server;
mod tool;

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::bail;
use futures_util::future::join_all;
use node::exit::Exit;
use node::settings;

use self::server::Server;
pub(crate) use self::tool::McpTool;

/// The label under which calls of all servers are counted.
pub(crate) const LABEL: &str = "mcp";

/// All servers of a worker.
pub(crate) struct Servers(Vec<Arc<Server>>);

impl Servers {
    /// None is reached yet.
    ///
    /// # Errors
    /// When a server has neither a command nor an address, or both: exit 78.
    pub(crate) fn new(settings: &BTreeMap<String, settings::Mcp>) -> anyhow::Result<Self> {
        let server = |(name, settings): (&String, &settings::Mcp)| {
            if settings.command.is_empty() == settings.url.is_empty() {
                let what = format!("worker.mcp.{name} needs either a command or a url");
                bail!(anyhow::anyhow!(what).context(Exit::Configuration));
            }
            Ok(Arc::new(Server::new(name, settings)))
        };
        Ok(Self(settings.iter().map(server).collect::<anyhow::Result<_>>()?))
    }

    /// The tools of all servers that can be reached.
    pub(crate) async fn tools(&self) -> Vec<Arc<McpTool>> {
        let all = join_all(self.0.iter().map(|server| async {
            let tools = Server::tools(server).await;
            tools
                .iter()
                .map(|tool| Arc::new(McpTool::new(Arc::clone(server), tool)))
                .collect::<Vec<_>>()
        }));
        all.await.into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests;
