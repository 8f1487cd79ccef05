//! The directory of chats, as the gate keeps it: a chat is written down when something from it is let in, and again when its name
//! has changed.

use moka::sync::Cache;
use node::bus::{Bus, ReadError};
use node::{channels, clock};
use proto::channel::Channel;
use proto::event::Address;
use proto::subject;

/// How many chats are remembered as written down.
const KNOWN_MAX: u64 = 20_000;

/// What is known to be written down, by key: the chat's name. Losing it costs a look.
#[derive(Debug)]
pub(super) struct Directory(Cache<String, Option<String>>);

impl Default for Directory {
    fn default() -> Self {
        Self(Cache::new(KNOWN_MAX))
    }
}

impl Directory {
    /// Whether something from this chat or thread was let in before.
    pub(super) async fn has(&self, bus: &Bus, address: &Address) -> Result<bool, ReadError> {
        let key = subject::channel_key(address);
        if self.0.contains_key(&key) {
            return Ok(true);
        }
        let (channel, _) = channels::known(bus, address).await?;
        let known = channel.is_some();
        if let Some(channel) = channel {
            self.0.insert(key, channel.name);
        }
        Ok(known)
    }

    /// Writes a chat down, if it is not. A look-up of names is no reason to hold a message up, so a failure is only logged.
    pub(super) async fn note(&self, bus: &Bus, address: &Address, name: Option<&str>) {
        let key = subject::channel_key(address);
        let is_news = |known: &Option<String>| name.is_some() && known.as_deref() != name;
        if self.0.get(&key).is_some_and(|known| !is_news(&known)) {
            return;
        }
        let (known, revision) = match channels::known(bus, address).await {
            Ok(found) => found,
            Err(error) => {
                tracing::debug!(%error, "a chat was not written down");
                return;
            }
        };
        if let Some(Channel { name: known, .. }) = known
            && !is_news(&known)
        {
            self.0.insert(key, known);
            return;
        }
        let name = name.map(str::to_owned);
        let channel =
            Channel { address: address.clone(), name: name.clone(), since_ms: clock::wall_ms() };
        match channels::note(bus, &channel, revision).await {
            Ok(()) => self.0.insert(key, name),
            Err(error) => tracing::debug!(%error, "a chat was not written down"),
        }
    }
}
