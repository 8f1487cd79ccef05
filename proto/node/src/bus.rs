//! The bus: one connection to NATS, and the few ways in which we use it. Three outcomes exist for a durable write: done,
//! refused, and unknown, which the caller resolves by reading back or by writing again under the same id.

use std::time::Duration;

use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::{DirectGetErrorKind, RawMessageErrorKind};
use async_nats::jetstream::{self, context::PublishAckFuture};
use async_nats::{Client, Event, HeaderMap};
use bytes::Bytes;
use proto::codec;
use proto::id::Partition;
use proto::subject;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use crate::connect;
pub use crate::connect::ConnectError;
use crate::settings;
use crate::trace;

/// How long one try at a durable write or a request may take.
const TRY: Duration = Duration::from_secs(2);
/// The longest pause between two tries.
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// The header of a message's time to live, in whole seconds.
const TTL_HEADER: &str = "Nats-TTL";
/// The header of a volatile message that says since when what caused it was waiting, in milliseconds since 1970.
const SINCE_HEADER: &str = "Talaria-Since";
/// The header by which the broker says why it put an empty marker in place of an expired value.
const MARKER_HEADER: &str = "Nats-Marker-Reason";

/// A durable write that did not happen, as far as is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// Someone else wrote first: read again and decide again.
    #[error("refused: the expected revision is not the last one")]
    Refused,
    /// It may have happened: read back before deciding.
    #[error("unknown: no acknowledgement")]
    Unknown,
    /// It is larger than the broker takes.
    #[error("refused: larger than the broker takes")]
    TooLarge,
}

impl From<PublishError> for WriteError {
    fn from(error: PublishError) -> Self {
        match error.kind() {
            PublishErrorKind::WrongLastSequence | PublishErrorKind::WrongLastMessageId => {
                Self::Refused
            }
            PublishErrorKind::MaxPayloadExceeded => Self::TooLarge,
            // 10164, "something on that subject is in flight", arrives as `Other`: reading back tells who won.
            PublishErrorKind::StreamNotFound
            | PublishErrorKind::TimedOut
            | PublishErrorKind::BrokenPipe
            | PublishErrorKind::MaxAckPending
            | PublishErrorKind::Other => Self::Unknown,
        }
    }
}

/// A read that gave no answer; what was asked for may or may not exist.
#[derive(Debug, thiserror::Error)]
#[error("the broker did not answer a read from {stream}")]
pub struct ReadError {
    /// The stream.
    pub stream: String,
    /// What went wrong.
    #[source]
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

/// A request that gave no usable answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// No one listens, or the answer did not come in time.
    #[error("no answer")]
    Silent(#[from] async_nats::RequestError),
    /// The answer is not of the expected form.
    #[error("unreadable answer")]
    Unreadable(#[from] codec::DecodeError),
}

/// Since when what caused a volatile message was waiting, in milliseconds since 1970, if it says so.
#[must_use]
pub fn since(headers: Option<&HeaderMap>) -> Option<u64> {
    headers?.get(SINCE_HEADER)?.as_str().parse().ok()
}

/// A message as it is stored.
#[derive(Clone, Debug)]
pub struct Stored {
    /// Its sequence in the stream: the revision of a key.
    pub sequence: u64,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its content; empty where the broker left a marker in place of an expired value.
    pub payload: Bytes,
}

impl Stored {
    /// Whether a value stands here, rather than a mark that one was deleted or has expired.
    #[must_use]
    pub fn is_value(&self) -> bool {
        !self.payload.is_empty() && self.headers.get(MARKER_HEADER).is_none()
    }
}

/// What a durable write expects and asks for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Write<'a> {
    /// The id by which a repetition is recognised.
    pub id: Option<&'a str>,
    /// The sequence that must be the last of the subject; 0 for none.
    pub expect: Option<u64>,
    /// After what time it may be forgotten; whole seconds.
    pub ttl: Option<Duration>,
}

/// A write that the broker acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Its sequence.
    pub sequence: u64,
    /// Whether the broker already had it.
    pub duplicate: bool,
}

