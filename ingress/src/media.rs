//! Files that people sent, on demand: whoever runs a turn asks for one piece by piece, and the account's adapter fetches it.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures_util::StreamExt;
use moka::sync::Cache;
use node::bus::Bus;
use proto::codec;
use proto::media::{Answer, Ask, PIECE_MAX};
use proto::subject;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::adapter::{Adapter, Fetched};

/// How much is kept for the pieces that will be asked for next, in bytes.
const KEPT: u64 = 64 * 1024 * 1024;
/// For how long.
const KEPT_FOR: Duration = Duration::from_secs(60);
/// How many files are fetched at once.
const AT_ONCE: usize = 8;
/// How long to wait before listening again.
const PAUSE: Duration = Duration::from_millis(200);

/// Answers for an account until `stop`.
pub(crate) async fn serve(
    bus: Bus,
    adapter: Arc<dyn Adapter>,
    account: &str,
    stop: &CancellationToken,
) {
    let limit = adapter.capabilities().messages.and_then(|can| can.media_in);
    let Some(limit) = limit else { return stop.cancelled().await };
    let weigh = |_: &String, file: &Fetched| u32::try_from(file.bytes.len()).unwrap_or(u32::MAX);
    let kept = Cache::builder().weigher(weigh).max_capacity(KEPT).time_to_live(KEPT_FOR).build();
    let clerk = Clerk { adapter, account: account.to_owned(), limit, kept };
    let subject = subject::media(clerk.adapter.platform(), account);
    loop {
        tokio::select! {
            () = clerk.listen(&bus, &subject) => {}
            () = stop.cancelled() => return,
        }
        tokio::time::sleep(PAUSE).await;
    }
}

#[derive(Clone)]
struct Clerk {
    adapter: Arc<dyn Adapter>,
    account: String,
    limit: usize,
    kept: Cache<String, Fetched>,
}

impl Clerk {
    async fn listen(&self, bus: &Bus, subject: &str) {
        let Ok(mut questions) = bus.client().subscribe(subject.to_owned()).await else { return };
        let mut jobs = JoinSet::new();
        while let Some(question) = questions.next().await {
            let Some(reply) = question.reply else { continue };
            while jobs.len() >= AT_ONCE {
                jobs.join_next().await;
            }
            let (clerk, client) = (self.clone(), bus.client().clone());
            jobs.spawn(async move {
                let answer = match codec::decode::<Ask>(&question.payload) {
                    Ok(ask) => clerk.answer(&ask).await,
                    Err(error) => Answer::Refused { why: error.to_string() },
                };
                if let Err(error) = client.publish(reply, codec::encode(&answer).into()).await {
                    tracing::debug!(%error, "a piece of a file was not sent");
                }
            });
        }
    }

    async fn answer(&self, ask: &Ask) -> Answer {
        let file = match self.kept.get(&ask.reference) {
            Some(file) => file,
            None => match self.adapter.fetch(&self.account, &ask.reference, self.limit).await {
                Ok(file) => {
                    self.kept.insert(ask.reference.clone(), file.clone());
                    file
                }
                Err(error) => {
                    tracing::warn!("a file could not be fetched: {error}");
                    return Answer::Refused { why: error.why().to_owned() };
                }
            },
        };
        let from = usize::try_from(ask.offset).unwrap_or(usize::MAX).min(file.bytes.len());
        let to = (from + PIECE_MAX).min(file.bytes.len());
        Answer::Piece {
            data: STANDARD.encode(&file.bytes[from..to]),
            total: file.bytes.len() as u64,
            mime: file.mime,
        }
    }
}
