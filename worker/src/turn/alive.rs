//! The signs of life of a turn, for the platform: while they come, it shows that the agent writes.

use std::time::Duration;

use proto::outbound::Draft;
use proto::subject;
use tokio::time::{MissedTickBehavior, interval};

use super::Turn;

/// How often one is given. Platforms show it for about five seconds.
const EVERY: Duration = Duration::from_secs(4);

/// Gives signs of life for as long as it is asked to. None comes while the turn waits for a person, or has lost its right.
pub(super) async fn show(turn: &Turn) {
    let mut tick = interval(EVERY);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let address = &turn.order.address;
    let subject = subject::draft(&address.platform, &address.account);
    let sign = Draft {
        of: turn.order.of,
        session: turn.order.session.clone(),
        address: address.clone(),
        reply_to: String::new(),
        offset: Draft::SIGN_OF_LIFE,
        text: String::new(),
    };
    loop {
        tick.tick().await;
        if turn.fence.check().is_ok() && !turn.tracker.waits_for_a_person() {
            turn.shared.node.bus.tell(subject.clone(), &sign).await;
        }
    }
}
