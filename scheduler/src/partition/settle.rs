//! Settling a session after its inputs were applied: write its lease, then let what follows from it be seen.

use std::time::Duration;

use bytes::Bytes;
use node::bus::{Stored, Write, WriteError};
use node::trace;
use proto::codec;
use proto::lease::Lease;
use proto::receipt::Receipt;
use proto::subject;
use proto::topology::LEASES;
use proto::turn::{Control, TurnRef};
use scheduler_core::{Input, Session, Signal};
use tracing::Instrument;

use super::observed::Times;
use super::round::{Work, reply};
use super::table::Slot;
use super::{Lost, Owner, effects, observed, takeover};

/// The pause before something is tried again whose outcome is unknown.
const PAUSE: Duration = Duration::from_millis(20);

/// A settled session, and its part of the answers to heartbeats.
pub(crate) struct Settled {
    pub(crate) slot: Slot,
    pub(crate) beats: Vec<(usize, TurnRef, bool, Vec<Control>)>,
}

/// Applies inputs to a session and carries out what follows.
pub(crate) async fn settle(owner: &Owner, slot: Slot, work: Vec<Work>) -> anyhow::Result<Settled> {
    let headers = work.iter().rev().find_map(|work| work.headers.as_ref());
    let span = match headers {
        Some(_) => tracing::info_span!(
            "schedule",
            session = %slot.session.lease.session.shown(owner.masked),
            trace_id = tracing::field::Empty,
        ),
        None => tracing::Span::none(),
    };
    trace::continue_from(&span, headers);
    settle_in_span(owner, slot, &work).instrument(span).await
}

async fn settle_in_span(owner: &Owner, mut slot: Slot, work: &[Work]) -> anyhow::Result<Settled> {
    for work in work {
        if let Input::Beat { turn, .. } = &work.input {
            slot.observed.beat(turn.of, owner.now(), owner.beat, &owner.metrics);
        }
    }
    let (changed, mut signals) = apply(owner, &mut slot.session, work);
    if changed {
        signals = commit(owner, &mut slot, work, signals).await?;
    }
    let beats = act(owner, &mut slot, work, signals).await;
    publish(owner, &mut slot.session, work).await?;
    Ok(Settled { slot, beats })
}

/// What a session says, with the index of the input that made it say so.
type Said = Vec<(usize, Signal)>;

fn apply(owner: &Owner, session: &mut Session, work: &[Work]) -> (bool, Said) {
    let (now, mut said) = (owner.now(), Said::new());
    // What runs is fenced by the first write of a new owner, also where nothing else changes.
    let mut changed = session.lease.epoch < owner.epoch && !session.is_idle();
    // An answer to a claim names the epoch of whoever gives it.
    session.lease.epoch = owner.epoch;
    let mut signals = Vec::new();
    let policy = *owner.policies.of(&session.lease.session);
    for (index, work) in work.iter().enumerate() {
        changed |= session.step(&policy, now, &work.input, &mut signals);
        said.extend(signals.drain(..).map(|signal| (index, signal)));
    }
    (changed, said)
}

/// Writes the lease. When someone else wrote first, the session is read again and the inputs are applied to what it is now;
/// those that the other owner has applied already are skipped by themselves.
async fn commit(
    owner: &Owner,
    slot: &mut Slot,
    work: &[Work],
    mut signals: Said,
) -> anyhow::Result<Said> {
    let subject =
        subject::bucket_subject(LEASES, &subject::lease_key(owner.partition, slot.session.sid()));
    loop {
        let payload = Bytes::from(codec::encode(&slot.session.lease));
        let ttl = slot.session.is_idle().then_some(owner.idle_ttl);
        let write = Write { expect: Some(slot.revision), ttl, id: None };
        match owner.bus.write(subject.clone(), payload.clone(), write).await {
            Ok(written) => {
                owner.metrics.write("done");
                slot.revision = written.sequence;
                return Ok(signals);
            }
            // The same write again: if the first one did arrive, this one is refused, and reading back tells.
            Err(WriteError::Unknown) => {
                owner.metrics.write("unknown");
                tokio::time::sleep(PAUSE).await;
            }
            Err(WriteError::Refused) => {
                let stored = read_back(owner, &subject).await;
                if let Some(stored) = &stored
                    && stored.payload == payload
                {
                    owner.metrics.write("done");
                    slot.revision = stored.sequence;
                    return Ok(signals);
                }
                owner.metrics.write("refused");
                let changed;
                (changed, signals) = again(owner, slot, stored, work)?;
                if !changed {
                    return Ok(signals);
                }
            }
            Err(error @ WriteError::TooLarge) => return Err(error.into()),
        }
    }
}

