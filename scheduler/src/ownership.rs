//! Which partitions are ours: every scheduler computes the same owner of each from the list of the living (rendezvous hashing),
//! so there is no leader and no table to agree on.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use node::Node;
use node::health::Light;
use node::members::{self, Members};
use proto::id::{Partition, ProcessId};
use proto::member::Role;
use tokio::sync::{broadcast, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::jobs::Jobs;
use crate::metrics::{Metrics, Release};
use crate::partition::{self, Lost};

/// How soon a partition whose loop ended by itself is taken up again.
const AGAIN: Duration = Duration::from_millis(200);
/// How long a released partition may take to finish the batch in hand.
const RELEASE_LIMIT: Duration = Duration::from_secs(1);

/// The partitions of this process and the loops that run them.
pub(crate) struct Ownership<'a> {
    node: &'a Node,
    metrics: Arc<Metrics>,
    jobs: Jobs,
    loops: BTreeMap<Partition, Loop>,
    gone: broadcast::Sender<ProcessId>,
    slots: BTreeMap<String, ProcessId>,
}

/// The loop of one partition.
struct Loop {
    stop: CancellationToken,
    task: JoinHandle<()>,
    /// Whether it can read its log.
    reading: watch::Receiver<bool>,
}

impl<'a> Ownership<'a> {
    pub(crate) fn new(node: &'a Node, metrics: Arc<Metrics>, jobs: Jobs) -> Self {
        metrics.partitions.set(i64::from(node.bus.partitions()));
        Self {
            node,
            metrics,
            jobs,
            loops: BTreeMap::new(),
            gone: broadcast::channel(256).0,
            slots: BTreeMap::new(),
        }
    }

    /// Takes and releases partitions as schedulers come and go, until `stop`.
    pub(crate) async fn follow(
        &mut self,
        mut living: watch::Receiver<Members>,
        health: &Light,
        stop: &CancellationToken,
    ) {
        let mut tick = tokio::time::interval(AGAIN);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = tick.tick() => {}
                changed = living.changed() => if changed.is_err() { return },
            }
            let members = living.borrow_and_update().clone();
            self.note_the_dead(&members);
            self.adjust(&members);
            health.pulse();
            match self.trouble(&members) {
                None => health.ready(),
                Some(why) => health.trouble(why),
            }
        }
    }

    /// A process in the slot of an earlier one proves that the earlier one is dead: its turns need not wait for their lease.
    fn note_the_dead(&mut self, members: &Members) {
        for member in members::of_role(members, Role::Worker) {
            let Some(slot) = &member.slot else { continue };
            if let Some(earlier) = self.slots.insert(slot.clone(), member.id)
                && earlier != member.id
            {
                tracing::info!(%slot, worker = %earlier, "the worker was replaced");
                // No loop may be listening yet; then there is nothing of that worker's here.
                let _ = self.gone.send(earlier);
            }
        }
    }

    fn adjust(&mut self, members: &Members) {
        self.loops.retain(|_, running| !running.task.is_finished());
        let schedulers: Vec<_> =
            members::of_role(members, Role::Scheduler).map(|member| member.id).collect();
        for partition in Partition::all(self.node.bus.partitions()) {
            let ours = owner(partition, &schedulers) == Some(self.node.id);
            if ours && !self.loops.contains_key(&partition) {
                self.take(partition);
            } else if !ours && let Some(running) = self.loops.get(&partition) {
                running.stop.cancel();
            }
        }
        self.metrics.partitions_owned.set(i64::try_from(self.loops.len()).unwrap_or(i64::MAX));
    }

    fn take(&mut self, partition: Partition) {
        let stop = CancellationToken::new();
        let (reads, reading) = watch::channel(false);
        let work = partition::run(
            partition,
            self.node.clone(),
            (Arc::clone(&self.metrics), self.jobs.clone()),
            self.gone.subscribe(),
            reads,
            stop.clone(),
        );
        let (released, metrics) = (stop.clone(), Arc::clone(&self.metrics));
        let task = tokio::spawn(async move {
            // A batch that hangs on a lost broker must not keep a partition: stopping anywhere is safe.
            let limit = async {
                released.cancelled().await;
                tokio::time::sleep(RELEASE_LIMIT).await;
            };
            metrics.released(tokio::select! {
                outcome = work => match outcome {
                    Ok(()) => {
                        tracing::debug!(%partition, "released");
                        Release::HandedOver
                    }
                    Err(error) => {
                        tracing::warn!(%partition, error = format!("{error:#}"), "partition loop ended");
                        if error.is::<Lost>() { Release::Lost } else { Release::Failed }
                    }
                },
                () = limit => {
                    tracing::warn!(%partition, "released in the middle of a batch");
                    Release::CutOff
                }
            });
        });
        self.loops.insert(partition, Loop { stop, task, reading });
    }

    fn trouble(&self, members: &Members) -> Option<String> {
        if !members.contains_key(&self.node.id) {
            return Some("not yet a member: is the broker reachable?".into());
        }
        let owned: Vec<_> =
            self.loops.iter().filter(|(_, running)| !running.stop.is_cancelled()).collect();
        if let Some((partition, _)) = owned.iter().find(|(_, running)| !*running.reading.borrow()) {
            return Some(format!("cannot read the log of partition {partition} at the moment"));
        }
        // Few partitions may leave one of several schedulers without any, and that is no trouble.
        let schedulers: Vec<_> =
            members::of_role(members, Role::Scheduler).map(|member| member.id).collect();
        let is_missing = |partition: &Partition| {
            owner(*partition, &schedulers) == Some(self.node.id)
                && !owned.iter().any(|(owned, _)| *owned == partition)
        };
        let missing = Partition::all(self.node.bus.partitions()).find(is_missing);
        missing.map(|partition| format!("has not taken partition {partition} over yet"))
    }

    /// Ends all loops after the batch in hand.
    pub(crate) async fn release_all(&mut self) {
        for running in self.loops.values() {
            running.stop.cancel();
        }
        for (_, running) in std::mem::take(&mut self.loops) {
            let _ = running.task.await;
        }
    }
}

/// The owner of a partition among the living: the one with the highest score, so that a change of one process moves only its
/// own share (rendezvous hashing; Thaler and Ravishankar, 1998).
#[must_use]
pub fn owner(partition: Partition, schedulers: &[ProcessId]) -> Option<ProcessId> {
    let score = |id: &ProcessId| {
        let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
        for byte in format!("{id}/{partition}").bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        // FNV's high bits mix poorly on short inputs; this finishes the mixing (SplitMix64's finalizer).
        hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (hash ^ (hash >> 31), *id)
    };
    schedulers.iter().copied().max_by_key(score)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_are_shared_evenly_and_a_newcomer_takes_only_its_share() {
        let ids: Vec<_> =
            (1..=4_u64).map(|n| ProcessId::new(n.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
        let count = |schedulers: &[ProcessId], id| {
            Partition::all(256).filter(|p| owner(*p, schedulers) == Some(id)).count()
        };
        for id in &ids {
            let share = count(&ids, *id);
            assert!((35..=95).contains(&share), "{share} of 256 for one of four");
        }
        let moved = Partition::all(256).filter(|p| {
            let (three, four) = (owner(*p, &ids[..3]), owner(*p, &ids));
            three != four && four != Some(ids[3])
        });
        assert_eq!(moved.count(), 0);
        assert_eq!(owner(Partition::new(0), &[]), None);
    }
}
