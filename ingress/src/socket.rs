//! WebSockets that we open. The connection is made by the same HTTP client as everything else, so that the system's
//! certificates, proxies and `network.force_ipv4` hold for it too.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures_util::{SinkExt, StreamExt};
use reqwest::{StatusCode, Upgraded, Url, header};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role};

use crate::http::{Clients, root};

/// How long connecting may take.
const CONNECT: Duration = Duration::from_secs(15);
/// How long closing may take.
const CLOSE: Duration = Duration::from_secs(1);
/// After what silence the other side is asked whether it is there; after twice that it is not.
const SILENCE: Duration = Duration::from_secs(30);

/// An open WebSocket.
#[derive(Debug)]
pub(crate) struct Socket {
    stream: WebSocketStream<Upgraded>,
    asked: bool,
}

/// What is heard on one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// A text.
    Text(String),
    /// The other side has closed it, with a code and why.
    Closed { code: u16, why: String },
    /// The connection broke.
    Broken(String),
}

impl Socket {
    /// Opens one.
    ///
    /// # Errors
    /// What went wrong, for people.
    pub(crate) async fn connect(clients: &Clients, url: &str) -> Result<Self, String> {
        timeout(CONNECT, shake_hands(clients, url))
            .await
            .unwrap_or_else(|_| Err("the WebSocket was not opened in time".into()))
    }

    /// The next thing that is heard. Nothing is lost if it is dropped before.
    pub(crate) async fn next(&mut self) -> Heard {
        loop {
            let message = match timeout(SILENCE, self.stream.next()).await {
                Ok(message) => message,
                Err(_) if self.asked => return Heard::Broken("nothing is heard any more".into()),
                Err(_) => {
                    self.asked = true;
                    if let Err(error) = self.stream.send(Message::Ping(Vec::new().into())).await {
                        return Heard::Broken(error.to_string());
                    }
                    continue;
                }
            };
            self.asked = false;
            match message {
                Some(Ok(Message::Text(text))) => return Heard::Text(text.as_str().to_owned()),
                Some(Ok(Message::Close(Some(frame)))) => {
                    return Heard::Closed {
                        code: frame.code.into(),
                        why: frame.reason.as_str().to_owned(),
                    };
                }
                Some(Ok(Message::Close(None))) | None => {
                    return Heard::Broken("the other side has closed the WebSocket".into());
                }
                // A ping is answered by the next thing that is read or written.
                Some(Ok(
                    Message::Ping(_) | Message::Pong(_) | Message::Binary(_) | Message::Frame(_),
                )) => {}
                Some(Err(error)) => return Heard::Broken(error.to_string()),
            }
        }
    }

    /// Sends a text.
    ///
    /// # Errors
    /// What went wrong: the connection is broken.
    pub(crate) async fn send(&mut self, text: String) -> Result<(), String> {
        self.stream.send(Message::Text(text.into())).await.map_err(|error| error.to_string())
    }

    /// Closes it, best effort, with a code.
    pub(crate) async fn close(mut self, code: u16) {
        let frame = CloseFrame { code: CloseCode::from(code), reason: "".into() };
        let _ = timeout(CLOSE, self.stream.close(Some(frame))).await;
    }
}

async fn shake_hands(clients: &Clients, url: &str) -> Result<Socket, String> {
    let mut url = Url::parse(url).map_err(|_| "the WebSocket's address is none".to_owned())?;
    let scheme = match url.scheme() {
        "ws" => "http",
        "wss" => "https",
        other => return Err(format!("{other} is no WebSocket")),
    };
    url.set_scheme(scheme).map_err(|()| "the WebSocket's address is none".to_owned())?;
    let key = STANDARD.encode(node::process::random::<16>());
    let request = clients
        .to(&url)
        .get(url)
        .header(header::CONNECTION, "Upgrade")
        .header(header::UPGRADE, "websocket")
        .header(header::SEC_WEBSOCKET_VERSION, "13")
        .header(header::SEC_WEBSOCKET_KEY, &key);
    let response = request.send().await.map_err(root)?;
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        return Err(format!("instead of a WebSocket there is {}", response.status()));
    }
    let accepted = response.headers().get(header::SEC_WEBSOCKET_ACCEPT);
    if accepted
        .is_none_or(|accepted| accepted.as_bytes() != derive_accept_key(key.as_bytes()).as_bytes())
    {
        return Err("the other side does not speak the WebSocket's protocol".into());
    }
    let upgraded = response.upgrade().await.map_err(root)?;
    let stream = WebSocketStream::from_raw_socket(upgraded, Role::Client, None).await;
    Ok(Socket { stream, asked: false })
}
