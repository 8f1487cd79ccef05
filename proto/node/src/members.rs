//! Who is alive: each process announces itself every second, and everyone keeps the same list. An entry counts until five
//! seconds after its last sign of life by the reader's own clock: watches are hints, never proof, and clocks are never compared.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Context;
use async_nats::jetstream::kv::{Operation, Store};
use futures_util::{StreamExt, TryStreamExt};
use proto::codec;
use proto::id::ProcessId;
use proto::member::{Member, Role};
use proto::subject;
use proto::topology::{MEMBER_TTL, MEMBERS};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::bus::Bus;

/// How often a process says that it is alive.
const ANNOUNCE: Duration = Duration::from_secs(1);

/// The live processes.
pub type Members = BTreeMap<ProcessId, Member>;

/// Announces a process until `stop`, then withdraws it, so that others notice at once.
pub async fn announce(bus: Bus, member: Member, stop: CancellationToken) {
    announce_with(bus, member, stop, || 0).await;
}

/// The same, for one that says each time how many turns it runs.
pub async fn announce_with(
    bus: Bus,
    mut member: Member,
    stop: CancellationToken,
    turns: impl Fn() -> u32,
) {
    let key = subject::member_key(member.role, member.id);
    let mut tick = tokio::time::interval(ANNOUNCE);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = tick.tick() => {}
            () = stop.cancelled() => break,
        }
        member.turns = turns();
        if let Ok(store) = bus.stream().get_key_value(MEMBERS).await
            && let Err(error) = store.put(&key, codec::encode(&member).into()).await
        {
            tracing::warn!(%error, "could not renew the membership");
        }
    }
    if let Ok(store) = bus.stream().get_key_value(MEMBERS).await {
        // Without this, the entry expires by itself a few seconds later.
        let _ = store.delete(&key).await;
    }
}

/// Follows the list of live processes until the receiver is dropped or `stop`.
#[must_use]
pub fn follow(bus: Bus, stop: CancellationToken) -> watch::Receiver<Members> {
    let (sender, receiver) = watch::channel(Members::new());
    tokio::spawn(async move {
        tokio::select! {
            () = follow_until_dropped(bus, &sender) => {}
            () = stop.cancelled() => {}
        }
    });
    receiver
}

async fn follow_until_dropped(bus: Bus, sender: &watch::Sender<Members>) {
    let mut seen: BTreeMap<ProcessId, (Member, Instant)> = BTreeMap::new();
    let mut connects = bus.connects();
    while !sender.is_closed() {
        connects.mark_unchanged();
        if let Ok(store) = bus.stream().get_key_value(MEMBERS).await {
            tokio::select! {
                () = read(&store, &mut seen, sender) => {}
                _ = connects.changed() => {}
                () = sender.closed() => return,
            }
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Reads one watch until it ends or has been silent for too long to be believed.
async fn read(
    store: &Store,
    seen: &mut BTreeMap<ProcessId, (Member, Instant)>,
    sender: &watch::Sender<Members>,
) {
    let Ok(mut watch) = store.watch_with_history(">").await else { return };
    let mut tick = tokio::time::interval(Duration::from_millis(250));
    let mut heard = Instant::now();
    loop {
        tokio::select! {
            entry = watch.next() => match entry {
                Some(Ok(entry)) => {
                    heard = Instant::now();
                    if entry.operation != Operation::Put || entry.value.is_empty() {
                        seen.retain(|id, (member, _)| subject::member_key(member.role, *id) != entry.key);
                    } else if let Ok(member) = codec::decode::<Member>(&entry.value) {
                        seen.insert(member.id, (member, heard));
                    }
                }
                Some(Err(_)) | None => return,
            },
            _ = tick.tick() => {
                // In a living system someone announces each second. Silence means that the watch is broken, not that
                // everyone died: rebuild it before anyone is declared dead.
                if heard.elapsed() > ANNOUNCE * 3 && !seen.is_empty() {
                    return;
                }
            }
        }
        seen.retain(|_, (_, last)| last.elapsed() < MEMBER_TTL);
        sender.send_if_modified(|members| {
            let now: Members = seen.iter().map(|(id, (member, _))| (*id, member.clone())).collect();
            let changed = *members != now;
            *members = now;
            changed
        });
    }
}

/// The live processes as the bucket has them now: for what must not miss one that has only just come.
///
/// # Errors
/// When the broker does not answer.
pub async fn list(bus: &Bus) -> anyhow::Result<Members> {
    let store = bus.stream().get_key_value(MEMBERS).await.context("no members")?;
    let keys: Vec<String> = store.keys().await?.try_collect().await.context("no members")?;
    let mut members = Members::new();
    for key in keys {
        if let Some(value) = store.get(&key).await.context("a member")?
            && let Ok(member) = codec::decode::<Member>(&value)
        {
            members.insert(member.id, member);
        }
    }
    Ok(members)
}

/// The live processes of one role.
pub fn of_role(members: &Members, role: Role) -> impl Iterator<Item = &Member> {
    members.values().filter(move |member| member.role == role)
}
