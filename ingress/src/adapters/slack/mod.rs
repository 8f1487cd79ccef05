//! Slack: apps over Socket Mode or the Events API.

mod call;
mod connect;
mod event;
mod receive;
mod send;
mod take;
mod text;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use moka::sync::Cache;
use node::settings::{self, SlackMode};
use proto::event::Address;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::OnceCell;

use self::call::{Api, As};
use self::event::{Me, Reader};
use crate::adapter::{
    Account, Adapter, Binding, BoxFuture, Capabilities, ConnectError, Dialect, Drafts, Fetched,
    Link, Messages, Post, Rate, Rates, Refusal, Repeats, SendError, TextLimit, Transport, Unit,
};
use crate::gate::Gate;
use crate::http::Clients;
use crate::metrics::Metrics;
use crate::registry::Parts;

/// The platform's name.
const PLATFORM: &str = "slack";
/// How many people's and channels' names are remembered, and for how long.
const NAMES_MAX: u64 = 10_000;
const NAMES_FOR: Duration = Duration::from_secs(3600);

/// What it can do, by the reference of the Web API.
pub(crate) const CAPABILITIES: Capabilities = Capabilities {
    name: "Slack",
    transports: &[Transport::WebSocket, Transport::Webhook],
    // An account may change about 50 messages a minute.
    drafts: Drafts::Whole { every: Duration::from_secs(2), growth: 48 },
    binding: Binding::Account,
    messages: Some(Messages {
        // More can be sent, but not changed.
        text: TextLimit { max: 4000, unit: Unit::Utf16, counts_markup: true },
        dialect: Dialect::Mrkdwn,
        edit: true,
        delete: true,
        react: false,
        typing: None,
        buttons: true,
        threads: true,
        // An answer to one message is a thread.
        replies: false,
        media_in: Some(100 * 1024 * 1024),
        media_out: None,
        repeats: Repeats::LookUp,
        rates: Rates {
            direct: Rate::per_second(1),
            group: Rate::per_second(1),
            account: Rate::per_second(4),
        },
    }),
    tested: "a strict fake written from the reference of the Web API, the Events API and Socket Mode",
};

/// Builds the adapter from the apps in the settings.
pub(crate) fn build(parts: &Parts) -> anyhow::Result<Arc<dyn Adapter>> {
    let settings = &parts.node.settings;
    let mut apps = BTreeMap::new();
    for (name, own) in &settings.ingress.slack {
        let clients = Clients::new(&settings.network, own.timeout.get())?;
        let api = Api::new(clients, own);
        let no_address = || format!("ingress.slack.{name}.base_url is not an address");
        let fault = fault(name, own).or_else(|| api.is_none().then(no_address));
        let app = App {
            name: name.clone(),
            settings: own.clone(),
            gate: parts.gates.open(PLATFORM, name),
            api,
            sockets: Clients::for_sockets(&settings.network)?,
            me: OnceCell::new(),
            names: Cache::builder().max_capacity(NAMES_MAX).time_to_live(NAMES_FOR).build(),
            fault,
        };
        apps.insert(name.clone(), app);
    }
    Ok(Arc::new(Slack(Arc::new(Inner { apps, metrics: parts.metrics.clone() }))))
}

/// What is wrong with an app's settings.
fn fault(name: &str, settings: &settings::Slack) -> Option<String> {
    let key = |key: &str| format!("ingress.slack.{name}.{key}");
    let Some(token) = settings.bot_token.given() else {
        return Some(format!("{} is not set", key("bot_token")));
    };
    if !token.starts_with("xox") {
        return Some(format!("{} is not a bot's token (xoxb-…)", key("bot_token")));
    }
    match settings.mode {
        SlackMode::Socket => match settings.app_token.given() {
            None => Some(format!("{} is not set; the mode socket needs it", key("app_token"))),
            Some(token) if !token.starts_with("xapp-") => {
                Some(format!("{} is not an app's token (xapp-…)", key("app_token")))
            }
            Some(_) => None,
        },
        SlackMode::Events => {
            let missing = settings.signing_secret.given().is_none();
            missing
                .then(|| format!("{} is not set; the mode events needs it", key("signing_secret")))
        }
    }
}

