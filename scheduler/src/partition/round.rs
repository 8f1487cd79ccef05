//! One round of a partition: collect inputs, apply them session by session, settle them all at once.

use std::collections::BTreeMap;
use std::time::Instant;

use async_nats::{HeaderMap, Subject};
use futures_util::future::join_all;
use node::bus::Bus;
use proto::codec;
use proto::id::{Epoch, ProcessId, Seq, Sid};
use proto::inbox::Inbox;
use proto::lease::Lease;
use proto::session::SessionKey;
use proto::subject;
use proto::topology::LEASES;
use proto::turn::{BeatReply, ClaimReply, Control, Denial, TurnRef};
use scheduler_core::{Input, Session};
use serde::Serialize;

use super::aside::{self, Asides};
use super::desk::{Question, Request};
use super::log::Entry;
use super::settle::{self, Settled};
use super::table::{Slot, Table};
use super::{Lost, Owner, takeover};
use crate::metrics::Metrics;

/// At most how many inputs one round takes, so that its writes stay within what the broker likes to have in flight.
const INPUTS_MAX: usize = 512;

/// One input on its way into a session.
pub(crate) struct Work {
    pub(crate) input: Input,
    /// Which heartbeat it belongs to.
    pub(crate) request: Option<usize>,
    /// Where the answer to a claim goes.
    pub(crate) reply_to: Option<Subject>,
    /// The trace that it is part of.
    pub(crate) headers: Option<HeaderMap>,
}

impl Work {
    const fn plain(input: Input) -> Self {
        Self { input, request: None, reply_to: None, headers: None }
    }
}

/// The inputs of one round.
#[derive(Default)]
pub(crate) struct Round {
    work: BTreeMap<Sid, Vec<Work>>,
    keys: BTreeMap<Sid, SessionKey>,
    beats: Vec<(Subject, BeatReply)>,
    last: Option<Seq>,
    size: usize,
}

impl Round {
    pub(crate) const fn is_full(&self) -> bool {
        self.size >= INPUTS_MAX
    }

    /// The last log entry in it.
    pub(crate) const fn last(&self) -> Option<Seq> {
        self.last
    }

    pub(crate) fn entry(&mut self, entry: Entry, metrics: &Metrics) {
        let Entry { seq, sid, input, headers } = entry;
        self.last = Some(seq);
        let input = match input {
            Some(Inbox::Message(event)) => {
                self.keys.insert(sid, event.session.clone());
                Input::Message { seq, event }
            }
            Some(Inbox::Refused { event, text }) => {
                self.keys.insert(sid, event.session.clone());
                Input::Refused { seq, event, text }
            }
            Some(Inbox::Edit(event)) => Input::Edit { seq, event },
            Some(Inbox::Withdrawal { message, user, .. }) => {
                Input::Withdrawal { seq, message, user: user.id }
            }
            Some(Inbox::Report(report)) => Input::Report { seq, report },
            Some(Inbox::Hangup { message, .. }) => Input::Hangup { seq, message },
            None => Input::Unreadable { seq },
        };
        metrics.input(&input);
        self.add(sid, Work { headers, ..Work::plain(input) });
    }

    pub(crate) fn request(&mut self, request: Request) {
        let Request { question, reply_to, headers } = request;
        match question {
            Question::Claim(claim) => {
                let work =
                    Work { headers, reply_to: Some(reply_to), ..Work::plain(Input::Claim(claim)) };
                self.add(claim.of.sid, work);
            }
            Question::Beat(beat) => {
                let request = Some(self.beats.len());
                self.beats.push((reply_to, BeatReply::default()));
                for turn in beat.turns {
                    let sid = turn.of.sid;
                    self.add(
                        sid,
                        Work { request, ..Work::plain(Input::Beat { worker: beat.worker, turn }) },
                    );
                }
            }
        }
    }

    pub(crate) fn due(&mut self, due: Vec<Sid>) {
        for sid in due {
            self.add(sid, Work::plain(Input::Tick));
        }
    }

    pub(crate) fn worker_gone(&mut self, worker: ProcessId, table: &Table) {
        for sid in table.held_by(worker) {
            self.add(sid, Work::plain(Input::WorkerGone(worker)));
        }
    }

    pub(crate) fn adopt(&mut self, sid: Sid, epoch: Epoch) {
        self.add(sid, Work::plain(Input::Adopt(epoch)));
    }

    fn add(&mut self, sid: Sid, work: Work) {
        self.size += 1;
        self.work.entry(sid).or_default().push(work);
    }

