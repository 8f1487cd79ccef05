//! Readiness: the door says that it is open only when a message would be answered.

use std::time::Duration;

use node::Node;
use node::health::Light;
use node::members::{self, Members};
use proto::member::Role;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

use crate::accounts::Board;

/// How often everything is looked at, and the loop shows that it comes round.
const TICK: Duration = Duration::from_millis(250);

/// Keeps the light true until the process stops.
pub(crate) async fn watch(
    node: Node,
    light: Light,
    desks: Vec<watch::Receiver<bool>>,
    board: Board,
) {
    let mut members = members::follow(node.bus.clone(), node.shutdown.clone());
    let mut tick = interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut shown = None;
    loop {
        tokio::select! {
            _ = tick.tick() => {}
            Ok(()) = members.changed() => {}
            () = node.shutdown.cancelled() => break,
        }
        light.pulse();
        // One account that does not work is no reason to send the others' messages elsewhere: it is said, that is all.
        light.note(board.troubles());
        let missing = missing(node.bus.is_connected(), &desks, &members.borrow());
        if shown.as_ref() != Some(&missing) {
            match &missing {
                None => light.ready(),
                Some(why) => light.trouble(*why),
            }
            shown = Some(missing);
        }
    }
    light.trouble("stopping");
}

/// What keeps a message from being answered.
fn missing(
    connected: bool,
    desks: &[watch::Receiver<bool>],
    members: &Members,
) -> Option<&'static str> {
    let alive = |role| members::of_role(members, role).next().is_some();
    if !connected {
        Some("no connection to the broker")
    } else if !desks.iter().all(|up| *up.borrow()) {
        Some("deliveries are not read")
    } else if !alive(Role::Scheduler) {
        Some("no scheduler is alive")
    } else if !alive(Role::Worker) {
        Some("no worker is alive")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use proto::id::ProcessId;
    use proto::member::Member;

    use super::*;

    #[test]
    fn ready_means_that_everyone_is_there() {
        let (up, desk) = watch::channel(false);
        let desks = [desk];
        let mut members = Members::new();
        assert_eq!(missing(false, &desks, &members), Some("no connection to the broker"));
        assert_eq!(missing(true, &desks, &members), Some("deliveries are not read"));
        up.send_replace(true);
        for (number, role) in [(1, Role::Scheduler), (2, Role::Worker)] {
            assert!(missing(true, &desks, &members).is_some());
            let id = ProcessId::new(number);
            members.insert(id, Member { role, id, slot: None, turns: 0 });
        }
        assert_eq!(missing(true, &desks, &members), None);
    }
}
