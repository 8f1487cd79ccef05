//! The desk of one account: the one owner of everything that is in hand, from the stream to the acknowledgement.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use async_nats::Subscriber;
use async_nats::jetstream::AckKind;
use async_nats::jetstream::message::Acker;
use futures_util::StreamExt;
use node::Node;
use proto::codec;
use proto::outbound::{Draft, Kind};
use proto::subject;
use tokio::sync::{mpsc, watch};
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout_at};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::adapter::{Adapter, DeliverError, Drafts};
use crate::deliver::chat::{Chat, Work};
use crate::deliver::courier::{Courier, Verdict};
use crate::deliver::fence::Fence;
use crate::deliver::reader::{ACK_WAIT, Parcel, Reader};
use crate::metrics::{Departure, Metrics};

/// How often drafts that wait for their time are looked at.
const DRAFT_TICK: Duration = Duration::from_millis(100);
/// How long a draft that is being shown may hold up a parcel: long enough to end in order, too short to be noticed.
const GIVE_WAY: Duration = Duration::from_millis(250);
/// How long showing a draft may take.
const DRAFT_LIMIT: Duration = Duration::from_secs(5);
/// How long deliveries in hand may take to end when the process stops.
const FINISH: Duration = Duration::from_secs(3);
/// How many ended parcels are remembered, in case their acknowledgement is lost and they come again.
const ENDED_MAX: usize = 4096;

/// What one job did.
enum Done {
    Parcel { sequence: u64, verdict: Verdict },
    Draft { result: Result<(), DeliverError> },
}

/// What a running job works on.
struct Job {
    chat: String,
    /// The parcel; none for a draft.
    sequence: Option<u64>,
}

/// One account.
pub(crate) struct Desk {
    courier: Courier,
    account: String,
    drafts: Drafts,
    fence: Fence,
    chats: HashMap<String, Chat>,
    /// How to acknowledge what is in hand, by its place in the stream.
    in_hand: HashMap<u64, Acker>,
    ended: (HashSet<u64>, VecDeque<u64>),
    jobs: JoinSet<Done>,
    running: HashMap<Id, Job>,
}

impl Desk {
    /// Opens a desk. The receiver says whether it takes deliveries at the moment.
    pub(crate) fn open(
        node: &Node,
        metrics: &Metrics,
        adapter: Arc<dyn Adapter>,
        account: String,
    ) -> (watch::Receiver<bool>, impl Future<Output = ()> + Send + 'static) {
        let (up, is_up) = watch::channel(false);
        let (out, parcels) = mpsc::channel(64);
        let reader = Reader {
            bus: node.bus.clone(),
            platform: adapter.platform(),
            account: account.clone(),
            transient: adapter.connection_bound(),
            out,
            up,
            stop: node.shutdown.clone(),
        };
        let courier = Courier {
            bus: node.bus.clone(),
            metrics: metrics.clone(),
            limit: node.settings.ingress.delivery_limit.limit(),
            stop: node.shutdown.clone(),
            adapter: adapter.clone(),
        };
        let desk = Self {
            drafts: adapter.drafts(&account),
            courier,
            account,
            fence: Fence::default(),
            chats: HashMap::new(),
            in_hand: HashMap::new(),
            ended: (HashSet::new(), VecDeque::new()),
            jobs: JoinSet::new(),
            running: HashMap::new(),
        };
        let work = async move {
            tokio::join!(reader.run(), desk.run(parcels));
        };
        (is_up, work)
    }

    async fn run(mut self, mut parcels: mpsc::Receiver<(Parcel, Acker)>) {
        let mut drafts = self.subscribe().await;
        let mut still_at_it = interval(ACK_WAIT / 3);
        let mut draft_tick = interval(DRAFT_TICK);
        still_at_it.set_missed_tick_behavior(MissedTickBehavior::Delay);
        draft_tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let stop = self.courier.stop.clone();
        loop {
            tokio::select! {
                parcel = parcels.recv() => match parcel {
                    Some((parcel, acker)) => self.take(parcel, acker).await,
                    None => break,
                },
                message = next(&mut drafts) => match message {
                    Some(message) => self.draft(&message.payload).await,
                    None => drafts = self.subscribe().await,
                },
                Some(ended) = self.jobs.join_next_with_id(), if !self.jobs.is_empty() => self.end(ended).await,
                _ = still_at_it.tick() => self.say_still_at_it().await,
                _ = draft_tick.tick(), if matches!(self.drafts, Drafts::Whole { .. }) => self.show_drafts(),
                () = stop.cancelled() => break,
            }
        }
        // What waits stays in the stream; what is being handed over may end.
        drop(parcels);
        self.finish().await;
    }

    async fn subscribe(&self) -> Option<Subscriber> {
        if self.drafts == Drafts::None {
            return None;
        }
        let subject = subject::draft(self.courier.adapter.platform(), &self.account);
        match self.courier.bus.client().subscribe(subject).await {
            Ok(subscriber) => Some(subscriber),
            Err(error) => {
                tracing::error!(%error, account = %self.account, "no drafts will be shown");
                None
            }
        }
    }

    /// Takes a parcel. One that is in hand or has ended already came again because its acknowledgement was late or lost.
    async fn take(&mut self, parcel: Parcel, acker: Acker) {
        if self.ended.0.contains(&parcel.sequence) {
            acknowledge(&acker, AckKind::Ack).await;
            return;
        }
        if self.in_hand.insert(parcel.sequence, acker).is_some() {
            return;
        }
        self.fence.note(&parcel.outbound);
        let name = parcel.outbound.address.chat.clone();
        let chat = self.chats.entry(name.clone()).or_default();
        if let (Some(turn), Kind::Reply | Kind::Closed) =
            (parcel.outbound.turn, parcel.outbound.kind)
        {
            chat.end_preview(turn);
        }
        chat.push(parcel);
        self.advance(&name);
    }

