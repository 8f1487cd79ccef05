//! Taking a partition over: fence the owner before, load what runs, send what may not have been sent.

use std::time::Duration;

use anyhow::Context;
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, pull};
use futures_util::StreamExt;
use node::bus::WriteError;
use proto::codec;
use proto::id::Epoch;
use proto::lease::{Checkpoint, Lease};
use proto::subject;
use proto::topology::LEASES;
use scheduler_core::Session;

use super::aside::Asides;
use super::round::Round;
use super::table::{Slot, Table};
use super::{Owner, Progress, write_checkpoint};

/// How many leases are read and adopted at once.
const CHUNK: usize = 256;
/// How long one read of a chunk may take.
const READ_LIMIT: Duration = Duration::from_secs(5);

/// The stored checkpoint and its revision.
pub(crate) async fn read_checkpoint(owner: &Owner) -> anyhow::Result<Option<(Checkpoint, u64)>> {
    let subject = subject::bucket_subject(LEASES, &subject::checkpoint_key(owner.partition));
    let Some(stored) = owner.bus.last(&bucket_stream(), &subject).await? else { return Ok(None) };
    let checkpoint = codec::decode(&stored.payload).context("the partition's checkpoint")?;
    Ok(Some((checkpoint, stored.sequence)))
}

/// Makes this process the owner: from now on the checkpoints of an earlier one are refused.
pub(crate) async fn raise_epoch(owner: &mut Owner) -> anyhow::Result<Progress> {
    loop {
        let (before, revision) = read_checkpoint(owner).await?.unwrap_or_default();
        let raised = Checkpoint { epoch: Epoch::next(before.epoch), ..before };
        match write_checkpoint(owner, &raised, revision).await {
            Ok(revision) => {
                owner.epoch = raised.epoch;
                owner.settled = raised.settled;
                return Ok(Progress::new(raised, revision));
            }
            // Someone else was faster, or it may have been written: read again.
            Err(WriteError::Refused | WriteError::Unknown) => {
                tokio::time::sleep(Duration::from_millis(20)).await
            }
            Err(error @ WriteError::TooLarge) => return Err(error.into()),
        }
    }
}

/// Reads all leases of the partition. Whatever runs is adopted (which fences the owner before out of it, and gives its worker
/// a fresh grace period); effects that may not have been sent are sent.
pub(crate) async fn load(owner: &Owner, asides: &mut Asides) -> anyhow::Result<Table> {
    let mut table = Table::default();
    let filter = subject::bucket_subject(LEASES, &subject::leases_of(owner.partition));
    let stream =
        owner.bus.stream().get_stream_no_info(bucket_stream()).await.context("the leases")?;
    let config = pull::Config {
        deliver_policy: DeliverPolicy::LastPerSubject,
        ack_policy: AckPolicy::None,
        filter_subject: filter,
        inactive_threshold: Duration::from_secs(30),
        memory_storage: true,
        num_replicas: 1,
        ..pull::Config::default()
    };
    let consumer = stream.create_consumer(config).await.context("reading the leases")?;
    let mut left = consumer.cached_info().num_pending;
    let mut adopt = Round::default();
    while left > 0 {
        let mut batch = consumer.batch().max_messages(CHUNK).expires(READ_LIMIT).messages().await?;
        let before = left;
        while let Some(message) = batch.next().await {
            let message =
                message.map_err(|error| anyhow::anyhow!(error)).context("reading the leases")?;
            let info = message.info().map_err(|error| anyhow::anyhow!(error))?;
            left = info.pending;
            if let Some(slot) = slot(owner, &message, info.stream_sequence)
                && !asides.holds(slot.session.sid())
            {
                adopt.adopt(slot.session.sid(), owner.epoch);
                table.put(slot, owner);
            }
            if left == 0 {
                break;
            }
        }
        anyhow::ensure!(left < before, "the leases could not be read");
        adopt.run(owner, &mut table, asides).await?;
        adopt = Round::default();
    }
    // It would expire by itself; this keeps the broker tidy.
    let _ = stream.delete_consumer(&consumer.cached_info().name).await;
    Ok(table)
}

/// A lease that this owner must know of: something runs, or something may have to be sent.
fn slot(owner: &Owner, message: &async_nats::Message, revision: u64) -> Option<Slot> {
    let unsettled = revision > owner.settled;
    match codec::decode::<Lease>(&message.payload) {
        Ok(mut lease) => {
            if !unsettled {
                lease.effects.clear();
            }
            let session = Session::restore(lease, owner.now());
            let needed = !session.is_idle() || !session.lease.effects.is_empty();
            needed.then(|| Slot::new(session, revision))
        }
        Err(_) if message.payload.is_empty() => None,
        Err(error) => {
            owner.metrics.poison.inc();
            tracing::error!(subject = %message.subject, %error, "a lease cannot be read; it is left as it is, and what comes for its session waits until it is mended or deleted");
            None
        }
    }
}

/// The name of the stream under the bucket of leases.
pub(crate) fn bucket_stream() -> String {
    format!("KV_{LEASES}")
}
