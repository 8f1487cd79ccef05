//! The world of one test: a broker, a model provider and a platform, and the settings with which our services live in it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use node::settings::{self, Flags, Settings};
use proto::member::Role;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::callback::CallbackServer;
use crate::chat::Chat;
use crate::model::FakeModel;
use crate::nats::NatsServer;
use crate::process::{Place, Process};
use crate::service::Service;
use crate::wait::eventually;
use crate::webhook;

/// The token of the chat page and the API.
pub const TOKEN: &str = "test-token";

/// What a test wants different: settings by their full names.
#[derive(Clone, Debug, Default)]
pub struct Setup(BTreeMap<String, Value>);

impl Setup {
    /// Sets one.
    #[must_use]
    pub fn set(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.0.insert(key.to_owned(), value.into());
        self
    }
}

/// Everything around our services.
#[derive(Debug)]
pub struct World {
    /// The broker.
    pub nats: NatsServer,
    /// The model provider.
    pub model: FakeModel,
    /// The platform's server.
    pub callbacks: CallbackServer,
    folder: TempDir,
    processes: AtomicUsize,
}

impl World {
    /// A world with short times and few partitions, and with what `setup` says.
    ///
    /// # Panics
    /// When something in it does not start.
    pub async fn new(setup: Setup) -> Self {
        let (nats, model, callbacks) =
            tokio::join!(NatsServer::start(), FakeModel::start(), CallbackServer::start());
        let folder = tempfile::tempdir().expect("a temporary folder");
        let world = Self { nats, model, callbacks, folder, processes: AtomicUsize::new(0) };
        std::fs::create_dir_all(world.workspace()).expect("a folder for the tools");
        let mut all = world.defaults();
        all.extend(setup.0);
        let mut text = String::new();
        for (key, value) in all {
            // A JSON string, number, boolean or list of those is TOML too.
            let _ = writeln!(text, "{key} = {value}");
        }
        std::fs::write(world.config(), text).expect("a settings file");
        let settings = world.settings();
        // Kept for as long as the process lives: tests share one subscriber, the first.
        std::mem::forget(node::telemetry::start(&settings.telemetry, "test"));
        world
    }

    fn defaults(&self) -> BTreeMap<String, Value> {
        let nats = self.nats.access();
        let hook = |key: &str| format!("ingress.webhook.{}.{key}", webhook::NAME);
        BTreeMap::from([
            ("nats.url".to_owned(), json!(nats.url)),
            ("nats.user".to_owned(), json!(nats.user)),
            ("nats.password".to_owned(), json!(nats.password.expose())),
            ("streams.partitions".to_owned(), json!(4)),
            ("scheduler.beat".to_owned(), json!("250ms")),
            ("scheduler.lease_ttl".to_owned(), json!("3s")),
            ("scheduler.stop_deadline".to_owned(), json!("5s")),
            ("model.name".to_owned(), json!("openai:fake")),
            ("model.openai_base_url".to_owned(), json!(self.model.base_url())),
            ("model.openai_api_key".to_owned(), json!("any")),
            ("worker.workspace".to_owned(), json!(self.workspace())),
            ("worker.drain".to_owned(), json!("5s")),
            ("ingress.token".to_owned(), json!(TOKEN)),
            (hook("secret"), json!(webhook::SECRET)),
            (hook("callback_url"), json!(self.callbacks.url())),
            (hook("allow_all"), json!(true)),
            // TALARIA__TELEMETRY__LOG=debug shows more: the environment is stronger than the file.
            ("telemetry.log".to_owned(), json!("error")),
        ])
    }

    /// The settings file.
    #[must_use]
    pub fn config(&self) -> PathBuf {
        self.folder.path().join("talaria.toml")
    }

    /// Where the tools work.
    #[must_use]
    pub fn workspace(&self) -> PathBuf {
        self.folder.path().join("workspace")
    }

    /// Waits for a pid that a tool writes to a file.
    pub async fn pid_in(&self, file: &str) -> i32 {
        let path = self.workspace().join(file);
        eventually(&format!("a pid in {file}"), || {
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            async move { text.trim().parse().ok() }
        })
        .await
    }

    /// Waits for a file that a tool makes.
    pub async fn file(&self, name: &str) {
        let path = self.workspace().join(name);
        eventually(&format!("the file {name}"), || {
            let there = path.exists();
            async move { there.then_some(()) }
        })
        .await;
    }

    /// The folder of this world, for anything else.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The settings, as a process would read them.
    ///
    /// # Panics
    /// When they are wrong.
    #[must_use]
    pub fn settings(&self) -> Settings {
        let loaded = settings::load(Some(&self.config()), Flags::default());
        let loaded = loaded.unwrap_or_else(|error| panic!("{:#}", anyhow::Error::new(error)));
        assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
        loaded.settings
    }

    /// Runs a service in this process. Its door is open, but it may not be ready: ingress never is without the others.
    pub async fn start(&self, role: Role) -> Service {
        // Connecting is a large future, and tests have many.
        Box::pin(Service::start(role, self.settings())).await
    }

    /// Runs a service in this process, and waits until it is ready.
    pub async fn run(&self, role: Role) -> Service {
        let service = self.start(role).await;
        service.ready().await;
        service
    }

    /// Runs all three in this process, and waits until they are ready.
    pub async fn run_all(&self) -> System {
        let (scheduler, worker, ingress) = tokio::join!(
            self.run(Role::Scheduler),
            self.run(Role::Worker),
            self.run(Role::Ingress)
        );
        System { scheduler, worker, ingress }
    }

    /// Runs a service as a process of its own, and waits until it is ready. `binary` is `env!("CARGO_BIN_EXE_service")`.
    pub async fn spawn(&self, role: Role, binary: &str) -> Process {
        let number = self.processes.fetch_add(1, Ordering::Relaxed);
        let log = self.folder.path().join(format!("{role}-{number}.log"));
        let mut process = Process::spawn(binary, role, &self.config(), log);
        process.ready().await;
        process
    }

    /// Runs a service as a process at a given place, and does not wait until it is ready.
    #[must_use]
    pub fn spawn_at(&self, role: Role, binary: &str, place: &Place) -> Process {
        let number = self.processes.fetch_add(1, Ordering::Relaxed);
        let log = self.folder.path().join(format!("{role}-{number}.log"));
        Process::spawn_at(binary, role, &self.config(), log, place)
    }

    /// A private chat on the platform, over one ingress.
    #[must_use]
    pub fn chat(&self, ingress: SocketAddr, name: &str) -> Chat<'_> {
        Chat::new(self, ingress, name)
    }
}

/// All three services in this process.
#[derive(Debug)]
pub struct System {
    /// The one that decides.
    pub scheduler: Service,
    /// The one that runs turns.
    pub worker: Service,
    /// The one that talks to platforms.
    pub ingress: Service,
}

impl System {
    /// Where the front door is.
    #[must_use]
    pub const fn door(&self) -> SocketAddr {
        self.ingress.address()
    }

    /// Stops all, in the order in which they need each other.
    pub async fn stop(self) {
        tokio::join!(self.ingress.stop(), self.worker.stop());
        self.scheduler.stop().await;
    }
}
