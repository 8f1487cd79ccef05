//! The platform's other side: the server to which replies are posted. It keeps all of them, in order, and can be told to be
//! busy, broken or slow.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use crate::wait::watched;
use crate::webhook::{SECRET, SIGNATURE, sign};

/// How the server answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    /// 200.
    Fine,
    /// 429, with this many seconds to wait.
    Busy {
        /// The value of `Retry-After`.
        retry_after: u64,
    },
    /// 500.
    Broken,
    /// 200, after a while.
    Slow(Duration),
}

/// One post.
#[derive(Clone, Debug)]
pub struct Post {
    /// When it came.
    pub at: Instant,
    /// What it said.
    pub body: Value,
    /// Whether its signature is right.
    pub signed: bool,
    /// Whether it was answered with 2xx.
    pub taken: bool,
}

impl Post {
    /// A field of it as text; empty if it has none.
    #[must_use]
    pub fn text(&self, field: &str) -> &str {
        self.body[field].as_str().unwrap_or_default()
    }

    /// Its chat.
    #[must_use]
    pub fn chat(&self) -> &str {
        self.body["chat"]["id"].as_str().unwrap_or_default()
    }
}

#[derive(Clone)]
struct Shared {
    posts: watch::Sender<Vec<Post>>,
    mood: watch::Receiver<Mood>,
}

/// The server; it ends with its value.
#[derive(Debug)]
pub struct CallbackServer {
    address: SocketAddr,
    posts: watch::Receiver<Vec<Post>>,
    mood: watch::Sender<Mood>,
    _serving: AbortOnDropHandle<()>,
}

impl CallbackServer {
    /// Starts one on a free port.
    ///
    /// # Panics
    /// When there is no free port.
    pub async fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let (sender, posts) = watch::channel(Vec::new());
        let (mood, moods) = watch::channel(Mood::Fine);
        let shared = Shared { posts: sender, mood: moods };
        let app = Router::new().route("/callback", post(receive)).with_state(shared);
        let serving = tokio::spawn(async move {
            axum::serve(listener, app).await.expect("the callback server serves");
        });
        Self { address, posts, mood, _serving: AbortOnDropHandle::new(serving) }
    }

    /// Where replies are to be posted.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/callback", self.address)
    }

    /// Chooses how it answers from now on.
    pub fn be(&self, mood: Mood) {
        self.mood.send_replace(mood);
    }

    /// All posts so far.
    #[must_use]
    pub fn posts(&self) -> Vec<Post> {
        self.posts.borrow().clone()
    }

    /// The posts of one kind in one chat that were taken, in order.
    #[must_use]
    pub fn taken(&self, chat: &str, kind: &str) -> Vec<Post> {
        let of = |post: &Post| post.taken && post.chat() == chat && post.text("kind") == kind;
        self.posts().into_iter().filter(of).collect()
    }

    /// Waits until the posts have an answer.
    pub async fn wait_for<T>(&self, what: &str, look: impl FnMut(&Vec<Post>) -> Option<T>) -> T {
        watched(what, self.posts.clone(), look).await
    }
}

async fn receive(State(shared): State<Shared>, headers: HeaderMap, body: Bytes) -> Response {
    let mood = *shared.mood.borrow();
    if let Mood::Slow(pause) = mood {
        tokio::time::sleep(pause).await;
    }
    let signature = headers.get(SIGNATURE).and_then(|value| value.to_str().ok());
    let post = Post {
        at: Instant::now(),
        body: serde_json::from_slice(&body).unwrap_or(Value::Null),
        signed: signature == Some(sign(SECRET, &body).as_str()),
        taken: matches!(mood, Mood::Fine | Mood::Slow(_)),
    };
    shared.posts.send_modify(|posts| posts.push(post));
    match mood {
        Mood::Fine | Mood::Slow(_) => StatusCode::OK.into_response(),
        Mood::Busy { retry_after } => {
            let wait = [(header::RETRY_AFTER, retry_after.to_string())];
            (StatusCode::TOO_MANY_REQUESTS, wait).into_response()
        }
        Mood::Broken => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}
