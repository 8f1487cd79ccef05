//! The ledger: what was tried and what the platform answered, by outbound id, in the `deliveries` bucket. A thing that is
//! produced again (a scheduler took over, an acknowledgement was lost) is not delivered again, and what was begun by a process
//! that died is gone on with, not begun again.

use std::time::Duration;

use node::bus::{Bus, ReadError};
use node::clock;
use proto::codec;
use proto::delivery::{End, Line};
use proto::id::OutboundId;
use proto::outbound::Outbound;
use proto::subject;
use proto::topology::DELIVERIES;

/// How long a line is tried to be written.
const WRITE: Duration = Duration::from_secs(5);

/// The ledger. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Ledger(Bus);

impl Ledger {
    pub(crate) const fn new(bus: Bus) -> Self {
        Self(bus)
    }

    /// The line of an outbound thing.
    pub(crate) async fn line(&self, id: &OutboundId) -> Result<Option<Line>, ReadError> {
        let stored = self.0.last(&stream(), &subject_of(id)).await?;
        let line = stored.filter(node::bus::Stored::is_value).map(|stored| {
            // A line that cannot be read was written by a newer version: that there is one is what counts.
            codec::decode(&stored.payload)
                .unwrap_or(Line { end: Some(End::Delivered), ..Line::default() })
        });
        Ok(line)
    }

    /// Writes a line. False if the broker did not take it in time: the only risk is then a repetition.
    pub(crate) async fn write(&self, id: &OutboundId, line: &Line) -> bool {
        // The write is not deduplicated by the stream: its id must differ from that of an earlier line for the same thing.
        let unique = format!("{id}-{}", hex::encode(node::process::random::<8>()));
        let payload = codec::encode(line).into();
        let written = self.0.write_until(&subject_of(id), payload, &unique, WRITE).await;
        if let Err(error) = &written {
            tracing::warn!(%error, %id, "a delivery was not recorded; it may be repeated");
        }
        written.is_ok()
    }

    /// Writes that an outbound thing was delivered, or why it is dead.
    pub(crate) async fn end(&self, outbound: &Outbound, tries: u32, dead: Option<String>) {
        let line = Line {
            end: Some(if dead.is_some() { End::Dead } else { End::Delivered }),
            tries,
            outbound: dead.is_some().then(|| outbound.clone()),
            why: dead,
            ..begun(outbound)
        };
        self.write(&outbound.id, &line).await;
    }
}

/// The line of something that is begun now.
pub(crate) fn begun(outbound: &Outbound) -> Line {
    Line {
        platform: outbound.address.platform.clone(),
        account: outbound.address.account.clone(),
        at_ms: clock::wall_ms(),
        ..Line::default()
    }
}

fn stream() -> String {
    format!("KV_{DELIVERIES}")
}

fn subject_of(id: &OutboundId) -> String {
    subject::bucket_subject(DELIVERIES, &subject::delivery_key(id))
}
