//! The one owner of all waiting requests: deliveries and drafts find the request that they answer.

use std::collections::HashMap;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::answer::News;

/// How many words may wait for the owner.
const WORDS_MAX: usize = 4096;
/// How much news a request may be behind. Drafts beyond it are lost, which the reply makes good.
const NEWS_MAX: usize = 512;
/// How much of that is kept free for deliveries, which must not be lost.
const RESERVE: usize = 64;

#[derive(Debug)]
enum Word {
    Wait { chat: String, message: String, news: mpsc::Sender<News> },
    News(Box<News>),
}

/// A handle to the owner. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Hub(mpsc::Sender<Word>);

impl Hub {
    /// Starts the owner; it ends with `stop` or with its last handle.
    pub(crate) fn start(stop: CancellationToken) -> Self {
        let (words, inbox) = mpsc::channel(WORDS_MAX);
        tokio::spawn(async move {
            tokio::select! {
                () = run(inbox) => {}
                () = stop.cancelled() => {}
            }
        });
        Self(words)
    }

    /// Waits for what comes for a message, until the receiver is dropped.
    pub(crate) async fn wait(&self, chat: String, message: String) -> mpsc::Receiver<News> {
        let (news, receiver) = mpsc::channel(NEWS_MAX);
        let _ = self.0.send(Word::Wait { chat, message, news }).await;
        receiver
    }

    /// Passes news on. Nobody waiting is no trouble: the conversation has it.
    pub(crate) async fn tell(&self, news: News) {
        let _ = self.0.send(Word::News(Box::new(news))).await;
    }
}

#[derive(Debug)]
struct Waiter {
    message: String,
    news: mpsc::Sender<News>,
}

async fn run(mut inbox: mpsc::Receiver<Word>) {
    let mut chats: HashMap<String, Vec<Waiter>> = HashMap::new();
    let mut since_tidy = 0_usize;
    while let Some(word) = inbox.recv().await {
        match word {
            Word::Wait { chat, message, news } => {
                chats.entry(chat).or_default().push(Waiter { message, news });
            }
            Word::News(news) => pass_on(&mut chats, &news),
        }
        since_tidy += 1;
        // Requests that went away before anything came for them.
        if since_tidy > 1024.max(chats.len()) {
            since_tidy = 0;
            chats.retain(|_, waiters| {
                waiters.retain(|waiter| !waiter.news.is_closed());
                !waiters.is_empty()
            });
        }
    }
}

fn pass_on(chats: &mut HashMap<String, Vec<Waiter>>, news: &News) {
    let (chat, message) = match news {
        News::Draft(draft) => (&draft.address.chat, Some(&draft.reply_to)),
        News::Outbound(outbound) => (&outbound.address.chat, outbound.reply_to.as_ref()),
    };
    let Some(waiters) = chats.get_mut(chat) else { return };
    waiters.retain(|waiter| {
        if message.is_some_and(|message| *message != waiter.message) {
            return !waiter.news.is_closed();
        }
        match news {
            News::Draft(_) if waiter.news.capacity() <= RESERVE => !waiter.news.is_closed(),
            // A request that does not even take these is let go: its client sees a broken stream, not a wrong one.
            News::Draft(_) | News::Outbound(_) => waiter.news.try_send(news.clone()).is_ok(),
        }
    });
    if waiters.is_empty() {
        chats.remove(chat);
    }
}
