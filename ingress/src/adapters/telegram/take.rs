//! Takes one update: reads it and brings it to the gate. Only then may Telegram be told that we have it.

use serde_json::{Value, json};

use super::update::{News, Update, read};
use super::{Bound, Inner};
use crate::gate::Outcome;
use crate::publish::AcceptError;

impl Inner {
    /// Takes an update. An error means that Telegram must send it again; what can never be taken is set aside.
    pub(super) async fn take(&self, bot: &Bound, raw: Value) -> Result<(), AcceptError> {
        let Some(update) = bot.gate.read::<Update>(&raw).await? else { return Ok(()) };
        let me = bot.me().await.map_err(|error| {
            tracing::warn!("Telegram does not say who the bot is: {error}");
            AcceptError::Unavailable
        })?;
        match read(update, &bot.name, me) {
            News::Nothing => Ok(()),
            News::Moved { from, to } => bot.gate.moved(&from, &to).await,
            News::Said(arrival) => bot.gate.admit_or_set_aside(*arrival, &raw).await.map(drop),
            News::Pressed { arrival, callback, message } => {
                let chat = arrival.place.chat.clone();
                let taken = bot.gate.admit_or_set_aside(*arrival, &raw).await;
                self.pressed(bot, &chat, (&callback, &message), &taken).await;
                taken.map(drop)
            }
        }
    }

    /// Ends the waiting that a pressed button shows, and takes the buttons away from a question that is decided. Best effort: the
    /// waiting ends by itself, and a second press does no harm.
    async fn pressed(
        &self,
        bot: &Bound,
        chat: &str,
        (callback, message): (&str, &str),
        taken: &Result<Option<Outcome>, AcceptError>,
    ) {
        let done =
            matches!(taken, Ok(Some(Outcome::Stored(_) | Outcome::Duplicate(_) | Outcome::Done)));
        let text = match taken {
            _ if done => "",
            Err(_) => "That did not work; press again.",
            Ok(_) => "You may not decide this.",
        };
        let arguments = json!({ "callback_query_id": callback, "text": text });
        let answered = self.call::<Value>(&bot.name, "answerCallbackQuery", &arguments).await;
        if let Err(error) = answered {
            tracing::debug!("a pressed button was not answered: {error}");
        }
        if !done {
            return;
        }
        let arguments =
            json!({ "chat_id": super::number(chat), "message_id": super::number(message) });
        let edited = self.call::<Value>(&bot.name, "editMessageReplyMarkup", &arguments).await;
        if let Err(error) = edited {
            tracing::debug!("the buttons of a question stay: {error}");
        }
    }
}
