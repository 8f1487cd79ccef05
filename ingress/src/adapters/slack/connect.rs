//! The connection of an app: Socket Mode, or only the proof that its token works where Slack posts to our door.

use std::time::Duration;

use node::settings::SlackMode;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::call::As;
use super::take::Parcel;
use super::{App, Inner};
use crate::adapter::{ConnectError, Link, Refusal, SendError};
use crate::socket::{Heard, Socket};

/// How long to wait before something is tried again that could not be stored.
const STORE_AGAIN: Duration = Duration::from_secs(1);
/// The code of a WebSocket's ordinary end.
const NORMAL: u16 = 1000;

/// Holds the connection until `link.stop`, or until it breaks.
pub(super) async fn run(inner: &Inner, account: &str, link: &Link) -> Result<(), ConnectError> {
    let app = inner.app(account).map_err(ConnectError::of)?;
    let work = async {
        let me = app.me().await.map_err(of)?;
        tracing::info!(account, team = %me.team, "connected to Slack");
        match app.settings.mode {
            SlackMode::Events => {
                link.up();
                link.stop.cancelled().await;
                Ok(())
            }
            SlackMode::Socket => sockets(app, link).await,
        }
    };
    tokio::select! {
        outcome = work => outcome,
        () = link.stop.cancelled() => Ok(()),
    }
}

/// A refused token needs a person, who must know which.
fn of(error: SendError) -> ConnectError {
    match error {
        SendError::Refused { reason: Refusal::Account, why } => {
            ConnectError::Fatal { why: format!("{why}; check the app's tokens and start again") }
        }
        error @ (SendError::Flood { .. }
        | SendError::Failed { .. }
        | SendError::Unknown { .. }
        | SendError::Refused { .. }) => ConnectError::of(error),
    }
}

/// What comes over the socket.
#[derive(Debug, Deserialize)]
struct Envelope {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    envelope_id: Option<String>,
    #[serde(default)]
    payload: Value,
    #[serde(default)]
    reason: Option<String>,
    #[serde(default)]
    accepts_response_payload: bool,
}

/// One socket after another: Slack ends each after some hours. What was not acknowledged on one comes again on the next.
async fn sockets(app: &App, link: &Link) -> Result<(), ConnectError> {
    #[derive(Deserialize)]
    struct Opened {
        url: String,
    }
    loop {
        let api = app.api().map_err(of)?;
        let opened: Opened =
            api.call("apps.connections.open", &json!({}), As::App).await.map_err(of)?;
        let retry = |why| ConnectError::Retry { after: None, why };
        let mut socket = Socket::connect(&app.sockets, &opened.url).await.map_err(retry)?;
        let ended = listen(app, &mut socket, link).await;
        socket.close(NORMAL).await;
        ended?;
    }
}

/// Listens until Slack wants another socket to be opened.
async fn listen(app: &App, socket: &mut Socket, link: &Link) -> Result<(), ConnectError> {
    let retry = |why| ConnectError::Retry { after: None, why };
    loop {
        let text = match socket.next().await {
            Heard::Text(text) => text,
            Heard::Closed { code, why } => {
                return Err(retry(format!("Slack has closed the WebSocket: {code} {why}")));
            }
            Heard::Broken(why) => return Err(retry(why)),
        };
        let envelope: Envelope = match serde_json::from_str(&text) {
            Ok(envelope) => envelope,
            Err(error) => {
                let kept = app.gate.set_aside(text.as_bytes(), &error.to_string()).await;
                kept.map_err(|error| retry(error.to_string()))?;
                continue;
            }
        };
        let parcel = match envelope.kind.as_str() {
            "hello" => {
                link.up();
                continue;
            }
            "disconnect" if envelope.reason.as_deref() == Some("link_disabled") => {
                let why = "Socket Mode is turned off for the app; turn it on and start again";
                return Err(ConnectError::Fatal { why: why.into() });
            }
            "disconnect" => return Ok(()),
            "events_api" => Parcel::Event(envelope.payload),
            "interactive" => Parcel::Interaction(envelope.payload),
            "slash_commands" => Parcel::Command(envelope.payload),
            other => {
                tracing::debug!(other, "Slack says something that is not known here");
                continue;
            }
        };
        // Acknowledged only when it is stored.
        let said = loop {
            match app.take(parcel.clone()).await {
                Ok(said) => break said,
                Err(error) => {
                    link.trouble(format!("messages are not taken: {error}"));
                    sleep(STORE_AGAIN).await;
                }
            }
        };
        link.up();
        let Some(id) = envelope.envelope_id else { continue };
        let mut receipt = json!({ "envelope_id": id });
        if let Some(said) = said.filter(|_| envelope.accepts_response_payload) {
            receipt["payload"] = json!({ "response_type": "ephemeral", "text": said });
        }
        socket.send(receipt.to_string()).await.map_err(retry)?;
    }
}
