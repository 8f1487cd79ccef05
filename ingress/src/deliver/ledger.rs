//! The ledger: what was delivered, by outbound id, in the `deliveries` bucket, so that a thing that is produced again (a
//! scheduler took over, an acknowledgement was lost) is not delivered again.

use std::time::Duration;

use node::bus::{Bus, ReadError};
use node::clock;
use proto::codec;
use proto::id::OutboundId;
use proto::outbound::Outbound;
use proto::subject;
use proto::topology::DELIVERIES;
use serde::{Deserialize, Serialize};

/// How long a line is tried to be written. Without it the only risk is a repetition, so nothing waits longer.
const WRITE: Duration = Duration::from_secs(5);

/// How a delivery ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum End {
    /// The platform has it.
    Delivered,
    /// Given up.
    Dead,
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Line {
    pub(crate) end: End,
    pub(crate) platform: String,
    pub(crate) account: String,
    /// When, milliseconds since 1970; for people to read.
    pub(crate) at_ms: u64,
    /// How often it was tried by the process that wrote this.
    pub(crate) tries: u32,
    /// Why it is dead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) why: Option<String>,
    /// What is dead, so that it can be looked at and sent again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) outbound: Option<Outbound>,
}

/// How an outbound thing ended, if it has.
pub(crate) async fn look_up(bus: &Bus, id: &OutboundId) -> Result<Option<End>, ReadError> {
    let stored = bus.last(&stream(), &subject_of(id)).await?;
    let line =
        stored.filter(node::bus::Stored::is_value).map(|s| codec::decode::<Line>(&s.payload));
    // A line that cannot be read was written by a newer version: that there is one is what counts.
    Ok(line.map(|line| line.map_or(End::Delivered, |line| line.end)))
}

/// Writes that an outbound thing was delivered, or why it is dead.
pub(crate) async fn record(bus: &Bus, outbound: &Outbound, tries: u32, dead: Option<String>) {
    let line = Line {
        end: if dead.is_some() { End::Dead } else { End::Delivered },
        platform: outbound.address.platform.clone(),
        account: outbound.address.account.clone(),
        at_ms: clock::wall_ms(),
        tries,
        outbound: dead.is_some().then(|| outbound.clone()),
        why: dead,
    };
    // The write is not deduplicated by the stream: its id must differ from that of an earlier line for the same thing.
    let id = format!("{}-{}", outbound.id, hex::encode(node::process::random::<8>()));
    let written =
        bus.write_until(&subject_of(&outbound.id), codec::encode(&line).into(), &id, WRITE).await;
    if let Err(error) = written {
        tracing::warn!(%error, id = %outbound.id, "a delivery was not recorded; it may be repeated");
    }
}

fn stream() -> String {
    format!("KV_{DELIVERIES}")
}

fn subject_of(id: &OutboundId) -> String {
    subject::bucket_subject(DELIVERIES, &subject::token(&id.to_string()))
}
