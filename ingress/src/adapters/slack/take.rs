//! Takes what Slack sends: reads it and brings it to the gate. Only then may Slack be told that we have it.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

use super::App;
use super::call::As;
use super::event::{Callback, Interaction, Me, Slash};
use crate::gate::Outcome;
use crate::publish::AcceptError;

/// How long a look-up of a name may hold a message up.
const NAME: Duration = Duration::from_millis(800);

/// What Slack sends.
#[derive(Clone, Debug)]
pub(super) enum Parcel {
    /// Something happened.
    Event(Value),
    /// A button was pressed.
    Interaction(Value),
    /// A command was chosen.
    Command(Value),
}

/// What whoever pressed or chose is told, when it is not taken.
const REFUSED: &str = "You may not do this here.";

impl App {
    /// Takes something. An error means that Slack must send it again; what can never be taken is set aside. Returns what its
    /// sender alone is to be told.
    pub(super) async fn take(&self, parcel: Parcel) -> Result<Option<&'static str>, AcceptError> {
        let me = self.me().await.map_err(|error| {
            tracing::warn!("Slack does not say who the app is: {error}");
            AcceptError::Unavailable
        })?;
        match parcel {
            Parcel::Event(raw) => self.event(raw, me).await.map(|()| None),
            Parcel::Interaction(raw) => self.interaction(raw, me).await.map(|()| None),
            Parcel::Command(raw) => self.command(raw, me).await,
        }
    }

    async fn event(&self, raw: Value, me: &Me) -> Result<(), AcceptError> {
        let Some(callback) = self.gate.read::<Callback>(&raw).await? else { return Ok(()) };
        let Some(event) = callback.event.filter(|_| callback.kind == "event_callback") else {
            return Ok(());
        };
        let Some(mut arrival) = self.reader(me).event(event) else { return Ok(()) };
        let (sender, chat) = (arrival.sender.id.clone(), arrival.place.chat.clone());
        let named = async {
            tokio::join!(
                self.name("users.info", "user", &sender),
                self.name("conversations.info", "channel", &chat)
            )
        };
        if let Ok((sender, chat)) = timeout(NAME, named).await {
            arrival.sender.name = sender;
            arrival.place.name = chat;
        }
        self.gate.admit_or_set_aside(arrival, &raw).await.map(drop)
    }

    async fn interaction(&self, raw: Value, me: &Me) -> Result<(), AcceptError> {
        let Some(interaction) = self.gate.read::<Interaction>(&raw).await? else { return Ok(()) };
        let Some((arrival, message)) = self.reader(me).pressed(&interaction) else { return Ok(()) };
        let (chat, user) = (arrival.place.chat.clone(), arrival.sender.id.clone());
        let thread = arrival.place.thread.clone();
        let taken = self.gate.admit_or_set_aside(arrival, &raw).await?;
        let done =
            matches!(taken, Some(Outcome::Stored(_) | Outcome::Duplicate(_) | Outcome::Done));
        let shown = if done {
            self.without_buttons(&chat, &message, &interaction.message).await
        } else {
            let mut arguments = json!({ "channel": chat, "user": user, "text": REFUSED });
            if let Some(thread) = thread {
                arguments["thread_ts"] = thread.into();
            }
            self.tell("chat.postEphemeral", arguments).await
        };
        // Best effort: a second press does no harm.
        if let Err(why) = shown {
            tracing::debug!("what became of a pressed button is not shown: {why}");
        }
        Ok(())
    }

    async fn command(&self, raw: Value, me: &Me) -> Result<Option<&'static str>, AcceptError> {
        let Some(slash) = self.gate.read::<Slash>(&raw).await? else { return Ok(None) };
        let taken = self.gate.admit_or_set_aside(self.reader(me).slash(slash), &raw).await?;
        Ok(matches!(taken, Some(Outcome::Refused(_) | Outcome::Unheeded(_))).then_some(REFUSED))
    }

    /// Takes the buttons away from a question that is decided.
    async fn without_buttons(&self, chat: &str, ts: &str, message: &Value) -> Result<(), String> {
        let blocks = message["blocks"].as_array().into_iter().flatten();
        let left: Vec<&Value> = blocks.filter(|block| block["type"] != "actions").collect();
        let arguments =
            json!({ "channel": chat, "ts": ts, "text": message["text"], "blocks": left });
        self.tell("chat.update", arguments).await
    }

    async fn tell(&self, method: &str, arguments: Value) -> Result<(), String> {
        let api = self.api().map_err(|error| error.to_string())?;
        let told = api.call::<Value>(method, &arguments, As::Bot).await;
        told.map(drop).map_err(|error| error.to_string())
    }

    /// What someone or something is called. Events say ids only.
    async fn name(&self, method: &str, what: &str, id: &str) -> Option<String> {
        if id.is_empty() || id.starts_with('B') {
            return None;
        }
        if let Some(known) = self.names.get(id) {
            return known;
        }
        let found = self.api().ok()?.ask::<Value>(method, &[(what, id)]).await;
        let name = match found {
            Ok(found) => {
                let found = &found[what];
                let names =
                    [&found["profile"]["display_name"], &found["real_name"], &found["name"]];
                let name = names.into_iter().filter_map(|name| name.as_str());
                name.into_iter().find(|name| !name.is_empty()).map(str::to_owned)
            }
            Err(error) => {
                tracing::debug!("a name is not known: {error}");
                None
            }
        };
        self.names.insert(id.to_owned(), name.clone());
        name
    }
}
