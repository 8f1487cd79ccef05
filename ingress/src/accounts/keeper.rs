//! Keeps one account at work: waits until it is ours, connects and delivers while it is, and connects again when that breaks.

use std::sync::Arc;
use std::time::Duration;

use node::Node;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::backoff::Backoff;
use super::lease::{Lease, Seen, pause};
use super::status::{State, Status};
use crate::adapter::{Account, Adapter, Binding, ConnectError, Link};
use crate::deliver::Desk;
use crate::media;
use crate::metrics::Metrics;

/// How long the deliveries in hand may take to end.
const DESK_FINISH: Duration = Duration::from_secs(5);

/// What is needed to keep an account.
#[derive(Clone)]
pub(crate) struct Keeper {
    pub(crate) node: Node,
    pub(crate) metrics: Metrics,
    pub(crate) adapter: Arc<dyn Adapter>,
    pub(crate) account: Account,
    pub(crate) status: Status,
    /// Whether deliveries are read, or another process reads them.
    pub(crate) up: watch::Sender<bool>,
}

/// Keeps an account until the process stops.
pub(crate) async fn keep(keeper: Keeper) {
    let stop = keeper.node.shutdown.clone();
    if let Some(fault) = &keeper.account.fault {
        keeper.status.set(State::Paused(fault.clone()));
        keeper.up.send_replace(true);
        return stop.cancelled().await;
    }
    match keeper.adapter.capabilities().binding {
        // It is this process's own: nobody else could want it.
        Binding::Connection => {
            while !stop.is_cancelled() {
                Box::pin(keeper.serve(&stop.child_token())).await;
            }
        }
        Binding::Account => Box::pin(keeper.share(&stop)).await,
    }
    keeper.up.send_replace(false);
}

impl Keeper {
    /// Serves the account whenever it is ours.
    async fn share(&self, stop: &CancellationToken) {
        let identity = match self.account.identity.as_str() {
            "" => &self.account.name,
            identity => identity,
        };
        let platform = self.adapter.platform();
        let (bus, process) = (self.node.bus.clone(), self.node.id);
        let mut lease = Lease::new(bus, process, platform, &self.account.name, identity);
        while !stop.is_cancelled() {
            match lease.try_take().await {
                Seen::Ours => Box::pin(self.hold(&mut lease, stop)).await,
                Seen::Theirs(holder) => {
                    // Another process of ours is there: what is to be delivered is.
                    self.up.send_replace(true);
                    if holder.account == self.account.name {
                        self.status.set(State::Standby);
                    } else {
                        let why = format!(
                            "its token is also that of {}/{}; remove one of the two",
                            holder.platform, holder.account
                        );
                        self.status.set(State::Retrying(why));
                    }
                }
                Seen::Unknown => {}
            }
            tokio::select! {
                () = pause() => {}
                () = stop.cancelled() => {}
            }
        }
    }

    /// Serves the account while the lease is kept.
    async fn hold(&self, lease: &mut Lease, stop: &CancellationToken) {
        let ours = stop.child_token();
        let serving = self.serve(&ours);
        tokio::pin!(serving);
        let ended = tokio::select! {
            () = serving.as_mut() => true,
            () = lease.keep() => {
                self.status.set(State::Retrying("another process took it over, or the broker is away".into()));
                false
            }
        };
        ours.cancel();
        if !ended {
            serving.await;
        }
        lease.release().await;
    }

    /// Delivers and connects until `stop`.
    async fn serve(&self, stop: &CancellationToken) {
        let (node, account) = (&self.node, self.account.name.clone());
        let ends = (self.up.clone(), stop.clone());
        let desk = Desk::open(node, &self.metrics, self.adapter.clone(), account, ends);
        let desk = match desk {
            Ok(desk) => desk,
            Err(error) => {
                self.status.set(State::Paused(format!("{error:#}")));
                return stop.cancelled().await;
            }
        };
        // In a task of its own: an adapter that panics takes nothing else along.
        let mut desk = tokio::spawn(desk);
        let (bus, adapter) = (node.bus.clone(), self.adapter.clone());
        let files = media::serve(bus, adapter, &self.account.name, stop);
        let work = async { tokio::join!(self.connect(stop), files) };
        tokio::select! {
            _ = work => {}
            ended = &mut desk => if !stop.is_cancelled() {
                tracing::error!(?ended, "the deliveries of an account broke off, and begin again");
            },
        }
        if !desk.is_finished() {
            let _ = timeout(DESK_FINISH, &mut desk).await;
            desk.abort();
        }
    }

    /// Keeps the connection up until `stop`.
    async fn connect(&self, stop: &CancellationToken) {
        let mut backoff = Backoff::default();
        while !stop.is_cancelled() {
            self.status.set(State::Connecting);
            let link = Link { stop: stop.child_token(), status: self.status.clone() };
            let (adapter, account) = (self.adapter.clone(), self.account.name.clone());
            let ended = tokio::spawn(async move { adapter.connect(&account, &link).await }).await;
            if stop.is_cancelled() {
                return;
            }
            let was_up = self.status.is_up();
            let (after, why) = match ended {
                Ok(Ok(())) => (None, "the connection ended".to_owned()),
                Ok(Err(ConnectError::Retry { after, why })) => (after, why),
                Ok(Err(ConnectError::Fatal { why })) => {
                    self.status.set(State::Paused(why));
                    return stop.cancelled().await;
                }
                Err(error) => (None, format!("the adapter broke off: {error}")),
            };
            let wait = backoff.next(was_up).max(after.unwrap_or_default());
            self.status.set(State::Retrying(format!("{why}; tried again in {} s", wait.as_secs())));
            tokio::select! {
                () = sleep(wait) => {}
                () = stop.cancelled() => {}
            }
        }
    }
}
