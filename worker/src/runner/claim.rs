//! A claim: asked until someone answers. Meanwhile the order stays ours.

use std::sync::Arc;
use std::time::Duration;

use proto::subject;
use proto::turn::{Claim, ClaimReply};

use super::Input;
use super::orders::Order;
use crate::shared::Shared;

/// The first and the longest pause between two tries.
const PAUSE: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));

/// A claim that was answered.
pub(super) struct Claimed {
    pub(super) order: Order,
    pub(super) reply: ClaimReply,
    /// When it was asked: what the right counts from.
    pub(super) asked_ms: u64,
}

/// Asks anew after a moment.
pub(super) async fn claim_again(shared: Arc<Shared>, order: Order) -> Input {
    tokio::time::sleep(PAUSE.0).await;
    claim(shared, order).await
}

/// Asks until there is an answer: none comes while the partition has no owner.
pub(super) async fn claim(shared: Arc<Shared>, order: Order) -> Input {
    let node = &shared.node;
    let of = order.order.of;
    let claim = Claim { of, worker: node.id };
    let mut pause = PAUSE.0;
    loop {
        let asked_ms = shared.clock.now_ms();
        match node.bus.ask(subject::claim(node.bus.partition_of(of.sid)), &claim).await {
            Ok(reply) => return Input::Claimed(Box::new(Claimed { order, reply, asked_ms })),
            Err(error) => tracing::debug!(%error, "a claim was not answered"),
        }
        order.keep().await;
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSE.1);
    }
}
