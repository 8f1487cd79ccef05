//! What an adapter is: it knows its platform, and nothing of scheduling, order, retries, splitting or formatting.
//!
//! An adapter says what its platform can do ([`Capabilities`], data), brings what people do on it to the gate (by its routes,
//! or by a connection that it holds in [`Adapter::connect`]), and carries out single calls: [`Adapter::send`],
//! [`Adapter::edit`] and so on. Everything between those calls is done by `deliver` and `accounts`, once for all platforms.

mod capabilities;
mod errors;

use std::future::Future;
use std::pin::Pin;

use axum::Router;
use bytes::Bytes;
use proto::event::{Address, MediaKind};
use proto::id::AskId;
use proto::outbound::{Draft, Outbound};
use tokio_util::sync::CancellationToken;

pub use self::capabilities::{
    Binding, Capabilities, Drafts, Messages, Rate, Rates, Repeats, TextLimit, Transport, Unit,
};
pub use self::errors::{ConnectError, DeliverError, Refusal, Scope, SendError};
use crate::accounts::Status;
pub use crate::markup::Dialect;

/// What the agent is called where a platform gives it no name of its own: `/stop@talaria` is meant for it.
pub const OWN_NAME: &str = "talaria";

/// A future that an adapter returns.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// An account that an adapter was configured with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Its name: in addresses, settings and metrics.
    pub name: String,
    /// What there is one of in the world, for example the bot's token: whoever has it must be the only one who uses it. It is
    /// only ever hashed. Empty for what nobody else could use.
    pub identity: String,
    /// Why it cannot be used as it is configured. Such an account is shown as paused, and the others work.
    pub fault: Option<String>,
}

impl Account {
    /// An account that can be used.
    #[must_use]
    pub fn new(name: impl Into<String>, identity: impl Into<String>) -> Self {
        Self { name: name.into(), identity: identity.into(), fault: None }
    }

    /// One that cannot.
    #[must_use]
    pub fn faulty(name: impl Into<String>, fault: impl Into<String>) -> Self {
        Self { name: name.into(), identity: String::new(), fault: Some(fault.into()) }
    }
}

/// What a connection of an account has of us.
#[derive(Clone, Debug)]
pub struct Link {
    /// When to end: return soon after.
    pub stop: CancellationToken,
    pub(crate) status: Status,
}

impl Link {
    /// Says that the connection is up; the next trouble begins with a short pause again.
    pub fn up(&self) {
        self.status.connected();
    }

    /// Says what is wrong although the connection is tried further, for people to read.
    pub fn trouble(&self, why: impl Into<String>) {
        self.status.trouble(why.into());
    }
}

/// What a button does when it is pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Press {
    /// Allows what was asked.
    Approve(AskId),
    /// Refuses it.
    Deny(AskId),
}

impl Press {
    /// The command that the presser is taken to have typed.
    #[must_use]
    pub fn command(self) -> String {
        match self {
            Self::Approve(ask) => format!("/approve {ask}"),
            Self::Deny(ask) => format!("/deny {ask}"),
        }
    }

    /// A short form for the platform to give back, at most 64 bytes: `approve:<ask>`.
    #[must_use]
    pub fn data(self) -> String {
        match self {
            Self::Approve(ask) => format!("approve:{ask}"),
            Self::Deny(ask) => format!("deny:{ask}"),
        }
    }

    /// The press that a platform gave back; none if it is not one of ours.
    #[must_use]
    pub fn of_data(data: &str) -> Option<Self> {
        let (what, ask) = data.split_once(':')?;
        let ask = ask.parse().ok()?;
        match what {
            "approve" => Some(Self::Approve(ask)),
            "deny" => Some(Self::Deny(ask)),
            _ => None,
        }
    }
}

/// A button under a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Button {
    /// What is written on it.
    pub label: &'static str,
    /// What it does.
    pub press: Press,
}

/// A file to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachment {
    /// What it is.
    pub kind: MediaKind,
    /// Its file name.
    pub name: String,
    /// Its MIME type.
    pub mime: String,
    /// Its content.
    pub bytes: Bytes,
}

/// One message to show, within the platform's limits. Its text is never empty unless it has files.
#[derive(Clone, Copy, Debug)]
pub struct Post<'a> {
    /// Where.
    pub to: &'a Address,
    /// The message that it answers, if that is to be shown.
    pub reply_to: Option<&'a str>,
    /// The text in the platform's dialect; none where that was refused, or for text that has no markup: then `plain` is sent.
    pub markup: Option<&'a str>,
    /// The same text without any markup.
    pub plain: &'a str,
    /// Its buttons, in one row.
    pub buttons: &'a [Button],
    /// Its files.
    pub files: &'a [Attachment],
    /// The same for every try at this message: 32 hex digits, for platforms that recognise a repetition by such a key.
    pub key: &'a str,
}

