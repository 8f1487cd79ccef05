//! The directory of chats: names to addresses, kept from what arrives; home channels; and chats that have moved. Whoever sends to
//! a chat by name looks it up here.

use proto::channel::{Channel, Home, Moved};
use proto::event::Address;
use proto::subject;
use proto::topology::CHANNELS;

use crate::bucket::{self, PutError};
use crate::bus::{Bus, ReadError};

/// A name that leads to no single chat.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// No message came from such a chat.
    #[error(
        "no chat of {platform} is called {name:?}; `talaria channels` lists the known ones, and its id works as well"
    )]
    Unknown {
        /// The platform.
        platform: String,
        /// What was looked for.
        name: String,
    },
    /// Several have it.
    #[error("several chats of {platform} fit {name:?} ({}); use the id of the one that is meant", .ids.join(", "))]
    Ambiguous {
        /// The platform.
        platform: String,
        /// What was looked for.
        name: String,
        /// Their ids.
        ids: Vec<String>,
    },
    /// The platform has no home channel.
    #[error("{platform} has no home channel; write /sethome in the chat that is to be it")]
    Homeless {
        /// The platform.
        platform: String,
    },
    /// The broker does not answer.
    #[error(transparent)]
    Unavailable(#[from] ReadError),
}

/// All chats that messages came from, on all platforms or one, by platform and name.
///
/// # Errors
/// When the broker does not answer.
pub async fn all(bus: &Bus, platform: Option<&str>) -> Result<Vec<Channel>, ReadError> {
    let entries = bucket::all::<Channel>(bus, CHANNELS, &subject::channels_of(platform)).await?;
    let mut channels: Vec<Channel> = entries.into_iter().map(|entry| entry.record).collect();
    channels.sort_by(|a, b| order(a).cmp(&order(b)));
    Ok(channels)
}

fn order(channel: &Channel) -> (&str, &str, Option<&str>, &str, Option<&str>) {
    let Address { platform, account, chat, thread, .. } = &channel.address;
    (platform, account, channel.name.as_deref(), chat, thread.as_deref())
}

/// The home channels of all platforms.
///
/// # Errors
/// When the broker does not answer.
pub async fn homes(bus: &Bus) -> Result<Vec<Home>, ReadError> {
    let entries = bucket::all(bus, CHANNELS, subject::homes()).await?;
    Ok(entries.into_iter().map(|entry| entry.record).collect())
}

/// Finds a target: `<platform>` is its home channel; `<platform>:<chat>` and `<platform>:<chat>:<thread>` are a chat, by its id or
/// by its name (with or without `#`), or by the beginning of its name if no other begins so.
///
/// # Errors
/// When nothing, or more than one chat, fits; or the broker does not answer.
pub async fn find(bus: &Bus, target: &str) -> Result<Address, FindError> {
    let (platform, name) = target.split_once(':').unwrap_or((target, ""));
    if name.is_empty() {
        let (home, _) = bucket::read::<Home>(bus, CHANNELS, &subject::home_key(platform)).await?;
        let homeless = || FindError::Homeless { platform: platform.to_owned() };
        return home.record().map(|home| home.address).ok_or_else(homeless);
    }
    let channels = all(bus, Some(platform)).await?;
    match fitting(&channels, name)[..] {
        [one] => Ok(one.address.clone()),
        [] => Err(FindError::Unknown { platform: platform.to_owned(), name: name.to_owned() }),
        [..] => Err(FindError::Ambiguous {
            platform: platform.to_owned(),
            name: name.to_owned(),
            ids: fitting(&channels, name).iter().map(|channel| shown(&channel.address)).collect(),
        }),
    }
}

/// The chat and thread of an address as they are typed.
#[must_use]
pub fn shown(address: &Address) -> String {
    let thread = address.thread.as_ref().map(|thread| format!(":{thread}")).unwrap_or_default();
    format!("{}{thread}", address.chat)
}

/// The chats that fit a name, by the strictest reading that any fits. Ids may contain the mark between chat and thread, so both
/// are compared together.
fn fitting<'a>(channels: &'a [Channel], name: &str) -> Vec<&'a Channel> {
    let plain = |text: &str| text.trim().trim_start_matches('#').to_lowercase();
    let wanted = plain(name);
    let named = |channel: &Channel| channel.name.as_deref().map(plain);
    let readings: [&dyn Fn(&Channel) -> bool; 4] = [
        &|channel| shown(&channel.address) == name,
        &|channel| channel.name.as_deref() == Some(name),
        &|channel| named(channel).is_some_and(|own| own == wanted),
        &|channel| named(channel).is_some_and(|own| own.starts_with(&wanted)),
    ];
    readings
        .iter()
        .map(|reads| channels.iter().filter(|channel| reads(channel)).collect::<Vec<_>>())
        .find(|fitting| !fitting.is_empty())
        .unwrap_or_default()
}

