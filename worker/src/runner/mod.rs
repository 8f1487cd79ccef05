//! The runner: one task that owns the table of this worker's turns. Everything reaches it as an input: orders, answers to claims
//! and heartbeats, controls, the end of a turn.

mod beat;
mod claim;
mod orders;
mod table;
mod threads;

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::Context;
use async_nats::Subscriber;
use futures_util::{FutureExt, StreamExt};
use proto::codec;
use proto::id::Sid;
use proto::subject;
use proto::turn::{ClaimReply, Control, TurnRef};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior};
use tracing::Instrument;

use self::beat::Beaten;
use self::claim::Claimed;
use self::orders::Order;
use self::table::Table;
use self::threads::Threads;
use crate::fence::Fence;
use crate::shared::Shared;
use crate::turn::{Budget, Counts, Stop, Turn};

/// How often the loop shows that it comes round.
const PULSE: Duration = Duration::from_secs(1);
/// How long turns that were cut off at the end of the drain may take to report.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Makes the reader of a pool's orders if there is none.
pub(crate) async fn create_pool(
    bus: node::bus::Bus,
    pool: String,
) -> Result<(), async_nats::Error> {
    orders::consumer(bus, pool).await.map(drop)
}

/// What a task of the runner ended with.
enum Input {
    Claimed(Box<Claimed>),
    Beaten(Beaten),
    Ended(TurnRef),
    Nothing,
}

/// The owner of the table.
pub(crate) struct Runner {
    shared: Arc<Shared>,
    table: Table,
    tasks: JoinSet<Input>,
    threads: Threads,
    /// One permit a turn.
    slots: Arc<Semaphore>,
    light: node::health::Light,
}

impl Runner {
    /// A worker that runs nothing yet.
    ///
    /// # Errors
    /// When the system gives no threads for the turns.
    pub(crate) fn new(shared: Arc<Shared>) -> anyhow::Result<Self> {
        let slots = Arc::new(Semaphore::new(shared.node.settings.worker.capacity));
        let light = shared.node.health.part("worker");
        let (table, tasks, threads) = (Table::default(), JoinSet::new(), Threads::start()?);
        Ok(Self { shared, table, tasks, threads, slots, light })
    }

    /// Runs until the node is told to stop and the turns have ended or are given back.
    pub(crate) async fn run(mut self) -> anyhow::Result<()> {
        let node = self.shared.node.clone();
        // Before the first order, so that no control is missed.
        let mut controls = self.listen().await?;
        let mut questions = self.questions().await?;
        let (sender, mut orders) = mpsc::channel(1);
        let poison = self.shared.metrics.poison.clone();
        let pulling =
            orders::pull(node.clone(), Arc::clone(&self.slots), sender, self.light.clone(), poison);
        let pulling = tokio::spawn(pulling);
        let mut beat = tokio::time::interval(
            node.settings.scheduler.beat.get().max(Duration::from_millis(10)),
        );
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut pulse = tokio::time::interval(PULSE);
        let bell = self.table.bell();
        loop {
            tokio::select! {
                order = orders.recv() => match order {
                    Some(order) => self.ordered(order).await,
                    None => break,
                },
                Some(input) = self.tasks.join_next() => self.input(input),
                control = controls.next() => match control {
                    Some(message) => self.control(&message),
                    None => controls = self.listen().await?,
                },
                question = questions.next() => match question {
                    Some(question) => self.say_what_is_done(&question).await,
                    None => questions = self.questions().await?,
                },
                _ = beat.tick() => self.beat(),
                () = bell.notified() => self.beat(),
                _ = pulse.tick() => self.pulse(),
                () = node.shutdown.cancelled() => break,
            }
        }
        orders.close();
        while let Some(order) = orders.recv().await {
            order.give_back().await;
        }
        let pulled = pulling.await.context("the puller broke down");
        self.drain(&mut controls, &mut beat).await;
        pulled
    }

    /// Lets the turns come to a boundary, and gives them back.
    async fn drain(&mut self, controls: &mut Subscriber, beat: &mut tokio::time::Interval) {
        let limit = self.shared.node.settings.worker.drain.get();
        // First what is in flight is cut off, then everything ends.
        let cut_at = Instant::now() + limit;
        let end_at = cut_at + LAST_WORDS;
        let mut is_cut = false;
        tracing::info!(turns = self.table.len(), "giving turns back");
        self.light.trouble("stopping");
        self.shared.metrics.draining.set(1);
        self.table.stop_all(Stop::HandBack);
        while self.table.len() > 0 {
            tokio::select! {
                Some(input) = self.tasks.join_next() => self.input(input),
                Some(message) = controls.next() => self.control(&message),
                _ = beat.tick() => {
                    self.light.pulse();
                    self.beat();
                }
                () = tokio::time::sleep_until(cut_at), if !is_cut => {
                    is_cut = true;
                    self.table.cut_all();
                }
                () = tokio::time::sleep_until(end_at) => {
                    tracing::warn!(turns = self.table.len(), "some turns could not be given back");
                    break;
                }
            }
            // A claim may be granted only now; its turn is given back before it begins.
            self.table.stop_all(Stop::HandBack);
        }
        // What is left ends here; the scheduler gives it to another worker when the heartbeats stop.
        self.tasks.shutdown().await;
    }

