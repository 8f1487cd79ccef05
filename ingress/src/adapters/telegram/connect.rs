//! The connection of a bot: the long poll, or the registration of our webhook.

use std::time::Duration;

use node::settings::TelegramMode;
use proto::command::{REGISTRY, Who};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::call::{Bot, is_conflict};
use super::{Bound, Inner};
use crate::adapter::{ConnectError, Link, Refusal, SendError};

/// The kinds of updates that are wanted.
const WANTED: [&str; 5] =
    ["message", "edited_message", "channel_post", "edited_channel_post", "callback_query"];
/// How many updates come at once.
const BATCH: u32 = 100;
/// How long to wait before an update is tried again that could not be stored.
const STORE_AGAIN: Duration = Duration::from_secs(1);
/// How long to wait while another process asks for the same bot's updates.
const CONFLICT: Duration = Duration::from_secs(10);
/// How long confirming the last updates may take when we stop.
const CONFIRM: Duration = Duration::from_secs(2);

/// Holds the connection until `link.stop`, or until it breaks.
pub(super) async fn run(inner: &Inner, account: &str, link: &Link) -> Result<(), ConnectError> {
    let bot = inner.bot(account).map_err(ConnectError::of)?;
    let api = bot.api().map_err(ConnectError::of)?;
    let work = async {
        let me = bot.me().await.map_err(of)?;
        tracing::info!(account, bot = %me.username, "connected to Telegram");
        offer_commands(api).await;
        match bot.settings.mode {
            TelegramMode::Webhook => webhook(bot, api, link).await,
            TelegramMode::Polling => poll(inner, bot, api, link).await,
        }
    };
    tokio::select! {
        outcome = work => outcome,
        () = link.stop.cancelled() => Ok(()),
    }
}

/// Puts the commands into Telegram's own menu. A bot without a menu works as well, so a failure is only logged.
async fn offer_commands(api: &Bot) {
    let offered = REGISTRY.iter().filter(|spec| spec.who == Who::Anyone && !spec.help.is_empty());
    let commands: Vec<Value> =
        offered.map(|spec| json!({ "command": spec.words[0], "description": spec.help })).collect();
    let arguments = json!({ "commands": commands });
    if let Err(error) = api.call::<Value>("setMyCommands", &arguments, None).await {
        tracing::warn!("the menu of commands was not set: {error}");
    }
}

/// A refused token needs a person, who must know which.
fn of(error: SendError) -> ConnectError {
    match error {
        SendError::Refused { reason: Refusal::Account, why } => {
            ConnectError::Fatal { why: format!("{why}; check the bot's token and start again") }
        }
        error @ (SendError::Flood { .. }
        | SendError::Failed { .. }
        | SendError::Unknown { .. }
        | SendError::Refused { .. }) => ConnectError::of(error),
    }
}

/// Has Telegram post updates to us.
async fn webhook(bot: &Bound, api: &Bot, link: &Link) -> Result<(), ConnectError> {
    let base = bot.settings.public_url.trim_end_matches('/');
    let arguments = json!({
        "url": format!("{base}/telegram/{}", bot.name),
        "secret_token": bot.settings.webhook_secret.expose(),
        "allowed_updates": WANTED,
    });
    api.call::<Value>("setWebhook", &arguments, None).await.map_err(of)?;
    link.up();
    link.stop.cancelled().await;
    Ok(())
}

/// Asks for updates, and takes each before the next are asked for: asking for what follows an update says that we have it.
async fn poll(inner: &Inner, bot: &Bound, api: &Bot, link: &Link) -> Result<(), ConnectError> {
    // With a webhook set there is no polling.
    api.call::<Value>("deleteWebhook", &json!({}), None).await.map_err(of)?;
    let wait = bot.settings.poll.get();
    let limit = wait + bot.settings.timeout.get();
    let mut offset = None;
    loop {
        let mut arguments =
            json!({ "timeout": wait.as_secs(), "limit": BATCH, "allowed_updates": WANTED });
        if let Some(offset) = offset {
            arguments["offset"] = Value::from(offset);
        }
        let updates: Vec<Value> = match api.call("getUpdates", &arguments, Some(limit)).await {
            Ok(updates) => updates,
            Err(error) if is_conflict(&error) => {
                let why = format!(
                    "another process elsewhere uses this bot's token ({}); stop it, or give it a bot of its own",
                    error.why()
                );
                link.trouble(why);
                sleep(CONFLICT).await;
                continue;
            }
            Err(error) => return Err(of(error)),
        };
        link.up();
        for update in updates {
            let id = update["update_id"].as_i64();
            let taking = async {
                while let Err(error) = inner.take(bot, update.clone()).await {
                    link.trouble(format!("messages are not taken: {error}"));
                    sleep(STORE_AGAIN).await;
                }
            };
            taking.await;
            offset = id.map(|id| id + 1).or(offset);
        }
        if link.stop.is_cancelled() {
            break;
        }
    }
    // So that our successor is not given the last ones again.
    if let Some(offset) = offset {
        let arguments =
            json!({ "timeout": 0, "limit": 1, "offset": offset, "allowed_updates": WANTED });
        let confirmed = api.call::<Value>("getUpdates", &arguments, Some(CONFIRM)).await;
        if let Err(error) = confirmed {
            tracing::debug!("the last updates were not confirmed: {error}");
        }
    }
    Ok(())
}
