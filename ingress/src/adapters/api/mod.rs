//! The OpenAI-compatible API: any client of that API talks to the agent, with the history kept on either side.

mod answer;
mod hub;
mod request;
mod respond;

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use node::{Node, clock};
use proto::command::addressed;
use proto::event::{Address, MessageEvent, User};
use proto::outbound::{Draft, Outbound};
use proto::session::{ChatKind, SessionKey, SessionParts};
use serde_json::json;

use self::answer::{Answer, News};
use self::hub::Hub;
use self::request::{ApiError, Asked, Form};
use self::respond::{Line, Waiting};
use crate::access::Access;
use crate::adapter::{
    Account, Adapter, Binding, BoxFuture, Capabilities, DeliverError, Drafts, OWN_NAME, Transport,
};
use crate::door;
use crate::metrics::{Arrival, Metrics};
use crate::publish::{AcceptError, Publisher, Rank};
use crate::registry::Parts;

/// The platform's name.
const PLATFORM: &str = "api";
/// What it can do.
pub(crate) const CAPABILITIES: Capabilities = Capabilities {
    name: "OpenAI-compatible API",
    transports: &[Transport::Http],
    drafts: Drafts::Pieces,
    binding: Binding::Connection,
    messages: None,
    tested: "the official client library",
};
/// The model that clients see: the agent, whatever model is behind it.
const MODEL: &str = "talaria";
/// Who asks: whoever has the token is one person.
const PERSON: &str = "owner";
/// The header that names a session that is kept here.
const SESSION: &str = "x-session-id";
/// The longest name of a session, in bytes.
const SESSION_MAX: usize = 256;

/// Builds the adapter. Without a token it has no account, and its routes say why.
pub(crate) fn build(parts: &Parts) -> anyhow::Result<Arc<dyn Adapter>> {
    Ok(Arc::new(Api(Arc::new(Inner {
        access: Access::new(&parts.node.settings.ingress.token),
        hub: Hub::start(parts.node.shutdown.clone()),
        node: parts.node.clone(),
        publisher: parts.publisher.clone(),
        metrics: parts.metrics.clone(),
    }))))
}

struct Api(Arc<Inner>);

struct Inner {
    access: Option<Access>,
    hub: Hub,
    node: Node,
    publisher: Publisher,
    metrics: Metrics,
}

impl Adapter for Api {
    fn platform(&self) -> &'static str {
        PLATFORM
    }

    fn accounts(&self) -> Vec<Account> {
        self.0.access.iter().map(|_| Account::new(self.0.node.id.to_string(), "")).collect()
    }

    fn capabilities(&self) -> &'static Capabilities {
        &CAPABILITIES
    }

    fn routes(&self) -> Router {
        Router::new()
            .route("/v1/chat/completions", post(complete))
            .route("/v1/models", get(models))
            .with_state(self.0.clone())
    }

    fn deliver<'a>(&'a self, outbound: &'a Outbound) -> BoxFuture<'a, Result<(), DeliverError>> {
        Box::pin(async move {
            self.0.hub.tell(News::Outbound(outbound.clone())).await;
            Ok(())
        })
    }

    fn draft<'a>(&'a self, draft: &'a Draft) -> BoxFuture<'a, Result<(), DeliverError>> {
        Box::pin(async move {
            self.0.hub.tell(News::Draft(draft.clone())).await;
            Ok(())
        })
    }
}

async fn models(State(inner): State<Arc<Inner>>, headers: HeaderMap) -> Response {
    if let Err(error) = inner.check(&headers) {
        return error.into_response();
    }
    let configured = inner.node.settings.model.name.as_str();
    let names = [MODEL, configured].into_iter().filter(|name| !name.is_empty());
    let model =
        |name| json!({ "id": name, "object": "model", "created": 0, "owned_by": "talaria" });
    Json(json!({ "object": "list", "data": names.map(model).collect::<Vec<_>>() })).into_response()
}

async fn complete(
    State(inner): State<Arc<Inner>>,
    headers: HeaderMap,
    request: Request,
) -> Response {
    let asked = match inner.read(&headers, request).await {
        Ok(asked) => asked,
        Err((arrival, error)) => {
            inner.metrics.arrived(PLATFORM, arrival);
            return error.into_response();
        }
    };
    let form = asked.form;
    match inner.ask(&headers, asked).await {
        Err(error) => error.into_response(),
        Ok(waiting) => match form {
            Form::Whole => waiting.whole().await,
            Form::Stream { usage } => waiting.stream(&inner.metrics, usage),
        },
    }
}

