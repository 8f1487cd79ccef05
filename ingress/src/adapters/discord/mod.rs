//! Discord: bots over the gateway, and interactions over HTTP.

mod bookmark;
mod call;
mod connect;
mod event;
mod receive;
mod send;
mod session;
mod take;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use ed25519_dalek::VerifyingKey;
use moka::sync::Cache;
use node::bus::Bus;
use node::settings;
use proto::event::Address;
use tokio::sync::OnceCell;

use self::call::Api;
use self::event::{Me, Message};
use crate::adapter::{
    Account, Adapter, Binding, BoxFuture, Capabilities, ConnectError, Dialect, Drafts, Fetched,
    Link, Messages, Post, Rate, Rates, Refusal, Repeats, SendError, TextLimit, Transport, Unit,
};
use crate::gate::{Gate, Place, Sender};
use crate::http::Clients;
use crate::metrics::Metrics;
use crate::registry::Parts;

/// The platform's name.
const PLATFORM: &str = "discord";
/// The longest text of a message.
const TEXT_MAX: usize = 2000;
/// How many channels and messages are remembered.
const KNOWN_MAX: u64 = 20_000;
/// For how long: a channel may be given another name.
const KNOWN_FOR: Duration = Duration::from_secs(3600);

/// What it can do, by the reference of its API.
pub(crate) const CAPABILITIES: Capabilities = Capabilities {
    name: "Discord",
    transports: &[Transport::WebSocket, Transport::Webhook],
    drafts: Drafts::Whole { every: Duration::from_millis(1500), growth: 32 },
    binding: Binding::Account,
    messages: Some(Messages {
        text: TextLimit { max: TEXT_MAX, unit: Unit::Utf16, counts_markup: true },
        dialect: Dialect::Discord,
        edit: true,
        delete: true,
        react: false,
        typing: Some(Duration::from_secs(8)),
        buttons: true,
        threads: true,
        replies: true,
        media_in: Some(25 * 1024 * 1024),
        media_out: None,
        repeats: Repeats::Key,
        rates: Rates {
            direct: Rate { calls: 5, per: Duration::from_secs(5) },
            group: Rate { calls: 5, per: Duration::from_secs(5) },
            account: Rate::per_second(40),
        },
    }),
    tested: "a strict fake written from the reference of the gateway and the REST API",
};

/// Builds the adapter from the bots in the settings.
pub(crate) fn build(parts: &Parts) -> anyhow::Result<Arc<dyn Adapter>> {
    let settings = &parts.node.settings;
    let mut bots = BTreeMap::new();
    for (name, own) in &settings.ingress.discord {
        let clients = Clients::new(&settings.network, own.timeout.get())?;
        let api = Api::new(clients, own);
        let key = public_key(&own.public_key);
        let setting = |key: &str| format!("ingress.discord.{name}.{key}");
        let fault = match (own.token.given(), &api, &key) {
            (None, ..) => Some(format!("{} is not set", setting("token"))),
            (_, None, _) => Some(format!("{} is not an address", setting("base_url"))),
            (_, _, Err(())) => {
                Some(format!("{} is not a key of 64 hex digits", setting("public_key")))
            }
            (Some(_), Some(_), Ok(_)) => None,
        };
        let bot = Bot {
            name: name.clone(),
            settings: own.clone(),
            bus: parts.node.bus.clone(),
            gate: parts.gates.open(PLATFORM, name),
            api,
            key: key.unwrap_or_default(),
            sockets: Clients::for_sockets(&settings.network)?,
            me: OnceCell::new(),
            channels: Cache::builder().max_capacity(KNOWN_MAX).time_to_live(KNOWN_FOR).build(),
            writers: Cache::builder().max_capacity(KNOWN_MAX).time_to_live(KNOWN_FOR).build(),
            fault,
        };
        bots.insert(name.clone(), bot);
    }
    Ok(Arc::new(Discord(Arc::new(Inner { bots, metrics: parts.metrics.clone() }))))
}

