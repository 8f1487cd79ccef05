//! The system under measurement: all services in this process, an instant model at one end and a platform at the other, which
//! say when something happens to them.

use std::future::Future;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use futures_util::future::BoxFuture;
use ingress::adapter::{Account, Adapter, Binding, Capabilities, DeliverError, Drafts};
use ingress::metrics::Metrics;
use ingress::publish::{Publisher, Rank};
use node::Node;
use node::settings::{Settings, Span};
use proto::event::{Address, MessageEvent, User};
use proto::outbound::{Kind, Outbound};
use proto::session::{ChatKind, SessionKey, SessionParts};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use worker::models::{Answer, Message, Model, ModelError, Request, Words};

use crate::nats_server::Server;
use crate::services::Running;

/// The platform's name, and its only account.
const PLATFORM: &str = "bench";
/// A message that begins so is answered with one word, and then with nothing more until the call is dropped.
pub(super) const HOLD: &str = "hold";
/// How long one step may take before the measurement is given up.
const PATIENCE: Duration = Duration::from_secs(30);

/// What happened, when, to whom.
#[derive(Clone, Debug)]
pub(super) struct Event {
    /// When.
    pub(super) at: Instant,
    /// The chat, which each message names at its end.
    pub(super) chat: String,
    /// What.
    pub(super) what: What,
}

/// What can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// A model call began.
    Began,
    /// A model call was answered to the end.
    Answered,
    /// A model call was dropped before its end: its connection would be closed.
    Dropped,
    /// Something was handed to the platform.
    Handed(Kind),
}

/// The model and the platform in one: they only tell.
#[derive(Clone, Debug)]
struct Probe(mpsc::UnboundedSender<Event>);

impl Probe {
    fn tell(&self, chat: &str, what: What) {
        // When no one listens any more, the measurement is over.
        let _ = self.0.send(Event { at: Instant::now(), chat: chat.to_owned(), what });
    }
}

/// A call that is open; dropped before its end, it says so.
struct Open<'a> {
    probe: &'a Probe,
    chat: String,
    answered: bool,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.probe.tell(&self.chat, if self.answered { What::Answered } else { What::Dropped });
    }
}

impl Model for Probe {
    fn call<'a>(
        &'a self,
        request: Request<'a>,
        words: Words,
    ) -> BoxFuture<'a, Result<Answer, ModelError>> {
        Box::pin(async move {
            let last = request.messages.iter().rev().find_map(|message| match message {
                Message::User(text) => Some(*text),
                Message::System(_) | Message::Assistant { .. } | Message::Result { .. } => None,
            });
            let text = last.unwrap_or_default();
            let chat = text.rsplit(' ').next().unwrap_or_default().to_owned();
            self.tell(&chat, What::Began);
            let mut open = Open { probe: self, chat, answered: false };
            words.say("done");
            if text.contains(HOLD) {
                std::future::pending::<()>().await;
            }
            open.answered = true;
            drop(open);
            Ok(Answer { text: "done".into(), ..Answer::default() })
        })
    }
}

impl Adapter for Probe {
    fn platform(&self) -> &'static str {
        PLATFORM
    }

    fn accounts(&self) -> Vec<Account> {
        vec![Account::new(PLATFORM, "")]
    }

    fn capabilities(&self) -> &'static Capabilities {
        &Capabilities {
            name: PLATFORM,
            transports: &[],
            drafts: Drafts::None,
            binding: Binding::Account,
            messages: None,
            tested: "",
        }
    }

    fn deliver<'a>(&'a self, outbound: &'a Outbound) -> BoxFuture<'a, Result<(), DeliverError>> {
        self.tell(&outbound.address.chat, What::Handed(outbound.kind));
        Box::pin(std::future::ready(Ok(())))
    }
}

/// The system and its ends.
#[derive(Debug)]
pub(super) struct Rig {
    publisher: Publisher,
    events: mpsc::UnboundedReceiver<Event>,
    running: Running,
    said: u64,
}