    /// Starts the next delivery of a chat, if its hand is free.
    fn advance(&mut self, name: &str) {
        let Some(chat) = self.chats.get_mut(name) else { return };
        if !matches!(chat.work, Work::Idle) {
            return;
        }
        let Some(parcel) = chat.waiting.pop_front() else {
            if chat.is_idle(Instant::now()) {
                self.chats.remove(name);
            }
            return;
        };
        chat.work = Work::Delivering;
        let (courier, quiet) = (self.courier.clone(), chat.quiet.take());
        let Parcel { outbound, sequence, age, span } = parcel;
        let job = async move {
            let verdict = courier.deliver(&outbound, age, quiet).await;
            Done::Parcel { sequence, verdict }
        };
        let id = self.jobs.spawn(job.instrument(span)).id();
        self.running.insert(id, Job { chat: name.to_owned(), sequence: Some(sequence) });
    }

    async fn end(&mut self, ended: Result<(Id, Done), JoinError>) {
        let (id, done) = match ended {
            Ok((id, done)) => (id, Some(done)),
            Err(error) => {
                tracing::error!(%error, "an adapter broke off; its delivery is given up");
                (error.id(), None)
            }
        };
        let Some(job) = self.running.remove(&id) else { return };
        if let Some(chat) = self.chats.get_mut(&job.chat) {
            chat.work = Work::Idle;
            if let Some(Done::Draft {
                result: Err(DeliverError::Retry { after: Some(after), .. }),
            }) = &done
            {
                chat.quiet = Some(Instant::now() + *after);
            }
        }
        match done {
            Some(Done::Parcel { sequence, verdict: Verdict::Ended(departure) }) => {
                self.courier.metrics.departed(self.courier.adapter.platform(), departure);
                self.close(sequence, AckKind::Ack).await;
            }
            Some(Done::Parcel { verdict: Verdict::Left, .. } | Done::Draft { .. }) => {}
            None => {
                if let Some(sequence) = job.sequence {
                    let platform = self.courier.adapter.platform();
                    self.courier.metrics.departed(platform, Departure::Dead);
                    self.close(sequence, AckKind::Term).await;
                }
            }
        }
        self.advance(&job.chat);
    }

    /// Takes an ended parcel out of the stream.
    async fn close(&mut self, sequence: u64, kind: AckKind) {
        let Some(acker) = self.in_hand.remove(&sequence) else { return };
        acknowledge(&acker, kind).await;
        let (set, order) = &mut self.ended;
        set.insert(sequence);
        order.push_back(sequence);
        if order.len() > ENDED_MAX
            && let Some(oldest) = order.pop_front()
        {
            set.remove(&oldest);
        }
    }

    async fn say_still_at_it(&self) {
        for acker in self.in_hand.values() {
            acknowledge(acker, AckKind::Progress).await;
        }
    }

    async fn draft(&mut self, payload: &[u8]) {
        let Ok(draft) = codec::decode::<Draft>(payload) else { return };
        if !self.fence.admits(draft.of) {
            return;
        }
        match self.drafts {
            Drafts::None => {}
            Drafts::Pieces => {
                self.courier.metrics.drafted(self.courier.adapter.platform());
                // A connection-bound adapter only passes it on.
                let _ = self.courier.adapter.draft(&draft).await;
            }
            Drafts::Whole { .. } => {
                let chat = self.chats.entry(draft.address.chat.clone()).or_default();
                chat.piece(Instant::now(), draft);
            }
        }
    }

    fn show_drafts(&mut self) {
        let Drafts::Whole { every } = self.drafts else { return };
        let now = Instant::now();
        for (name, chat) in &mut self.chats {
            let Some(draft) = chat.take_due(now, every) else { continue };
            self.courier.metrics.drafted(self.courier.adapter.platform());
            let give_way = CancellationToken::new();
            chat.work = Work::Drafting(give_way.clone());
            let adapter = self.courier.adapter.clone();
            let job = async move {
                let result = tokio::select! {
                    result = adapter.draft(&draft) => result,
                    () = tokio::time::sleep(DRAFT_LIMIT) => Ok(()),
                    () = async { give_way.cancelled().await; tokio::time::sleep(GIVE_WAY).await } => Ok(()),
                };
                Done::Draft { result }
            };
            let id = self.jobs.spawn(job).id();
            self.running.insert(id, Job { chat: name.clone(), sequence: None });
        }
    }

    /// Lets deliveries in hand end, for a moment; the rest comes again to whoever reads next.
    async fn finish(mut self) {
        let deadline = Instant::now() + FINISH;
        self.chats.values_mut().for_each(|chat| chat.waiting.clear());
        while let Ok(Some(ended)) = timeout_at(deadline, self.jobs.join_next_with_id()).await {
            self.end(ended).await;
        }
        self.jobs.shutdown().await;
        for acker in self.in_hand.values() {
            // Another process may have it at once, and need not wait until we are overdue.
            acknowledge(acker, AckKind::Nak(None)).await;
        }
    }
}

/// The next message of a subscription; never, if there is none.
async fn next(subscriber: &mut Option<Subscriber>) -> Option<async_nats::Message> {
    match subscriber {
        Some(subscriber) => subscriber.next().await,
        None => std::future::pending().await,
    }
}

/// Best effort: what is not acknowledged comes again, and is recognised.
async fn acknowledge(acker: &Acker, kind: AckKind) {
    if let Err(error) = acker.ack_with(kind).await {
        tracing::debug!(%error, "an acknowledgement was not sent");
    }
}
