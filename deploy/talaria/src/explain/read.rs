//! Reading receipts: everything of the last days, in order, with progress for whoever waits.

use std::time::{Duration, SystemTime};

use anyhow::Context;
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, pull};
use futures_util::StreamExt;
use node::bus::Bus;
use proto::codec;
use proto::receipt::Receipt;
use proto::topology::EVENTS;

use crate::console;

/// How far back is looked.
pub(super) const DAYS: u64 = 7;
/// How many receipts are asked for at once.
const CHUNK: usize = 1024;
/// How many receipts are read between two lines of progress.
const PROGRESS: u64 = 100_000;
/// How long one chunk may take.
const READ_LIMIT: Duration = Duration::from_secs(5);

/// Calls `each` with every receipt of a subject: its own subject, when it was stored, and what it says.
pub(super) async fn receipts(
    bus: &Bus,
    filter: &str,
    mut each: impl FnMut(&str, SystemTime, Receipt),
) -> anyhow::Result<()> {
    let start = SystemTime::now() - Duration::from_secs(DAYS * 24 * 3600);
    let stream = bus.stream().get_stream(EVENTS).await.context("there are no receipts here")?;
    let config = pull::Config {
        deliver_policy: DeliverPolicy::ByStartTime { start_time: start.into() },
        ack_policy: AckPolicy::None,
        filter_subject: filter.to_owned(),
        inactive_threshold: Duration::from_secs(30),
        memory_storage: true,
        num_replicas: 1,
        ..pull::Config::default()
    };
    let consumer = stream.create_consumer(config).await.context("reading the receipts")?;
    let all = consumer.cached_info().num_pending;
    let (mut left, mut noted) = (all, 0);
    while left > 0 {
        let mut batch = consumer.batch().max_messages(CHUNK).expires(READ_LIMIT).messages().await?;
        let before = left;
        while let Some(message) = batch.next().await {
            let message = message.map_err(anyhow::Error::from_boxed)?;
            let info = message.info().map_err(anyhow::Error::from_boxed)?;
            left = info.pending;
            // What cannot be read is of another version, and explains nothing here.
            if let Ok(receipt) = codec::decode(&message.payload) {
                each(&message.subject, info.published.into(), receipt);
            }
            if left == 0 {
                break;
            }
        }
        anyhow::ensure!(left < before, "the receipts could not be read to the end");
        let read = all.saturating_sub(left);
        if read / PROGRESS > noted {
            noted = read / PROGRESS;
            console::note(&format!("{read} of {all} receipts …"));
        }
    }
    // It would expire by itself.
    let _ = stream.delete_consumer(&consumer.cached_info().name).await;
    Ok(())
}
