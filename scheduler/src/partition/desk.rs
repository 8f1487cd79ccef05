//! The desk of a partition: claims and heartbeats that workers ask it to answer.

use std::sync::Arc;

use anyhow::Context;
use async_nats::{HeaderMap, Subject};
use futures_util::StreamExt;
use proto::codec;
use proto::subject;
use proto::turn::{Beat, Claim};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;

use super::Owner;
use crate::metrics::Metrics;

/// How many requests may wait; workers ask again.
const WAITING: usize = 4096;

/// What is asked.
pub(crate) enum Question {
    Claim(Claim),
    Beat(Beat),
}

/// One request.
pub(crate) struct Request {
    pub(crate) question: Question,
    pub(crate) reply_to: Subject,
    pub(crate) headers: Option<HeaderMap>,
}

/// The two subscriptions of a partition, read into one queue.
pub(crate) struct Desk(mpsc::Receiver<Request>);

impl Desk {
    pub(crate) async fn open(owner: &Owner) -> anyhow::Result<Self> {
        let (sender, receiver) = mpsc::channel(WAITING);
        let client = owner.bus.client();
        let claims = client
            .subscribe(subject::claim(owner.partition))
            .await
            .context("subscribing to claims")?;
        let beats = client
            .subscribe(subject::beat(owner.partition))
            .await
            .context("subscribing to heartbeats")?;
        tokio::spawn(read(claims, sender.clone(), Question::Claim, Arc::clone(&owner.metrics)));
        tokio::spawn(read(beats, sender, Question::Beat, Arc::clone(&owner.metrics)));
        Ok(Self(receiver))
    }

    pub(crate) async fn recv(&mut self) -> Option<Request> {
        self.0.recv().await
    }

    pub(crate) fn try_recv(&mut self) -> Result<Request, mpsc::error::TryRecvError> {
        self.0.try_recv()
    }
}

async fn read<T: DeserializeOwned>(
    mut requests: async_nats::Subscriber,
    sender: mpsc::Sender<Request>,
    question: fn(T) -> Question,
    metrics: Arc<Metrics>,
) {
    loop {
        let message = tokio::select! {
            message = requests.next() => message,
            () = sender.closed() => None,
        };
        let Some(message) = message else { return };
        match (codec::decode(&message.payload), message.reply) {
            (Ok(asked), Some(reply_to)) => {
                let request =
                    Request { question: question(asked), reply_to, headers: message.headers };
                if sender.send(request).await.is_err() {
                    return;
                }
            }
            (Ok(_), None) => {}
            (Err(error), _) => {
                metrics.poison.inc();
                tracing::warn!(subject = %message.subject, %error, "a request cannot be read");
            }
        }
    }
}