/// Applies the inputs to the session as someone else has left it.
fn again(
    owner: &Owner,
    slot: &mut Slot,
    stored: Option<Stored>,
    work: &[Work],
) -> anyhow::Result<(bool, Said)> {
    slot.revision = stored.as_ref().map_or(0, |stored| stored.sequence);
    slot.session = match stored.filter(Stored::is_value) {
        Some(stored) => {
            let lease: Lease = codec::decode(&stored.payload)?;
            anyhow::ensure!(lease.epoch <= owner.epoch, Lost(owner.partition));
            Session::restore(lease, owner.now())
        }
        None => Session::new(slot.session.lease.session.clone(), owner.epoch, owner.now()),
    };
    Ok(apply(owner, &mut slot.session, work))
}

async fn read_back(owner: &Owner, subject: &str) -> Option<Stored> {
    loop {
        match owner.bus.last(&takeover::bucket_stream(), subject).await {
            Ok(stored) => return stored,
            Err(error) => {
                tracing::debug!(%subject, error = %error.source, "reading back again");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// Says what may be said now that the lease is written. Heartbeats are answered for all sessions together, by the caller.
async fn act(
    owner: &Owner,
    slot: &mut Slot,
    work: &[Work],
    signals: Said,
) -> Vec<(usize, TurnRef, bool, Vec<Control>)> {
    let (mut beats, mut facts) = (Vec::new(), Vec::new());
    for (index, signal) in signals {
        let work = &work[index];
        owner.metrics.signal(&signal);
        let Slot { session, observed, .. } = slot;
        let times = Times { now: owner.now(), wall_ms: node::clock::wall_ms() };
        observed.said(&signal, &work.input, session, times, &owner.metrics);
        match (signal, &work.input) {
            (Signal::Claim(answer), _) => {
                if let Some(reply_to) = work.reply_to.clone() {
                    reply(&owner.bus, reply_to, &answer).await;
                }
            }
            (Signal::Beat { kept, controls }, Input::Beat { turn, .. }) => {
                beats.extend(work.request.map(|request| (request, turn.of, kept, controls)));
            }
            (Signal::Tell { worker, control }, input) => {
                let subject = subject::control(worker);
                match observed::accepted(input) {
                    Some(since_ms) => owner.bus.tell_since(subject, &control, since_ms).await,
                    None => owner.bus.tell(subject, &control).await,
                }
            }
            (Signal::Fact(fact), _) => facts.push(fact),
            (Signal::Beat { .. }, _) => {}
        }
    }
    if !facts.is_empty() {
        let session = slot.session.lease.session.clone();
        let receipt = Receipt { session, facts };
        owner.bus.tell(subject::event(slot.session.sid()), &receipt).await;
    }
    beats
}

/// Publishes the effects of the lease, in order, all in flight at once, until each is acknowledged.
async fn publish(owner: &Owner, session: &mut Session, work: &[Work]) -> anyhow::Result<()> {
    let mut messages = Vec::with_capacity(session.lease.effects.len());
    for effect in &session.lease.effects {
        owner.metrics.effect(effect);
        messages.extend(effects::message(owner, session, effect, work).await?);
    }
    let mut sent = Vec::with_capacity(messages.len());
    for effects::Message { subject, payload, id, span } in &messages {
        let write = Write { id: id.as_deref(), ..Write::default() };
        let begun = owner.bus.begin_write(subject.clone(), payload.clone(), write);
        sent.push(begun.instrument(span.clone()).await);
    }
    for (sent, message) in sent.into_iter().zip(messages) {
        let mut outcome = match sent {
            Ok(sent) => sent.finish().await,
            Err(error) => Err(error),
        };
        while outcome == Err(WriteError::Unknown) {
            tokio::time::sleep(PAUSE).await;
            let write = Write { id: message.id.as_deref(), ..Write::default() };
            outcome =
                owner.bus.write(message.subject.clone(), message.payload.clone(), write).await;
        }
        if let Err(error) = outcome {
            owner.metrics.effects_failed.inc();
            tracing::error!(subject = %message.subject, %error, "an effect cannot be published");
        }
    }
    session.effects_are_out();
    Ok(())
}
