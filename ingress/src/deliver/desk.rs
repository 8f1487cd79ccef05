//! The desk of one account: the one owner of everything that is in hand, from the stream to the acknowledgement.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use async_nats::Subscriber;
use async_nats::jetstream::AckKind;
use async_nats::jetstream::message::Acker;
use futures_util::StreamExt;
use node::Node;
use node::bus::Bus;
use proto::codec;
use proto::event::Address;
use proto::outbound::{Draft, Kind};
use proto::session::ChatKind;
use proto::subject;
use tokio::sync::{mpsc, watch};
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout_at};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::adapter::{Adapter, Binding, DeliverError, Drafts, Messages, Rate};
use crate::deliver::chat::{Chat, Work};
use crate::deliver::courier::{Courier, Verdict};
use crate::deliver::fence::Fence;
use crate::deliver::ledger::Ledger;
use crate::deliver::messenger::Messenger;
use crate::deliver::pace::Pace;
use crate::deliver::reader::{ACK_WAIT, Parcel, Reader};
use crate::metrics::{Departure, Metrics};

/// How often drafts that wait for their time are looked at.
const DRAFT_TICK: Duration = Duration::from_millis(100);
/// How long a draft that is being shown may hold up a parcel: long enough to end in order, too short to be noticed.
const GIVE_WAY: Duration = Duration::from_millis(250);
/// How long showing a draft may take.
const DRAFT_LIMIT: Duration = Duration::from_secs(5);
/// How long showing that the agent writes may take.
const TYPING_LIMIT: Duration = Duration::from_millis(1500);
/// How long deliveries in hand may take to end when the process stops.
const FINISH: Duration = Duration::from_secs(3);
/// How long a chat that is gone is believed to be, before it is tried again.
const GONE: Duration = Duration::from_secs(600);
/// The pace of platforms that take our things as they are: they say themselves when it is too much.
const UNPACED: Rate = Rate::per_second(100_000);
/// How many ended parcels are remembered, in case their acknowledgement is lost and they come again.
const ENDED_MAX: usize = 4096;

/// What one job did.
enum Done {
    Parcel {
        sequence: u64,
        verdict: Verdict,
        /// How long after it was stored.
        after: Duration,
    },
    Draft {
        result: Result<(), DeliverError>,
    },
    /// The sign that the agent writes is shown.
    Typing,
}

/// What a running job works on.
struct Job {
    chat: String,
    /// The parcel; none for a draft.
    sequence: Option<u64>,
    began: Instant,
}

