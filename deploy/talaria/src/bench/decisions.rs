//! How many inputs the scheduler decides on a second, beside how many records the broker lets anyone write by compare-and-set.
//! Each input is of a session of its own that is in memory, so that each costs one write, as raw updates do.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
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
use proto::receipt::{Fact, Receipt};
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

/// The scheduler alone: each input is a command that is carried out at once and answered with nothing.
async fn inputs(server: &Server, sessions: usize) -> anyhow::Result<f64> {
    let settings = Settings { nats: server.access(), ..Settings::default() };
    let stop = CancellationToken::new();
    let node = Node::connect(settings, "bench-scheduler", stop.clone()).await?;
    let publisher = Publisher::new(node.bus.clone(), Metrics::new(&node.metrics));
    let mut facts = server.connect().await?.subscribe(proto::subject::events()).await?;
    let health = node.health.clone();
    let running = tokio::spawn(scheduler::run(node));
    timeout(PATIENCE, health.ready()).await.context("the scheduler is not ready")?;
    let mut took = Duration::ZERO;
    // The first round creates the sessions; the second is measured.
    for round in 0..2 {
        let began = Instant::now();
        let saying = stream::iter(0..sessions).map(|session| {
            let publisher = &publisher;
            async move {
                let chat = format!("decision-{session}");
                let number = (1_u64 << 32) + (round * sessions + session) as u64;
                rig::say(publisher, &chat, "/start", number).await
            }
        });
        let saying = saying.buffer_unordered(WINDOW).for_each(|said| async { drop(said) });
        let settling = async {
            let mut settled = 0;
            while settled < sessions {
                let message = timeout(PATIENCE, facts.next()).await?.context("no more receipts")?;
                let receipt: Receipt = codec::decode(&message.payload)?;
                let ends = receipt.facts.iter().filter(|fact| matches!(fact, Fact::Settled { .. }));
                settled += ends.count();
            }
            anyhow::Ok(())
        };
        let ((), settled) = tokio::join!(saying, settling);
        settled?;
        took = began.elapsed();
    }
    stop.cancel();
    let ended = timeout(PATIENCE, running).await.context("the scheduler does not stop")?;
    ensure!(ended.is_ok(), "the scheduler broke off");
    Ok(rate(sessions, took))
}
