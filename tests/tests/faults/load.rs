//! The load: people in several chats, whose platform sends each message until it is accepted, as platforms do.

use std::net::SocketAddr;

use talaria_tests::World;
use talaria_tests::model::Step;
use talaria_tests::webhook::{NAME, SECRET, SIGNATURE, message, sign};
use tokio::task::JoinSet;

/// How many people talk at the same time.
pub(crate) const CHATS: usize = 4;

/// One message that was accepted.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    pub(crate) id: String,
    pub(crate) chat: String,
    pub(crate) text: String,
}

pub(crate) struct Load {
    seed: u64,
    rounds: usize,
    /// The last message of each chat, on its way; the next one of that chat waits for it, so that their order is known.
    sending: Vec<JoinSet<()>>,
    said: Vec<Said>,
}

impl Load {
    pub(crate) fn new(world: &World, seed: u64) -> Self {
        // Every third message is a tool that takes a while, so that faults strike in the middle of one.
        world.model.on("work", [Step::terminal("sleep 0.4"), Step::Say("worked".into())]);
        let sending = (0..CHATS).map(|_| JoinSet::new()).collect();
        Self { seed, rounds: 0, sending, said: Vec::new() }
    }

    /// Everyone says one thing more.
    pub(crate) async fn say(&mut self, door: SocketAddr) {
        self.rounds += 1;
        for number in 0..CHATS {
            while self.sending[number].join_next().await.is_some() {}
            let (chat, round) = (format!("c{number}"), self.rounds);
            let word = if (number + round).is_multiple_of(3) { "work" } else { "hello" };
            let id = format!("s{}-{chat}-{round}", self.seed);
            let text = format!("{word} {id}.");
            self.said.push(Said { id: id.clone(), chat: chat.clone(), text: text.clone() });
            self.sending[number].spawn(send(door, id, chat, text));
        }
    }

    /// Waits until everything is accepted.
    pub(crate) async fn finish(mut self, door: SocketAddr) -> Vec<Said> {
        self.say(door).await;
        for sending in &mut self.sending {
            while sending.join_next().await.is_some() {}
        }
        self.said
    }
}

/// Sends a message until it is accepted.
async fn send(door: SocketAddr, id: String, chat: String, text: String) {
    let client = talaria_tests::http::client();
    let body = message(&id, &chat, &text).to_string();
    let signature = sign(SECRET, body.as_bytes());
    let post = || {
        let request = client.post(format!("http://{door}/webhook/{NAME}"));
        let request = request.header("content-type", "application/json");
        request.header(SIGNATURE, &signature).body(body.clone()).send()
    };
    loop {
        if post().await.is_ok_and(|answer| answer.status().is_success()) {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
}
