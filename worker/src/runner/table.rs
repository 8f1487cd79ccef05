//! The table of turns that this worker runs or is about to, the memory of those that it has run, and the newest owner of each
//! partition that it has heard of.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use proto::activity::Activity;
use proto::id::{Epoch, Partition, Sid};
use proto::turn::{BeatTurn, Control, TurnRef};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use crate::activity::{Gauge, Tracker};
use crate::fence::Fence;
use crate::turn::{Stop, Wishes};

/// How many turns are remembered after they were started.
const REMEMBERED_MAX: usize = 16 * 1024;

/// One turn.
struct Row {
    gauge: Gauge,
    tracker: Tracker,
    wishes: watch::Sender<Wishes>,
    cut: CancellationToken,
    /// The right to it; none while its claim is out.
    fence: Option<Fence>,
}

/// What a turn is started with.
type Handles = (Tracker, watch::Receiver<Wishes>, CancellationToken);

/// All of it.
#[derive(Default)]
pub(super) struct Table {
    rows: BTreeMap<TurnRef, Row>,
    started: HashSet<TurnRef>,
    /// The same, oldest first.
    ages: VecDeque<TurnRef>,
    epochs: HashMap<Partition, Epoch>,
    bell: Arc<Notify>,
}

impl Table {
    /// Rung when a turn does something that its scheduler should know at once.
    pub(super) fn bell(&self) -> Arc<Notify> {
        Arc::clone(&self.bell)
    }

    /// How many turns run or are about to.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether this attempt was started here: it must never be started again.
    pub(super) fn was_started(&self, of: TurnRef) -> bool {
        self.started.contains(&of)
    }

    /// A claim goes out; false if one is out already.
    pub(super) fn begin_claim(&mut self, of: TurnRef, max_iterations: u32) -> bool {
        if self.rows.contains_key(&of) {
            return false;
        }
        let (tracker, gauge) = Tracker::new(max_iterations, Arc::clone(&self.bell));
        let wishes = watch::Sender::new(Wishes::default());
        let cut = CancellationToken::new();
        self.rows.insert(of, Row { gauge, tracker, wishes, cut, fence: None });
        true
    }

    /// The claim was granted. None if there is no such claim, or the attempt was started before.
    pub(super) fn start(&mut self, of: TurnRef, fence: Fence) -> Option<Handles> {
        let row = self.rows.get_mut(&of)?;
        if !self.started.insert(of) {
            return None;
        }
        self.ages.push_back(of);
        if self.ages.len() > REMEMBERED_MAX {
            let oldest = self.ages.pop_front();
            oldest.map(|oldest| self.started.remove(&oldest));
        }
        row.fence = Some(fence);
        Some((row.tracker.clone(), row.wishes.subscribe(), row.cut.clone()))
    }

    /// The turn has ended, or its claim has.
    pub(super) fn remove(&mut self, of: TurnRef) {
        self.rows.remove(&of);
    }

    /// Whether an answer of this owner counts; if so, those of earlier ones no longer do.
    pub(super) fn accept(&mut self, partition: Partition, epoch: Epoch) -> bool {
        let newest = self.epochs.entry(partition).or_default();
        let counts = epoch >= *newest;
        *newest = epoch.max(*newest);
        counts
    }

    /// The turns that run, with what a heartbeat says of them.
    pub(super) fn running(&self) -> impl Iterator<Item = BeatTurn> {
        self.rows.iter().filter(|(_, row)| row.fence.is_some()).map(|(of, row)| {
            let wishes = row.wishes.borrow();
            BeatTurn {
                of: *of,
                activity: row.gauge.known(),
                steers: wishes.steers().to_vec(),
                seen: row.gauge.seen(),
                answers: wishes.answered(),
            }
        })
    }

    /// What the turn of a session does, if it runs here.
    pub(super) fn doing(&self, sid: Sid) -> Option<Activity> {
        let (_, row) = self.rows.iter().find(|(of, row)| of.sid == sid && row.fence.is_some())?;
        row.gauge.known()
    }

