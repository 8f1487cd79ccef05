//! Reads what one account has to deliver: a durable consumer, pulled in batches, made anew whenever it cannot be trusted.

use std::time::{Duration, SystemTime};

use anyhow::Context;
use async_nats::jetstream::consumer::{AckPolicy, PullConsumer, pull};
use async_nats::jetstream::message::Acker;
use async_nats::jetstream::{AckKind, Message};
use futures_util::StreamExt;
use node::bus::Bus;
use node::trace;
use proto::codec;
use proto::outbound::Outbound;
use proto::subject;
use proto::topology::OUTBOX;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tracing::Span;

/// After what silence the broker delivers a parcel again. The desk says "still at it" well within this time.
pub(crate) const ACK_WAIT: Duration = Duration::from_secs(30);
/// How many parcels may be in hand: bounds the memory of an account whose platform is down.
const IN_HAND_MAX: i64 = 4096;
/// How many parcels are asked for at once. Never one: a puller of single messages can stall for seconds.
const BATCH: usize = 64;
/// How long one pull may wait.
const EXPIRES: Duration = Duration::from_secs(10);
/// After what time the broker forgets the consumer of a process that is gone (accounts that are bound to one).
const FORGOTTEN: Duration = Duration::from_secs(300);
/// How long to wait after a consumer could not be made or read.
const PAUSE: Duration = Duration::from_millis(100);

/// One thing to deliver.
#[derive(Debug)]
pub(crate) struct Parcel {
    pub(crate) outbound: Outbound,
    /// Its place in the stream.
    pub(crate) sequence: u64,
    /// How long it has waited already.
    pub(crate) age: Duration,
    /// The span of its delivery, in the trace of the message that caused it.
    pub(crate) span: Span,
}

/// One account's reader.
#[derive(Debug)]
pub(crate) struct Reader {
    pub(crate) bus: Bus,
    pub(crate) platform: &'static str,
    pub(crate) account: String,
    /// Whether the account dies with this process.
    pub(crate) transient: bool,
    pub(crate) out: mpsc::Sender<(Parcel, Acker)>,
    /// Whether it reads at the moment.
    pub(crate) up: watch::Sender<bool>,
    pub(crate) stop: CancellationToken,
}

impl Reader {
    /// Reads until told to stop, or nobody takes the parcels any more.
    pub(crate) async fn run(self) {
        let stop = self.stop.clone();
        tokio::select! {
            () = self.read() => {}
            () = stop.cancelled() => {}
        }
        self.up.send_replace(false);
        if self.transient {
            // Nobody will read these again: the account's name was this process.
            let _ = self.bus.stream().delete_consumer_from_stream(self.name(), OUTBOX).await;
        }
    }

    async fn read(&self) {
        let mut connects = self.bus.connects();
        let mut fresh = true;
        while !self.out.is_closed() {
            connects.mark_unchanged();
            match self.consumer(fresh).await {
                Ok(consumer) => {
                    fresh = false;
                    self.up.send_replace(true);
                    tokio::select! {
                        outcome = self.pull(&consumer) => if let Err(error) = outcome {
                            tracing::debug!(account = %self.account, "reading deliveries again: {error:#}");
                        },
                        _ = connects.changed() => {}
                    }
                }
                Err(error) => tracing::warn!(platform = self.platform, "no deliveries: {error:#}"),
            }
            self.up.send_replace(false);
            tokio::time::sleep(PAUSE).await;
        }
    }

    fn name(&self) -> String {
        subject::account_consumer(self.platform, &self.account)
    }

    /// The consumer. The first time it is made anew, so that what an earlier process had in hand comes again now and in
    /// order, not piecemeal after its acknowledgements are overdue.
    async fn consumer(&self, fresh: bool) -> anyhow::Result<PullConsumer> {
        let name = self.name();
        let config = pull::Config {
            durable_name: Some(name.clone()),
            filter_subject: subject::outbox_of(self.platform, &self.account),
            ack_policy: AckPolicy::Explicit,
            ack_wait: ACK_WAIT,
            max_ack_pending: IN_HAND_MAX,
            inactive_threshold: if self.transient { FORGOTTEN } else { Duration::ZERO },
            ..pull::Config::default()
        };
        let stream = self.bus.stream();
        if fresh {
            // There is none the first time ever.
            let _ = stream.delete_consumer_from_stream(&name, OUTBOX).await;
        }
        stream.create_consumer_on_stream(config, OUTBOX).await.context("no consumer on OUTBOX")
    }

    async fn pull(&self, consumer: &PullConsumer) -> anyhow::Result<()> {
        loop {
            let mut batch = consumer
                .batch()
                .max_messages(BATCH)
                .expires(EXPIRES)
                .messages()
                .await
                .context("cannot pull")?;
            while let Some(message) = batch.next().await {
                let message = message.map_err(|error| anyhow::anyhow!("{error}"))?;
                if let Some(parcel) = self.unwrap(message).await {
                    self.out.send(parcel).await.context("nobody delivers")?;
                }
            }
        }
    }

    /// Decodes a parcel. What cannot be decoded never will be: it is taken out of the stream, aloud.
    async fn unwrap(&self, message: Message) -> Option<(Parcel, Acker)> {
        let (sequence, published) = match message.info() {
            Ok(info) => (info.stream_sequence, info.published),
            Err(error) => {
                tracing::error!(%error, "a delivery without a place in its stream");
                return None;
            }
        };
        let age = SystemTime::now().duration_since(published.into()).unwrap_or_default();
        let (message, acker) = message.split();
        match codec::decode::<Outbound>(&message.payload) {
            Ok(outbound) => {
                let span = tracing::info_span!(
                    "deliver",
                    platform = self.platform,
                    id = %outbound.id,
                    kind = ?outbound.kind,
                    session = %outbound.session,
                    trace_id = tracing::field::Empty,
                );
                trace::continue_from(&span, message.headers.as_ref());
                Some((Parcel { outbound, sequence, age, span }, acker))
            }
            Err(error) => {
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    sequence,
                    "a delivery that cannot be read is set aside"
                );
                let _ = acker.ack_with(AckKind::Term).await;
                None
            }
        }
    }
}