/// A connection. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Bus {
    client: Client,
    stream: jetstream::Context,
    connects: watch::Receiver<u64>,
    partitions: u16,
}

impl Bus {
    /// Connects and checks the server's version. `name` is how the server's tools show this process, and what the answers to
    /// its requests begin with.
    ///
    /// # Errors
    /// When the broker does not answer, refuses the user, or is too old.
    pub async fn connect(settings: &settings::Nats, name: &str) -> Result<Self, ConnectError> {
        Self::connect_as(settings, name, name).await
    }

    /// The same for one of several processes of a service, which the server's tools show as `shown`.
    ///
    /// # Errors
    /// When the broker does not answer, refuses the user, or is too old.
    pub async fn connect_as(
        settings: &settings::Nats,
        service: &str,
        shown: &str,
    ) -> Result<Self, ConnectError> {
        let (sender, connects) = watch::channel(0_u64);
        let options = connect::options(settings)
            .await?
            .name(shown)
            .custom_inbox_prefix(subject::reply_prefix(service))
            .request_timeout(Some(TRY))
            .connection_timeout(TRY)
            .max_reconnects(None)
            .subscription_capacity(256 * 1024)
            .reconnect_delay_callback(|tries| {
                Duration::from_millis(if tries < 2 { 20 } else { 200 })
            })
            .event_callback(move |event| {
                observe(&event, &sender);
                std::future::ready(())
            });
        let client = connect::connect(options, &settings.url).await?;
        let stream = jetstream::ContextBuilder::new()
            .timeout(TRY)
            .max_ack_inflight(8192)
            .build(client.clone());
        Ok(Self { client, stream, connects, partitions: 0 })
    }

    /// The same connection, knowing into how many parts the sessions are divided.
    #[must_use]
    pub const fn with_partitions(mut self, partitions: u16) -> Self {
        self.partitions = partitions;
        self
    }

    /// Into how many parts the sessions are divided.
    #[must_use]
    pub const fn partitions(&self) -> u16 {
        self.partitions
    }

    /// The partition of a session.
    #[must_use]
    pub fn partition_of(&self, sid: proto::id::Sid) -> Partition {
        Partition::of(sid, self.partitions)
    }

    /// The connection itself, for subscriptions and volatile messages.
    #[must_use]
    pub const fn client(&self) -> &Client {
        &self.client
    }

    /// The JetStream interface, for consumers.
    #[must_use]
    pub const fn stream(&self) -> &jetstream::Context {
        &self.stream
    }

    /// Counts the connections made so far. Whatever reads a stream or watches a bucket is rebuilt when this changes.
    #[must_use]
    pub fn connects(&self) -> watch::Receiver<u64> {
        self.connects.clone()
    }

