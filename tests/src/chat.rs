//! A person in a private chat on the platform: says things, and waits for what comes back.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};

use reqwest::StatusCode;
use serde_json::Value;

use crate::callback::Post;
use crate::webhook::{WebhookClient, message};
use crate::world::World;

/// The chat.
#[derive(Debug)]
pub struct Chat<'a> {
    world: &'a World,
    client: WebhookClient,
    name: String,
    said: AtomicUsize,
}

impl<'a> Chat<'a> {
    pub(crate) fn new(world: &'a World, ingress: SocketAddr, name: &str) -> Self {
        let client = WebhookClient::new(ingress);
        Self { world, client, name: name.to_owned(), said: AtomicUsize::new(0) }
    }

    /// Says something, and returns the message's id once it is accepted.
    ///
    /// # Panics
    /// When it is not accepted.
    pub async fn say(&self, text: &str) -> String {
        let number = self.said.fetch_add(1, Ordering::Relaxed) + 1;
        let id = format!("{}-{number}", self.name);
        let answer = self.client.message(&id, &self.name, text).await;
        assert_eq!(answer.status, StatusCode::ACCEPTED, "{text:?}: {}", answer.body);
        id
    }

    /// Sends a message with more in it than words (`media`, `user`, `edits`, …), and returns its id once it is accepted.
    ///
    /// # Panics
    /// When it is not accepted.
    pub async fn send(&self, more: Value) -> String {
        let number = self.said.fetch_add(1, Ordering::Relaxed) + 1;
        let id = format!("{}-{number}", self.name);
        let mut body = message(&id, &self.name, "");
        for (key, value) in more.as_object().into_iter().flatten() {
            body[key] = value.clone();
        }
        let answer = self.client.post(&body).await;
        assert_eq!(answer.status, StatusCode::ACCEPTED, "{body}: {}", answer.body);
        id
    }

    /// Waits for the `nth` question (from 1), and returns its text.
    pub async fn question(&self, nth: usize) -> String {
        self.of_kind("question", nth).await[nth - 1].text("text").to_owned()
    }

    /// Waits for this many replies, and returns their texts in order.
    ///
    /// # Panics
    /// When there are more.
    pub async fn replies(&self, count: usize) -> Vec<String> {
        let posts = self.of_kind("reply", count).await;
        assert_eq!(posts.len(), count, "{posts:#?}");
        posts.iter().map(|post| post.text("text").to_owned()).collect()
    }

    /// Waits for the `nth` acknowledgement (from 1), and returns its text.
    pub async fn ack(&self, nth: usize) -> String {
        self.of_kind("ack", nth).await[nth - 1].text("text").to_owned()
    }

    /// Waits until something has come back for a message.
    pub async fn answered(&self, id: &str) -> Post {
        let what = format!("an answer to {id}");
        self.world
            .callbacks
            .wait_for(&what, |posts| {
                posts.iter().find(|post| post.taken && post.text("reply_to") == id).cloned()
            })
            .await
    }

    /// Waits for the reply to a message, and returns its text.
    pub async fn reply_to(&self, id: &str) -> String {
        let what = format!("a reply to {id}");
        let is_it = |post: &&Post| {
            post.taken && post.text("kind") == "reply" && post.text("reply_to") == id
        };
        let post = self.world.callbacks.wait_for(&what, |posts| posts.iter().find(is_it).cloned());
        post.await.text("text").to_owned()
    }

    /// What has come back so far, of one kind.
    #[must_use]
    pub fn got(&self, kind: &str) -> Vec<Post> {
        self.world.callbacks.taken(&self.name, kind)
    }

    async fn of_kind(&self, kind: &str, count: usize) -> Vec<Post> {
        let what = format!("{count} of kind {kind} in chat {}", self.name);
        self.world
            .callbacks
            .wait_for(&what, |posts| {
                let of = |post: &&Post| {
                    post.taken && post.chat() == self.name && post.text("kind") == kind
                };
                let found: Vec<Post> = posts.iter().filter(of).cloned().collect();
                (found.len() >= count).then_some(found)
            })
            .await
    }
}
