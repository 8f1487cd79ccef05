//! The generic webhook: signed JSON in, signed JSON out, for anything that can speak HTTP.

mod body;
mod callback;
mod sign;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use moka::sync::Cache;
use node::settings;
use proto::access::Rules;
use proto::outbound::{Draft, Outbound};
use serde_json::{Value, json};

use crate::adapter::{
    Account, Adapter, Binding, BoxFuture, Capabilities, DeliverError, Drafts, Transport,
};
use crate::door;
use crate::gate::{Arrival, Gate, Outcome, Policy, Refused};
use crate::http::Clients;
use crate::metrics::Metrics;
use crate::problem::Problem;
use crate::publish::AcceptError;
use crate::registry::Parts;

/// The platform's name.
const PLATFORM: &str = "webhook";
/// What it can do.
pub(crate) const CAPABILITIES: Capabilities = Capabilities {
    name: "Generic webhook",
    transports: &[Transport::Webhook],
    drafts: Drafts::Whole { every: Duration::from_secs(1), growth: 1 },
    binding: Binding::Account,
    messages: None,
    tested: "a fake of the other end",
};
/// How many chats' names are remembered.
const NAMES_MAX: u64 = 10_000;

/// Builds the adapter from the hooks in the settings.
pub(crate) fn build(parts: &Parts) -> anyhow::Result<Arc<dyn Adapter>> {
    let settings = &parts.node.settings.ingress;
    let access = &parts.node.settings.access;
    let mut hooks = BTreeMap::new();
    for (name, hook) in &settings.webhook {
        if hook.secret.given().is_none() {
            tracing::error!("the webhook {name} is OFF: ingress.webhook.{name}.secret is not set");
            continue;
        }
        if hook.callback_url.is_empty() {
            tracing::warn!("the webhook {name} has no callback_url: its answers go nowhere");
        }
        let gate = parts.gates.open_with(PLATFORM, name, policy(name, hook, access));
        hooks.insert(name.clone(), Hook { settings: hook.clone(), gate });
    }
    Ok(Arc::new(Webhook(Arc::new(Inner {
        hooks,
        clients: Clients::new(&parts.node.settings.network, callback::REQUEST)?,
        metrics: parts.metrics.clone(),
        body_limit: settings.body_limit.min(parts.node.bus.payload_limit()),
        names: Cache::new(NAMES_MAX),
    }))))
}

/// Who may write through a hook, and how it behaves: a hook has its own lists, and what holds for every platform.
fn policy(name: &str, hook: &settings::Webhook, access: &settings::Access) -> Policy {
    let platform = access.of(PLATFORM, name);
    let users =
        hook.allowed_users.iter().chain(&platform.allowed_users).chain(&access.allowed_users);
    let rules = Rules {
        allow_all: hook.allow_all || platform.allow_all,
        allow_all_platforms: access.allow_all,
        users: users.cloned().collect(),
        groups: platform.allowed_groups.clone(),
        roles: Vec::new(),
    };
    let settings = settings::PlatformAccess {
        unauthorized_dm: Some(if hook.pair {
            settings::UnauthorizedDm::Pair
        } else {
            settings::UnauthorizedDm::Ignore
        }),
        admins: hook.admins.clone(),
        // Administrators are named for their own commands, not to take the others away.
        user_commands: vec!["*".into()],
        // What is posted to a hook is meant for it.
        require_mention: false,
        busy_mode: hook.busy_mode.or(platform.busy_mode),
        ..platform
    };
    let (mut policy, _) = Policy::with(PLATFORM, rules, settings);
    policy.answers_itself = true;
    policy
}

struct Webhook(Arc<Inner>);

/// One hook and its gate.
struct Hook {
    settings: settings::Webhook,
    gate: Gate,
}

struct Inner {
    hooks: BTreeMap<String, Hook>,
    clients: Clients,
    metrics: Metrics,
    body_limit: usize,
    /// What chats call themselves, by hook and chat: addresses do not carry it, and the other end likes to see it again.
    names: Cache<(String, String), String>,
}