    /// Whether the broker is there at the moment.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.client.connection_state() == async_nats::connection::State::Connected
    }

    /// The largest payload the broker takes, bytes.
    #[must_use]
    pub fn payload_limit(&self) -> usize {
        self.client.max_payload().saturating_sub(4096)
    }

    /// Sends a volatile message. It is gone if no one listens.
    pub async fn tell<T: Serialize>(&self, subject: String, message: &T) {
        self.tell_with(subject, message, HeaderMap::new()).await;
    }

    /// The same, because of something that was accepted at `since_ms` (milliseconds since 1970), which the receiver may want to
    /// measure from.
    pub async fn tell_since<T: Serialize>(&self, subject: String, message: &T, since_ms: u64) {
        let mut headers = HeaderMap::new();
        headers.insert(SINCE_HEADER, since_ms.to_string());
        self.tell_with(subject, message, headers).await;
    }

    async fn tell_with<T: Serialize>(&self, subject: String, message: &T, mut headers: HeaderMap) {
        trace::inject(&mut headers);
        let sent = if headers.is_empty() {
            self.client.publish(subject, codec::encode(message).into()).await
        } else {
            self.client.publish_with_headers(subject, headers, codec::encode(message).into()).await
        };
        if let Err(error) = sent {
            tracing::debug!(%error, "a volatile message was not sent");
        }
    }

    /// Asks and waits for the answer.
    ///
    /// # Errors
    /// When no one answers in time, or with something unreadable.
    pub async fn ask<T: Serialize, R: DeserializeOwned>(
        &self,
        subject: String,
        message: &T,
    ) -> Result<R, AskError> {
        let mut headers = HeaderMap::new();
        trace::inject(&mut headers);
        let answer = self
            .client
            .request_with_headers(subject, headers, codec::encode(message).into())
            .await?;
        Ok(codec::decode(&answer.payload)?)
    }

    /// The same for an answer that may take longer than usual.
    ///
    /// # Errors
    /// When no one answers within `limit`, or with something unreadable.
    pub async fn ask_for<T: Serialize, R: DeserializeOwned>(
        &self,
        subject: String,
        message: &T,
        limit: Duration,
    ) -> Result<R, AskError> {
        let request =
            async_nats::Request::new().payload(codec::encode(message).into()).timeout(Some(limit));
        let answer = self.client.send_request(subject, request).await?;
        Ok(codec::decode(&answer.payload)?)
    }

    /// Writes durably, once.
    ///
    /// # Errors
    /// Refused, unknown or too large; see [`WriteError`].
    pub async fn write(
        &self,
        subject: String,
        payload: Bytes,
        write: Write<'_>,
    ) -> Result<Written, WriteError> {
        self.begin_write(subject, payload, write).await?.finish().await
    }

    /// Sends a durable write without waiting for its acknowledgement, so that many can be in flight in order.
    ///
    /// # Errors
    /// When it cannot even be sent.
    pub async fn begin_write(
        &self,
        subject: String,
        payload: Bytes,
        write: Write<'_>,
    ) -> Result<InFlight, WriteError> {
        let mut headers = HeaderMap::new();
        trace::inject(&mut headers);
        let mut message = PublishMessage::build().payload(payload).headers(headers);
        if let Some(id) = write.id {
            message = message.message_id(id);
        }
        if let Some(sequence) = write.expect {
            message = message.expected_last_subject_sequence(sequence);
        }
        if let Some(ttl) = write.ttl {
            message = message.header(TTL_HEADER, ttl.as_secs().max(1).to_string());
        }
        Ok(InFlight(self.stream.send_publish(subject, message).await?))
    }

    /// Writes durably and does not give up before `limit`: tries again under the same id while the outcome is unknown.
    ///
    /// # Errors
    /// Refused, too large, or still unknown at the limit.
    pub async fn write_until(
        &self,
        subject: &str,
        payload: Bytes,
        id: &str,
        limit: Duration,
    ) -> Result<Written, WriteError> {
        let tries = async {
            let mut pause = Duration::from_millis(20);
            loop {
                let write = Write { id: Some(id), ..Write::default() };
                match self.write(subject.to_owned(), payload.clone(), write).await {
                    Err(WriteError::Unknown) => {}
                    outcome => return outcome,
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(PAUSE_MAX);
            }
        };
        tokio::time::timeout(limit, tries).await.unwrap_or(Err(WriteError::Unknown))
    }

    /// Reads the last message of a subject, from the stream's leader, so that the answer is not old.
    ///
    /// # Errors
    /// When the broker does not answer.
    pub async fn last(&self, stream: &str, subject: &str) -> Result<Option<Stored>, ReadError> {
        let failed = |source| ReadError { stream: stream.to_owned(), source };
        let handle = self.stream.get_stream_no_info(stream).await.map_err(|e| failed(e.into()))?;
        match handle.raw_message_builder().last_by_subject(subject).send().await {
            Ok(message) => Ok(Some(message.into())),
            Err(error) if error.kind() == RawMessageErrorKind::NoMessageFound => Ok(None),
            Err(error) => Err(failed(error.into())),
        }
    }

    /// Reads the last message of a subject from any replica: fast, and possibly a moment old.
    ///
    /// # Errors
    /// When the broker does not answer.
    pub async fn last_nearby(
        &self,
        stream: &str,
        subject: &str,
    ) -> Result<Option<Stored>, ReadError> {
        let failed = |source| ReadError { stream: stream.to_owned(), source };
        let handle = self.stream.get_stream_no_info(stream).await.map_err(|e| failed(e.into()))?;
        match handle.direct_get_last_for_subject(subject).await {
            Ok(message) => Ok(Some(message.into())),
            Err(error) if error.kind() == DirectGetErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(error.into())),
        }
    }

    /// Reads the first message of a subject at or after a sequence, from the stream's leader.
    ///
    /// # Errors
    /// When the broker does not answer.
    pub async fn first_from(
        &self,
        stream: &str,
        subject: &str,
        sequence: u64,
    ) -> Result<Option<Stored>, ReadError> {
        let failed = |source| ReadError { stream: stream.to_owned(), source };
        let handle = self.stream.get_stream_no_info(stream).await.map_err(|e| failed(e.into()))?;
        let read = handle.raw_message_builder().sequence(sequence).next_by_subject(subject);
        match read.send().await {
            Ok(message) => Ok(Some(message.into())),
            Err(error) if error.kind() == RawMessageErrorKind::NoMessageFound => Ok(None),
            Err(error) => Err(failed(error.into())),
        }
    }

    /// Reads one message of a stream.
    ///
    /// # Errors
    /// When the broker does not answer.
    pub async fn message(&self, stream: &str, sequence: u64) -> Result<Option<Stored>, ReadError> {
        let failed = |source| ReadError { stream: stream.to_owned(), source };
        let handle = self.stream.get_stream_no_info(stream).await.map_err(|e| failed(e.into()))?;
        match handle.direct_get(sequence).await {
            Ok(message) => return Ok(Some(message.into())),
            Err(error) if error.kind() == DirectGetErrorKind::NotFound => {}
            Err(error) => return Err(failed(error.into())),
        }
        // The replica that answered may be a moment behind; the leader is not.
        match handle.get_raw_message(sequence).await {
            Ok(message) => Ok(Some(message.into())),
            Err(error) if error.kind() == RawMessageErrorKind::NoMessageFound => Ok(None),
            Err(error) => Err(failed(error.into())),
        }
    }
}

