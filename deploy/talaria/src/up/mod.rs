//! `talaria up`: the whole system on one machine, in one process with one child, until Ctrl-C.
//!
//! Starting goes: settings, data folder, broker, streams, front door, services. Stopping goes backwards: ingress and worker
//! first, since workers hand back what they run through the scheduler, then the scheduler, then the broker.

mod banner;
mod broker;
mod door;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use clap::Args;
use node::exit::Exit;
use node::process::{self, CommonArgs};
use node::rollout::{self, Voice};
use node::settings::{Flags, Loaded, Settings};
use node::{Node, telemetry};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use worker::models::Model;

use self::broker::Broker;
use crate::console;
use crate::data::{self, Data};
use crate::services::Running;

/// The command's flags.
#[derive(Args, Debug)]
pub struct UpArgs {
    #[command(flatten)]
    common: CommonArgs,
    /// Address of the chat page and the API [default: 127.0.0.1:8420, or the next free port]
    #[arg(long, value_name = "ADDR")]
    listen: Option<SocketAddr>,
    /// Folder of the data
    #[arg(long, value_name = "DIR", default_value = data::DEFAULT)]
    data: PathBuf,
    /// Who answers: scripted, openai:NAME or anthropic:NAME [default: by the keys that are set]
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
}

/// Runs the system until a signal comes or a part of it ends.
///
/// # Errors
/// When it cannot start, or a part of it fails; the exit code goes along.
pub async fn run(args: UpArgs) -> anyhow::Result<()> {
    let flags = Flags::default().set("model.name", args.model.as_ref());
    let loaded = args.common.load(flags)?;
    let guard = telemetry::start(&loaded.settings.telemetry, "talaria")?;
    loaded.warnings.iter().for_each(|warning| console::note(&format!("warning: {warning}")));
    let shutdown = process::shutdown_on_signal()?;

    let data = Data::open(&args.data)?;
    let settings = complete(loaded, &data)?;
    // What is wrong with the settings is said before anything is started.
    let model = worker::models::choose(&settings.model)?;
    let listener = door::open(args.listen).await?;
    let mut broker = tokio::select! {
        broker = Broker::start(args.common.nats.is_some(), &settings.nats, &data) => broker?,
        () = shutdown.cancelled() => return Ok(()),
    };
    let settings = Settings { nats: broker.access(), ..settings };
    let system = System { settings, model, listener, data: &data };
    let outcome = system.serve(&mut broker, shutdown).await;
    broker.stop().await;
    tokio::task::spawn_blocking(|| guard.flush()).await?;
    outcome
}

/// The settings with what follows from the data folder, where nothing else was said.
fn complete(loaded: Loaded, data: &Data) -> anyhow::Result<Settings> {
    let Loaded { mut settings, effective, .. } = loaded;
    if settings.ingress.token.given().is_none() {
        settings.ingress.token = data.token()?;
    }
    if effective.get("worker.workspace").is_some_and(|setting| setting.origin == "default") {
        settings.worker.workspace = data.workspace();
    }
    std::fs::create_dir_all(&settings.worker.workspace)
        .with_context(|| format!("cannot create {}", settings.worker.workspace.display()))
        .context(Exit::Configuration)?;
    Ok(settings)
}

/// Everything but the broker.
struct System<'a> {
    settings: Settings,
    model: Arc<dyn Model>,
    listener: TcpListener,
    data: &'a Data,
}

impl System<'_> {
    /// Runs the services until `shutdown`, or until something ends that should not, and drains them. When the fleet restarts they
    /// are drained and started again here, behind the same front door: nobody else would do it.
    async fn serve(self, broker: &mut Broker, shutdown: CancellationToken) -> anyhow::Result<()> {
        let Self { settings, model, listener, data } = self;
        let door = listener.into_std().context("the front door")?;
        let mut is_first = true;
        loop {
            let listener = door.try_clone().and_then(TcpListener::from_std);
            let listener = listener.context("the front door")?;
            let node = Node::connect(settings.clone(), "talaria", CancellationToken::new()).await?;
            let banner = std::mem::take(&mut is_first)
                .then(|| banner(&settings, data, &door, broker))
                .transpose()?;
            let running = Running::start(&node, listener, Arc::clone(&model), Vec::new());
            match attend(running, &node, banner, broker, &shutdown).await {
                Ended::Restart(drained) => drained?,
                Ended::Over(outcome) => return outcome,
            }
            console::note("starting again …");
        }
    }
}

fn banner(
    settings: &Settings,
    data: &Data,
    door: &std::net::TcpListener,
    broker: &Broker,
) -> anyhow::Result<String> {
    Ok(banner::text(&banner::Facts {
        address: door.local_addr().context("no local address")?,
        settings,
        model: &worker::models::chosen(&settings.model)?,
        data: data.folder(),
        broker: &broker.to_string(),
    }))
}

/// How a run of the services ended.
enum Ended {
    /// The fleet restarts.
    Restart(anyhow::Result<()>),
    /// For good.
    Over(anyhow::Result<()>),
}

/// Attends to the services until something ends them, and drains them.
async fn attend(
    mut running: Running,
    node: &Node,
    banner: Option<String>,
    broker: &mut Broker,
    shutdown: &CancellationToken,
) -> Ended {
    let announced = async {
        door::ready(&node.health).await;
        match banner.map_or(Ok(()), |banner| console::say(&banner)) {
            // The system is up, and there is nothing more to say.
            Ok(()) => std::future::pending().await,
            Err(error) => anyhow::Error::new(error).context("cannot print the address"),
        }
    };
    let restart = rollout::wanted(node.bus.clone(), running.ids(), Voice::Speaks);
    let cause = tokio::select! {
        () = shutdown.cancelled() => None,
        error = running.failed() => Some(error),
        error = broker.failed() => Some(error),
        error = announced => Some(error),
        () = restart => {
            console::note("restarting: what runs is handed over and goes on afterwards …");
            return Ended::Restart(running.drain().await);
        }
    };
    if cause.is_none() {
        console::note("stopping: what runs is finished or handed back …");
    }
    let drained = running.drain().await;
    Ended::Over(cause.map_or(drained, Err))
}
