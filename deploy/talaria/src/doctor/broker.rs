//! The broker: its version, how it stores, its limits, and its clock.

use std::time::{Duration, SystemTime};

use async_nats::jetstream::kv;
use node::bus::Bus;
use node::settings::Settings;
use proto::topology::MEMBERS;
use serde::Deserialize;

use super::Finding;

/// How long a monitoring address may take.
const LIMIT: Duration = Duration::from_secs(3);
/// How far the broker's clock may be from ours before what people read becomes confusing.
const SKEW: Duration = Duration::from_millis(500);
/// How full the store may be.
const FULL_PERCENT: u64 = 85;
/// The key of the doctor's own in the bucket of members, which forgets it by itself and whose readers pass over it.
const KEY: &str = "doctor";

/// Its version. One that is too old is refused before.
pub(super) fn version(bus: &Bus) -> Finding {
    let info = bus.client().server_info();
    let cluster = info.cluster.map(|name| format!(", cluster {name}")).unwrap_or_default();
    Finding::fine("broker", format!("nats-server {} at {}{cluster}", info.version, info.host))
}

/// What a server says of itself at its monitoring address.
#[derive(Debug, Deserialize)]
struct Varz {
    #[serde(default)]
    server_name: String,
    #[serde(default)]
    jetstream: JetStream,
}

#[derive(Debug, Default, Deserialize)]
struct JetStream {
    config: Option<Store>,
}

#[derive(Debug, Deserialize)]
struct Store {
    /// Nanoseconds.
    #[serde(default)]
    sync_interval: u64,
    #[serde(default)]
    sync_always: bool,
}

/// Whether each server writes to the disk before it acknowledges.
pub(super) async fn storage(settings: &Settings, monitors: &[String]) -> Vec<Finding> {
    if monitors.is_empty() {
        return vec![Finding::unknown(
            "sync",
            "whether servers write to the disk before they acknowledge cannot be seen without their monitoring addresses",
            "give --monitor http://SERVER:8222 for each",
        )];
    }
    let mut findings = Vec::new();
    for monitor in monitors {
        findings.push(match varz(monitor).await {
            Ok(varz) => sync(settings, &varz),
            Err(error) => Finding::unknown(
                "sync",
                format!("{monitor} does not answer: {error}"),
                "is the server's `http` port open to this machine?",
            ),
        });
    }
    findings
}

async fn varz(monitor: &str) -> Result<Varz, reqwest::Error> {
    let client = reqwest::Client::builder().timeout(LIMIT).build()?;
    let url = format!("{}/varz", monitor.trim_end_matches('/'));
    client.get(url).send().await?.error_for_status()?.json().await
}

fn sync(settings: &Settings, varz: &Varz) -> Finding {
    let name = &varz.server_name;
    match &varz.jetstream.config {
        None => Finding::broken(
            "sync",
            format!("{name} has no JetStream"),
            "turn it on in the server's configuration",
        ),
        Some(store) if store.sync_always => {
            Finding::fine("sync", format!("{name} writes to the disk before it acknowledges"))
        }
        Some(store) => {
            let every = humantime::format_duration(Duration::from_nanos(store.sync_interval));
            let cost = if settings.streams.replicas == 1 {
                "a power cut"
            } else {
                "a power cut of most servers at once"
            };
            Finding::weaker(
                "sync",
                format!(
                    "{name} writes to the disk each {every}: {cost} loses what was acknowledged since"
                ),
                "set jetstream { sync_interval: always } on every server",
            )
        }
    }
}

/// What the account may store, and how much it does.
pub(super) async fn limits(settings: &Settings, bus: &Bus) -> Finding {
    let payload = bus.client().max_payload();
    if settings.ingress.body_limit * 2 > payload {
        return Finding::weaker(
            "limits",
            format!(
                "the broker takes messages up to {payload} bytes, and ingress.body_limit is {}",
                settings.ingress.body_limit
            ),
            "raise max_payload on the servers, or lower ingress.body_limit to half of it",
        );
    }
    let account = match bus.stream().query_account().await {
        Ok(account) => account,
        Err(error) => {
            return Finding::broken(
                "limits",
                format!("the account's JetStream cannot be asked: {error}"),
                "is JetStream on for this account, and may this user publish to $JS.API.INFO?",
            );
        }
    };
    let used = account.storage;
    match account
        .limits
        .max_storage
        .and_then(|limit| u64::try_from(limit).ok())
        .filter(|limit| *limit > 0)
    {
        None => Finding::weaker(
            "limits",
            format!(
                "the account has no limit of storage ({used} bytes are used): nobody can say when it is nearly full"
            ),
            "give the account one (jetstream: { max_file: … }), so that TalariaStoreNearlyFull can warn",
        ),
        Some(limit) if used * 100 > limit * FULL_PERCENT => Finding::broken(
            "limits",
            format!("the store is nearly full: {used} of {limit} bytes"),
            "give the account more, or shorten streams.events_retention and streams.inbox_retention",
        ),
        Some(limit) => Finding::fine(
            "limits",
            format!("{used} of {limit} bytes are stored; messages up to {payload} bytes"),
        ),
    }
}

/// Whether the broker's clock and ours agree. Nothing is decided by them, but people read their times, and metrics compare them.
pub(super) async fn clock(bus: &Bus) -> Finding {
    let skew = match skew(bus).await {
        Ok(skew) => skew,
        Err(error) => {
            return Finding::unknown(
                "clock",
                format!("the broker's time could not be read: {error}"),
                "it is asked once something has run and the bucket of members exists",
            );
        }
    };
    let text = humantime::format_duration(Duration::from_millis(
        u64::try_from(skew.as_millis()).unwrap_or(u64::MAX),
    ));
    if skew > SKEW {
        return Finding::weaker(
            "clock",
            format!("the broker's clock and this machine's differ by {text}"),
            "keep all machines' clocks by NTP: queue waits and interrupt times are measured across them",
        );
    }
    Finding::fine("clock", format!("the broker's differs from ours by {text} at most"))
}

/// How far apart the clocks are at least.
async fn skew(bus: &Bus) -> anyhow::Result<Duration> {
    let store: kv::Store = bus.stream().get_key_value(MEMBERS).await?;
    let before = SystemTime::now();
    store.put(KEY, "".into()).await?;
    let after = SystemTime::now();
    let entry = store.entry(KEY).await?;
    let _ = store.purge(KEY).await;
    let created: SystemTime =
        entry.ok_or_else(|| anyhow::anyhow!("the key is gone"))?.created.into();
    let early = before.duration_since(created).unwrap_or_default();
    let late = created.duration_since(after).unwrap_or_default();
    Ok(early.max(late))
}

#[cfg(test)]
mod tests {
    use super::super::Grade;
    use super::*;

    fn server(config: &str) -> Varz {
        serde_json::from_str(&format!(r#"{{"server_name":"n1","jetstream":{config}}}"#)).unwrap()
    }

    #[test]
    fn only_a_server_that_always_syncs_is_fine() {
        let grade = |config| sync(&Settings::default(), &server(config)).grade;
        assert_eq!(grade(r#"{"config":{"sync_always":true}}"#), Grade::Fine);
        assert_eq!(grade(r#"{"config":{"sync_interval":120000000000}}"#), Grade::Weaker);
        assert_eq!(grade("{}"), Grade::Broken);
    }
}
