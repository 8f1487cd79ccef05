//! The one owner of all rooms: browsers, deliveries, drafts and states come to it as words over a channel.

use std::collections::HashMap;
use std::time::Duration;

use node::bus::Bus;
use proto::codec;
use proto::id::{Sid, TurnId};
use proto::lease::{Lease, Phase};
use proto::outbound::{Draft, Outbound};
use proto::receipt::{Fact, Receipt, StateName};
use proto::subject;
use proto::topology::LEASES;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::room::{Frame, Room};
use super::session_key;

/// How many words may wait for the owner.
const WORDS_MAX: usize = 4096;
/// How many rooms there may be.
const ROOMS_MAX: usize = 10_000;
/// How long a room that nobody looks at is kept for those who come back.
const EMPTY: Duration = Duration::from_secs(600);
/// How often rooms are looked over.
const TICK: Duration = Duration::from_secs(5);

/// What the owner is told.
#[derive(Debug)]
pub(crate) enum Word {
    /// A browser looks at a session; `last` is the last frame it has seen.
    Join { session: String, last: Option<u64>, browser: mpsc::Sender<Frame> },
    /// The person wrote.
    User { session: String, id: String, text: String, turn: TurnId },
    /// A piece of text.
    Draft(Draft),
    /// Something to deliver.
    Outbound(Outbound),
    /// The person wants a message to say something else. Told before it is stored, so that the decision comes after.
    Edit { session: String, id: String, text: String },
    /// Something was decided about a session.
    Fact { session: String, fact: Fact },
}

/// A handle to the owner. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Hub(mpsc::Sender<Word>);

impl Hub {
    /// Starts the owner; it ends with `stop` or with its last handle.
    pub(crate) fn start(bus: Bus, stop: CancellationToken) -> Self {
        let (words, inbox) = mpsc::channel(WORDS_MAX);
        // Its own handle must not keep it alive.
        let owner = Owner { bus, words: words.downgrade(), rooms: HashMap::new() };
        tokio::spawn(async move {
            tokio::select! {
                () = owner.run(inbox) => {}
                () = stop.cancelled() => {}
            }
        });
        Self(words)
    }

    /// Tells the owner something. Does nothing when the process stops.
    pub(crate) async fn tell(&self, word: Word) {
        let _ = self.0.send(word).await;
    }
}

struct Entry {
    room: Room,
    watched: Instant,
    /// Follows the session's state for as long as someone looks.
    follower: Option<DropGuard>,
}

struct Owner {
    bus: Bus,
    words: mpsc::WeakSender<Word>,
    rooms: HashMap<String, Entry>,
}

