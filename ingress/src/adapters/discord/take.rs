//! Takes what Discord sends: reads it, finds out where it is, and brings it to the gate.

use std::time::Duration;

use proto::session::ChatKind;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::Bot;
use super::event::{Deleted, Interaction, Message};
use crate::adapter::SendError;
use crate::gate::{Outcome, Place};
use crate::publish::AcceptError;

/// How long to keep quiet when Discord says "too many" without saying for how long.
const QUIET: Duration = Duration::from_secs(5);
/// The types of channels that are threads.
const THREADS: [u8; 3] = [10, 11, 12];
/// A group of people without a server.
const GROUP: u8 = 3;
/// The types of answers to an interaction: a message, and a change of the message with the button.
const MESSAGE: u8 = 4;
const UPDATE: u8 = 7;
/// The bit of a message that one person sees.
const EPHEMERAL: u64 = 1 << 6;

impl Bot {
    /// Takes an event of the gateway. An error means that it must come again; what can never be taken is set aside.
    pub(super) async fn take(&self, name: &str, data: &Value) -> Result<(), AcceptError> {
        match name {
            "MESSAGE_CREATE" => self.message(data, false).await,
            "MESSAGE_UPDATE" => self.message(data, true).await,
            "MESSAGE_DELETE" => self.deleted(data).await,
            "INTERACTION_CREATE" => {
                let Some(interaction) = self.gate.read::<Interaction>(data).await? else {
                    return Ok(());
                };
                let answer = self.interaction(&interaction, data).await;
                let path =
                    format!("interactions/{}/{}/callback", interaction.id, interaction.token);
                let answered = match self.api() {
                    Ok(api) => api.post(&path, &answer.0).await,
                    Err(error) => Err(error),
                };
                // Best effort: its presser sees that it failed, and a second press does no harm.
                if let Err(error) = answered {
                    tracing::debug!("an interaction was not answered: {error}");
                }
                answer.1
            }
            "CHANNEL_UPDATE" | "CHANNEL_DELETE" | "THREAD_UPDATE" | "THREAD_DELETE" => {
                if let Some(id) = data["id"].as_str() {
                    self.channels.invalidate(id);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    async fn message(&self, data: &Value, edited: bool) -> Result<(), AcceptError> {
        let Some(message) = self.gate.read::<Message>(data).await? else { return Ok(()) };
        let me = self.me().await.map_err(|error| unavailable(&error))?;
        // Before it is asked where it is: our own messages come here as well.
        if message.read(edited, Place::default(), &self.name, me).is_none() {
            return Ok(());
        }
        let place = self.place(&message.channel_id, message.guild_id.is_some()).await?;
        let Some(arrival) = message.read(edited, place, &self.name, me) else { return Ok(()) };
        self.writers.insert(message.id, arrival.sender.clone());
        self.gate.admit_or_set_aside(arrival, data).await.map(drop)
    }

    async fn deleted(&self, data: &Value) -> Result<(), AcceptError> {
        let Some(deleted) = self.gate.read::<Deleted>(data).await? else { return Ok(()) };
        let Some(writer) = self.writers.get(&deleted.id) else { return Ok(()) };
        let place = self.place(&deleted.channel_id, deleted.guild_id.is_some()).await?;
        self.gate.admit_or_set_aside(deleted.read(place, writer), data).await.map(drop)
    }

    /// Takes an interaction, and returns what Discord is answered.
    pub(super) async fn interaction(
        &self,
        interaction: &Interaction,
        raw: &Value,
    ) -> (Value, Result<(), AcceptError>) {
        let say = |text: &str| json!({ "type": MESSAGE, "data": { "content": text, "flags": EPHEMERAL } });
        let taken = async {
            let channel = interaction.channel_id.as_deref().unwrap_or_default();
            let place = self.place(channel, interaction.guild_id.is_some()).await?;
            match interaction.read(place) {
                Some(arrival) => self.gate.admit_or_set_aside(arrival, raw).await.map(Some),
                None => Ok(None),
            }
        };
        match taken.await {
            Ok(Some(Some(Outcome::Stored(_) | Outcome::Duplicate(_) | Outcome::Done))) => {
                // The question is decided: its buttons go.
                let update = json!({ "type": UPDATE, "data": { "components": [] } });
                (if interaction.is_button() { update } else { say("Taken.") }, Ok(()))
            }
            Ok(Some(_)) => (say("You may not do this here."), Ok(())),
            Ok(None) => (say("This is not known any more."), Ok(())),
            Err(AcceptError::Unavailable) => {
                // It is not tried again: its presser knows.
                (say("That did not work; do it again."), Ok(()))
            }
            Err(error) => (say("That did not work."), Err(error)),
        }
    }

    /// Where a channel is. Only in servers there is something to ask.
    async fn place(&self, channel: &str, in_server: bool) -> Result<Place, AcceptError> {
        #[derive(Deserialize)]
        struct Channel {
            #[serde(rename = "type")]
            kind: u8,
            #[serde(default)]
            name: Option<String>,
            #[serde(default)]
            parent_id: Option<String>,
        }
        let plain = |kind| Place { chat: channel.to_owned(), kind, ..Place::default() };
        if !in_server {
            return Ok(plain(ChatKind::Dm));
        }
        if let Some(known) = self.channels.get(channel) {
            return Ok(known);
        }
        let asked = match self.api() {
            Ok(api) => api.get::<Channel>(&format!("channels/{channel}")).await,
            Err(error) => Err(error),
        };
        let place = match asked {
            Ok(Channel { kind, name, parent_id }) => {
                let is_thread = THREADS.contains(&kind);
                let kind = match kind {
                    _ if is_thread => ChatKind::Thread,
                    GROUP => ChatKind::Group,
                    _ => ChatKind::Channel,
                };
                // The parent of anything else is only a heading.
                Place { name, parent: parent_id.filter(|_| is_thread), ..plain(kind) }
            }
            // Discord does not show it to us.
            Err(SendError::Refused { .. }) => plain(ChatKind::Channel),
            Err(error) => {
                if let SendError::Flood { after, .. } = error {
                    sleep(after.unwrap_or(QUIET)).await;
                }
                return Err(unavailable(&error));
            }
        };
        self.channels.insert(channel.to_owned(), place.clone());
        Ok(place)
    }
}

fn unavailable(error: &SendError) -> AcceptError {
    tracing::warn!("Discord does not answer a question: {error}");
    AcceptError::Unavailable
}
