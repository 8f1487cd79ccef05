//! The life of a process: parse, connect, run, drain.

use std::future::Future;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use clap::{Args, Parser};
use prometheus::Registry;
use proto::id::ProcessId;
use proto::member::Role;
use proto::permission;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::bus::Bus;
use crate::exit::Exit;
use crate::hooks::Hooks;
use crate::rollout::{self, Voice};
use crate::settings::{self, Flags, Loaded, Settings};
use crate::{health, telemetry, topology, vitals};

/// The flags that every process has.
#[derive(Args, Clone, Debug, Default)]
pub struct CommonArgs {
    /// Settings file [default: talaria.toml, if there is one]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Address of the NATS server
    #[arg(long, value_name = "URL")]
    pub nats: Option<String>,
}

impl CommonArgs {
    /// Reads the settings with these flags on top, and `more`.
    ///
    /// # Errors
    /// When a source cannot be read or a value is wrong: exit 78.
    pub fn load(&self, more: Flags) -> anyhow::Result<Loaded> {
        settings::load(self.config.as_deref(), more.set("nats.url", self.nats.as_ref()))
            .context(Exit::Configuration)
    }
}

/// What a part of the system needs in order to run. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Node {
    /// This process.
    pub id: ProcessId,
    /// What the operator chose.
    pub settings: Arc<Settings>,
    /// The connection.
    pub bus: Bus,
    /// What is counted.
    pub metrics: Registry,
    /// What works.
    pub health: health::Board,
    /// Who hears of what happens.
    pub hooks: Hooks,
    /// When to stop: take nothing new, finish what is begun, return.
    pub shutdown: CancellationToken,
}

impl Node {
    /// Connects and makes sure that the streams exist.
    ///
    /// # Errors
    /// When the broker cannot be reached or its streams differ from the settings: exit 69 or 78.
    pub async fn connect(
        settings: Settings,
        name: &str,
        shutdown: CancellationToken,
    ) -> anyhow::Result<Self> {
        let id = ProcessId::new(u64::from_be_bytes(random()));
        let bus = Bus::connect_as(&settings.nats, name, &format!("{name}-{id}"))
            .await
            .context(Exit::Unavailable)?;
        let bus = topology::ensure(bus, &settings.streams).await.map_err(|error| {
            let exit = match &error {
                topology::TopologyError::Mismatch { .. } => Exit::Configuration,
                topology::TopologyError::Unusable { .. }
                | topology::TopologyError::Missing { .. } => Exit::Unavailable,
            };
            anyhow::Error::new(error).context(exit)
        })?;
        let metrics = Registry::new();
        vitals::register(&metrics, Some(bus.clone())).context("no metrics")?;
        let hooks = Hooks::start(&settings.hooks, &metrics)?;
        Ok(Self {
            id,
            settings: Arc::new(settings),
            bus,
            metrics,
            health: health::Board::default(),
            hooks,
            shutdown,
        })
    }

    /// The same node as another process: its own id, everything else shared.
    #[must_use]
    pub fn as_process(&self) -> Self {
        Self { id: ProcessId::new(u64::from_be_bytes(random())), ..self.clone() }
    }
}

/// Random bytes from the operating system.
///
/// # Panics
/// When the operating system has no random source, without which nothing here is safe.
#[must_use]
pub fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the operating system has a random source");
    bytes
}

/// The command line of a service.
#[derive(Parser, Debug)]
#[command(version, after_help = AFTER_HELP)]
struct ServiceArgs {
    #[command(flatten)]
    common: CommonArgs,
    /// Where to listen for health checks and metrics (ingress: also for messages)
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
}

const AFTER_HELP: &str = "Every setting can also be given as TALARIA__SECTION__KEY; `talaria config` lists them.\n\
    Exit codes: 0 clean, 1 failure, 64 usage, 69 broker unreachable, 75 restart wanted, 78 bad configuration.";

/// The `main` of a service: parses the command line, runs `run` until it returns or a signal comes, and prints the one error.
pub fn service<F>(
    name: &'static str,
    about: &'static str,
    run: impl FnOnce(Node, SocketAddr) -> F,
) -> ExitCode
where
    F: Future<Output = anyhow::Result<()>>,
{
    use clap::{CommandFactory, FromArgMatches};
    let parsed = ServiceArgs::command().name(name).about(about).try_get_matches();
    let args = match parsed.and_then(|matches| ServiceArgs::from_arg_matches(&matches)) {
        Ok(args) => args,
        Err(error) => return usage(&error),
    };
    finish(block_on(async {
        let loaded = args.common.load(Flags::default())?;
        let guard = telemetry::start(&loaded.settings.telemetry, name)?;
        loaded.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
        let node = Node::connect(loaded.settings, name, shutdown_on_signal()?).await?;
        let (watched, stop) = (node.clone(), node.shutdown.clone());
        let restart = tokio::spawn(async move {
            let speaks = name == permission::service_name(Role::Scheduler);
            let voice = if speaks { Voice::Speaks } else { Voice::Silent };
            rollout::wanted(watched.bus, vec![watched.id], voice).await;
            stop.cancel();
        });
        let mut outcome = run(node, args.listen).await;
        if restart.is_finished() {
            outcome = outcome.and(Err(Exit::Restart.into()));
        }
        tokio::task::spawn_blocking(|| guard.flush()).await?;
        outcome
    }))
}

/// Prints what clap has to say: help to standard output, mistakes to standard error with exit 64.
pub fn usage(error: &clap::Error) -> ExitCode {
    let _ = error.print();
    if error.use_stderr() { Exit::Usage.into() } else { Exit::Clean.into() }
}

/// Runs a future on a runtime of its own, with TLS set up.
///
/// # Errors
/// Those of the future.
pub fn block_on<F: Future<Output = anyhow::Result<()>>>(future: F) -> anyhow::Result<()> {
    install_tls();
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("no runtime")?
        .block_on(future)
}

/// Chooses the provider of cryptography for TLS, before the first connection. Several may be linked in; this one is ours.
pub fn install_tls() {
    // A second call in one process finds it set.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// The one place that prints an error and decides the exit code.
#[expect(clippy::print_stderr, reason = "the one place that prints an error")]
pub fn finish(outcome: anyhow::Result<()>) -> ExitCode {
    match outcome {
        Ok(()) => Exit::Clean.into(),
        Err(error) if Exit::of(&error) == Exit::Restart => Exit::Restart.into(),
        Err(error) => {
            let exit = Exit::of(&error);
            eprintln!("error: {error:#}");
            exit.into()
        }
    }
}

/// A token that is cancelled by the first SIGINT or SIGTERM; the second one ends the process at once.
///
/// # Errors
/// When signals cannot be caught.
pub fn shutdown_on_signal() -> anyhow::Result<CancellationToken> {
    let token = CancellationToken::new();
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot catch SIGINT")?;
    let mut terminate = signal(SignalKind::terminate()).context("cannot catch SIGTERM")?;
    let stop = token.clone();
    tokio::spawn(async move {
        tokio::select! { _ = interrupt.recv() => {} _ = terminate.recv() => {} }
        tracing::info!("stopping; once more to stop at once");
        stop.cancel();
        tokio::select! { _ = interrupt.recv() => {} _ = terminate.recv() => {} }
        std::process::exit(i32::from(Exit::Failure.code()));
    });
    Ok(token)
}
