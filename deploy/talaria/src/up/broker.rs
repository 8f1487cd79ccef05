//! The broker of `up`: one that runs already, or a child of ours.

use std::fmt;

use node::exit::Exit;
use node::settings::Nats;

use crate::console;
use crate::data::Data;
use crate::nats_server::{Server, Version, obtain};

/// What the services are connected to.
#[derive(Debug)]
pub(super) enum Broker {
    /// Someone else's.
    Theirs(Nats),
    /// Ours, which ends with us.
    Ours {
        /// The child.
        server: Box<Server>,
        /// Its version.
        version: Version,
    },
}

impl Broker {
    /// Takes the broker that the settings name, or starts one on the data.
    ///
    /// # Errors
    /// When none can be obtained or started: exit 69.
    pub(super) async fn start(asked: bool, settings: &Nats, data: &Data) -> anyhow::Result<Self> {
        if asked || settings.url != Nats::default().url {
            return Ok(Self::Theirs(settings.clone()));
        }
        let unavailable = |error: anyhow::Error| error.context(Exit::Unavailable);
        let binary = obtain(&data.tools()).await.map_err(|error| unavailable(error.into()))?;
        console::note("starting nats-server …");
        let server = Server::start(&binary, data.folder(), None)
            .await
            .map_err(|error| unavailable(error.into()))?;
        Ok(Self::Ours { server: Box::new(server), version: binary.version })
    }

    /// How to reach it.
    pub(super) fn access(&self) -> Nats {
        match self {
            Self::Theirs(nats) => nats.clone(),
            Self::Ours { server, .. } => server.access(),
        }
    }

    /// Waits until a broker of ours ends, which it should not.
    pub(super) async fn failed(&mut self) -> anyhow::Error {
        match self {
            Self::Theirs(_) => std::future::pending().await,
            Self::Ours { server, .. } => {
                let log = server.log().display().to_string();
                let how = server.ended().await.map_or_else(|e| e.to_string(), |s| s.to_string());
                anyhow::anyhow!("nats-server ended by itself ({how}); see {log}")
                    .context(Exit::Unavailable)
            }
        }
    }

    /// Stops a broker of ours.
    pub(super) async fn stop(self) {
        if let Self::Ours { server, .. } = self {
            server.stop().await;
        }
    }
}

impl fmt::Display for Broker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Theirs(nats) => write!(f, "NATS at {}", nats.url),
            Self::Ours { server, version } => {
                write!(f, "nats-server {version} at {}", server.url())
            }
        }
    }
}
