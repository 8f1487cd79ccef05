//! What a turn says to its scheduler: through the log, under an id of its own, and only while it is ours.

use std::time::Duration;

use node::bus::WriteError;
use proto::codec;
use proto::inbox::Inbox;
use proto::subject;
use proto::turn::{News, Outcome, TurnReport, Usage};

use super::{TOO_LARGE, Turn};
use crate::fence::Lost;

/// How long a report is tried. The fence ends it earlier when the broker stays away.
const LIMIT: Duration = Duration::from_secs(300);

impl Turn {
    /// Reports; `what` makes the message's id unique within the attempt.
    pub(super) async fn report(&self, news: News, what: &str) -> Result<(), Lost> {
        match self.send(news, what).await? {
            Err(WriteError::TooLarge) => {
                let news = News::Finished {
                    outcome: Outcome::Failed,
                    reply: TOO_LARGE.into(),
                    steered: Vec::new(),
                    usage: Usage::default(),
                };
                self.send(news, what).await?.map(drop)
            }
            outcome => outcome,
        }
        // The scheduler notices by itself that the turn has no worker any more.
        .unwrap_or_else(|error| tracing::error!(%error, what, "a report was not stored"));
        self.fence.check()
    }

    /// The same, where the caller wants to know whether it was stored.
    pub(super) async fn send(
        &self,
        news: News,
        what: &str,
    ) -> Result<Result<(), WriteError>, Lost> {
        let node = &self.shared.node;
        let of = self.order.of;
        let report = Inbox::Report(TurnReport { of, worker: node.id, news });
        let payload: bytes::Bytes = codec::encode(&report).into();
        if payload.len() > node.bus.payload_limit() {
            return Ok(Err(WriteError::TooLarge));
        }
        let subject = subject::inbox(self.partition(), of.sid);
        let id = format!("{}.{}.{what}", of.turn, of.attempt);
        self.fence.check()?;
        Ok(node.bus.write_until(&subject, payload, &id, LIMIT).await.map(drop))
    }
}
