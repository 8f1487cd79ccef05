//! Reading a conversation from its stream: many messages with each request.

use std::time::Duration;

use async_nats::{HeaderMap, StatusCode};
use futures_util::StreamExt;
use node::bus::{Bus, ReadError};
use proto::id::Sid;
use proto::subject;
use proto::topology::TRANSCRIPT;
use serde_json::json;

/// How many messages are asked for at once.
const BATCH: usize = 256;
/// How many messages of a session's past are looked at.
const PAST_MAX: usize = 20_000;
/// How long the broker may be silent.
const SILENCE: Duration = Duration::from_secs(2);
/// The end of a batch.
const END_OF_BATCH: u16 = 204;

#[derive(Debug, thiserror::Error)]
#[error("unexpected answer with status {0}")]
struct Unexpected(u16);

#[derive(Debug, thiserror::Error)]
#[error("the answer stopped in the middle")]
struct Silent;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The messages of a subject after a sequence, each with its own.
///
/// # Errors
/// When the broker does not answer, or not completely.
pub(super) async fn after(
    bus: &Bus,
    stream: &str,
    subject: &str,
    sequence: u64,
) -> Result<Vec<(u64, bytes::Bytes)>, ReadError> {
    let mut found = Vec::new();
    let mut next = sequence + 1;
    loop {
        let more = batch(bus, stream, subject, next, &mut found)
            .await
            .map_err(|source| ReadError { stream: stream.to_owned(), source })?;
        if !more {
            return Ok(found);
        }
        next = found.last().map_or(next, |(sequence, _)| sequence + 1);
    }
}

/// What was stored of all conversations of a session, oldest first; only so much of it.
///
/// # Errors
/// When the broker does not answer, or not completely.
pub(crate) async fn past(bus: &Bus, session: Sid) -> Result<Vec<bytes::Bytes>, ReadError> {
    let subject = subject::transcripts_of(session);
    let mut found = Vec::new();
    let mut next = 1;
    while found.len() < PAST_MAX
        && batch(bus, TRANSCRIPT, &subject, next, &mut found)
            .await
            .map_err(|source| ReadError { stream: TRANSCRIPT.to_owned(), source })?
    {
        next = found.last().map_or(next, |(sequence, _)| sequence + 1);
    }
    Ok(found.into_iter().map(|(_, payload)| payload).collect())
}

/// Reads one batch; the answer says whether there is more.
async fn batch(
    bus: &Bus,
    stream: &str,
    subject: &str,
    next: u64,
    found: &mut Vec<(u64, bytes::Bytes)>,
) -> Result<bool, Failure> {
    let client = bus.client();
    let inbox = client.new_inbox();
    let mut answers = client.subscribe(inbox.clone()).await?;
    let request = json!({ "seq": next, "next_by_subj": subject, "batch": BATCH }).to_string();
    client
        .publish_with_reply(format!("$JS.API.DIRECT.GET.{stream}"), inbox, request.into())
        .await?;
    let before = found.len();
    loop {
        let answer = tokio::time::timeout(SILENCE, answers.next()).await.map_err(|_| Silent)?;
        let answer = answer.ok_or(Silent)?;
        match answer.status.map(|status: StatusCode| status.as_u16()) {
            None | Some(200) => {
                let sequence = number(answer.headers.as_ref(), "Nats-Sequence").ok_or(Silent)?;
                found.push((sequence, answer.payload));
            }
            Some(END_OF_BATCH) => {
                let pending = number(answer.headers.as_ref(), "Nats-Num-Pending").unwrap_or(0);
                return Ok(pending > 0 && found.len() > before);
            }
            Some(404) => return Ok(false),
            Some(status) => return Err(Unexpected(status).into()),
        }
    }
}

fn number(headers: Option<&HeaderMap>, name: &str) -> Option<u64> {
    headers?.get(name)?.as_str().parse().ok()
}
