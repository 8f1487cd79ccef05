//! The chat page: a browser, server-sent events, and one token that lets in.

mod history;
mod hub;
mod page;
mod room;
mod send;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use futures_util::{Stream, StreamExt, stream};
use node::Node;
use proto::command::{self, Spec};
use proto::outbound::{Draft, Outbound};
use proto::session::{ChatKind, SessionKey, SessionParts};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use self::hub::{Hub, Word};
use self::room::Frame;
use crate::access::Access;
use crate::adapter::{
    Account, Adapter, Binding, BoxFuture, Capabilities, DeliverError, Drafts, Transport,
};
use crate::metrics::{Arrival, Metrics, OpenStream};
use crate::problem::Problem;
use crate::publish::Publisher;
use crate::registry::Parts;

/// The platform's name.
const PLATFORM: &str = "web";
/// What it can do.
pub(crate) const CAPABILITIES: Capabilities = Capabilities {
    name: "Chat page",
    transports: &[Transport::Http],
    drafts: Drafts::Pieces,
    binding: Binding::Connection,
    messages: None,
    tested: "a real browser",
};
/// How often an idle stream says that it is there.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// After what time a browser comes back when its stream ends.
const COME_BACK: Duration = Duration::from_secs(1);
/// The longest name of a session or message that a page may choose.
const NAME_MAX: usize = 128;

/// Builds the adapter. Without a token it has no account, and its routes say why.
pub(crate) fn build(parts: &Parts) -> anyhow::Result<Arc<dyn Adapter>> {
    let settings = &parts.node.settings.ingress;
    let access = Access::new(&settings.token);
    if access.is_none() {
        tracing::warn!("the chat page and the API are off: ingress.token is not set");
    }
    Ok(Arc::new(Web(Arc::new(Inner {
        access,
        hub: Hub::start(parts.node.bus.clone(), parts.node.shutdown.clone()),
        node: parts.node.clone(),
        publisher: parts.publisher.clone(),
        metrics: parts.metrics.clone(),
    }))))
}

struct Web(Arc<Inner>);

struct Inner {
    access: Option<Access>,
    hub: Hub,
    node: Node,
    publisher: Publisher,
    metrics: Metrics,
}

impl Adapter for Web {
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
            .route("/", get(index))
            .route("/web/commands", get(commands))
            .route("/web/{script}", get(page::script))
            .route("/web/page.css", get(page::style))
            .route("/web/messages", post(send::send))
            .route("/web/stream", get(listen))
            .route("/web/history", get(recall))
            .with_state(self.0.clone())
    }

    fn deliver<'a>(&'a self, outbound: &'a Outbound) -> BoxFuture<'a, Result<(), DeliverError>> {
        Box::pin(async move {
            self.0.hub.tell(Word::Outbound(outbound.clone())).await;
            Ok(())
        })
    }

    fn draft<'a>(&'a self, draft: &'a Draft) -> BoxFuture<'a, Result<(), DeliverError>> {
        Box::pin(async move {
            self.0.hub.tell(Word::Draft(draft.clone())).await;
            Ok(())
        })
    }
}

/// The key of a page's session.
fn session_key(session: &str) -> SessionKey {
    SessionKey::new(SessionParts {
        platform: PLATFORM,
        kind: ChatKind::Dm,
        chat: session,
        thread: None,
        participant: None,
    })
}

#[derive(Debug, Deserialize)]
struct Entrance {
    token: Option<String>,
}

async fn index(
    State(inner): State<Arc<Inner>>,
    Query(entrance): Query<Entrance>,
    headers: HeaderMap,
) -> Response {
    let Some(access) = &inner.access else {
        let why = "The chat page is off, because no access token is set (ingress.token).\n";
        return (StatusCode::SERVICE_UNAVAILABLE, why).into_response();
    };
    match entrance.token {
        Some(token) if access.is_token(&token) => {
            let cookie = [
                (header::SET_COOKIE, access.set_cookie(&headers)),
                (header::CACHE_CONTROL, "no-store".to_owned()),
                (header::REFERRER_POLICY, "no-referrer".to_owned()),
            ];
            (cookie, Redirect::to("/")).into_response()
        }
        None if access.has_cookie(&headers) => page::index(),
        Some(_) | None => {
            inner.metrics.arrived(PLATFORM, Arrival::Refused);
            page::closed()
        }
    }
}

