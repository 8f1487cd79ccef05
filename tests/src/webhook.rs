//! The platform's side of the generic webhook: posts messages as the platform would, signed.

use std::net::SocketAddr;

use hmac::{Hmac, KeyInit, Mac};
use reqwest::{Response, StatusCode};
use serde_json::{Value, json};
use sha2::Sha256;

/// The name of the webhook that tests use.
pub const NAME: &str = "test";
/// The secret that it is signed with.
pub const SECRET: &str = "a secret between the platform and us";
/// The header that carries the signature.
pub const SIGNATURE: &str = "X-Talaria-Signature";

/// The signature of a body.
///
/// # Panics
/// Never: a key of any length will do.
#[must_use]
pub fn sign(secret: &str, body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("a key of any length");
    mac.update(body);
    format!("sha256={}", hex::encode(mac.finalize().into_bytes()))
}

/// What came back for a post.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Its status.
    pub status: StatusCode,
    /// Its body, as far as it is JSON.
    pub body: Value,
}

/// Posts to one ingress.
#[derive(Clone, Debug)]
pub struct WebhookClient {
    client: reqwest::Client,
    url: String,
}

impl WebhookClient {
    /// A client of the ingress at an address.
    #[must_use]
    pub fn new(ingress: SocketAddr) -> Self {
        Self { client: crate::http::client(), url: format!("http://{ingress}/webhook/{NAME}") }
    }

    /// Posts a text message from user `u1` in a private chat.
    pub async fn message(&self, id: &str, chat: &str, text: &str) -> Answer {
        self.post(&message(id, chat, text)).await
    }

    /// Posts any body, signed.
    pub async fn post(&self, body: &Value) -> Answer {
        let body = body.to_string();
        let signature = sign(SECRET, body.as_bytes());
        self.raw(body, Some(&signature)).await
    }

    /// Posts any bytes, with any signature or none.
    ///
    /// # Panics
    /// When ingress does not answer.
    pub async fn raw(&self, body: String, signature: Option<&str>) -> Answer {
        let mut request = self.client.post(&self.url).header("content-type", "application/json");
        if let Some(signature) = signature {
            request = request.header(SIGNATURE, signature);
        }
        let response = request.body(body).send().await.expect("ingress answers");
        answer(response).await
    }
}

async fn answer(response: Response) -> Answer {
    let status = response.status();
    let body = response.bytes().await.unwrap_or_default();
    Answer { status, body: serde_json::from_slice(&body).unwrap_or(Value::Null) }
}

/// The body of a text message from user `u1` in a private chat.
#[must_use]
pub fn message(id: &str, chat: &str, text: &str) -> Value {
    json!({
        "id": id,
        "chat": { "id": chat, "type": "dm" },
        "user": { "id": "u1", "name": "User One" },
        "text": text,
    })
}
