//! Heartbeats: one request for each partition with turns; the answers renew the rights, or end them.

use std::collections::BTreeMap;
use std::sync::Arc;

use proto::id::Partition;
use proto::subject;
use proto::turn::{Beat, BeatReply, BeatTurn};

use super::{Input, Runner};
use crate::shared::Shared;

/// The answer to a heartbeat, if one came.
pub(super) struct Beaten {
    partition: Partition,
    /// When the heartbeat was sent: what a renewal counts from.
    sent_ms: u64,
    reply: Option<BeatReply>,
}

impl Runner {
    /// Sends what runs.
    pub(super) fn beat(&mut self) {
        let mut partitions: BTreeMap<Partition, Vec<BeatTurn>> = BTreeMap::new();
        self.shared.metrics.doing(self.table.running());
        for turn in self.table.running() {
            let partition = self.shared.node.bus.partition_of(turn.of.sid);
            partitions.entry(partition).or_default().push(turn);
        }
        for (partition, turns) in partitions {
            self.tasks.spawn(ask(Arc::clone(&self.shared), partition, turns));
        }
    }

    /// Takes an answer in.
    pub(super) fn beaten(&mut self, beaten: Beaten) {
        let Beaten { partition, sent_ms, reply } = beaten;
        let result = if reply.is_some() { "answered" } else { "unanswered" };
        self.shared.metrics.beats.with_label_values(&[result]).inc();
        let Some(reply) = reply else { return };
        if !self.table.accept(partition, reply.epoch) {
            tracing::debug!(%partition, epoch = %reply.epoch, "an earlier owner answered");
            return;
        }
        reply.kept.iter().for_each(|of| self.table.renew(*of, sent_ms));
        reply.lost.iter().for_each(|of| self.table.lose(*of));
        for control in &reply.controls {
            self.table.control(control);
        }
    }
}

async fn ask(shared: Arc<Shared>, partition: Partition, turns: Vec<BeatTurn>) -> Input {
    let node = &shared.node;
    let beat = Beat { worker: node.id, turns };
    let sent_ms = shared.clock.now_ms();
    let reply = node.bus.ask(subject::beat(partition), &beat).await;
    let reply = reply
        .inspect_err(|error| tracing::debug!(%partition, %error, "a heartbeat was not answered"))
        .ok();
    Input::Beaten(Beaten { partition, sent_ms, reply })
}