/// Makes a chat the home channel of its platform.
///
/// # Errors
/// When the broker does not take it.
pub async fn set_home(bus: &Bus, home: &Home) -> Result<(), PutError> {
    let key = subject::home_key(&home.address.platform);
    loop {
        let (_, revision) = bucket::read::<Home>(bus, CHANNELS, &key)
            .await
            .map_err(|error| PutError::Unavailable { bucket: CHANNELS, source: error.into() })?;
        match bucket::put(bus, CHANNELS, &key, home, revision, None).await {
            Ok(_) => return Ok(()),
            Err(PutError::Overtaken) => {}
            Err(error @ PutError::Unavailable { .. }) => return Err(error),
        }
    }
}

/// Notes a chat as it was seen. The first to write wins; a name that has changed is noted by whoever sees it next.
///
/// # Errors
/// When the broker does not take it.
pub async fn note(bus: &Bus, channel: &Channel, revision: u64) -> Result<(), PutError> {
    let key = subject::channel_key(&channel.address);
    bucket::put(bus, CHANNELS, &key, channel, revision, None).await.map(drop)
}

/// A chat as it is known, and the record's revision.
///
/// # Errors
/// When the broker does not answer.
pub async fn known(bus: &Bus, address: &Address) -> Result<(Option<Channel>, u64), ReadError> {
    let key = subject::channel_key(address);
    let (found, revision) = bucket::read::<Channel>(bus, CHANNELS, &key).await?;
    Ok((found.record(), revision))
}

/// The id that a chat had first, if it has moved.
///
/// # Errors
/// When the broker does not answer.
pub async fn first_id(
    bus: &Bus,
    (platform, account): (&str, &str),
    chat: &str,
) -> Result<Option<String>, ReadError> {
    let key = subject::moved_key(platform, account, chat);
    let (found, _) = bucket::read::<Moved>(bus, CHANNELS, &key).await?;
    Ok(found.record().map(|moved| moved.from))
}

/// Notes that a chat has a new id. A chat that moves again keeps the id that it had first.
///
/// # Errors
/// When the broker does not take it.
pub async fn moved(
    bus: &Bus,
    (platform, account): (&str, &str),
    from: &str,
    to: &str,
) -> Result<(), PutError> {
    let unavailable =
        |error: ReadError| PutError::Unavailable { bucket: CHANNELS, source: error.into() };
    let first = first_id(bus, (platform, account), from).await.map_err(unavailable)?;
    let record = Moved { from: first.unwrap_or_else(|| from.to_owned()), to: to.to_owned() };
    let key = subject::moved_key(platform, account, to);
    let (found, revision) =
        bucket::read::<Moved>(bus, CHANNELS, &key).await.map_err(unavailable)?;
    // Where it first came from never changes: sessions are named after it.
    if from == to || found.record().is_some() {
        return Ok(());
    }
    match bucket::put(bus, CHANNELS, &key, &record, revision, None).await {
        Ok(_) | Err(PutError::Overtaken) => Ok(()),
        Err(error @ PutError::Unavailable { .. }) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use proto::session::ChatKind;

    use super::*;

    fn channel(chat: &str, thread: Option<&str>, name: Option<&str>) -> Channel {
        Channel {
            address: Address {
                platform: "slack".into(),
                account: "a".into(),
                chat: chat.into(),
                kind: ChatKind::Channel,
                thread: thread.map(str::to_owned),
            },
            name: name.map(str::to_owned),
            since_ms: 0,
        }
    }

    #[test]
    fn a_chat_is_found_by_its_id_before_its_name_and_by_its_name_before_a_beginning() {
        let channels = [
            channel("C1", None, Some("General")),
            channel("C2", None, Some("general")),
            channel("C3", None, Some("general-talk")),
            channel("C4", None, Some("C1")),
            channel("!r:s", Some("t"), None),
            channel("C5", None, Some("releases")),
        ];
        let found = |name: &str| -> Vec<String> {
            fitting(&channels, name).iter().map(|channel| shown(&channel.address)).collect()
        };
        assert_eq!(found("C1"), ["C1"]);
        assert_eq!(found("general"), ["C2"]);
        assert_eq!(found("#GENERAL"), ["C1", "C2"]);
        assert_eq!(found("rel"), ["C5"]);
        assert_eq!(found("gen"), ["C1", "C2", "C3"]);
        assert_eq!(found("!r:s:t"), ["!r:s:t"]);
        assert!(found("nowhere").is_empty());
    }
}