/// The key that proves interactions; none where they do not come to our door.
fn public_key(hex: &str) -> Result<Option<VerifyingKey>, ()> {
    if hex.is_empty() {
        return Ok(None);
    }
    let mut bytes = [0; 32];
    hex::decode_to_slice(hex, &mut bytes).map_err(drop)?;
    VerifyingKey::from_bytes(&bytes).map(Some).map_err(drop)
}

struct Discord(Arc<Inner>);

struct Inner {
    bots: BTreeMap<String, Bot>,
    metrics: Metrics,
}

/// A bot as it is configured.
struct Bot {
    name: String,
    settings: settings::Discord,
    bus: Bus,
    gate: Gate,
    api: Option<Api>,
    key: Option<VerifyingKey>,
    sockets: Clients,
    me: OnceCell<Me>,
    /// The channels of servers, by id.
    channels: Cache<String, Place>,
    /// Who wrote the last messages: Discord does not say it again when one is taken back.
    writers: Cache<String, Sender>,
    fault: Option<String>,
}

impl Bot {
    fn api(&self) -> Result<&Api, SendError> {
        let none = || SendError::refused(Refusal::Account, "the bot is not configured");
        self.api.as_ref().ok_or_else(none)
    }

    /// Who the bot is; asked once.
    async fn me(&self) -> Result<&Me, SendError> {
        let api = self.api()?;
        self.me.get_or_try_init(async || api.get("users/@me").await).await
    }
}

impl Inner {
    fn bot(&self, account: &str) -> Result<&Bot, SendError> {
        let none = || SendError::refused(Refusal::Account, "there is no such bot any more");
        self.bots.get(account).ok_or_else(none)
    }
}

impl Adapter for Discord {
    fn platform(&self) -> &'static str {
        PLATFORM
    }

    fn capabilities(&self) -> &'static Capabilities {
        &CAPABILITIES
    }

    fn accounts(&self) -> Vec<Account> {
        let account = |bot: &Bot| Account {
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
        receive::routes(self.0.clone())
    }

    fn connect<'a>(
        &'a self,
        account: &'a str,
        link: &'a Link,
    ) -> BoxFuture<'a, Result<(), ConnectError>> {
        Box::pin(connect::run(&self.0, account, link))
    }

    fn send<'a>(&'a self, post: &'a Post<'a>) -> BoxFuture<'a, Result<String, SendError>> {
        Box::pin(async move { self.0.bot(&post.to.account)?.send(post).await })
    }

    fn edit<'a>(
        &'a self,
        message: &'a str,
        post: &'a Post<'a>,
    ) -> BoxFuture<'a, Result<(), SendError>> {
        Box::pin(async move { self.0.bot(&post.to.account)?.edit(message, post).await })
    }

    fn delete<'a>(
        &'a self,
        to: &'a Address,
        message: &'a str,
    ) -> BoxFuture<'a, Result<(), SendError>> {
        Box::pin(async move { self.0.bot(&to.account)?.delete(&to.chat, message).await })
    }

    fn typing<'a>(&'a self, to: &'a Address) -> BoxFuture<'a, Result<(), SendError>> {
        Box::pin(async move { self.0.bot(&to.account)?.typing(&to.chat).await })
    }

    fn fetch<'a>(
        &'a self,
        account: &'a str,
        reference: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Fetched, SendError>> {
        Box::pin(async move {
            let strange = || SendError::refused(Refusal::Other, "this is no file of Discord");
            let digits = |part: &&str| part.chars().all(|c| c.is_ascii_digit());
            let parts: Vec<&str> = reference.split('/').filter(digits).collect();
            let [channel, message, file] = parts.as_slice() else { return Err(strange()) };
            let api = self.0.bot(account)?.api()?;
            let path = format!("channels/{channel}/messages/{message}");
            let files = api.get::<Message>(&path).await?.into_attachments();
            let found = files.into_iter().find(|there| there.id == *file).ok_or_else(strange)?;
            if found.size > limit as u64 {
                return Err(SendError::refused(
                    Refusal::TooLarge,
                    "the file is too large to be fetched",
                ));
            }
            Ok(Fetched { bytes: api.download(&found.url, limit).await?, mime: found.content_type })
        })
    }
}
