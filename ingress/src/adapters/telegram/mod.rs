//! Telegram: bots over the Bot API, by long polling or webhook.

mod call;
mod connect;
mod take;
mod update;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use node::settings::{self, TelegramMode};
use proto::event::Address;
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use tokio::sync::OnceCell;

use self::call::{Bot, is_unchanged};
use self::update::Me;
use crate::adapter::{
    Account, Adapter, Binding, BoxFuture, Capabilities, ConnectError, Dialect, Drafts, Fetched,
    Link, Messages, Post, Rate, Rates, Refusal, Repeats, SendError, TextLimit, Transport, Unit,
};
use crate::door;
use crate::gate::Gate;
use crate::http::Clients;
use crate::metrics::Metrics;
use crate::problem::Problem;
use crate::registry::Parts;

/// The platform's name.
const PLATFORM: &str = "telegram";
/// The header by which Telegram proves itself.
const SECRET: &str = "x-telegram-bot-api-secret-token";
/// The largest update.
const UPDATE_MAX: usize = 512 * 1024;
/// The topic that every forum has, which must not be named.
const GENERAL_TOPIC: &str = "1";

/// What it can do, by the Bot API's reference.
pub(crate) const CAPABILITIES: Capabilities = Capabilities {
    name: "Telegram",
    transports: &[Transport::LongPolling, Transport::Webhook],
    drafts: Drafts::Whole { every: Duration::from_millis(1200), growth: 24 },
    binding: Binding::Account,
    messages: Some(Messages {
        text: TextLimit { max: 4096, unit: Unit::Utf16, counts_markup: false },
        dialect: Dialect::TelegramHtml,
        edit: true,
        delete: true,
        react: true,
        typing: Some(Duration::from_secs(4)),
        buttons: true,
        threads: true,
        replies: true,
        media_in: Some(20 * 1024 * 1024),
        media_out: None,
        repeats: Repeats::Never,
        rates: Rates {
            direct: Rate { calls: 3, per: Duration::from_secs(3) },
            group: Rate { calls: 20, per: Duration::from_secs(60) },
            account: Rate::per_second(30),
        },
    }),
    tested: "a strict fake written from the Bot API's reference",
};

/// Builds the adapter from the bots in the settings.
pub(crate) fn build(parts: &Parts) -> anyhow::Result<Arc<dyn Adapter>> {
    let settings = &parts.node.settings;
    let mut bots = BTreeMap::new();
    for (name, own) in &settings.ingress.telegram {
        let clients = Clients::new(&settings.network, own.timeout.get())?;
        let fault = fault(name, own);
        let api = Bot::new(clients, own);
        let fault = fault.or_else(|| {
            let why = format!("ingress.telegram.{name}.base_url is not an address");
            api.is_none().then_some(why)
        });
        let (settings, me) = (own.clone(), OnceCell::new());
        let gate = parts.gates.open(PLATFORM, name);
        let bot = Bound { name: name.clone(), settings, gate, api, me, fault };
        bots.insert(name.clone(), bot);
    }
    Ok(Arc::new(Telegram(Arc::new(Inner { bots, metrics: parts.metrics.clone() }))))
}

/// What is wrong with a bot's settings.
fn fault(name: &str, settings: &settings::Telegram) -> Option<String> {
    let key = |key: &str| format!("ingress.telegram.{name}.{key}");
    let Some(token) = settings.token.given() else {
        return Some(format!("{} is not set", key("token")));
    };
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, ':' | '-' | '_');
    if !token.contains(':') || !token.chars().all(legal) {
        return Some(format!("{} is not a bot's token (123456:ABC…)", key("token")));
    }
    if settings.mode == TelegramMode::Polling {
        return None;
    }
    let secret = settings.webhook_secret.expose();
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if secret.is_empty() || secret.len() > 256 || !secret.chars().all(legal) {
        let key = key("webhook_secret");
        return Some(format!("{key} must be 1 to 256 letters, digits, - and _"));
    }
    settings.public_url.is_empty().then(|| format!("{} is not set", key("public_url")))
}

struct Telegram(Arc<Inner>);

struct Inner {
    bots: BTreeMap<String, Bound>,
    metrics: Metrics,
}