    /// Carries the round out; sessions whose lease cannot be read are noted in `asides`. Returns the highest revision that was
    /// written.
    ///
    /// # Errors
    /// When the partition has another owner, or the broker does not let its leases be read.
    pub(crate) async fn run(
        mut self,
        owner: &Owner,
        table: &mut Table,
        asides: &mut Asides,
    ) -> anyhow::Result<u64> {
        if self.size == 0 {
            return Ok(0);
        }
        owner.metrics.batch_size.observe(f64::from(u32::try_from(self.size).unwrap_or(u32::MAX)));
        let started = Instant::now();
        let mut begun = Vec::with_capacity(self.work.len());
        for (sid, slot) in self.slots(owner, table, asides).await? {
            let work = self.work.remove(&sid).unwrap_or_default();
            match slot {
                At::Slot(slot) => begun.push(settle::settle(owner, *slot, work)),
                At::Nothing => self.refuse(owner, work).await,
                At::Poison => {
                    asides.note(owner, sid, &work);
                    aside::tell(owner, &work).await;
                    self.refuse(owner, work).await;
                }
            }
        }
        let mut written = 0;
        for settled in join_all(begun).await {
            let Settled { slot, beats } = settled?;
            written = slot.revision.max(written);
            table.put(slot, owner);
            for (request, of, kept, controls) in beats {
                self.note(request, of, kept, controls);
            }
        }
        self.answer_beats(owner).await;
        owner.metrics.round.observe(started.elapsed().as_secs_f64());
        Ok(written)
    }

    /// The sessions of this round, from memory or from the bucket.
    async fn slots(
        &self,
        owner: &Owner,
        table: &mut Table,
        asides: &Asides,
    ) -> anyhow::Result<Vec<(Sid, At)>> {
        let missing = self.work.keys().copied();
        let missing = missing.filter(|sid| !table.contains(*sid) && !asides.holds(*sid));
        let read = missing.map(|sid| async move { (sid, load(owner, sid).await) });
        let mut loaded: BTreeMap<_, _> = join_all(read).await.into_iter().collect();
        let mut slots = Vec::with_capacity(self.work.len());
        for sid in self.work.keys().copied() {
            let slot = match loaded.remove(&sid) {
                None => table.take(sid).map_or(At::Poison, At::slot),
                Some(read) => match read? {
                    Found::Session(session, revision) => At::slot(Slot::new(*session, revision)),
                    Found::Nothing(revision) => self.keys.get(&sid).map_or(At::Nothing, |key| {
                        let session = Session::new(key.clone(), owner.epoch, owner.now());
                        At::slot(Slot::new(session, revision))
                    }),
                    Found::Poison => At::Poison,
                },
            };
            slots.push((sid, slot));
        }
        Ok(slots)
    }

    /// Answers for a session of which nothing is known: no turn of it is anyone's.
    async fn refuse(&mut self, owner: &Owner, work: Vec<Work>) {
        for Work { input, request, reply_to, .. } in work {
            match (input, request, reply_to) {
                (Input::Claim(_), _, Some(reply_to)) => {
                    let denied = ClaimReply::Denied { reason: Denial::Superseded };
                    reply(&owner.bus, reply_to, &denied).await;
                }
                (Input::Beat { turn, .. }, Some(request), _) => {
                    self.note(request, turn.of, false, Vec::new())
                }
                _ => {}
            }
        }
    }

    fn note(&mut self, request: usize, of: TurnRef, kept: bool, controls: Vec<Control>) {
        let (_, answer) = &mut self.beats[request];
        if kept { &mut answer.kept } else { &mut answer.lost }.push(of);
        answer.controls.extend(controls);
    }

    async fn answer_beats(self, owner: &Owner) {
        for (reply_to, mut answer) in self.beats {
            answer.epoch = owner.epoch;
            reply(&owner.bus, reply_to, &answer).await;
        }
    }
}

/// Answers a request.
pub(crate) async fn reply<T: Serialize>(bus: &Bus, reply_to: Subject, answer: &T) {
    if let Err(error) = bus.client().publish(reply_to, codec::encode(answer).into()).await {
        tracing::debug!(%error, "an answer was not sent; the worker asks again");
    }
}

/// Where the inputs of a session go.
enum At {
    Slot(Box<Slot>),
    /// Nothing is known of it and nothing begins: no turn of it is anyone's.
    Nothing,
    /// Its lease cannot be read: what comes is set aside.
    Poison,
}

impl At {
    fn slot(slot: Slot) -> Self {
        Self::Slot(Box::new(slot))
    }
}

/// What is stored of a session.
pub(crate) enum Found {
    Session(Box<Session>, u64),
    Nothing(u64),
    /// Something that cannot be read: it is left for a person, and the session's inputs are set aside meanwhile.
    Poison,
}

/// Reads a session that is not in memory, and the revision that a write must expect.
pub(crate) async fn load(owner: &Owner, sid: Sid) -> anyhow::Result<Found> {
    let subject = subject::bucket_subject(LEASES, &subject::lease_key(owner.partition, sid));
    let stored = owner.bus.last_nearby(&takeover::bucket_stream(), &subject).await?;
    let Some(stored) = stored else { return Ok(Found::Nothing(0)) };
    if !stored.is_value() {
        return Ok(Found::Nothing(stored.sequence));
    }
    match codec::decode::<Lease>(&stored.payload) {
        Ok(mut lease) => {
            anyhow::ensure!(lease.epoch <= owner.epoch, Lost(owner.partition));
            if lease.epoch == owner.epoch || stored.sequence <= owner.settled {
                lease.effects.clear();
            }
            Ok(Found::Session(Box::new(Session::restore(lease, owner.now())), stored.sequence))
        }
        Err(error) => {
            tracing::debug!(%subject, %error, "a lease cannot be read");
            Ok(Found::Poison)
        }
    }
}