    /// The right to a turn was confirmed.
    pub(super) fn renew(&self, of: TurnRef, sent_ms: u64) {
        if let Some(fence) = self.fence(of) {
            fence.renew(sent_ms);
        }
    }

    /// The right to a turn is gone.
    pub(super) fn lose(&self, of: TurnRef) {
        if let Some(fence) = self.fence(of) {
            tracing::warn!(turn = %of.turn, attempt = %of.attempt, "a turn was taken away");
            fence.lose();
        }
    }

    /// Passes a control on; true if it interrupts a turn that did not know. One for a turn that is not here does nothing.
    pub(super) fn control(&self, control: &Control) -> bool {
        if let Control::Abandon { of } = control {
            self.lose(*of);
            return false;
        }
        let Some(row) = self.rows.get(&control.of()) else { return false };
        let is_new = row.wishes.send_if_modified(|wishes| wishes.apply(control));
        let interrupts = is_new && matches!(control, Control::Interrupt { .. });
        if interrupts {
            row.cut.cancel();
        }
        interrupts
    }

    /// Asks all turns to end.
    pub(super) fn stop_all(&self, stop: Stop) {
        for row in self.rows.values() {
            row.wishes.send_if_modified(|wishes| wishes.stop(stop));
        }
    }

    /// Cuts off whatever the turns have in flight.
    pub(super) fn cut_all(&self) {
        self.rows.values().for_each(|row| row.cut.cancel());
    }

    fn fence(&self, of: TurnRef) -> Option<&Fence> {
        self.rows.get(&of).and_then(|row| row.fence.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use proto::id::Seq;
    use proto::turn::StopReason;

    use super::*;
    use crate::fence::tests::lasting;
    use crate::transcript::tests::of;

    #[test]
    fn an_attempt_starts_once() {
        let mut table = Table::default();
        assert!(table.begin_claim(of(1, 1), 9));
        assert!(!table.begin_claim(of(1, 1), 9), "its claim is out");
        assert!(table.start(of(1, 1), lasting()).is_some());
        table.remove(of(1, 1));
        assert!(table.was_started(of(1, 1)));
        assert!(table.begin_claim(of(1, 1), 9));
        assert!(table.start(of(1, 1), lasting()).is_none());
        assert!(!table.was_started(of(1, 2)));
    }

    #[test]
    fn a_control_before_the_start_is_kept_and_reported() {
        let mut table = Table::default();
        table.control(&Control::Steer { of: of(1, 1), seq: Seq::new(3) });
        table.begin_claim(of(1, 1), 9);
        table.control(&Control::Steer { of: of(1, 1), seq: Seq::new(4) });
        assert_eq!(table.running().count(), 0);
        let (_, wishes, cut) = table.start(of(1, 1), lasting()).unwrap();
        assert_eq!(wishes.borrow().steers(), [Seq::new(4)]);
        table.control(&Control::Interrupt { of: of(1, 1), reason: StopReason::Stop });
        assert!(cut.is_cancelled());
        let beat: Vec<_> = table.running().collect();
        assert_eq!(beat[0].steers, [Seq::new(4)]);
    }

    #[test]
    fn answers_of_earlier_owners_do_not_count() {
        let mut table = Table::default();
        let (p, q) = (Partition::new(1), Partition::new(2));
        assert!(table.accept(p, Epoch::new(5)));
        assert!(!table.accept(p, Epoch::new(4)));
        assert!(table.accept(p, Epoch::new(5)));
        assert!(table.accept(q, Epoch::new(1)));
    }

    #[test]
    fn what_is_abandoned_or_lost_loses_its_right() {
        let mut table = Table::default();
        table.begin_claim(of(1, 1), 9);
        let fence = lasting();
        table.start(of(1, 1), fence.clone());
        table.control(&Control::Abandon { of: of(1, 1) });
        assert!(fence.check().is_err());
    }
}