impl Inner {
    /// Lets the page's own requests through, and nothing else.
    fn check(&self, headers: &HeaderMap) -> Result<(), Problem> {
        let Some(access) = &self.access else {
            let why = "the chat page is off: ingress.token is not set";
            return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, why));
        };
        if !page::is_own(headers) {
            let why = "this request comes from another site";
            return Err(Problem::new(StatusCode::FORBIDDEN, why));
        }
        if !access.has_cookie(headers) {
            let why = "open the address that the server printed again";
            return Err(Problem::new(StatusCode::UNAUTHORIZED, why));
        }
        Ok(())
    }
}

#[derive(Debug, Deserialize)]
struct Which {
    session: String,
    /// For clients that cannot set headers when they come back.
    #[serde(default)]
    last: Option<String>,
}

async fn listen(
    State(inner): State<Arc<Inner>>,
    Query(which): Query<Which>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    inner.check(&headers)?;
    check_name("session", &which.session)?;
    let header = headers.get("last-event-id").and_then(|value| value.to_str().ok());
    let last = header.or(which.last.as_deref()).and_then(|id| last_of(&inner.node, id));
    let (browser, frames) = mpsc::channel(room::BEHIND_MAX);
    inner.hub.tell(Word::Join { session: which.session, last, browser }).await;
    let heartbeat = KeepAlive::new().interval(HEARTBEAT);
    let events = Sse::new(events(&inner, frames)).keep_alive(heartbeat);
    Ok(([(header::CACHE_CONTROL, "no-store")], events).into_response())
}

/// The frames as events, until the browser goes or the process stops.
fn events(
    inner: &Inner,
    frames: mpsc::Receiver<Frame>,
) -> impl Stream<Item = Result<Event, Infallible>> + use<> {
    let process = inner.node.id;
    let open = OpenStream::new(&inner.metrics);
    let frames = stream::unfold((frames, open), |(mut frames, open)| async move {
        frames.recv().await.map(|frame| (frame, (frames, open)))
    });
    frames.take_until(inner.node.shutdown.clone().cancelled_owned()).map(move |frame| {
        let mut event = Event::default().event(frame.event).data(frame.data);
        if let Some(number) = frame.number {
            event = event.id(format!("{process}-{number}"));
        }
        if frame.event == "hello" {
            event = event.retry(COME_BACK);
        }
        Ok(event)
    })
}

/// The number in a frame's id, if it was this process that gave it.
fn last_of(node: &Node, id: &str) -> Option<u64> {
    let (process, number) = id.split_once('-')?;
    number.parse().ok().filter(|_| process == node.id.to_string())
}

async fn recall(
    State(inner): State<Arc<Inner>>,
    Query(which): Query<Which>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    inner.check(&headers)?;
    check_name("session", &which.session)?;
    let sid = session_key(&which.session).sid();
    let messages = history::read(&inner.node.bus, sid)
        .await
        .map_err(|error| Problem::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string()))?;
    let answer = Json(json!({ "messages": messages }));
    Ok(([(header::CACHE_CONTROL, "no-store")], answer).into_response())
}

/// The commands that can be typed, for a menu.
async fn commands(
    State(inner): State<Arc<Inner>>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    inner.check(&headers)?;
    Ok(([(header::CACHE_CONTROL, "no-store")], Json(menu())).into_response())
}

fn menu() -> Value {
    let shown = command::REGISTRY.iter().filter(|spec| !spec.help.is_empty());
    let line = |spec: &Spec| json!({ "words": spec.words, "args": spec.args, "help": spec.help });
    json!({ "commands": shown.map(line).collect::<Vec<_>>() })
}

/// Names of sessions and messages are chosen by the page, and are plain.
fn check_name(place: &str, name: &str) -> Result<(), Problem> {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if (1..=NAME_MAX).contains(&name.len()) && name.bytes().all(legal) {
        return Ok(());
    }
    let what = format!("1 to {NAME_MAX} letters, digits, - and _ are needed");
    Err(Problem::invalid(place.into(), &what))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_menu_is_the_registry() {
        let menu = menu();
        let lines = menu["commands"].as_array().unwrap();
        assert!(lines.iter().any(|line| line["words"] == json!(["queue", "q"])));
        assert!(lines.iter().all(|line| line["help"] != ""));
        let hidden = command::REGISTRY.iter().filter(|spec| spec.help.is_empty()).count();
        assert_eq!(lines.len() + hidden, command::REGISTRY.len());
    }
}
