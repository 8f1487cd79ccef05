//! Health: whether a process is alive, whether it would do its work, and what it counted.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::Context;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use prometheus::{Registry, TextEncoder};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::process::Node;

/// After what silence a loop that should beat each second counts as stuck.
const STUCK: Duration = Duration::from_secs(30);

#[derive(Clone, Debug)]
struct Part {
    ready: Result<(), String>,
    notes: Vec<String>,
    pulse: Option<Instant>,
}

/// What the parts of a process say about themselves.
#[derive(Clone, Debug)]
pub struct Board(watch::Sender<BTreeMap<&'static str, Part>>);

impl Default for Board {
    fn default() -> Self {
        Self(watch::Sender::new(BTreeMap::new()))
    }
}

impl Board {
    /// Adds a part, which is not ready until it says so.
    #[must_use]
    pub fn part(&self, name: &'static str) -> Light {
        let light = Light { board: self.0.clone(), name };
        light.update(|part| part.ready = Err("starting".into()));
        light
    }

    /// What is not ready, and why.
    #[must_use]
    pub fn troubles(&self) -> BTreeMap<&'static str, String> {
        let parts = self.0.borrow();
        parts.iter().filter_map(|(name, part)| Some((*name, part.ready.clone().err()?))).collect()
    }

    /// Waits until all parts are ready.
    pub async fn ready(&self) {
        let mut parts = self.0.subscribe();
        // The sender lives as long as `self`, so waiting cannot fail.
        let _ = parts
            .wait_for(|parts| !parts.is_empty() && parts.values().all(|part| part.ready.is_ok()))
            .await;
    }

    /// What does not work although everything is ready.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        self.0.borrow().values().flat_map(|part| part.notes.clone()).collect()
    }

    fn stuck(&self) -> Vec<&'static str> {
        let parts = self.0.borrow();
        let late = |part: &Part| part.pulse.is_some_and(|pulse| pulse.elapsed() > STUCK);
        parts.iter().filter(|(_, part)| late(part)).map(|(name, _)| *name).collect()
    }
}

/// One part's place on the board.
#[derive(Clone, Debug)]
pub struct Light {
    board: watch::Sender<BTreeMap<&'static str, Part>>,
    name: &'static str,
}

impl Light {
    /// The part does its work.
    pub fn ready(&self) {
        self.set(Ok(()));
    }

    /// The part cannot do its work at the moment.
    pub fn trouble(&self, why: impl Into<String>) {
        self.set(Err(why.into()));
    }

    /// What does not work in the part although it does its work, a line each.
    pub fn note(&self, notes: Vec<String>) {
        self.board.send_if_modified(|parts| {
            let part = parts.entry(self.name).or_insert_with(Part::new);
            let changed = part.notes != notes;
            part.notes = notes;
            changed
        });
    }

    /// The part's loop has come round.
    pub fn pulse(&self) {
        self.board.send_if_modified(|parts| {
            parts.entry(self.name).or_insert_with(Part::new).pulse = Some(Instant::now());
            false
        });
    }

    fn set(&self, ready: Result<(), String>) {
        self.update(|part| part.ready = ready);
    }

    fn update(&self, change: impl FnOnce(&mut Part)) {
        self.board.send_modify(|parts| change(parts.entry(self.name).or_insert_with(Part::new)));
    }
}

impl Part {
    fn new() -> Self {
        Self { ready: Err("starting".into()), notes: Vec::new(), pulse: None }
    }
}

/// `/healthz` (the loops come round), `/readyz` (a message would be answered) and `/metrics`.
pub fn routes(board: Board, metrics: Registry) -> Router {
    Router::new()
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .with_state(board)
        .merge(Router::new().route("/metrics", get(metrics_text)).with_state(metrics))
}

/// Serves [`routes`] for a process that has no other door, until the process stops. Returns the address it listens on.
///
/// # Errors
/// When the address cannot be listened on.
pub async fn serve(node: &Node, listen: SocketAddr) -> anyhow::Result<SocketAddr> {
    let listener =
        TcpListener::bind(listen).await.with_context(|| format!("cannot listen on {listen}"))?;
    let address = listener.local_addr().context("no local address")?;
    let app = routes(node.health.clone(), node.metrics.clone());
    let stop = node.shutdown.clone();
    tokio::spawn(async move {
        if let Err(error) =
            axum::serve(listener, app).with_graceful_shutdown(stop.cancelled_owned()).await
        {
            tracing::error!(%error, "the health endpoint ended");
        }
    });
    tracing::info!(%address, "health and metrics");
    Ok(address)
}

async fn healthz(State(board): State<Board>) -> Response {
    match board.stuck() {
        stuck if stuck.is_empty() => (StatusCode::OK, "alive\n").into_response(),
        stuck => (StatusCode::SERVICE_UNAVAILABLE, Json(json!({ "stuck": stuck }))).into_response(),
    }
}

async fn readyz(State(board): State<Board>) -> Response {
    match board.troubles() {
        troubles if troubles.is_empty() => {
            let notes = board.notes().into_iter().map(|note| format!("{note}\n"));
            (StatusCode::OK, format!("ready\n{}", notes.collect::<String>())).into_response()
        }
        troubles => (StatusCode::SERVICE_UNAVAILABLE, Json(json!({ "not ready": troubles })))
            .into_response(),
    }
}

async fn metrics_text(State(metrics): State<Registry>) -> Response {
    match TextEncoder::new().encode_to_string(&metrics.gather()) {
        Ok(text) => ([(header::CONTENT_TYPE, prometheus::TEXT_FORMAT)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}
