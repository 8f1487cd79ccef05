//! What an adapter is: it knows its platform, and nothing of scheduling.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use axum::Router;
use proto::outbound::{Draft, Outbound};

/// What the agent is called where a platform gives it no name of its own: `/stop@talaria` is meant for it.
pub const OWN_NAME: &str = "talaria";

/// A future that an adapter returns.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// How an adapter wants the text of a running turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drafts {
    /// Not at all.
    None,
    /// Piece by piece, each as it comes: the other end puts them together.
    Pieces,
    /// The whole text so far (offset 0), in order with the chat's deliveries, at most once in this time per turn.
    Whole {
        /// The time.
        every: Duration,
    },
}

/// Whether what an adapter delivers outlives the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    /// It goes to an account of a platform: any process can deliver it, and it is recorded that it was.
    Account,
    /// It goes to a connection that this process holds: without one, it is delivered by being kept as history.
    Connection,
}

/// What a platform can do and wants, as data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// How it wants drafts.
    pub drafts: Drafts,
    /// Where its deliveries go.
    pub binding: Binding,
}

/// A delivery that did not happen.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeliverError {
    /// It may succeed later. Nothing is sent to the same chat until then.
    #[error("to be tried again: {why}")]
    Retry {
        /// How long the platform wants us to wait; none if it did not say.
        after: Option<Duration>,
        /// What went wrong.
        why: String,
    },
    /// It never will.
    #[error("not deliverable: {why}")]
    Dead {
        /// Why.
        why: String,
    },
}

/// One platform. It turns what its platform sends into message events (by its routes or a connection of its own) and hands
/// them to the [`Publisher`](crate::publish::Publisher); everything that comes back is given to it here.
pub trait Adapter: Send + Sync + 'static {
    /// Its name: the platform in addresses, and a label in metrics.
    fn platform(&self) -> &'static str;

    /// The accounts that this process holds. Each has its own queue of deliveries.
    fn accounts(&self) -> Vec<String>;

    /// What the platform can do.
    fn capabilities(&self) -> Capabilities;

    /// How one account wants drafts.
    fn drafts(&self, account: &str) -> Drafts {
        let _ = account;
        self.capabilities().drafts
    }

    /// Whether deliveries go to connections that this process holds.
    fn connection_bound(&self) -> bool {
        self.capabilities().binding == Binding::Connection
    }

    /// Its part of the front door.
    fn routes(&self) -> Router {
        Router::new()
    }

    /// Hands one thing to the platform. Calls for one chat never overlap and come in order; after an error the same thing
    /// comes again with the same id.
    fn deliver<'a>(&'a self, outbound: &'a Outbound) -> BoxFuture<'a, Result<(), DeliverError>>;

    /// Shows streamed text. May be lost: the reply has all of it. A failed draft is not tried again.
    fn draft<'a>(&'a self, draft: &'a Draft) -> BoxFuture<'a, Result<(), DeliverError>> {
        let _ = draft;
        Box::pin(std::future::ready(Ok(())))
    }
}
