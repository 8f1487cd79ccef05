//! Pulling orders: only as many as there are free slots, and from a reader that is built anew whenever the connection is.

use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::consumer::pull::{Batch, Config};
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, PullConsumer};
use async_nats::jetstream::{AckKind, Message};
use futures_util::{FutureExt, StreamExt};
use node::Node;
use node::bus::Bus;
use node::health::Light;
use prometheus::IntCounter;
use proto::codec;
use proto::subject;
use proto::topology::TURNS;
use proto::turn::TurnOrder;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tracing::Span;

/// How long one pull waits on the broker.
const EXPIRES: Duration = Duration::from_secs(2);
/// How long an order may go without a word before it is delivered to another worker.
const ACK_WAIT: Duration = Duration::from_secs(10);
/// The pause after a pull that failed.
const PAUSE: Duration = Duration::from_millis(100);

/// An order, with the slot that is kept for it.
pub(super) struct Order {
    pub(super) order: TurnOrder,
    message: Message,
    pub(super) permit: OwnedSemaphorePermit,
    /// The span of its turn, continued from who ordered it.
    pub(super) span: Span,
}

impl Order {
    /// Takes the order out of the queue.
    pub(super) async fn acknowledge(&self) {
        answer(&self.message, AckKind::Ack).await;
    }

    /// Lets another worker have the order, at once.
    pub(super) async fn give_back(&self) {
        answer(&self.message, AckKind::Nak(None)).await;
    }

    /// Keeps the order ours for a while longer.
    pub(super) async fn keep(&self) {
        answer(&self.message, AckKind::Progress).await;
    }
}

/// Pulls until the node stops or no one takes the orders.
pub(super) async fn pull(
    node: Node,
    slots: Arc<Semaphore>,
    orders: mpsc::Sender<Order>,
    light: Light,
    poison: IntCounter,
) {
    let connects = node.bus.connects();
    Puller { node, slots, orders, light, poison, connects }.run().await;
}

struct Puller {
    node: Node,
    slots: Arc<Semaphore>,
    orders: mpsc::Sender<Order>,
    light: Light,
    poison: IntCounter,
    connects: watch::Receiver<u64>,
}

/// A reader that is of no use any more: the node stops, or the connection is a new one, which knows nothing of its pulls.
struct Over;

impl Puller {
    async fn run(&mut self) {
        while !self.node.shutdown.is_cancelled() && !self.orders.is_closed() {
            self.connects.mark_unchanged();
            let consumer = consumer(self.node.bus.clone(), self.node.settings.worker.pool.clone());
            let pulled = match self.while_useful(consumer).await {
                Ok(Ok(consumer)) => self.pull_from(&consumer).await,
                Ok(Err(error)) => Err(error),
                Err(Over) => Ok(()),
            };
            if let Err(error) = pulled {
                tracing::warn!(%error, "orders cannot be pulled");
                self.light.trouble("orders cannot be pulled");
                let _ = self.while_useful(tokio::time::sleep(PAUSE)).await;
            }
        }
    }

    /// Waits for something as long as the reader is of use.
    async fn while_useful<T>(&mut self, wait: impl Future<Output = T>) -> Result<T, Over> {
        tokio::select! {
            biased;
            () = self.node.shutdown.cancelled() => Err(Over),
            _ = self.connects.changed() => Err(Over),
            done = wait => Ok(done),
        }
    }

    async fn pull_from(&mut self, consumer: &PullConsumer) -> Result<(), async_nats::Error> {
        loop {
            let free = free(Arc::clone(&self.slots));
            let Ok(Some(mut free)) = self.while_useful(free).await else { return Ok(()) };
            let batch = consumer.batch().max_messages(free.num_permits()).expires(EXPIRES);
            let mut batch = batch.messages().await?;
            self.light.ready();
            // The batch ends when every slot has its order, or when it expires; slots that become free meanwhile are part of the
            // next one. While no slot is free no batch is out, so a free slot never waits for one.
            loop {
                let message = match self.while_useful(batch.next()).await {
                    Ok(Some(message)) => message?,
                    Ok(None) => break,
                    Err(Over) => {
                        refuse(batch).await;
                        return Ok(());
                    }
                };
                let Some(permit) = free.split(1) else { break };
                self.pass_on(message, permit).await;
            }
        }
    }

    async fn pass_on(&self, message: Message, permit: OwnedSemaphorePermit) {
        let order = match codec::decode::<TurnOrder>(&message.payload) {
            Ok(order) => order,
            Err(error) => {
                self.poison.inc();
                tracing::error!(%error, subject = %message.subject, "an order cannot be read");
                answer(&message, AckKind::Term).await;
                return;
            }
        };
        let span = tracing::info_span!(
            "turn",
            session = %order.session.shown(self.node.settings.access.redact_pii),
            turn = %order.of.turn,
            attempt = %order.of.attempt,
            trace_id = tracing::field::Empty,
        );
        node::trace::continue_from(&span, message.headers.as_ref());
        node::trace::describe(
            &span,
            "invoke_agent talaria".into(),
            [
                ("gen_ai.operation.name", "invoke_agent".into()),
                ("gen_ai.agent.name", "talaria".into()),
                ("gen_ai.conversation.id", order.of.sid.to_string().into()),
            ],
        );
        // Whoever does not take it any more is stopping; the order goes to another worker.
        if let Err(refused) = self.orders.send(Order { order, message, permit, span }).await {
            refused.0.give_back().await;
        }
    }
}

/// The reader that all workers of the pool share; made if there is none.
pub(super) async fn consumer(bus: Bus, pool: String) -> Result<PullConsumer, async_nats::Error> {
    let name = subject::pool_consumer(&pool);
    let stream = bus.stream().get_stream_no_info(TURNS).await?;
    let config = Config {
        durable_name: Some(name.clone()),
        filter_subject: subject::turns_of(&pool),
        deliver_policy: DeliverPolicy::All,
        ack_policy: AckPolicy::Explicit,
        ack_wait: ACK_WAIT,
        max_deliver: -1,
        max_ack_pending: 100_000,
        ..Config::default()
    };
    Ok(stream.get_or_create_consumer(&name, config).await?)
}

/// Waits for a free slot and takes all that there are.
async fn free(slots: Arc<Semaphore>) -> Option<OwnedSemaphorePermit> {
    let mut free = Arc::clone(&slots).acquire_owned().await.ok()?;
    let more = u32::try_from(slots.available_permits()).unwrap_or(u32::MAX);
    // Only the puller takes slots, so those that are free stay free.
    if let Ok(more) = slots.try_acquire_many_owned(more) {
        free.merge(more);
    }
    Some(free)
}

/// Gives back what the broker has sent and no one has read.
async fn refuse(mut batch: Batch) {
    let mut unread = Vec::new();
    while let Some(Some(Ok(message))) = batch.next().now_or_never() {
        unread.push(message);
    }
    // First no more pull of ours is open, so that they go to others.
    drop(batch);
    for message in unread {
        answer(&message, AckKind::Nak(None)).await;
    }
}

async fn answer(message: &Message, kind: AckKind) {
    if let Err(error) = message.ack_with(kind).await {
        // It is delivered again after a while, and recognised.
        tracing::debug!(%error, "an order was not answered");
    }
}