/// A bot as it is configured.
struct Bound {
    name: String,
    settings: settings::Telegram,
    gate: Gate,
    api: Option<Bot>,
    me: OnceCell<Me>,
    fault: Option<String>,
}

impl Bound {
    fn api(&self) -> Result<&Bot, SendError> {
        self.api.as_ref().ok_or_else(|| SendError::Refused {
            reason: Refusal::Account,
            why: "the bot is not configured".into(),
        })
    }

    /// Who the bot is; asked once.
    async fn me(&self) -> Result<&Me, SendError> {
        let api = self.api()?;
        self.me.get_or_try_init(async || api.call("getMe", &json!({}), None).await).await
    }
}

impl Inner {
    fn bot(&self, account: &str) -> Result<&Bound, SendError> {
        self.bots.get(account).ok_or_else(|| SendError::Refused {
            reason: Refusal::Account,
            why: format!("there is no bot {account} any more"),
        })
    }

    async fn call<T: serde::de::DeserializeOwned>(
        &self,
        account: &str,
        method: &str,
        arguments: &Value,
    ) -> Result<T, SendError> {
        self.bot(account)?.api()?.call(method, arguments, None).await
    }
}

#[derive(Deserialize)]
struct Sent {
    message_id: i64,
}

impl Adapter for Telegram {
    fn platform(&self) -> &'static str {
        PLATFORM
    }

    fn capabilities(&self) -> &'static Capabilities {
        &CAPABILITIES
    }

    fn accounts(&self) -> Vec<Account> {
        let account = |bot: &Bound| Account {
            name: bot.name.clone(),
            identity: bot.settings.token.expose().to_owned(),
            fault: bot.fault.clone(),
        };
        self.0.bots.values().map(account).collect()
    }

    fn drafts(&self, account: &str) -> Drafts {
        match self.0.bots.get(account) {
            Some(bot) if bot.settings.drafts => CAPABILITIES.drafts,
            Some(_) | None => Drafts::None,
        }
    }

    fn routes(&self) -> Router {
        Router::new().route("/telegram/{name}", post(receive)).with_state(self.0.clone())
    }

    fn connect<'a>(
        &'a self,
        account: &'a str,
        link: &'a Link,
    ) -> BoxFuture<'a, Result<(), ConnectError>> {
        Box::pin(connect::run(&self.0, account, link))
    }

    fn send<'a>(&'a self, post: &'a Post<'a>) -> BoxFuture<'a, Result<String, SendError>> {
        Box::pin(async move {
            let mut arguments = message(post);
            if let Some(thread) =
                post.to.thread.as_deref().filter(|thread| *thread != GENERAL_TOPIC)
            {
                arguments["message_thread_id"] = number(thread);
            }
            if let Some(reply_to) = post.reply_to.and_then(|id| id.parse::<i64>().ok()) {
                arguments["reply_parameters"] =
                    json!({ "message_id": reply_to, "allow_sending_without_reply": true });
            }
            let sent: Sent = self.0.call(&post.to.account, "sendMessage", &arguments).await?;
            Ok(sent.message_id.to_string())
        })
    }

    fn edit<'a>(
        &'a self,
        message_id: &'a str,
        post: &'a Post<'a>,
    ) -> BoxFuture<'a, Result<(), SendError>> {
        Box::pin(async move {
            let mut arguments = message(post);
            arguments["message_id"] = number(message_id);
            let edited =
                self.0.call::<Value>(&post.to.account, "editMessageText", &arguments).await;
            match edited {
                Err(error) if is_unchanged(&error) => Ok(()),
                edited => edited.map(drop),
            }
        })
    }

    fn delete<'a>(
        &'a self,
        to: &'a Address,
        message: &'a str,
    ) -> BoxFuture<'a, Result<(), SendError>> {
        let arguments = json!({ "chat_id": number(&to.chat), "message_id": number(message) });
        Box::pin(async move {
            match self.0.call::<Value>(&to.account, "deleteMessage", &arguments).await {
                Err(SendError::Refused { reason: Refusal::Message, why })
                    if why.contains("not found") =>
                {
                    Ok(())
                }
                deleted => deleted.map(drop),
            }
        })
    }

    fn react<'a>(
        &'a self,
        to: &'a Address,
        message: &'a str,
        emoji: Option<&'a str>,
    ) -> BoxFuture<'a, Result<(), SendError>> {
        let reaction: Vec<Value> =
            emoji.iter().map(|emoji| json!({ "type": "emoji", "emoji": emoji })).collect();
        let arguments = json!({ "chat_id": number(&to.chat), "message_id": number(message), "reaction": reaction });
        Box::pin(async move {
            self.0.call::<Value>(&to.account, "setMessageReaction", &arguments).await.map(drop)
        })
    }

    fn typing<'a>(&'a self, to: &'a Address) -> BoxFuture<'a, Result<(), SendError>> {
        let mut arguments = json!({ "chat_id": number(&to.chat), "action": "typing" });
        // Here, other than in messages, the general topic may be named.
        if let Some(thread) = &to.thread {
            arguments["message_thread_id"] = number(thread);
        }
        Box::pin(async move {
            self.0.call::<Value>(&to.account, "sendChatAction", &arguments).await.map(drop)
        })
    }

    fn fetch<'a>(
        &'a self,
        account: &'a str,
        reference: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Fetched, SendError>> {
        #[derive(Deserialize)]
        struct File {
            file_path: Option<String>,
            file_size: Option<u64>,
        }
        Box::pin(async move {
            let refused = |reason, why: &str| SendError::Refused { reason, why: why.into() };
            let api = self.0.bot(account)?.api()?;
            let file: File = api.call("getFile", &json!({ "file_id": reference }), None).await?;
            if file.file_size.is_some_and(|size| size > limit as u64) {
                return Err(refused(Refusal::TooLarge, "the file is too large to be fetched"));
            }
            let path =
                file.file_path.ok_or_else(|| refused(Refusal::Other, "the file has no path"))?;
            // A path that leads elsewhere is none of the API's.
            if path.split('/').any(|part| part == "..") {
                return Err(refused(Refusal::Other, "the file has a strange path"));
            }
            Ok(Fetched { bytes: api.download(&path, limit).await?, mime: None })
        })
    }
}