/// One account.
pub(crate) struct Desk {
    bus: Bus,
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
    /// Takes the deliveries of an account until `stop`; `up` says whether it does at the moment.
    ///
    /// # Errors
    /// When the adapter's capabilities cannot be worked with.
    pub(crate) fn open(
        node: &Node,
        metrics: &Metrics,
        adapter: Arc<dyn Adapter>,
        account: String,
        (up, stop): (watch::Sender<bool>, CancellationToken),
    ) -> anyhow::Result<impl Future<Output = ()> + Send + 'static> {
        let (out, parcels) = mpsc::channel(64);
        let reader = Reader {
            bus: node.bus.clone(),
            platform: adapter.platform(),
            account: account.clone(),
            transient: adapter.capabilities().binding == Binding::Connection,
            out,
            up,
            stop: stop.clone(),
        };
        let settings = &node.settings.ingress;
        let ledger = Ledger::new(node.bus.clone());
        let messenger = adapter.capabilities().messages.map(|can| {
            Messenger::new(adapter.clone(), can, ledger.clone(), settings.duplicates)
                .context("the platform's messages are too short for any text")
        });
        let courier = Courier {
            messenger: messenger.transpose()?,
            ledger,
            metrics: metrics.clone(),
            limit: settings.delivery_limit.limit(),
            stop,
            adapter: adapter.clone(),
        };
        let desk = Self {
            drafts: adapter.drafts(&account),
            bus: node.bus.clone(),
            courier,
            account,
            fence: Fence::default(),
            chats: HashMap::new(),
            in_hand: HashMap::new(),
            ended: (HashSet::new(), VecDeque::new()),
            jobs: JoinSet::new(),
            running: HashMap::new(),
        };
        Ok(async move {
            tokio::join!(reader.run(), desk.run(parcels));
        })
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
                _ = draft_tick.tick(), if self.listens() => self.show(),
                () = stop.cancelled() => break,
            }
        }
        // What waits stays in the stream; what is being handed over may end.
        drop(parcels);
        self.finish().await;
    }

    /// Whether anything of a running turn is shown.
    fn listens(&self) -> bool {
        self.drafts != Drafts::None || self.typing().is_some()
    }

    fn can(&self) -> Option<&Messages> {
        self.courier.messenger.as_ref().map(Messenger::can)
    }

    /// For how long one sign that the agent writes stays.
    fn typing(&self) -> Option<Duration> {
        self.can()?.typing
    }

    /// How many calls a chat bears.
    fn rate(&self, address: &Address) -> Rate {
        self.can().map_or(UNPACED, |can| match address.kind {
            ChatKind::Dm => can.rates.direct,
            ChatKind::Group | ChatKind::Channel | ChatKind::Thread => can.rates.group,
        })
    }

    fn chat(&mut self, address: &Address) -> &mut Chat {
        let rate = self.rate(address);
        self.chats
            .entry(address.chat.clone())
            .or_insert_with(|| Chat::new(Instant::now(), address.kind, rate))
    }

    async fn subscribe(&self) -> Option<Subscriber> {
        if !self.listens() {
            return None;
        }
        let subject = subject::draft(self.courier.adapter.platform(), &self.account);
        match self.bus.client().subscribe(subject).await {
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
        let chat = self.chat(&parcel.outbound.address);
        match (parcel.outbound.turn, parcel.outbound.kind) {
            (Some(turn), Kind::Reply | Kind::Closed) => {
                chat.end_preview(turn);
                chat.typing.stop();
            }
            (_, Kind::Question) => chat.typing.stop(),
            _ => {}
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
        let (courier, quiet, pace) = (self.courier.clone(), chat.quiet.take(), chat.pace.clone());
        let now = Instant::now();
        let gone = chat.gone.as_ref().filter(|(until, _)| now < *until);
        let gone = gone.map(|(_, why)| why.clone());
        let Parcel { outbound, sequence, age, span } = parcel;
        let job = async move {
            let began = Instant::now();
            let verdict = match gone {
                Some(why) => courier.skip(&outbound, age, &pace, why).await,
                None => courier.deliver(&outbound, age, quiet, &pace).await,
            };
            Done::Parcel { sequence, verdict, after: age + began.elapsed() }
        };
        let id = self.jobs.spawn(job.instrument(span)).id();
        self.running.insert(
            id,
            Job { chat: name.to_owned(), sequence: Some(sequence), began: Instant::now() },
        );
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
        if let Some(chat) = self.chats.get_mut(&job.chat)
            && !matches!(done, Some(Done::Typing))
        {
            chat.work = Work::Idle;
            if let Some(Done::Draft {
                result: Err(DeliverError::Retry { after: Some(after), .. }),
            }) = &done
            {
                chat.quiet = Some(Instant::now() + *after);
            }
        }
        match done {
            Some(Done::Parcel { sequence, verdict: Verdict::Gone(why), after }) => {
                if let Some(chat) = self.chats.get_mut(&job.chat) {
                    chat.gone = Some((Instant::now() + GONE, why));
                }
                let platform = self.courier.adapter.platform();
                self.courier.metrics.departed(platform, Departure::Dead, after);
                self.close(sequence, AckKind::Ack).await;
            }
            Some(Done::Parcel { sequence, verdict: Verdict::Ended(departure), after }) => {
                let delivered = departure == Departure::Delivered;
                if let Some(chat) = self.chats.get_mut(&job.chat).filter(|_| delivered) {
                    chat.gone = None;
                }
                let platform = self.courier.adapter.platform();
                self.courier.metrics.departed(platform, departure, after);
                self.close(sequence, AckKind::Ack).await;
            }
            Some(
                Done::Parcel { verdict: Verdict::Left, .. } | Done::Draft { .. } | Done::Typing,
            ) => {}
            None => {
                if let Some(sequence) = job.sequence {
                    let platform = self.courier.adapter.platform();
                    self.courier.metrics.departed(platform, Departure::Dead, job.began.elapsed());
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
        if self.typing().is_some() {
            self.chat(&draft.address).typing.heard(Instant::now(), &draft.address);
        }
        if draft.is_sign_of_life() {
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
                self.chat(&draft.address).piece(Instant::now(), draft);
            }
        }
    }

    /// Shows what is due of running turns: their text, or that they are at work.
    fn show(&mut self) {
        let now = Instant::now();
        let rates = self.can().map(|can| can.rates);
        let typing = self.typing();
        for (name, chat) in &mut self.chats {
            if let Drafts::Whole { every, growth } = self.drafts {
                // A group's pace may be slower than the drafts'.
                let every = rates.map_or(every, |rates| match chat.kind {
                    ChatKind::Dm => every.max(rates.direct.every()),
                    ChatKind::Group | ChatKind::Channel | ChatKind::Thread => {
                        every.max(rates.group.every())
                    }
                });
                if let Some(draft) = chat.take_due(now, every, growth) {
                    self.courier.metrics.drafted(self.courier.adapter.platform());
                    let give_way = CancellationToken::new();
                    chat.work = Work::Drafting(give_way.clone());
                    let job = show_draft(self.courier.clone(), draft, chat.pace.clone(), give_way);
                    let id = self.jobs.spawn(job).id();
                    self.running.insert(id, Job { chat: name.clone(), sequence: None, began: now });
                    continue;
                }
            }
            let idle = matches!(chat.work, Work::Idle);
            if let (Some(lasts), Some(messenger), true) = (typing, &self.courier.messenger, idle)
                && let Some(address) = chat.typing.take_due(now, lasts)
            {
                let (messenger, pace) = (messenger.clone(), chat.pace.clone());
                let job = async move {
                    let shown = messenger.typing(&address, &pace);
                    let _ = tokio::time::timeout(TYPING_LIMIT, shown).await;
                    Done::Typing
                };
                let id = self.jobs.spawn(job).id();
                self.running.insert(id, Job { chat: name.clone(), sequence: None, began: now });
            }
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

/// Shows a draft. Where it is one message that is edited, it ends before anything else begins in the chat: a late edit would
/// undo the reply, and a late send would stand beside it.
async fn show_draft(
    courier: Courier,
    draft: Draft,
    pace: Arc<Pace>,
    give_way: CancellationToken,
) -> Done {
    let as_is = courier.messenger.is_none();
    let result = tokio::select! {
        result = courier.draft(&draft, &pace) => result,
        () = tokio::time::sleep(DRAFT_LIMIT), if as_is => Ok(()),
        () = async { give_way.cancelled().await; tokio::time::sleep(GIVE_WAY).await }, if as_is => Ok(()),
    };
    Done::Draft { result }
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