struct Slack(Arc<Inner>);

struct Inner {
    apps: BTreeMap<String, App>,
    metrics: Metrics,
}

/// An app as it is configured.
struct App {
    name: String,
    settings: settings::Slack,
    gate: Gate,
    api: Option<Api>,
    sockets: Clients,
    me: OnceCell<Me>,
    /// What people and channels are called, by id; none where Slack does not say.
    names: Cache<String, Option<String>>,
    fault: Option<String>,
}

impl App {
    fn api(&self) -> Result<&Api, SendError> {
        let none = || SendError::refused(Refusal::Account, "the app is not configured");
        self.api.as_ref().ok_or_else(none)
    }

    /// Who we are; asked once.
    async fn me(&self) -> Result<&Me, SendError> {
        let api = self.api()?;
        self.me.get_or_try_init(async || api.call("auth.test", &json!({}), As::Bot).await).await
    }

    const fn reader<'a>(&'a self, me: &'a Me) -> Reader<'a> {
        let reply_in_thread = self.settings.reply_in_thread;
        Reader { account: self.name.as_str(), me, reply_in_thread }
    }
}

impl Inner {
    fn app(&self, account: &str) -> Result<&App, SendError> {
        let none = || SendError::refused(Refusal::Account, "there is no such app any more");
        self.apps.get(account).ok_or_else(none)
    }
}

impl Adapter for Slack {
    fn platform(&self) -> &'static str {
        PLATFORM
    }

    fn capabilities(&self) -> &'static Capabilities {
        &CAPABILITIES
    }

    fn accounts(&self) -> Vec<Account> {
        let account = |app: &App| Account {
            name: app.name.clone(),
            identity: app.settings.bot_token.expose().to_owned(),
            fault: app.fault.clone(),
        };
        self.0.apps.values().map(account).collect()
    }

    fn drafts(&self, account: &str) -> Drafts {
        match self.0.apps.get(account) {
            Some(app) if app.settings.drafts => CAPABILITIES.drafts,
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
        Box::pin(async move { self.0.app(&post.to.account)?.send(post).await })
    }

    fn edit<'a>(
        &'a self,
        message: &'a str,
        post: &'a Post<'a>,
    ) -> BoxFuture<'a, Result<(), SendError>> {
        Box::pin(async move { self.0.app(&post.to.account)?.edit(message, post).await })
    }

    fn delete<'a>(
        &'a self,
        to: &'a Address,
        message: &'a str,
    ) -> BoxFuture<'a, Result<(), SendError>> {
        Box::pin(async move { self.0.app(&to.account)?.delete(&to.chat, message).await })
    }

    fn find<'a>(
        &'a self,
        to: &'a Address,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>, SendError>> {
        Box::pin(async move { self.0.app(&to.account)?.find(to, key).await })
    }

    fn fetch<'a>(
        &'a self,
        account: &'a str,
        reference: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Fetched, SendError>> {
        #[derive(Deserialize)]
        struct Info {
            file: File,
        }
        #[derive(Deserialize)]
        struct File {
            #[serde(default)]
            size: u64,
            #[serde(default)]
            mimetype: Option<String>,
            url_private_download: Option<String>,
        }
        Box::pin(async move {
            let api = self.0.app(account)?.api()?;
            let Info { file } = api.ask("files.info", &[("file", reference)]).await?;
            if file.size > limit as u64 {
                return Err(SendError::refused(
                    Refusal::TooLarge,
                    "the file is too large to be fetched",
                ));
            }
            let none = || SendError::refused(Refusal::Other, "the file cannot be downloaded");
            let url = file.url_private_download.ok_or_else(none)?;
            Ok(Fetched { bytes: api.download(&url, limit).await?, mime: file.mimetype })
        })
    }
}
