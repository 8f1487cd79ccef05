//! The services: who is alive, whether every partition has an owner, and whether every queue has a reader.

use std::time::Duration;

use futures_util::TryStreamExt;
use futures_util::future::join_all;
use node::bus::Bus;
use node::members::{self, Members};
use node::settings::Settings;
use proto::id::{Attempt, Partition, ProcessId, Sid, TurnId};
use proto::member::Role;
use proto::subject;
use proto::topology::{OUTBOX, TURNS};
use proto::turn::{Claim, ClaimReply, TurnRef};
use tokio_util::sync::CancellationToken;

use super::Finding;

/// How long the list of the living is waited for: every process announces itself each second.
const PATIENCE: Duration = Duration::from_millis(2500);

/// Who is alive.
pub(crate) async fn members(bus: &Bus) -> Members {
    let stop = CancellationToken::new();
    let guard = stop.clone().drop_guard();
    let mut living = members::follow(bus.clone(), stop);
    let complete = living.wait_for(|members| {
        [Role::Ingress, Role::Scheduler, Role::Worker]
            .into_iter()
            .all(|role| members::of_role(members, role).next().is_some())
    });
    // One of the roles may be absent; then what is there is all there is.
    let _ = tokio::time::timeout(PATIENCE, complete).await;
    let found = living.borrow().clone();
    drop(guard);
    found
}

/// One finding for each role.
pub(super) fn alive(members: &Members) -> Vec<Finding> {
    let roles = [
        (Role::Ingress, "ingress", "messages cannot come in, and replies wait"),
        (Role::Scheduler, "scheduler", "nothing is decided"),
        (Role::Worker, "worker", "turns wait"),
    ];
    roles
        .into_iter()
        .map(|(role, name, without)| match members::of_role(members, role).count() {
            0 => Finding::broken(name, format!("none is alive: {without}"), format!("start a {name}")),
            1 => Finding::weaker(
                name,
                "one is alive: while it is replaced, people wait",
                format!("run two of them (ingress: if its platforms allow it); each {name} finds its share by itself"),
            ),
            many => Finding::fine(name, format!("{many} are alive")),
        })
        .collect()
}

/// The partitions whose owner answers. It is asked for a turn that nobody has, which it refuses.
pub(crate) async fn answering(bus: &Bus) -> Vec<Partition> {
    let of = TurnRef { sid: Sid::new(0), turn: TurnId::new(0), attempt: Attempt::FIRST };
    let claim = Claim { of, worker: ProcessId::new(0) };
    let asked = Partition::all(bus.partitions()).map(|partition| async move {
        let answer = bus.ask::<_, ClaimReply>(subject::claim(partition), &claim).await;
        answer.is_ok().then_some(partition)
    });
    join_all(asked).await.into_iter().flatten().collect()
}

/// Whether every partition has an owner.
pub(super) async fn owners(bus: &Bus) -> Finding {
    let (answering, all) = (answering(bus).await.len(), usize::from(bus.partitions()));
    if answering == all {
        return Finding::fine(
            "ownership",
            format!("all {all} partitions have an owner that answers"),
        );
    }
    Finding::broken(
        "ownership",
        format!(
            "{} of {all} partitions have no owner that answers: their sessions stand still",
            all - answering
        ),
        "start a scheduler, or look into the logs of those that run",
    )
}

/// Consumers in which something waits and that nobody reads.
pub(super) async fn consumers(bus: &Bus, settings: &Settings, members: &Members) -> Vec<Finding> {
    let mut lonely = Vec::new();
    for stream in [TURNS, OUTBOX] {
        match unread(bus, stream).await {
            Ok(found) => lonely.extend(found),
            Err(error) => {
                return vec![Finding::broken(
                    "consumers",
                    format!("those of {stream} cannot be listed: {error:#}"),
                    "may this user publish to $JS.API.CONSUMER.LIST.*?",
                )];
            }
        }
    }
    if lonely.is_empty() {
        let workers = members::of_role(members, Role::Worker).count();
        let pool = &settings.worker.pool;
        return vec![Finding::fine(
            "consumers",
            format!(
                "every queue with something in it has a reader; {workers} workers, pool {pool}"
            ),
        )];
    }
    let mend = "start a process with that pool or account; if it is gone for good, `nats consumer rm` and the messages expire";
    lonely.into_iter().map(|found| Finding::weaker("consumers", found, mend)).collect()
}

async fn unread(bus: &Bus, stream: &str) -> anyhow::Result<Vec<String>> {
    let handle = bus.stream().get_stream(stream).await?;
    let consumers: Vec<_> = handle.consumers().try_collect().await?;
    let unread = consumers.into_iter().filter(|consumer| {
        consumer.num_pending > 0 && consumer.num_waiting == 0 && consumer.num_ack_pending == 0
    });
    Ok(unread
        .map(|consumer| {
            format!(
                "{} of {stream} has {} messages and no reader",
                consumer.name, consumer.num_pending
            )
        })
        .collect())
}
