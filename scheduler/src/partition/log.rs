//! The log of a partition as a stream of entries, in order and without gaps whatever happens to the broker.

use std::sync::Arc;
use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::jetstream::consumer::{DeliverPolicy, pull};
use futures_util::StreamExt;
use node::bus::Bus;
use proto::codec;
use proto::id::{Partition, Seq, Sid};
use proto::inbox::Inbox;
use proto::subject;
use proto::topology::INBOX;
use tokio::sync::mpsc;

use super::Owner;
use crate::metrics::Metrics;

/// How many entries may wait for the loop.
const AHEAD: usize = 2048;
/// How long a broken reader waits before it is rebuilt.
const PAUSE: Duration = Duration::from_millis(50);

/// One entry of the log.
pub(crate) struct Entry {
    pub(crate) seq: Seq,
    pub(crate) sid: Sid,
    /// What it says; an entry that cannot be read keeps its place and says nothing.
    pub(crate) input: Option<Inbox>,
    pub(crate) headers: Option<HeaderMap>,
}

/// Reads the log after `cursor` until the receiver is dropped. The reader is rebuilt from its own position on every new
/// connection: the client's own recovery takes many seconds.
pub(crate) fn follow(owner: &Owner, cursor: Seq) -> mpsc::Receiver<Entry> {
    let (sender, receiver) = mpsc::channel(AHEAD);
    let (bus, partition, metrics) =
        (owner.bus.clone(), owner.partition, Arc::clone(&owner.metrics));
    tokio::spawn(async move {
        let mut position = cursor;
        let mut connects = bus.connects();
        while !sender.is_closed() {
            connects.mark_unchanged();
            tokio::select! {
                outcome = read(&bus, partition, &mut position, &sender, &metrics) => {
                    if let Err(error) = outcome {
                        tracing::debug!(%partition, error = format!("{error:#}"), "reading the log again");
                    }
                }
                _ = connects.changed() => {}
                () = sender.closed() => return,
            }
            tokio::time::sleep(PAUSE).await;
        }
    });
    receiver
}

async fn read(
    bus: &Bus,
    partition: Partition,
    position: &mut Seq,
    sender: &mpsc::Sender<Entry>,
    metrics: &Metrics,
) -> anyhow::Result<()> {
    let stream = bus.stream().get_stream_no_info(INBOX).await?;
    let start = match position.get() {
        0 => DeliverPolicy::All,
        last => DeliverPolicy::ByStartSequence { start_sequence: last + 1 },
    };
    let config = pull::OrderedConfig {
        filter_subject: subject::inbox_of(partition),
        deliver_policy: start,
        ..pull::OrderedConfig::default()
    };
    let mut messages = stream.create_consumer(config).await?.messages().await?;
    while let Some(message) = messages.next().await {
        let message = message?;
        // Splitting takes the reply subject away, and with it the place in the stream.
        let info = message.info().map_err(|error| anyhow::anyhow!(error))?;
        let seq = Seq::new(info.stream_sequence);
        metrics.log_lag.set(i64::try_from(info.pending).unwrap_or(i64::MAX));
        let (message, _) = message.split();
        if let Some(entry) = entry(seq, message, metrics)
            && sender.send(entry).await.is_err()
        {
            return Ok(());
        }
        *position = seq;
    }
    Ok(())
}

fn entry(seq: Seq, message: async_nats::Message, metrics: &Metrics) -> Option<Entry> {
    let poison = |error: &dyn std::fmt::Display| {
        metrics.poison.inc();
        tracing::error!(%seq, subject = %message.subject, %error, "an input cannot be read; it stays in the log, and the next ones go on");
    };
    let sid = match subject::inbox_sid(&message.subject) {
        Ok(sid) => sid,
        Err(error) => {
            poison(&error);
            return None;
        }
    };
    let input = match codec::decode::<Inbox>(&message.payload) {
        Ok(input) if key_matches(&input, sid) => Some(input),
        Ok(_) => {
            poison(&"its session is not the subject's");
            None
        }
        Err(error) => {
            poison(&error);
            None
        }
    };
    Some(Entry { seq, sid, input, headers: message.headers })
}

fn key_matches(input: &Inbox, sid: Sid) -> bool {
    match input {
        Inbox::Message(event) | Inbox::Edit(event) => event.session.sid() == sid,
        Inbox::Report(report) => report.of.sid == sid,
        Inbox::Hangup { session, .. } | Inbox::Withdrawal { session, .. } => session.sid() == sid,
    }
}