impl Adapter for Webhook {
    fn platform(&self) -> &'static str {
        PLATFORM
    }

    fn accounts(&self) -> Vec<Account> {
        self.0.hooks.keys().map(|name| Account::new(name, "")).collect()
    }

    fn capabilities(&self) -> &'static Capabilities {
        &CAPABILITIES
    }

    fn drafts(&self, account: &str) -> Drafts {
        match self.0.hooks.get(account) {
            Some(hook) if hook.settings.drafts => CAPABILITIES.drafts,
            Some(_) | None => Drafts::None,
        }
    }

    fn routes(&self) -> Router {
        Router::new().route("/webhook/{name}", post(receive)).with_state(self.0.clone())
    }

    fn deliver<'a>(&'a self, outbound: &'a Outbound) -> BoxFuture<'a, Result<(), DeliverError>> {
        let name = self.0.chat_name(&outbound.address.account, &outbound.address.chat);
        let body = callback::outbound(outbound, name.as_deref());
        Box::pin(async move {
            match body {
                Some(body) => self.0.post(&outbound.address.account, &body).await,
                None => Ok(()),
            }
        })
    }

    fn draft<'a>(&'a self, draft: &'a Draft) -> BoxFuture<'a, Result<(), DeliverError>> {
        let name = self.0.chat_name(&draft.address.account, &draft.address.chat);
        let body = callback::draft(draft, name.as_deref());
        Box::pin(async move { self.0.post(&draft.address.account, &body).await })
    }
}

impl Inner {
    fn chat_name(&self, hook: &str, chat: &str) -> Option<String> {
        self.names.get(&(hook.to_owned(), chat.to_owned()))
    }

    async fn post(&self, hook: &str, body: &Value) -> Result<(), DeliverError> {
        let dead = |why: &str| Err(DeliverError::Dead { why: why.into() });
        let Some(hook) = self.hooks.get(hook) else {
            return dead("there is no such webhook any more");
        };
        let hook = &hook.settings;
        if hook.callback_url.is_empty() {
            return dead("the webhook has no callback_url");
        }
        callback::post(&self.clients, &hook.callback_url, hook.secret.expose(), body).await
    }
}

/// Takes one message: size, proof, form and right are checked before anything is stored.
async fn receive(
    State(inner): State<Arc<Inner>>,
    Path(name): Path<String>,
    headers: HeaderMap,
    request: Request,
) -> Response {
    let (gate, arrival) = match inner.verify(&name, &headers, request).await {
        Ok(verified) => verified,
        Err(problem) => {
            inner.metrics.arrived(PLATFORM, problem.arrival());
            return problem.into_response();
        }
    };
    let id = arrival.id.clone();
    match gate.admit(arrival).await {
        Ok(Outcome::Stored(_) | Outcome::Done) => {
            (StatusCode::ACCEPTED, Json(json!({ "status": "accepted", "id": id }))).into_response()
        }
        Ok(Outcome::Duplicate(_)) => Json(json!({ "status": "duplicate" })).into_response(),
        Ok(Outcome::Refused(Refused::Command)) => {
            Problem::from(AcceptError::NotAllowed).into_response()
        }
        Ok(Outcome::Refused(_) | Outcome::Unheeded(_)) => {
            Problem::new(StatusCode::FORBIDDEN, "this sender is not allowed").into_response()
        }
        Err(error) => Problem::from(error).into_response(),
    }
}

impl Inner {
    /// Checks size, proof and form, and says which gate it must pass.
    async fn verify(
        &self,
        name: &str,
        headers: &HeaderMap,
        request: Request,
    ) -> Result<(&Gate, Arrival), Problem> {
        let Some(Hook { settings, gate }) = self.hooks.get(name) else {
            return Err(Problem::new(StatusCode::NOT_FOUND, "there is no such webhook"));
        };
        let body = door::read_body(request.into_body(), self.body_limit).await?;
        let Some(signature) = headers.get(sign::SIGNATURE).and_then(|value| value.to_str().ok())
        else {
            let why = "the header X-Talaria-Signature is missing";
            return Err(Problem::new(StatusCode::UNAUTHORIZED, why));
        };
        if !sign::is_signed(settings.secret.expose(), &body, signature) {
            let why = "the signature does not fit the body";
            return Err(Problem::new(StatusCode::UNAUTHORIZED, why));
        }
        let arrival = body::read(&body)?;
        if let Some(chat_name) = &arrival.place.name {
            self.names.insert((name.to_owned(), arrival.place.chat.clone()), chat_name.clone());
        }
        Ok((gate, arrival))
    }
}
