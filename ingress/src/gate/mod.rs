//! The gate: everything between "an adapter has something of its platform" and "it is published", the same for all platforms.
//!
//! ```text
//! Arrival ─▶ is it for the agent? ─▶ may its sender? ─▶ may they use this command? ─▶ whose session? ─▶ Publisher ─▶ INBOX
//!             group policy            rules, pairing     tiers                         keys, moves       once
//! ```
//!
//! `arrival` is what comes, `policy` is what the operator wants (pure), `entrance` is the way through, `notice` is what is
//! said to people at the gate, `directory` notes the chats, `poison` sets aside what cannot be read.
//!
//! An adapter opens its [`Gate`] once for each account, and calls [`Gate::admit`] for everything that people do: messages,
//! buttons, edits, messages that are taken back. After `Ok` it may tell its platform that the thing was taken, whatever the
//! outcome; after an error it must not, and lets it come again.

mod arrival;
mod directory;
mod entrance;
mod notice;
mod poison;
mod policy;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use node::Node;
use node::identities;
use node::settings::CronAccess;
use proto::command::{Bypass, Name};
use proto::id::Seq;
use tokio::sync::OnceCell;

pub use self::arrival::{Arrival, Attention, Deed, Place, Sender};
use self::directory::Directory;
pub use self::policy::{Policy, Unheeded};
use crate::metrics::Metrics;
use crate::publish::Publisher;

/// The pause between two tries to publish an account's rules.
const AGAIN: Duration = Duration::from_secs(1);

/// Where gates are opened. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Gates {
    node: Node,
    publisher: Publisher,
    metrics: Metrics,
}

/// What became of an arrival.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is stored and will be answered.
    Stored(Seq),
    /// It was stored before.
    Duplicate(Seq),
    /// It was a command that the gate itself carried out.
    Done,
    /// It is not for the agent. Nothing was said.
    Unheeded(Unheeded),
    /// Its sender may not. What there was to say was said.
    Refused(Refused),
}

/// Why an arrival was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// An operator has shut its sender out.
    Revoked,
    /// The platform does not say who sent it.
    Nameless,
    /// No rule allows its sender.
    Unknown,
    /// It is a command that its sender may not use.
    Command,
}

impl Gates {
    /// Gates over a connection.
    #[must_use]
    pub const fn new(node: Node, publisher: Publisher, metrics: Metrics) -> Self {
        Self { node, publisher, metrics }
    }

    /// Opens the gate of an account, with the policy that the settings have for it. What is wrong in them is logged.
    #[must_use]
    pub fn open(&self, platform: &str, account: &str) -> Gate {
        let (policy, wrong) = Policy::new(platform, account, &self.node.settings.access);
        for fault in wrong {
            tracing::error!("access.platform.{platform}: {fault}; it is left out");
        }
        self.open_with(platform, account, policy)
    }

    /// The same with a policy of its own.
    #[must_use]
    pub fn open_with(&self, platform: &str, account: &str, mut policy: Policy) -> Gate {
        if self.node.settings.cron.who == CronAccess::Admins {
            policy.reserved = Some(Name::Bypass(Bypass::Cron));
        }
        if policy.shuts_everyone_out() {
            tracing::warn!(
                "nobody may talk to {platform}/{account}: name people in access.platform.{platform}.allowed_users, or let \
                 them ask with unauthorized_dm = \"pair\""
            );
        } else if !policy.rules.allow_someone() {
            tracing::warn!(
                "only people whom you pair may talk to {platform}/{account}: whoever writes gets a code for `talaria pair \
                 approve {platform} CODE`"
            );
        }
        let gate = Gate(Arc::new(Inner {
            platform: platform.to_owned(),
            account: account.to_owned(),
            policy,
            directory: Directory::default(),
            ruled: OnceCell::new(),
            node: self.node.clone(),
            publisher: self.publisher.clone(),
            metrics: self.metrics.clone(),
        }));
        // What waits is judged by today's rules even if nothing new comes.
        tokio::spawn(gate.clone().rule());
        gate
    }
}

/// The gate of one account. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Gate(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    platform: String,
    account: String,
    policy: Policy,
    directory: Directory,
    /// Whether the account's rules are published.
    ruled: OnceCell<()>,
    node: Node,
    publisher: Publisher,
    metrics: Metrics,
}

impl Gate {
    async fn rule(self) {
        let stop = self.0.node.shutdown.clone();
        let publish = async {
            while let Err(error) = self.0.ruled().await {
                tracing::debug!(%error, "the rules of an account are not published yet");
                tokio::time::sleep(AGAIN).await;
            }
        };
        tokio::select! { () = publish => {} () = stop.cancelled() => {} }
    }
}

impl Inner {
    /// Publishes the account's rules, once: whoever takes up what waits must judge by them.
    async fn ruled(&self) -> Result<(), node::bucket::PutError> {
        let Self { platform, account, policy, node, .. } = self;
        let publish = || identities::publish_rules(&node.bus, platform, account, &policy.rules);
        self.ruled.get_or_try_init(publish).await.copied()
    }
}
