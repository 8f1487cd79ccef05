//! A provider for tests: answers with given bytes, then closes or hangs, and tells when it was hung up on.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::Future;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use node::settings::Secret;
use serde_json::Value;
use tokio::sync::{mpsc, watch};

use super::choose::Access;
use super::{Calls, Message, Request, Sign, ToolSpec};

/// What the fake does after its bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Then {
    Close,
    Hang,
}

pub(super) struct Fake {
    base_url: String,
    bodies: mpsc::UnboundedReceiver<Value>,
    open: watch::Receiver<usize>,
}

#[derive(Clone)]
struct Script {
    bytes: Bytes,
    then: Then,
    bodies: mpsc::UnboundedSender<Value>,
    open: watch::Sender<usize>,
}

/// Counts an answer as open until it is dropped.
struct Open(watch::Sender<usize>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.send_modify(|open| *open -= 1);
    }
}

/// Runs a test against a fake that answers every request with `bytes`.
pub(super) fn run<F: Future<Output = ()>>(bytes: String, then: Then, test: impl FnOnce(Fake) -> F) {
    node::process::block_on(async move {
        let (bodies, received) = mpsc::unbounded_channel();
        let open = watch::Sender::new(0);
        let script = Script { bytes: bytes.into(), then, bodies, open: open.clone() };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let base_url = format!("http://{}", listener.local_addr()?);
        let app = Router::new().fallback(answer).with_state(script);
        tokio::spawn(async move { axum::serve(listener, app).await });
        test(Fake { base_url, bodies: received, open: open.subscribe() }).await;
        Ok(())
    })
    .unwrap();
}

async fn answer(State(script): State<Script>, body: Bytes) -> Response {
    let _ = script.bodies.send(serde_json::from_slice(&body).unwrap_or_default());
    script.open.send_modify(|open| *open += 1);
    let open = Open(script.open.clone());
    // Odd pieces, so that no event arrives in one of its own.
    let pieces: Vec<_> = script.bytes.chunks(7).map(Bytes::copy_from_slice).collect();
    let hang = stream::pending().take(usize::from(script.then == Then::Hang));
    let body = stream::iter(pieces).chain(hang).map(move |piece| {
        let _ = &open;
        Ok::<_, Infallible>(piece)
    });
    let mut response = Response::new(Body::from_stream(body));
    let events = axum::http::HeaderValue::from_static("text/event-stream");
    response.headers_mut().insert(axum::http::header::CONTENT_TYPE, events);
    response
}

impl Fake {
    pub(super) fn access(&self) -> Access {
        Access {
            http: crate::http::client().unwrap(),
            base_url: self.base_url.clone(),
            key: Secret::new("key".into()),
            model: "m".into(),
            stall: None,
        }
    }

    /// The body of the next request.
    pub(super) async fn sent(mut self) -> Value {
        self.bodies.recv().await.unwrap()
    }

    /// Waits until no answer is open.
    pub(super) async fn closed(mut self) {
        self.open.wait_for(|open| *open == 0).await.unwrap();
    }
}

pub(super) fn request(tools: &[ToolSpec]) -> Request<'_> {
    let messages = vec![Message::System("be kind"), Message::User("hi")];
    Request { messages, images: BTreeMap::new(), tools, calls: Calls::Allowed, max_tokens: 99 }
}

/// All words sent so far.
pub(super) fn texts(signs: &mut mpsc::UnboundedReceiver<Sign>) -> String {
    let mut all = String::new();
    while let Ok(sign) = signs.try_recv() {
        if let Sign::Text(text) = sign {
            all += &text;
        }
    }
    all
}