impl Inner {
    fn check(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        let Some(access) = &self.access else {
            let message = "the API is off, because no access token is set (ingress.token)";
            let error = ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "server_error", message);
            return Err(error.code("api_off"));
        };
        if !access.has_bearer(headers) {
            let message =
                "wrong or missing API key: it is the access token that the server printed";
            let error = ApiError::new(StatusCode::UNAUTHORIZED, "invalid_request_error", message);
            return Err(error.code("invalid_api_key"));
        }
        Ok(())
    }

    async fn read(
        &self,
        headers: &HeaderMap,
        request: Request,
    ) -> Result<Asked, (Arrival, ApiError)> {
        self.check(headers).map_err(|error| (Arrival::Refused, error))?;
        let invalid = |error| (Arrival::Invalid, error);
        if let Some(session) = headers.get(SESSION) {
            let legal = session.to_str().is_ok_and(|s| (1..=SESSION_MAX).contains(&s.trim().len()));
            if !legal {
                let what = format!("X-Session-Id must have 1 to {SESSION_MAX} visible characters");
                return Err(invalid(ApiError::invalid(Some(SESSION.into()), what)));
            }
        }
        let limit = self.node.settings.ingress.body_limit.min(self.node.bus.payload_limit());
        let body = door::read_body(request.into_body(), limit).await.map_err(|error| {
            invalid(ApiError::new(error.status(), "invalid_request_error", error.to_string()))
        })?;
        request::read(&body).map_err(invalid)
    }

    /// Stores the message, and waits for what comes for it. The waiting begins first, so that nothing is missed.
    async fn ask(&self, headers: &HeaderMap, asked: Asked) -> Result<Waiting, ApiError> {
        let random = hex::encode(node::process::random::<16>());
        let kept = headers.get(SESSION).and_then(|value| value.to_str().ok()).map(str::trim);
        // A session of one request has a name that no one can guess.
        let chat = kept.map_or_else(|| format!("once-{random}"), str::to_owned);
        let message = format!("req-{random}");
        let history = if kept.is_some() { Vec::new() } else { asked.history };
        let session = SessionKey::new(SessionParts {
            platform: PLATFORM,
            kind: ChatKind::Dm,
            chat: &chat,
            thread: None,
            participant: None,
        });
        let text = addressed(&asked.text, OWN_NAME).into_owned();
        let answer = Answer::to(&text);
        let news = self.hub.wait(chat.clone(), message.clone()).await;
        // From here on a client that goes away hangs up, also while the message is being stored.
        let mut line = Line {
            publisher: self.publisher.clone(),
            session: session.clone(),
            message: message.clone(),
            stop: self.node.shutdown.clone(),
            open: true,
        };
        let event = MessageEvent {
            id: message,
            session,
            address: Address {
                platform: PLATFORM.into(),
                account: self.node.id.to_string(),
                chat,
                kind: ChatKind::Dm,
                thread: None,
            },
            user: User { id: PERSON.into(), name: None },
            text,
            media: asked.media,
            reply_to: None,
            mode: None,
            history,
            admission: proto::access::Admission::default(),
            accepted_at_ms: clock::wall_ms(),
        };
        let accepted = self.publisher.accept(event, Rank::Admin).await.map_err(|error| {
            // What may have been stored in spite of the error is called off; the client asks again under another id.
            line.open = error == AcceptError::Unavailable;
            refused(error)
        })?;
        Ok(Waiting {
            answer,
            news,
            line,
            bus: self.node.bus.clone(),
            seq: accepted.seq(),
            model: asked.model,
            id: format!("chatcmpl-{}", hex::encode(node::process::random::<16>())),
            stop: self.node.shutdown.clone(),
        })
    }
}

fn refused(error: AcceptError) -> ApiError {
    match error {
        AcceptError::TooLarge => {
            ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "invalid_request_error", error.to_string())
        }
        AcceptError::NotAllowed => {
            ApiError::new(StatusCode::FORBIDDEN, "invalid_request_error", error.to_string())
        }
        AcceptError::Unavailable => {
            ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "server_error", error.to_string())
                .code("unavailable")
        }
    }
}
