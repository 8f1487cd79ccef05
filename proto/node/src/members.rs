//! Who is alive: each process announces itself every second, and everyone keeps the same list. An entry counts until five
//! seconds after its last sign of life by the reader's own clock: what is heard is a hint, never proof, and clocks are never
//! compared. Followers listen to the announcements themselves, so that they need no consumer, and no right to make one.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::StreamExt;
use proto::codec;
use proto::id::ProcessId;
use proto::member::{Member, Role};
use proto::subject;
use proto::topology::{MEMBER_TTL, MEMBERS};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::bus::{Bus, ReadError, Stored, Write};
use crate::snapshot;

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
    let subject = subject::bucket_subject(MEMBERS, &key);
    let mut tick = tokio::time::interval(ANNOUNCE);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = tick.tick() => {}
            () = stop.cancelled() => break,
        }
        member.turns = turns();
        let said = codec::encode(&member).into();
        if let Err(error) = bus.write(subject.clone(), said, Write::default()).await {
            tracing::warn!(%error, "could not renew the membership");
        }
    }
    // An empty entry withdraws. Without it, the last one expires by itself a few seconds later.
    let _ = bus.write(subject, Bytes::new(), Write::default()).await;
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
    let mut seen = Seen::default();
    let mut connects = bus.connects();
    while !sender.is_closed() {
        connects.mark_unchanged();
        tokio::select! {
            () = listen(&bus, &mut seen, sender) => {}
            _ = connects.changed() => {}
            () = sender.closed() => return,
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Listens until the subscription ends or has been silent for too long to be believed.
async fn listen(bus: &Bus, seen: &mut Seen, sender: &watch::Sender<Members>) {
    let all = subject::bucket_subject(MEMBERS, "*.*");
    let Ok(mut announced) = bus.client().subscribe(all).await else { return };
    // Those that have announced themselves already. Without an answer the list is complete after their next announcement.
    match now(bus).await {
        Ok(now) => now.iter().for_each(|(subject, said)| seen.hear(subject, &said.payload)),
        Err(error) => tracing::debug!(%error, "the members are not known yet"),
    }
    seen.tell(sender);
    let mut tick = tokio::time::interval(Duration::from_millis(250));
    let mut heard = Instant::now();
    loop {
        tokio::select! {
            message = announced.next() => {
                let Some(message) = message else { return };
                heard = Instant::now();
                seen.hear(&message.subject, &message.payload);
            }
            _ = tick.tick() => {
                // In a living system someone announces each second. Silence means that we are deaf, not that everyone died:
                // begin again before anyone is declared dead.
                if heard.elapsed() > ANNOUNCE * 3 && !seen.0.is_empty() {
                    return;
                }
            }
        }
        seen.tell(sender);
    }
}

/// Who was heard, and when.
#[derive(Default)]
struct Seen(BTreeMap<ProcessId, (Member, Instant)>);

impl Seen {
    fn hear(&mut self, subject: &str, said: &Bytes) {
        if said.is_empty() {
            let key = subject::bucket_key(MEMBERS, subject).unwrap_or_default();
            self.0.retain(|id, (member, _)| subject::member_key(member.role, *id) != key);
        } else if let Ok(member) = codec::decode::<Member>(said) {
            // Who says that it is someone else is no one.
            let key = subject::member_key(member.role, member.id);
            if subject == subject::bucket_subject(MEMBERS, &key) {
                self.0.insert(member.id, (member, Instant::now()));
            }
        }
    }

    fn tell(&mut self, sender: &watch::Sender<Members>) {
        self.0.retain(|_, (_, last)| last.elapsed() < MEMBER_TTL);
        sender.send_if_modified(|members| {
            let now: Members =
                self.0.iter().map(|(id, (member, _))| (*id, member.clone())).collect();
            let changed = *members != now;
            *members = now;
            changed
        });
    }
}

/// The live processes as the bucket has them now, from any of its copies.
///
/// # Errors
/// When the broker does not answer.
pub async fn list(bus: &Bus) -> Result<Members, ReadError> {
    let mut seen = Seen::default();
    for (subject, said) in now(bus).await? {
        seen.hear(&subject, &said.payload);
    }
    Ok(seen.0.into_iter().map(|(id, (member, _))| (id, member)).collect())
}

async fn now(bus: &Bus) -> Result<BTreeMap<String, Stored>, ReadError> {
    let all = subject::bucket_subject(MEMBERS, "*.*");
    snapshot::all(bus, &subject::bucket_stream(MEMBERS), &all).await
}

/// The live processes of one role.
pub fn of_role(members: &Members, role: Role) -> impl Iterator<Item = &Member> {
    members.values().filter(move |member| member.role == role)
}
