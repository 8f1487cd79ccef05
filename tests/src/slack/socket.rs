//! Socket Mode: what happens goes over each open socket until it is acknowledged.

use std::collections::BTreeSet;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_tungstenite::accept_async;
use tokio_tungstenite::tungstenite::Message as Frame;

use super::Slack;

/// One socket.
pub(super) async fn link(stream: TcpStream, state: watch::Sender<Slack>) {
    let Ok(mut socket) = accept_async(stream).await else { return };
    let mut watch = state.subscribe();
    let (mut sent, mut born) = (BTreeSet::new(), 0);
    state.send_modify(|state| {
        state.sockets += 1;
        born = state.cuts;
    });
    let hello =
        json!({ "type": "hello", "num_connections": 1, "connection_info": { "app_id": "A0" } });
    if socket.send(Frame::Text(hello.to_string().into())).await.is_err() {
        return;
    }
    loop {
        let (new, cut) = {
            let state = watch.borrow_and_update();
            let cut = (state.cuts != born).then_some(state.politely);
            (state.envelopes.iter().cloned().collect::<Vec<_>>(), cut)
        };
        if let Some(politely) = cut {
            if politely {
                let goodbye = json!({ "type": "disconnect", "reason": "refresh_requested" });
                let _ = socket.send(Frame::Text(goodbye.to_string().into())).await;
                while let Some(Ok(_)) = socket.next().await {}
            }
            return;
        }
        for envelope in new {
            let id = envelope["envelope_id"].as_str().unwrap_or_default().to_owned();
            if sent.insert(id)
                && socket.send(Frame::Text(envelope.to_string().into())).await.is_err()
            {
                return;
            }
        }
        tokio::select! {
            frame = socket.next() => match frame {
                Some(Ok(Frame::Text(text))) => {
                    let receipt: Value = serde_json::from_str(text.as_str()).unwrap_or(Value::Null);
                    state.send_modify(|state| state.receive(&receipt));
                }
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return,
            },
            changed = watch.changed() => if changed.is_err() { return },
        }
    }
}

impl Slack {
    fn receive(&mut self, receipt: &Value) {
        if self.deaf {
            return;
        }
        let id = &receipt["envelope_id"];
        if !self.envelopes.iter().any(|envelope| envelope["envelope_id"] == *id) {
            self.faults.push(format!("a receipt for nothing: {receipt}"));
        }
        self.envelopes.retain(|envelope| envelope["envelope_id"] != *id);
        self.receipts.push(receipt.clone());
    }
}