/// The arguments that sending and editing share.
fn message(post: &Post<'_>) -> Value {
    let mut arguments = json!({
        "chat_id": number(&post.to.chat),
        "text": post.markup.unwrap_or(post.plain),
        "link_preview_options": { "is_disabled": true },
    });
    if post.markup.is_some() {
        arguments["parse_mode"] = "HTML".into();
    }
    if !post.buttons.is_empty() {
        let button = |button: &crate::adapter::Button| json!({ "text": button.label, "callback_data": button.press.data() });
        let row: Vec<Value> = post.buttons.iter().map(button).collect();
        arguments["reply_markup"] = json!({ "inline_keyboard": [row] });
    }
    arguments
}

/// An id as Telegram wants it: a number where it is one.
fn number(id: &str) -> Value {
    id.parse::<i64>().map_or_else(|_| id.into(), Value::from)
}

/// Takes one update from Telegram's own hand.
async fn receive(
    State(inner): State<Arc<Inner>>,
    Path(name): Path<String>,
    headers: HeaderMap,
    request: Request,
) -> Response {
    let outcome = async {
        let bot = inner.bots.get(&name).filter(|bot| bot.settings.mode == TelegramMode::Webhook);
        let Some(bot) = bot.filter(|bot| bot.fault.is_none()) else {
            return Err(Problem::new(StatusCode::NOT_FOUND, "there is no such bot"));
        };
        let proof = headers.get(SECRET).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if !same(proof, bot.settings.webhook_secret.expose()) {
            return Err(Problem::new(StatusCode::UNAUTHORIZED, "the secret token is wrong"));
        }
        let body = door::read_body(request.into_body(), UPDATE_MAX).await?;
        let Ok(update) = serde_json::from_slice::<Value>(&body) else {
            return Err(Problem::new(StatusCode::BAD_REQUEST, "the body is not JSON"));
        };
        inner.take(bot, update).await.map_err(Problem::from)
    };
    match outcome.await {
        Ok(()) => StatusCode::OK.into_response(),
        Err(problem) => {
            inner.metrics.arrived(PLATFORM, problem.arrival());
            problem.into_response()
        }
    }
}

/// Whether two secrets are the same; takes the same time for any.
fn same(guess: &str, secret: &str) -> bool {
    Sha256::digest(guess).ct_eq(&Sha256::digest(secret)).into()
}
