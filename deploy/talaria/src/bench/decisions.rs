//! How many inputs the scheduler decides on a second, beside how many records the broker lets anyone write by compare-and-set.
//! Each input is of a session of its own that is in memory, so that each costs one write, as raw updates do.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use anyhow::Context;
use async_nats::HeaderMap;
use async_nats::jetstream::context::PublishAckFuture;
use async_nats::jetstream::{self, kv};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use ingress::metrics::Metrics;
use ingress::publish::Publisher;
use node::Node;
use node::settings::Settings;
use proto::codec;
use proto::receipt::{Decided, Fact, Receipt};
use serde::Serialize;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::rig;
use super::stats::{rate, rounded};
use crate::nats_server::Server;

/// How large a record is: about a lease of an idle session.
const RECORD_BYTES: usize = 400;
/// How many updates are in flight.
const WINDOW: usize = 256;
/// How long nothing may happen before the measurement is given up.
const PATIENCE: Duration = Duration::from_secs(30);
/// The bucket of raw updates.
const BUCKET: &str = "raw-updates";
/// The header that makes a publish a compare-and-set.
const EXPECT: &str = "Nats-Expected-Last-Subject-Sequence";

/// The figures.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Decisions {
    /// Inputs decided on, and their records written, a second.
    pub inputs_per_s: f64,
    /// Records that the broker takes by compare-and-set, a second, with many in flight.
    pub kv_updates_per_s: f64,
    /// One over the other.
    pub ratio: f64,
}

/// Measures with so many sessions.
///
/// # Errors
/// When the broker or the scheduler does not do its part.
pub(super) async fn measure(server: &Server, sessions: usize) -> anyhow::Result<Decisions> {
    let kv_updates_per_s = updates(server, sessions * 4).await.context("raw updates")?;
    let inputs_per_s = inputs(server, sessions).await.context("the scheduler")?;
    let ratio = rounded(inputs_per_s / kv_updates_per_s.max(1.0));
    Ok(Decisions { inputs_per_s, kv_updates_per_s, ratio })
}

async fn updates(server: &Server, count: usize) -> anyhow::Result<f64> {
    let context = jetstream::new(server.connect().await?);
    let config = kv::Config { bucket: BUCKET.into(), history: 1, ..kv::Config::default() };
    context.create_key_value(config).await?;
    let payload = Bytes::from(vec![b'x'; RECORD_BYTES]);
    let mut flying: VecDeque<(usize, PublishAckFuture)> = VecDeque::with_capacity(WINDOW);
    for key in 0..WINDOW {
        flying.push_back((key, update(&context, key, 0, &payload).await?));
    }
    let began = Instant::now();
    for _ in 0..count {
        let (key, oldest) = flying.pop_front().context("there are always some in flight")?;
        let revision = oldest.await?.sequence;
        flying.push_back((key, update(&context, key, revision, &payload).await?));
    }
    for (_, ack) in flying {
        ack.await?;
    }
    let rate = rate(count, began.elapsed());
    context.delete_key_value(BUCKET).await?;
    Ok(rate)
}

async fn update(
    context: &jetstream::Context,
    key: usize,
    revision: u64,
    payload: &Bytes,
) -> anyhow::Result<PublishAckFuture> {
    let mut headers = HeaderMap::new();
    headers.insert(EXPECT, revision.to_string().as_str());
    let subject = proto::subject::bucket_subject(BUCKET, &key.to_string());
    Ok(context.publish_with_headers(subject, headers, payload.clone()).await?)
}

/// The scheduler alone, with its log full: each input is a command that is carried out at once and answered with nothing, of a
/// session that waits for a worker and so is in memory. Its time is that from the first decision to the last, with everything
/// that a decision takes: reading the log, one record written by compare-and-set, and its receipt.
async fn inputs(server: &Server, sessions: usize) -> anyhow::Result<f64> {
    let settings = Settings { nats: server.access(), ..Settings::default() };
    let node = Node::connect(settings.clone(), "bench-writer", CancellationToken::new()).await?;
    let publisher = Publisher::new(node.bus.clone(), Metrics::new(&node.metrics));
    let mut receipts = server.connect().await?.subscribe(proto::subject::events()).await?;
    let first = Scheduler::start(&settings).await?;
    say_to_all(&publisher, sessions, 0, "begin").await;
    settle(&mut receipts, sessions, Decided::Started).await?;
    first.stop().await?;
    for round in 1..=ROUNDS {
        say_to_all(&publisher, sessions, round, "/start").await;
    }
    let second = Scheduler::start(&settings).await?;
    let took = settle(&mut receipts, sessions * ROUNDS, Decided::Done).await?;
    second.stop().await?;
    Ok(rate(sessions * ROUNDS, took))
}

/// How many inputs each session gets.
const ROUNDS: usize = 2;

async fn say_to_all(publisher: &Publisher, sessions: usize, round: usize, text: &str) {
    let saying = stream::iter(0..sessions).map(|session| async move {
        let number = (1_u64 << 32) + (round * sessions + session) as u64;
        rig::say(publisher, &format!("decision-{session}"), text, number).await
    });
    saying.buffer_unordered(WINDOW).for_each(|said| async { drop(said) }).await;
}

/// Waits for so many decisions of one kind; returns how long it took from the first to the last.
async fn settle(
    receipts: &mut async_nats::Subscriber,
    count: usize,
    decided: Decided,
) -> anyhow::Result<Duration> {
    let (mut settled, mut began) = (0, None);
    while settled < count {
        let message = timeout(PATIENCE, receipts.next()).await?.context("no more receipts")?;
        let receipt: Receipt = codec::decode(&message.payload)?;
        let is_it =
            |fact: &&Fact| matches!(fact, Fact::Decided { decision, .. } if *decision == decided);
        let now = receipt.facts.iter().filter(is_it).count();
        if now > 0 {
            began.get_or_insert_with(Instant::now);
        }
        settled += now;
    }
    Ok(began.map(|began| began.elapsed()).unwrap_or_default())
}

/// A scheduler and nothing else.
struct Scheduler {
    stop: CancellationToken,
    running: tokio::task::JoinHandle<anyhow::Result<()>>,
}

impl Scheduler {
    async fn start(settings: &Settings) -> anyhow::Result<Self> {
        let stop = CancellationToken::new();
        let node = Node::connect(settings.clone(), "bench-scheduler", stop.clone()).await?;
        let health = node.health.clone();
        let running = tokio::spawn(scheduler::run(node));
        timeout(PATIENCE, health.ready()).await.context("the scheduler is not ready")?;
        Ok(Self { stop, running })
    }

    async fn stop(self) -> anyhow::Result<()> {
        self.stop.cancel();
        let ended = timeout(PATIENCE, self.running).await.context("it does not stop")??;
        ended.context("the scheduler broke off")
    }
}