/// A file of a platform, whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// Its content.
    pub bytes: Bytes,
    /// Its MIME type, when the platform says so.
    pub mime: Option<String>,
}

/// One platform. What its capabilities do not promise is never called.
pub trait Adapter: Send + Sync + 'static {
    /// Its name: the platform in addresses, and a label in metrics.
    fn platform(&self) -> &'static str;

    /// What the platform can do.
    fn capabilities(&self) -> &'static Capabilities;

    /// The accounts that it was configured with. Each has its own queue of deliveries, and its own connection.
    fn accounts(&self) -> Vec<Account>;

    /// How one account wants drafts.
    fn drafts(&self, account: &str) -> Drafts {
        let _ = account;
        self.capabilities().drafts
    }

    /// Its part of the front door. What comes here may come to any replica.
    fn routes(&self) -> Router {
        Router::new()
    }

    /// Holds the connection of an account until `link.stop`, or until it breaks: what people do there is brought to the gate,
    /// and acknowledged to the platform only when it is stored. One process in the cluster holds it at a time. It is called
    /// again after a pause when it breaks; the pauses are not its business.
    fn connect<'a>(
        &'a self,
        account: &'a str,
        link: &'a Link,
    ) -> BoxFuture<'a, Result<(), ConnectError>> {
        let _ = account;
        Box::pin(async move {
            link.up();
            link.stop.cancelled().await;
            Ok(())
        })
    }

    /// Sends one message and returns the platform's id of it.
    fn send<'a>(&'a self, post: &'a Post<'a>) -> BoxFuture<'a, Result<String, SendError>> {
        let _ = post;
        unsupported("send")
    }

    /// Changes a message of ours. That it says so already is no error.
    fn edit<'a>(
        &'a self,
        message: &'a str,
        post: &'a Post<'a>,
    ) -> BoxFuture<'a, Result<(), SendError>> {
        let _ = (message, post);
        unsupported("edit")
    }

    /// Takes a message of ours away. That it is gone already is no error.
    fn delete<'a>(
        &'a self,
        to: &'a Address,
        message: &'a str,
    ) -> BoxFuture<'a, Result<(), SendError>> {
        let _ = (to, message);
        unsupported("delete")
    }

    /// Puts an emoji under a message, or takes ours away (none).
    fn react<'a>(
        &'a self,
        to: &'a Address,
        message: &'a str,
        emoji: Option<&'a str>,
    ) -> BoxFuture<'a, Result<(), SendError>> {
        let _ = (to, message, emoji);
        unsupported("react")
    }

    /// Shows for a moment that the agent writes.
    fn typing<'a>(&'a self, to: &'a Address) -> BoxFuture<'a, Result<(), SendError>> {
        let _ = to;
        unsupported("typing")
    }

    /// Looks for a message that was sent under a key, when it is not known whether it arrived.
    fn find<'a>(
        &'a self,
        to: &'a Address,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>, SendError>> {
        let _ = (to, key);
        unsupported("find")
    }

    /// Fetches a file that people sent, by what the adapter itself put behind `media:<platform>/<account>/`; refuses one that
    /// is larger than `limit` bytes.
    fn fetch<'a>(
        &'a self,
        account: &'a str,
        reference: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Fetched, SendError>> {
        let _ = (account, reference, limit);
        unsupported("fetch")
    }

    /// For a platform that takes our things as they are (`capabilities().messages` is none): hands one over. Calls for one chat
    /// never overlap and come in order; after an error the same thing comes again with the same id.
    fn deliver<'a>(&'a self, outbound: &'a Outbound) -> BoxFuture<'a, Result<(), DeliverError>> {
        let _ = outbound;
        Box::pin(std::future::ready(Err(DeliverError::Dead {
            why: "the platform takes messages only".into(),
        })))
    }

    /// For the same: shows streamed text. May be lost: the reply has all of it. A failed draft is not tried again.
    fn draft<'a>(&'a self, draft: &'a Draft) -> BoxFuture<'a, Result<(), DeliverError>> {
        let _ = draft;
        Box::pin(std::future::ready(Ok(())))
    }
}

fn unsupported<'a, T: Send + 'a>(what: &'static str) -> BoxFuture<'a, Result<T, SendError>> {
    let why = format!("the platform cannot {what}");
    Box::pin(std::future::ready(Err(SendError::Refused { reason: Refusal::Other, why })))
}
