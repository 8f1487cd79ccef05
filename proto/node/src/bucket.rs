//! Buckets as we use them: one record read from the leader, all records under a filter, and a write by compare-and-set whose
//! lost answer is read back.

use std::time::Duration;

use bytes::Bytes;
use proto::codec;
use proto::subject;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::bus::{Bus, ReadError, Stored, Write, WriteError};
use crate::snapshot;

/// A record as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found<T> {
    /// There is none.
    Nothing,
    /// This one.
    Record(T),
    /// One that this version cannot read. It must not be overwritten.
    Unreadable,
}

impl<T> Found<T> {
    /// The record, if there is one that can be read.
    pub fn record(self) -> Option<T> {
        match self {
            Self::Record(record) => Some(record),
            Self::Nothing | Self::Unreadable => None,
        }
    }
}

/// A write that did not happen, as far as is known.
#[derive(Debug, thiserror::Error)]
pub enum PutError {
    /// Someone else wrote first.
    #[error("someone else wrote at the same time")]
    Overtaken,
    /// The broker does not answer, or takes nothing so large.
    #[error("the broker did not take a record of {bucket}")]
    Unavailable {
        /// The bucket.
        bucket: &'static str,
        /// What went wrong.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// Reads a record and the revision of whatever stands under its key, 0 for nothing at all.
///
/// # Errors
/// When the broker does not answer.
pub async fn read<T: DeserializeOwned>(
    bus: &Bus,
    bucket: &'static str,
    key: &str,
) -> Result<(Found<T>, u64), ReadError> {
    let stored = bus.last(&stream(bucket), &subject::bucket_subject(bucket, key)).await?;
    Ok(stored.map_or((Found::Nothing, 0), |stored| (record(bucket, key, &stored), stored.sequence)))
}

/// Writes a record if the revision is still the last one; it is forgotten after `ttl`, if there is one. Returns its revision.
///
/// # Errors
/// When someone else wrote first, or the broker does not say whether it was stored.
pub async fn put<T: Serialize>(
    bus: &Bus,
    bucket: &'static str,
    key: &str,
    record: &T,
    revision: u64,
    ttl: Option<Duration>,
) -> Result<u64, PutError> {
    write(bus, bucket, key, codec::encode(record).into(), revision, ttl).await
}

/// Takes a record away if the revision is still the last one. Of two who try it, one succeeds.
///
/// # Errors
/// When someone else wrote first, or the broker does not say whether it was stored.
pub async fn take(
    bus: &Bus,
    bucket: &'static str,
    key: &str,
    revision: u64,
) -> Result<(), PutError> {
    // An empty value is nothing, and it need not stay for long.
    let ttl = Some(Duration::from_secs(60));
    write(bus, bucket, key, Bytes::new(), revision, ttl).await.map(drop)
}

async fn write(
    bus: &Bus,
    bucket: &'static str,
    key: &str,
    payload: Bytes,
    revision: u64,
    ttl: Option<Duration>,
) -> Result<u64, PutError> {
    let subject = subject::bucket_subject(bucket, key);
    let write = Write { expect: Some(revision), ttl, ..Write::default() };
    match bus.write(subject.clone(), payload.clone(), write).await {
        Ok(written) => Ok(written.sequence),
        Err(WriteError::Refused) => Err(PutError::Overtaken),
        Err(error @ WriteError::TooLarge) => {
            Err(PutError::Unavailable { bucket, source: error.into() })
        }
        Err(error @ WriteError::Unknown) => {
            let stored = bus.last(&stream(bucket), &subject).await;
            let stored = stored.map_err(|e| PutError::Unavailable { bucket, source: e.into() })?;
            match stored {
                Some(stored) if stored.sequence > revision && stored.payload == payload => {
                    Ok(stored.sequence)
                }
                Some(stored) if stored.sequence > revision => Err(PutError::Overtaken),
                Some(_) | None => Err(PutError::Unavailable { bucket, source: error.into() }),
            }
        }
    }
}

/// One record of a bucket.
#[derive(Clone, Debug)]
pub struct Entry<T> {
    /// Its key.
    pub key: String,
    /// Its revision.
    pub revision: u64,
    /// What it says.
    pub record: T,
}

/// All records whose keys fit a filter. What cannot be read is left out and logged.
///
/// # Errors
/// When the broker does not answer.
pub async fn all<T: DeserializeOwned>(
    bus: &Bus,
    bucket: &'static str,
    filter: &str,
) -> Result<Vec<Entry<T>>, ReadError> {
    let stored =
        snapshot::all(bus, &stream(bucket), &subject::bucket_subject(bucket, filter)).await?;
    let entry = |(subject, stored): (String, Stored)| {
        let key = subject::bucket_key(bucket, &subject)?.to_owned();
        let record = record(bucket, &key, &stored).record()?;
        Some(Entry { key, revision: stored.sequence, record })
    };
    Ok(stored.into_iter().filter_map(entry).collect())
}

fn record<T: DeserializeOwned>(bucket: &str, key: &str, stored: &Stored) -> Found<T> {
    if !stored.is_value() {
        return Found::Nothing;
    }
    match codec::decode(&stored.payload) {
        Ok(record) => Found::Record(record),
        Err(error) => {
            tracing::error!(%error, bucket, key, "a record cannot be read; it is left as it is");
            Found::Unreadable
        }
    }
}

fn stream(bucket: &str) -> String {
    format!("KV_{bucket}")
}
