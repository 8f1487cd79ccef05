//! Sessions whose lease cannot be read (broken by hand, or written by a newer version). The partition goes on without them: what
//! comes for them stays in the log, the checkpoint says from where, and it is applied in order once the lease can be read again
//! or is deleted.

use std::collections::BTreeMap;
use std::time::Duration;

use node::bus::WriteError;
use prometheus::IntGauge;
use proto::codec;
use proto::id::{OutboundId, Seq, Sid};
use proto::lease::{Aside, Checkpoint};
use proto::outbound::{Kind, Outbound};
use proto::subject;
use scheduler_core::Input;
use tokio::time::Instant;

use super::Owner;
use super::log;
use super::round::{Found, Round, Work, load};
use super::table::Table;

/// How often it is tried whether a lease can be read again.
const TRY_EVERY: Duration = Duration::from_secs(2);
/// How long the person is tried to be told.
const TELL: Duration = Duration::from_secs(5);
const NOTICE: &str = "The record of this conversation cannot be read at the moment. Your message is kept, and is answered when \
                      the record is mended; whoever runs this system finds more in the scheduler's log.";

/// They, each with its first input that waits.
pub(crate) struct Asides {
    waiting: BTreeMap<Sid, Seq>,
    again: Instant,
    /// This partition's part of the gauge.
    counted: i64,
    gauge: Option<IntGauge>,
}

impl Asides {
    /// Those that a checkpoint names.
    pub(crate) fn new(checkpoint: &Checkpoint) -> Self {
        let waiting = checkpoint.aside.iter().map(|aside| (aside.sid, aside.first)).collect();
        Self { waiting, again: Instant::now(), counted: 0, gauge: None }
    }

    /// Whether what comes for a session is to wait.
    pub(crate) fn holds(&self, sid: Sid) -> bool {
        self.waiting.contains_key(&sid)
    }

    /// Writes them into a checkpoint.
    pub(crate) fn store(&self, checkpoint: &mut Checkpoint) {
        let aside = |(sid, first): (&Sid, &Seq)| Aside { sid: *sid, first: *first };
        checkpoint.aside = self.waiting.iter().map(aside).collect();
    }

    /// Notes that inputs of a session wait.
    pub(crate) fn note(&mut self, owner: &Owner, sid: Sid, work: &[Work]) {
        let mut places = work.iter().filter_map(|work| work.input.seq());
        let Some(first) = places.next() else { return };
        owner.metrics.aside.inputs.inc_by(1 + places.count() as u64);
        if !self.holds(sid) {
            let key = subject::lease_key(owner.partition, sid);
            tracing::error!(%key, %first, "a lease cannot be read; what comes for its session waits until it is mended or deleted");
            owner.metrics.poison.inc();
            self.waiting.insert(sid, first);
            self.again = Instant::now() + TRY_EVERY;
            self.count(owner);
        }
    }

    /// Returns when it is time to try again; never if nothing waits.
    pub(crate) async fn due(&self) {
        if self.waiting.is_empty() {
            return std::future::pending().await;
        }
        tokio::time::sleep_until(self.again).await;
    }

    /// Applies what waits for leases that can be read again, up to `cursor`: what comes after it comes from the log.
    pub(crate) async fn mend(
        &mut self,
        owner: &Owner,
        table: &mut Table,
        cursor: Seq,
    ) -> anyhow::Result<()> {
        self.again = Instant::now() + TRY_EVERY;
        for (sid, first) in self.waiting.clone() {
            if matches!(load(owner, sid).await?, Found::Poison) {
                continue;
            }
            self.waiting.remove(&sid);
            let entries = log::part(owner, sid, first, cursor).await?;
            tracing::info!(
                key = subject::lease_key(owner.partition, sid),
                inputs = entries.len(),
                "a lease was mended; what waited is applied"
            );
            let mut round = Round::default();
            round.adopt(sid, owner.epoch);
            for entry in entries {
                round.entry(entry, &owner.metrics);
                if round.is_full() {
                    Box::pin(std::mem::take(&mut round).run(owner, table, self)).await?;
                }
            }
            Box::pin(round.run(owner, table, self)).await?;
        }
        self.count(owner);
        Ok(())
    }

    fn count(&mut self, owner: &Owner) {
        let now = i64::try_from(self.waiting.len()).unwrap_or(i64::MAX);
        owner.metrics.aside.sessions.add(now - self.counted);
        self.counted = now;
        self.gauge = Some(owner.metrics.aside.sessions.clone());
    }
}

impl Drop for Asides {
    fn drop(&mut self) {
        if let Some(gauge) = &self.gauge {
            gauge.sub(self.counted);
        }
    }
}

/// Tells whoever wrote that it waits: no message is followed by silence.
pub(crate) async fn tell(owner: &Owner, work: &[Work]) {
    for work in work {
        let Input::Message { seq, event } = &work.input else { continue };
        let outbound = Outbound {
            id: OutboundId::of_input(*seq, "aside"),
            session: event.session.clone(),
            address: event.address.clone(),
            reply_to: Some(event.id.clone()),
            turn: None,
            attempt: None,
            kind: Kind::Notice,
            text: NOTICE.into(),
            ask: None,
            replaces: None,
        };
        let subject = subject::outbox(&outbound.address, event.session.sid());
        let (payload, id) = (codec::encode(&outbound).into(), outbound.id.to_string());
        if let Err(error @ (WriteError::Unknown | WriteError::Refused | WriteError::TooLarge)) =
            owner.bus.write_until(&subject, payload, &id, TELL).await
        {
            tracing::warn!(%error, %id, "a notice was not stored");
        }
    }
}
