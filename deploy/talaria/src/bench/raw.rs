//! What the broker itself takes on this machine, now: the yardstick for everything else. Two connections, as two processes
//! would have.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use async_nats::jetstream::consumer::pull;
use async_nats::jetstream::stream::{Config, StorageType};
use async_nats::jetstream::{self, AckKind};
use async_nats::{Client, Subscriber};
use bytes::Bytes;
use futures_util::StreamExt;
use serde::Serialize;
use tokio::time::timeout;

use super::stats::{Durations, Percentiles, rate};
use crate::nats_server::Server;

/// How large the messages are: about a message event.
const PAYLOAD_BYTES: usize = 400;
/// How many publishes are in flight when throughput is measured.
const WINDOW: usize = 256;
/// How long one operation may take before the measurement is given up.
const PATIENCE: Duration = Duration::from_secs(10);
/// The subject of measurements past JetStream.
const CORE: &str = "raw-core";
/// A subject on which no one listens.
const NOBODY: &str = "raw-nobody";

/// The broker's own figures.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Raw {
    /// Publishing to a stream until it is acknowledged, one after another.
    pub publish_ack_us: Percentiles,
    /// Asking another connection and getting its answer.
    pub request_reply_us: Percentiles,
    /// From one connection to another, past the streams.
    pub core_one_way_us: Percentiles,
    /// From publishing to a stream until a consumer that pulls has it.
    pub pull_us: Percentiles,
    /// Acknowledged publishes a second, with many in flight.
    pub pipelined_publish_per_s: f64,
}

/// Measures, `count` operations each.
///
/// # Errors
/// When the broker does not do its part.
pub(super) async fn measure(server: &Server, count: usize) -> anyhow::Result<Raw> {
    let bench = Bench {
        near: server.connect().await?,
        far: server.connect().await?,
        payload: vec![b'x'; PAYLOAD_BYTES].into(),
        count,
    };
    let context = jetstream::new(bench.near.clone());
    let config = Config {
        name: "RAW".into(),
        subjects: vec!["raw.>".into()],
        storage: StorageType::File,
        ..Config::default()
    };
    context.create_stream(config).await?;
    let raw = Raw {
        publish_ack_us: bench.publish_ack(&context).await.context("publish")?,
        request_reply_us: bench.request_reply().await.context("request")?,
        core_one_way_us: bench.one_way().await.context("one way")?,
        pull_us: bench.pull(&context).await.context("pull")?,
        pipelined_publish_per_s: bench.pipelined(&context).await.context("pipelined")?,
    };
    context.delete_stream("RAW").await?;
    Ok(raw)
}

struct Bench {
    near: Client,
    far: Client,
    payload: Bytes,
    count: usize,
}

impl Bench {
    async fn publish_ack(&self, context: &jetstream::Context) -> anyhow::Result<Percentiles> {
        let mut took = Durations::default();
        for number in 0..self.count {
            let began = Instant::now();
            context.publish(subject(number), self.payload.clone()).await?.await?;
            took.push(began.elapsed());
        }
        Ok(took.micros())
    }

    async fn request_reply(&self) -> anyhow::Result<Percentiles> {
        let requests = self.subscribe().await?;
        let answering = tokio::spawn(answer(self.far.clone(), requests));
        let mut took = Durations::default();
        for _ in 0..self.count {
            let began = Instant::now();
            self.near.request(CORE, self.payload.clone()).await?;
            took.push(began.elapsed());
        }
        answering.abort();
        Ok(took.micros())
    }

    async fn one_way(&self) -> anyhow::Result<Percentiles> {
        let mut messages = self.subscribe().await?;
        let mut took = Durations::default();
        for _ in 0..self.count {
            let began = Instant::now();
            self.near.publish(CORE, self.payload.clone()).await?;
            timeout(PATIENCE, messages.next()).await?.context("the subscription ended")?;
            took.push(began.elapsed());
        }
        Ok(took.micros())
    }

    async fn pull(&self, context: &jetstream::Context) -> anyhow::Result<Percentiles> {
        let stream = jetstream::new(self.far.clone()).get_stream("RAW").await?;
        let config = pull::Config { filter_subject: "raw.pull".into(), ..pull::Config::default() };
        let consumer = stream.create_consumer(config).await?;
        // Not one at a time: the client can stall then.
        let mut messages = consumer.stream().max_messages_per_batch(64).messages().await?;
        let mut took = Durations::default();
        for _ in 0..self.count {
            let began = Instant::now();
            let ack = context.publish("raw.pull", self.payload.clone()).await?;
            let message = timeout(PATIENCE, messages.next()).await?.context("no message")??;
            took.push(began.elapsed());
            message.ack_with(AckKind::Ack).await.map_err(anyhow::Error::from_boxed)?;
            ack.await?;
        }
        Ok(took.micros())
    }

    async fn pipelined(&self, context: &jetstream::Context) -> anyhow::Result<f64> {
        let count = self.count * 20;
        let mut flying = VecDeque::with_capacity(WINDOW);
        let began = Instant::now();
        for number in 0..count {
            if flying.len() == WINDOW
                && let Some(oldest) = flying.pop_front()
            {
                let oldest: jetstream::context::PublishAckFuture = oldest;
                oldest.await?;
            }
            flying.push_back(context.publish(subject(number), self.payload.clone()).await?);
        }
        for ack in flying {
            ack.await?;
        }
        Ok(rate(count, began.elapsed()))
    }

    async fn subscribe(&self) -> anyhow::Result<Subscriber> {
        let messages = self.far.subscribe(CORE).await?;
        // The server takes what a connection sends in order: once it has refused this, it knows of the subscription.
        let refused = self.far.request(NOBODY, Bytes::new()).await;
        ensure!(refused.is_err(), "someone answers on {NOBODY}");
        Ok(messages)
    }
}

fn subject(number: usize) -> String {
    format!("raw.{}", number % 1000)
}

async fn answer(client: Client, mut requests: Subscriber) {
    while let Some(request) = requests.next().await {
        if let Some(reply) = request.reply {
            // Whoever asked notices a missing answer.
            let _ = client.publish(reply, request.payload).await;
        }
    }
}