impl Owner {
    async fn run(mut self, mut inbox: mpsc::Receiver<Word>) {
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                word = inbox.recv() => match word {
                    Some(word) => self.hear(word),
                    None => return,
                },
                _ = tick.tick() => self.tidy(),
            }
        }
    }

    fn hear(&mut self, word: Word) {
        match word {
            Word::Join { session, last, browser } => self.join(session, last, browser),
            Word::User { session, id, text, turn } => {
                if let Some(entry) = self.rooms.get_mut(&session) {
                    entry.room.user(&id, &text, turn);
                }
            }
            // The chat says who looks: what runs beside a session is shown there too. Where nobody has looked lately, there is
            // nobody to tell: the history has it.
            Word::Draft(draft) => {
                if let Some(entry) = self.rooms.get_mut(&draft.address.chat) {
                    entry.room.draft(&draft);
                }
            }
            Word::Outbound(outbound) => {
                if let Some(entry) = self.rooms.get_mut(&outbound.address.chat) {
                    entry.room.outbound(&outbound);
                }
            }
            Word::Edit { session, id, text } => {
                if let Some(entry) = self.rooms.get_mut(&session) {
                    entry.room.edit(id, text);
                }
            }
            Word::Fact { session, fact } => {
                if let Some(entry) = self.rooms.get_mut(&session) {
                    entry.room.fact(&fact);
                }
            }
        }
    }

    fn join(&mut self, session: String, last: Option<u64>, browser: mpsc::Sender<Frame>) {
        if self.rooms.len() >= ROOMS_MAX && !self.rooms.contains_key(&session) {
            self.tidy();
            let longest = self.rooms.iter().filter(|(_, entry)| entry.follower.is_none());
            let longest =
                longest.min_by_key(|(_, entry)| entry.watched).map(|(name, _)| name.clone());
            // If all of them are looked at, this browser is turned away; it tries again.
            let Some(name) = longest else { return };
            self.rooms.remove(&name);
        }
        let entry = self.rooms.entry(session.clone()).or_insert_with(|| Entry {
            room: Room::default(),
            watched: Instant::now(),
            follower: None,
        });
        entry.watched = Instant::now();
        entry.room.join(browser, last);
        if entry.follower.is_none() {
            let stop = CancellationToken::new();
            let follow = follow(self.bus.clone(), session, self.words.clone());
            let stopped = stop.clone();
            tokio::spawn(async move {
                tokio::select! { () = follow => {} () = stopped.cancelled() => {} }
            });
            entry.follower = Some(stop.drop_guard());
        }
    }

    fn tidy(&mut self) {
        let now = Instant::now();
        self.rooms.retain(|_, entry| {
            if entry.room.is_watched() {
                entry.watched = now;
            } else if entry.follower.take().is_some() {
                entry.room.forget_state();
            }
            now.duration_since(entry.watched) < EMPTY
        });
    }
}

/// Follows a session: what its lease says now, and then what is decided about it. Read again after the broker was away, since
/// what was told meanwhile is lost.
async fn follow(bus: Bus, session: String, words: mpsc::WeakSender<Word>) {
    let sid = session_key(&session).sid();
    let mut connects = bus.connects();
    loop {
        connects.mark_unchanged();
        let Ok(mut receipts) = bus.client().subscribe(subject::event(sid)).await else { return };
        let state = from_lease(&bus, sid).await;
        if !tell(&words, &session, state).await {
            return;
        }
        loop {
            let receipt = tokio::select! {
                message = futures_util::StreamExt::next(&mut receipts) => message,
                _ = connects.changed() => break,
            };
            let Some(message) = receipt else { break };
            let receipt = codec::decode::<Receipt>(&message.payload);
            for fact in receipt.into_iter().flat_map(|receipt| receipt.facts) {
                if !tell(&words, &session, fact).await {
                    return;
                }
            }
        }
    }
}

async fn tell(words: &mpsc::WeakSender<Word>, session: &str, fact: Fact) -> bool {
    let Some(words) = words.upgrade() else { return false };
    words.send(Word::Fact { session: session.to_owned(), fact }).await.is_ok()
}

async fn from_lease(bus: &Bus, sid: Sid) -> Fact {
    let key = subject::lease_key(bus.partition_of(sid), sid);
    let stored =
        bus.last_nearby(&format!("KV_{LEASES}"), &subject::bucket_subject(LEASES, &key)).await;
    let lease = match stored {
        Ok(Some(stored)) if stored.is_value() => codec::decode::<Lease>(&stored.payload).ok(),
        Ok(_) | Err(_) => None,
    };
    let Some(lease) = lease else {
        return Fact::State { state: StateName::Idle, turn: None, queued: 0 };
    };
    let state = match lease.phase {
        Phase::Idle => StateName::Idle,
        Phase::Collecting { .. } => StateName::Collecting,
        Phase::Starting { .. } => StateName::Starting,
        Phase::Running { .. } => StateName::Running,
        Phase::Stopping { .. } => StateName::Stopping,
    };
    let turn = lease.phase.turn().map(|turn| turn.id);
    Fact::State { state, turn, queued: lease.queue.len() }
}