    async fn listen(&self) -> anyhow::Result<Subscriber> {
        let node = &self.shared.node;
        let subject = subject::control(node.id);
        node.bus.client().subscribe(subject).await.context("cannot listen for controls")
    }

    async fn questions(&self) -> anyhow::Result<Subscriber> {
        let node = &self.shared.node;
        let subject = subject::activity(node.id);
        node.bus.client().subscribe(subject).await.context("cannot listen for questions")
    }

    /// Answers what the turn of a session does; nothing if it does not run here.
    async fn say_what_is_done(&self, question: &async_nats::Message) {
        let Some(reply_to) = question.reply.clone() else { return };
        let doing =
            codec::decode::<Sid>(&question.payload).ok().and_then(|sid| self.table.doing(sid));
        let answer = codec::encode(&doing).into();
        // Whoever asked has no more of it than a missing line.
        let _ = self.shared.node.bus.client().publish(reply_to, answer).await;
    }

    fn pulse(&self) {
        self.light.pulse();
        if !self.shared.node.bus.is_connected() {
            self.light.trouble("the broker is away");
        }
    }

    /// An order has come.
    async fn ordered(&mut self, order: Order) {
        let of = order.order.of;
        if self.table.was_started(of) {
            // An old owner may have published it once more.
            order.acknowledge().await;
            return;
        }
        // A claim that is still out keeps its order; this is the same one, delivered again.
        if self.table.begin_claim(of, self.shared.node.settings.agent.max_iterations) {
            let span = order.span.clone();
            self.tasks.spawn(claim::claim(Arc::clone(&self.shared), order).instrument(span));
        }
    }

    fn input(&mut self, input: Result<Input, tokio::task::JoinError>) {
        match input {
            Ok(Input::Claimed(claimed)) => self.claimed(*claimed),
            Ok(Input::Beaten(beaten)) => self.beaten(beaten),
            Ok(Input::Ended(of)) => self.table.remove(of),
            Ok(Input::Nothing) => {}
            Err(error) => tracing::error!(%error, "a task of the runner broke down"),
        }
    }

    /// A claim was answered.
    fn claimed(&mut self, claimed: Claimed) {
        let of = claimed.order.order.of;
        let epoch = match claimed.reply {
            ClaimReply::Granted { epoch } => epoch,
            ClaimReply::Denied { reason } => {
                tracing::info!(session = %claimed.order.order.session.shown(self.shared.node.settings.access.redact_pii), turn = %of.turn, ?reason, "a claim was denied");
                self.shared.metrics.claims_denied.inc();
                self.table.remove(of);
                self.tasks.spawn(async move {
                    claimed.order.acknowledge().await;
                    Input::Nothing
                });
                return;
            }
        };
        if !self.table.accept(self.shared.node.bus.partition_of(of.sid), epoch) {
            // An owner that is owner no more has answered: ask the one that is.
            let span = claimed.order.span.clone();
            let again = claim::claim_again(Arc::clone(&self.shared), claimed.order);
            self.tasks.spawn(again.instrument(span));
            return;
        }
        self.start(claimed);
    }

    fn start(&mut self, claimed: Claimed) {
        let Claimed { order, asked_ms, .. } = claimed;
        let (shared, of) = (&self.shared, order.order.of);
        let refusals = shared.metrics.fence_refusals.clone();
        let fence = Fence::new(shared.clock, shared.right_lasts(), asked_ms, refusals);
        let Some((tracker, wishes, cut)) = self.table.start(of, fence.clone()) else { return };
        let (span, shared) = (order.span.clone(), Arc::clone(shared));
        let run = async move {
            let _running = Count::one(&shared.metrics.running);
            order.acknowledge().await;
            let Order { order, permit, .. } = order;
            let budget = Budget::new(shared.node.settings.agent.max_iterations);
            let shared = Arc::clone(&shared);
            let counts = Counts::default();
            let speaker = OnceLock::new();
            let turn = Turn { shared, order, fence, wishes, cut, tracker, budget, counts, speaker };
            Box::pin(turn.run()).await;
            drop(permit);
        };
        let run = AssertUnwindSafe(run).catch_unwind();
        self.tasks.spawn_on(
            async move {
                if run.await.is_err() {
                    tracing::error!("a turn broke down");
                }
                Input::Ended(of)
            }
            .instrument(span),
            self.threads.handle(),
        );
    }

    /// A word to one of the turns.
    fn control(&mut self, message: &async_nats::Message) {
        let metrics = &self.shared.metrics;
        match codec::decode::<Control>(&message.payload) {
            Ok(control) => {
                if self.table.control(&control)
                    && let Some(since_ms) = node::bus::since(message.headers.as_ref())
                {
                    let age = node::clock::wall_ms().saturating_sub(since_ms);
                    metrics.interrupt_seen.observe(Duration::from_millis(age).as_secs_f64());
                }
            }
            Err(error) => {
                metrics.poison.inc();
                tracing::error!(%error, "a control cannot be read");
            }
        }
    }
}

/// Counts something for as long as it lives.
struct Count<'a>(&'a prometheus::IntGauge);

impl<'a> Count<'a> {
    fn one(gauge: &'a prometheus::IntGauge) -> Self {
        gauge.inc();
        Self(gauge)
    }
}

impl Drop for Count<'_> {
    fn drop(&mut self) {
        self.0.dec();
    }
}