impl From<jetstream::message::StreamMessage> for Stored {
    fn from(message: jetstream::message::StreamMessage) -> Self {
        Self { sequence: message.sequence, headers: message.headers, payload: message.payload }
    }
}

/// A durable write whose acknowledgement is still to come.
#[derive(Debug)]
pub struct InFlight(PublishAckFuture);

impl InFlight {
    /// Waits for the acknowledgement.
    ///
    /// # Errors
    /// Refused, unknown or too large; see [`WriteError`].
    pub async fn finish(self) -> Result<Written, WriteError> {
        let ack = self.0.await?;
        Ok(Written { sequence: ack.sequence, duplicate: ack.duplicate })
    }
}

fn observe(event: &Event, connects: &watch::Sender<u64>) {
    match event {
        Event::Connected => {
            connects.send_modify(|count| *count += 1);
            tracing::debug!("connected to the broker");
        }
        Event::Disconnected => tracing::warn!("lost the broker; reconnecting"),
        Event::ServerError(error) => tracing::error!(%error, "the broker refused something"),
        Event::SlowConsumer(subscription) => {
            tracing::error!(subscription, "messages were lost: a reader is too slow")
        }
        Event::LameDuckMode | Event::Draining | Event::Closed | Event::ClientError(_) => {
            tracing::debug!(%event, "connection");
        }
    }
}
