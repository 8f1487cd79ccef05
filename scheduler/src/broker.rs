//! What a scheduler sees of the broker: how much the streams hold, how many copies of them are current, and what waits in them.
//! Every scheduler looks, and all see the same, so whoever reads the metrics takes one of them.

use std::time::Duration;

use async_nats::jetstream::stream::Info;
use futures_util::TryStreamExt;
use node::Node;
use node::bus::Bus;
use node::metric::Maker;
use prometheus::{IntGauge, IntGaugeVec, Registry};
use proto::topology::{self, OUTBOX, Retentions, TURNS};

/// How often it looks.
const EVERY: Duration = Duration::from_secs(10);

/// The streams from which workers and adapters take, and so in which something can wait.
const QUEUES: [&str; 2] = [TURNS, OUTBOX];

/// The instruments.
#[derive(Debug)]
pub(crate) struct Broker {
    streams: Vec<String>,
    messages: IntGaugeVec,
    bytes: IntGaugeVec,
    copies: IntGaugeVec,
    waiting: IntGaugeVec,
    used: IntGauge,
    limit: IntGauge,
}

impl Broker {
    pub(crate) fn register(registry: &Registry, keep: Retentions) -> prometheus::Result<Self> {
        let make = Maker(registry);
        let streams = names(keep);
        let all: Vec<&str> = streams.iter().map(String::as_str).collect();
        Ok(Self {
            messages: make.gauges(
                "talaria_broker_stream_messages",
                "Messages that a stream holds",
                &[("stream", &all)],
            )?,
            bytes: make.gauges(
                "talaria_broker_stream_bytes",
                "Bytes that a stream holds",
                &[("stream", &all)],
            )?,
            copies: make.gauges(
                "talaria_broker_stream_copies",
                "Copies of a stream, by whether they are current or behind (or their server is away)",
                &[("stream", &all), ("state", &["current", "behind"])],
            )?,
            waiting: make.gauges(
                "talaria_broker_waiting",
                "Turn orders (TURNS) and deliveries (OUTBOX), by whether they wait for someone to take them or are in hand",
                &[("stream", &QUEUES), ("state", &["pending", "in_hand"])],
            )?,
            used: make.gauge(
                "talaria_broker_store_used_bytes",
                "Bytes of file storage that the account uses, all copies together",
            )?,
            limit: make.gauge(
                "talaria_broker_store_limit_bytes",
                "Bytes of file storage that the account may use; 0 where no limit is set",
            )?,
            streams,
        })
    }

    /// Looks now and then, until the node stops.
    pub(crate) async fn watch(self, node: Node) {
        let mut tick = tokio::time::interval(EVERY);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = node.shutdown.cancelled() => return,
                _ = tick.tick() => {}
            }
            tokio::select! {
                () = node.shutdown.cancelled() => return,
                seen = self.look(&node.bus) => if let Err(error) = seen {
                    tracing::debug!(error, "the broker's state cannot be read at the moment");
                },
            }
        }
    }

    async fn look(&self, bus: &Bus) -> Result<(), String> {
        for name in &self.streams {
            let info = bus.stream().get_stream(name).await.map_err(|error| error.to_string())?;
            self.stream(name, info.cached_info());
            if QUEUES.contains(&name.as_str()) {
                let consumers: Vec<_> =
                    info.consumers().try_collect().await.map_err(|error| error.to_string())?;
                let pending: u64 = consumers.iter().map(|consumer| consumer.num_pending).sum();
                let in_hand: usize =
                    consumers.iter().map(|consumer| consumer.num_ack_pending).sum();
                self.waiting.with_label_values(&[name, "pending"]).set(whole(pending));
                self.waiting.with_label_values(&[name, "in_hand"]).set(whole(in_hand));
            }
        }
        let account = bus.stream().query_account().await.map_err(|error| error.to_string())?;
        self.used.set(whole(account.storage));
        self.limit.set(account.limits.max_storage.unwrap_or(0));
        Ok(())
    }

    fn stream(&self, name: &str, info: &Info) {
        self.messages.with_label_values(&[name]).set(whole(info.state.messages));
        self.bytes.with_label_values(&[name]).set(whole(info.state.bytes));
        let others = info.cluster.as_ref().map_or(&[][..], |cluster| &cluster.replicas);
        let behind = others.iter().filter(|copy| copy.offline || !copy.current).count();
        let current = 1 + others.len() - behind;
        self.copies.with_label_values(&[name, "current"]).set(whole(current));
        self.copies.with_label_values(&[name, "behind"]).set(whole(behind));
    }
}

/// The names of all streams, those under the buckets included.
fn names(keep: Retentions) -> Vec<String> {
    let streams = topology::streams(keep).into_iter().map(|spec| spec.name.to_owned());
    let buckets = topology::buckets(keep).into_iter().map(|spec| format!("KV_{}", spec.name));
    streams.chain(buckets).collect()
}

fn whole(count: impl TryInto<i64>) -> i64 {
    count.try_into().unwrap_or(i64::MAX)
}
