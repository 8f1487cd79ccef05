//! The log of a partition as a stream of entries, in order and without gaps whatever happens to the broker.

use std::sync::Arc;
use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::jetstream::consumer::{DeliverPolicy, pull};
use futures_util::StreamExt;
use node::bus::Bus;
use prometheus::IntGauge;
use proto::codec;
use proto::id::{Partition, Seq, Sid};
use proto::inbox::Inbox;
use proto::subject;
use proto::topology::INBOX;
use tokio::sync::{mpsc, watch};

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
    let reader = Reader {
        bus: owner.bus.clone(),
        partition: owner.partition,
        lag: Lag { of: owner.metrics.log_lag.clone(), now: 0 },
        metrics: Arc::clone(&owner.metrics),
        reading: owner.reading.clone(),
        position: cursor,
        sender,
    };
    tokio::spawn(reader.run());
    receiver
}

struct Reader {
    bus: Bus,
    partition: Partition,
    metrics: Arc<Metrics>,
    lag: Lag,
    /// Whether the log can be read at the moment, for the readiness of the process.
    reading: watch::Sender<bool>,
    position: Seq,
    sender: mpsc::Sender<Entry>,
}

impl Reader {
    async fn run(mut self) {
        let mut connects = self.bus.connects();
        let sender = self.sender.clone();
        while !sender.is_closed() {
            connects.mark_unchanged();
            tokio::select! {
                outcome = self.read() => {
                    self.reading.send_replace(false);
                    if let Err(error) = outcome {
                        let error = format!("{error:#}");
                        tracing::debug!(partition = %self.partition, error, "reading the log again");
                    }
                }
                _ = connects.changed() => {}
                () = sender.closed() => return,
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn read(&mut self) -> anyhow::Result<()> {
        let stream = self.bus.stream().get_stream_no_info(INBOX).await?;
        let start = match self.position.get() {
            0 => DeliverPolicy::All,
            last => DeliverPolicy::ByStartSequence { start_sequence: last + 1 },
        };
        let config = pull::OrderedConfig {
            filter_subject: subject::inbox_of(self.partition),
            deliver_policy: start,
            ..pull::OrderedConfig::default()
        };
        let mut messages = stream.create_consumer(config).await?.messages().await?;
        self.reading.send_replace(true);
        while let Some(message) = messages.next().await {
            let message = message?;
            // Splitting takes the reply subject away, and with it the place in the stream.
            let info = message.info().map_err(|error| anyhow::anyhow!(error))?;
            let (seq, pending) = (Seq::new(info.stream_sequence), info.pending);
            self.lag.is(pending);
            let (message, _) = message.split();
            if let Some(entry) = entry(seq, &message.subject, &message.payload, &self.metrics)
                .map(|entry| Entry { headers: message.headers, ..entry })
                && self.sender.send(entry).await.is_err()
            {
                return Ok(());
            }
            self.position = seq;
        }
        Ok(())
    }
}

/// This partition's part of the lag of all.
struct Lag {
    of: IntGauge,
    now: i64,
}

impl Lag {
    fn is(&mut self, pending: u64) {
        let pending = i64::try_from(pending).unwrap_or(i64::MAX);
        self.of.add(pending - self.now);
        self.now = pending;
    }
}

impl Drop for Lag {
    fn drop(&mut self) {
        self.of.sub(self.now);
    }
}

/// What one session's part of the log holds from `first` to `last`, in order.
pub(crate) async fn part(
    owner: &Owner,
    sid: Sid,
    first: Seq,
    last: Seq,
) -> anyhow::Result<Vec<Entry>> {
    let subject = subject::inbox(owner.partition, sid);
    let (mut entries, mut at) = (Vec::new(), first.get());
    while at <= last.get()
        && let Some(stored) = owner.bus.first_from(INBOX, &subject, at).await?
        && stored.sequence <= last.get()
    {
        at = stored.sequence + 1;
        let seq = Seq::new(stored.sequence);
        let read = entry(seq, &subject, &stored.payload, &owner.metrics);
        entries.extend(read.map(|entry| Entry { headers: Some(stored.headers), ..entry }));
    }
    Ok(entries)
}

fn entry(seq: Seq, subject: &str, payload: &[u8], metrics: &Metrics) -> Option<Entry> {
    let poison = |error: &dyn std::fmt::Display| {
        metrics.poison.inc();
        tracing::error!(%seq, %subject, %error, "an input cannot be read; it stays in the log, and the next ones go on");
    };
    let sid = match subject::inbox_sid(subject) {
        Ok(sid) => sid,
        Err(error) => {
            poison(&error);
            return None;
        }
    };
    let input = match codec::decode::<Inbox>(payload) {
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
    Some(Entry { seq, sid, input, headers: None })
}

fn key_matches(input: &Inbox, sid: Sid) -> bool {
    match input {
        Inbox::Message(event) | Inbox::Edit(event) | Inbox::Refused { event, .. } => {
            event.session.sid() == sid
        }
        Inbox::Report(report) => report.of.sid == sid,
        Inbox::Hangup { session, .. } | Inbox::Withdrawal { session, .. } => session.sid() == sid,
    }
}
