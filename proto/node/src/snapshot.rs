//! What a stream holds now, in one request and without a consumer: the last message of each subject (batched direct get, NATS
//! 2.11).

use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use serde_json::json;

use crate::bus::{Bus, ReadError};

/// How many subjects the broker answers for at once; above that it refuses.
const MOST: u32 = 1024;
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
/// When the broker does not answer, or there are more than 1024.
pub(crate) async fn last_of_each(
    bus: &Bus,
    stream: &str,
    filter: &str,
) -> Result<Vec<(String, Bytes)>, ReadError> {
    let read = read(bus, stream, filter).await;
    read.map_err(|source| ReadError { stream: stream.to_owned(), source })
}

async fn read(bus: &Bus, stream: &str, filter: &str) -> Result<Vec<(String, Bytes)>, Failure> {
    let client = bus.client();
    let inbox = client.new_inbox();
    let mut answers = client.subscribe(inbox.clone()).await?;
    let request = json!({ "multi_last": [filter], "batch": MOST }).to_string();
    client
        .publish_with_reply(format!("$JS.API.DIRECT.GET.{stream}"), inbox, request.into())
        .await?;
    let mut found = Vec::new();
    loop {
        let answer = tokio::time::timeout(SILENCE, answers.next()).await?;
        let answer = answer.ok_or("the connection is closed")?;
        match answer.status.map(|status| status.as_u16()) {
            Some(END | NONE) => return Ok(found),
            Some(status) if status >= 300 => return Err(Unexpected(status).into()),
            Some(_) | None => {}
        }
        let headers = answer.headers.as_ref();
        if let Some(subject) = headers.and_then(|headers| headers.get("Nats-Subject")) {
            found.push((subject.as_str().to_owned(), answer.payload));
        }
    }
}
