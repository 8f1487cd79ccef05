//! What a bucket holds now, read without a consumer (batched direct get, NATS 2.11): whoever may make a consumer may also choose
//! where its messages go, which is more than reading.

use std::collections::BTreeMap;
use std::time::Duration;

use async_nats::HeaderMap;
use futures_util::StreamExt;
use serde_json::json;

use crate::bus::{Bus, ReadError, Stored};

/// How many messages are asked for at once.
const BATCH: u32 = 256;
/// How long one may wait for the next part of an answer.
const SILENCE: Duration = Duration::from_secs(2);
/// The status that ends an answer.
const END: u16 = 204;
/// The status of "there is none".
const NONE: u16 = 404;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// An answer that is none.
#[derive(Debug, thiserror::Error)]
#[error("the broker answered with status {0}")]
struct Unexpected(u16);

/// The last message of each subject that the filter matches, by subject, from any replica.
///
/// # Errors
/// When the broker does not answer, or not completely.
pub(crate) async fn all(
    bus: &Bus,
    stream: &str,
    filter: &str,
) -> Result<BTreeMap<String, Stored>, ReadError> {
    let mut found = BTreeMap::new();
    let mut next = 1;
    loop {
        let read = batch(bus, stream, filter, next, &mut found).await;
        match read.map_err(|source| ReadError { stream: stream.to_owned(), source })? {
            Some(last) => next = last + 1,
            None => return Ok(found),
        }
    }
}

/// Reads one batch; the answer is the last sequence in it, if there is more behind it.
async fn batch(
    bus: &Bus,
    stream: &str,
    filter: &str,
    next: u64,
    found: &mut BTreeMap<String, Stored>,
) -> Result<Option<u64>, Failure> {
    let client = bus.client();
    let inbox = client.new_inbox();
    let mut answers = client.subscribe(inbox.clone()).await?;
    let request = json!({ "seq": next, "next_by_subj": filter, "batch": BATCH }).to_string();
    client
        .publish_with_reply(format!("$JS.API.DIRECT.GET.{stream}"), inbox, request.into())
        .await?;
    let mut last = None;
    loop {
        let answer = tokio::time::timeout(SILENCE, answers.next()).await?;
        let answer = answer.ok_or("the connection is closed")?;
        let headers = answer.headers.unwrap_or_default();
        match answer.status.map(|status| status.as_u16()) {
            Some(NONE) => return Ok(None),
            Some(END) => {
                let pending = header(&headers, "Nats-Num-Pending").unwrap_or("0");
                return Ok(last.filter(|_| pending != "0"));
            }
            Some(status) if status >= 300 => return Err(Unexpected(status).into()),
            Some(_) | None => {}
        }
        let sequence = header(&headers, "Nats-Sequence").ok_or("an answer without a place")?;
        let subject = header(&headers, "Nats-Subject").ok_or("an answer without a subject")?;
        let (sequence, subject) = (sequence.parse()?, subject.to_owned());
        last = Some(sequence);
        found.insert(subject, Stored { sequence, headers, payload: answer.payload });
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).map(async_nats::HeaderValue::as_str)
}