impl Rig {
    /// Starts it and waits until it is ready.
    pub(super) async fn start(server: &Server) -> anyhow::Result<Self> {
        let mut settings = Settings { nats: server.access(), ..Settings::default() };
        settings.worker.capacity = 4096;
        settings.worker.drain = Span::seconds(1);
        let node = Node::connect(settings, "bench", CancellationToken::new()).await?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let (sender, events) = mpsc::unbounded_channel();
        let probe = Arc::new(Probe(sender));
        let publisher = Publisher::new(node.bus.clone(), Metrics::new(&node.metrics));
        let mut running = Running::start(&node, listener, probe.clone(), vec![probe]);
        tokio::select! {
            ready = timeout(PATIENCE, node.health.ready()) => {
                ready.with_context(|| format!("not ready: {:?}", node.health.troubles()))?;
            }
            error = running.failed() => return Err(error),
        }
        Ok(Self { publisher, events, running, said: 0 })
    }

    /// Sends a message, and returns when it was accepted. Its text ends with the chat's name.
    pub(super) async fn say(&mut self, chat: &str, text: &str) -> anyhow::Result<Instant> {
        self.said += 1;
        say(&self.publisher, chat, text, self.said).await
    }

    /// The same as a future of its own, for many at once.
    pub(super) fn saying(
        &mut self,
        chat: String,
        text: &'static str,
    ) -> impl Future<Output = anyhow::Result<Instant>> + use<> {
        self.said += 1;
        let (publisher, number) = (self.publisher.clone(), self.said);
        async move { say(&publisher, &chat, text, number).await }
    }

    /// Waits for something to happen in a chat, passing over everything else.
    pub(super) async fn wait(&mut self, chat: &str, what: What) -> anyhow::Result<Instant> {
        self.wait_for(chat, |found| found == what)
            .await
            .with_context(|| format!("{what:?} in chat {chat}"))
    }

    /// The same for one of several things.
    pub(super) async fn wait_for(
        &mut self,
        chat: &str,
        is_it: impl Fn(What) -> bool,
    ) -> anyhow::Result<Instant> {
        loop {
            let event = self.event().await?;
            if event.chat == chat && is_it(event.what) {
                return Ok(event.at);
            }
        }
    }

    /// The next thing that happens.
    pub(super) async fn event(&mut self) -> anyhow::Result<Event> {
        tokio::select! {
            event = timeout(PATIENCE, self.events.recv()) => match event {
                Ok(Some(event)) => Ok(event),
                Ok(None) => bail!("the services are gone"),
                Err(_) => bail!("nothing happened for {} s", PATIENCE.as_secs()),
            },
            error = self.running.failed() => Err(error),
        }
    }

    /// Stops it.
    pub(super) async fn stop(self) -> anyhow::Result<()> {
        self.running.drain().await
    }
}

pub(super) async fn say(
    publisher: &Publisher,
    chat: &str,
    text: &str,
    number: u64,
) -> anyhow::Result<Instant> {
    let parts = SessionParts {
        platform: PLATFORM,
        kind: ChatKind::Dm,
        chat,
        thread: None,
        participant: None,
    };
    let event = MessageEvent {
        id: number.to_string(),
        session: SessionKey::new(parts),
        address: Address {
            platform: PLATFORM.into(),
            account: PLATFORM.into(),
            chat: chat.to_owned(),
            kind: ChatKind::Dm,
            thread: None,
        },
        user: User { id: "bench".into(), name: None },
        text: if text.starts_with('/') { text.to_owned() } else { format!("{text} {chat}") },
        media: Vec::new(),
        reply_to: None,
        mode: None,
        history: Vec::new(),
        admission: proto::access::Admission::default(),
        accepted_at_ms: node::clock::wall_ms(),
    };
    publisher.accept(event, Rank::Member).await?;
    Ok(Instant::now())
}
