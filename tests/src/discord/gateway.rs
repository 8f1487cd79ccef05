//! The gateway: sessions with their events in order, heartbeats, resuming, and the ways in which connections end.

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_tungstenite::tungstenite::Message as Frame;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::{WebSocketStream, accept_async};

use super::{BOT, Cut, Discord, TOKEN};

/// How often a bot must say that it is there, milliseconds.
const BEAT: u64 = 500;
/// What a bot that reads messages must ask for: servers, messages there and in private, and their content.
const NEEDED: u64 = 1 | 1 << 9 | 1 << 12 | 1 << 15;

type Socket = WebSocketStream<TcpStream>;

/// One connection.
pub(super) async fn link(stream: TcpStream, state: watch::Sender<Discord>) {
    let Ok(mut socket) = accept_async(stream).await else { return };
    let born = state.borrow().cuts;
    send(&mut socket, &json!({ "op": 10, "d": { "heartbeat_interval": BEAT } })).await;
    let Some(mut sent) = begin(&mut socket, &state).await else { return };
    let mut watch = state.subscribe();
    loop {
        let (new, cut) = {
            let state = watch.borrow_and_update();
            (
                state.log[sent.min(state.log.len())..].to_vec(),
                (state.cuts != born).then_some(state.cut),
            )
        };
        if let Some(cut) = cut {
            return end(socket, cut.unwrap_or(Cut::Silently), &state).await;
        }
        for event in new {
            sent += 1;
            send(&mut socket, &event).await;
        }
        tokio::select! {
            frame = hear(&mut socket) => {
                let Some(frame) = frame else { return };
                let seq = frame["d"].as_u64();
                let fine = frame["op"] == 1 && seq.is_none_or(|seq| seq <= sent as u64);
                state.send_modify(|state| {
                    state.beats += 1;
                    if !fine {
                        state.faults.push(format!("a strange frame: {frame}"));
                    }
                });
                send(&mut socket, &json!({ "op": 11 })).await;
            }
            changed = watch.changed() => if changed.is_err() { return },
        }
    }
}

/// Begins or resumes a session. Returns how many events the bot has.
async fn begin(socket: &mut Socket, state: &watch::Sender<Discord>) -> Option<usize> {
    let first = hear(socket).await?;
    let data = &first["d"];
    if data["token"] != TOKEN {
        close(socket, 4004).await;
        return None;
    }
    let current = format!("session-{}", state.borrow().begun);
    match first["op"].as_u64() {
        Some(2) => {
            let intents = data["intents"].as_u64().unwrap_or(0);
            let named =
                ["os", "browser", "device"].iter().all(|name| data["properties"][name].is_string());
            if intents & NEEDED != NEEDED || !named {
                state.send_modify(|state| state.faults.push(format!("a bad identify: {first}")));
                close(socket, 4002).await;
                return None;
            }
            state.send_modify(|state| {
                state.begun += 1;
                let data = json!({
                    "v": 10, "user": { "id": BOT, "username": "talaria" }, "guilds": [],
                    "session_id": format!("session-{}", state.begun), "resume_gateway_url": state.gateway,
                    "application": { "id": BOT, "flags": 0 },
                });
                state.log = vec![json!({ "op": 0, "t": "READY", "s": 1, "d": data })];
            });
            Some(0)
        }
        Some(6) => {
            let seq = usize::try_from(data["seq"].as_u64()?).ok()?;
            let known = data["session_id"] == current && seq <= state.borrow().log.len();
            if !known {
                send(socket, &json!({ "op": 9, "d": false })).await;
                return None;
            }
            state.send_modify(|state| {
                state.resumed += 1;
                let next = state.log.len() + 1;
                state.log.push(json!({ "op": 0, "t": "RESUMED", "s": next, "d": {} }));
            });
            Some(seq)
        }
        _ => {
            state.send_modify(|state| state.faults.push(format!("not authenticated: {first}")));
            close(socket, 4003).await;
            None
        }
    }
}

async fn end(mut socket: Socket, cut: Cut, state: &watch::Sender<Discord>) {
    match cut {
        Cut::Silently => {}
        Cut::Reconnect => send(&mut socket, &json!({ "op": 7, "d": null })).await,
        Cut::Closed(code) => close(&mut socket, code).await,
        Cut::Invalid => {
            // Nobody can resume it.
            state.send_modify(|state| state.log.clear());
            send(&mut socket, &json!({ "op": 9, "d": false })).await;
        }
    }
    if cut != Cut::Silently {
        while let Some(Ok(_)) = socket.next().await {}
    }
}

async fn hear(socket: &mut Socket) -> Option<Value> {
    loop {
        match socket.next().await? {
            Ok(Frame::Text(text)) => return serde_json::from_str(text.as_str()).ok(),
            Ok(Frame::Close(_)) | Err(_) => return None,
            Ok(_) => {}
        }
    }
}

async fn send(socket: &mut Socket, value: &Value) {
    let _ = socket.send(Frame::Text(value.to_string().into())).await;
}

async fn close(socket: &mut Socket, code: u16) {
    let frame = CloseFrame { code: code.into(), reason: "as the test says".into() };
    let _ = socket.close(Some(frame)).await;
}
