//! Two owners of one job, each with a clock of its own, that look, claim, write, die and are late, in any order: the log has one
//! message for each due time at most, and never two runs at once.

use proptest::prelude::*;
use proto::id::Seq;
use proto::job::{Job, JobEnd};
use scheduler_core::jobs::{self, Due};

use crate::{BEGIN, MINUTE, make};

#[derive(Clone, Copy, Debug)]
enum Op {
    /// Time passes.
    Pass(u64),
    /// An owner's clock is set, minutes fast or slow.
    Set(usize, i64),
    /// An owner reads the record, then the place of the last message.
    Read(usize),
    ReadPlace(usize),
    /// It claims what it finds due in what it has read.
    Claim(usize),
    /// It writes the message of the run that it knows of.
    Write(usize),
    /// It dies and comes back with nothing.
    Die(usize),
    /// A straggler of an earlier run reports.
    Straggle,
    /// The session ends the run whose message is in the log.
    End,
}

fn op() -> impl Strategy<Value = Op> {
    let who = 0..2_usize;
    prop_oneof![
        3 => (1..40_u64).prop_map(Op::Pass),
        1 => (who.clone(), -60..60_i64).prop_map(|(who, minutes)| Op::Set(who, minutes)),
        5 => who.clone().prop_map(Op::Read),
        5 => who.clone().prop_map(Op::ReadPlace),
        5 => who.clone().prop_map(Op::Claim),
        5 => who.clone().prop_map(Op::Write),
        1 => who.prop_map(Op::Die),
        1 => Just(Op::Straggle),
        3 => Just(Op::End),
    ]
}

#[derive(Clone, Debug, Default)]
struct Owner {
    skew: i64,
    view: Option<(Job, u64)>,
    place: Option<u64>,
    /// Where it believes that the log ends, for the run that it writes.
    expect: Option<u64>,
}

struct World {
    now: u64,
    record: (Job, u64),
    /// The messages of the job's session: a run by its due time, or something else.
    log: Vec<Option<u64>>,
    ended: Vec<u64>,
    owners: [Owner; 2],
}

impl World {
    fn new() -> Self {
        let record = (make("every 10m", &[]).unwrap(), 1);
        let owners = [Owner::default(), Owner::default()];
        Self { now: BEGIN, record, log: Vec::new(), ended: Vec::new(), owners }
    }

    fn last(&self) -> u64 {
        self.log.len() as u64
    }

    fn swap(&mut self, job: Job, revision: u64) -> bool {
        let may = self.record.1 == revision;
        if may {
            self.record = (job, revision + 1);
        }
        may
    }

    fn apply(&mut self, op: Op) {
        match op {
            Op::Pass(minutes) => self.now += minutes * MINUTE,
            Op::Set(who, minutes) => self.owners[who].skew = minutes,
            Op::Read(who) => {
                let skew = self.owners[who].skew;
                self.owners[who] =
                    Owner { skew, view: Some(self.record.clone()), ..Owner::default() };
            }
            Op::ReadPlace(who) => self.owners[who].place = Some(self.last()),
            Op::Claim(who) => self.claim(who),
            Op::Write(who) => self.write(who),
            Op::Die(who) => self.owners[who] = Owner::default(),
            Op::Straggle => self.log.push(None),
            Op::End => self.end(),
        }
    }

    fn claim(&mut self, who: usize) {
        let owner = self.owners[who].clone();
        let (Some((job, revision)), Some(place)) = (owner.view, owner.place) else { return };
        let now = self.now.saturating_add_signed(owner.skew * MINUTE.cast_signed());
        let after = match jobs::due(&job, now) {
            Due::No => return,
            Due::Run => jobs::claim(&job, now, Seq::new(place)),
            Due::Overlap => jobs::skip(&job, now),
        };
        let done = self.swap(after.clone(), revision);
        self.owners[who].view = done.then_some((after, revision + 1));
        self.owners[who].expect = None;
    }

    /// One try: the broker takes the message if the log ends where it is expected to; otherwise the owner looks behind the
    /// place that the claim names, and tries again behind whatever else it finds there.
    fn write(&mut self, who: usize) {
        let Some((job, _)) = &self.owners[who].view else { return };
        let Some(run) = job.run else { return };
        if self.owners[who].expect.unwrap_or(run.after.get()) == self.last() {
            let running = self.log.iter().flatten().any(|due| !self.ended.contains(due));
            assert!(!running, "a run begins beside another");
            self.log.push(Some(run.due_ms));
        } else {
            let from = usize::try_from(run.after.get()).unwrap();
            let there = self.log[from..].contains(&Some(run.due_ms));
            self.owners[who].expect = (!there).then(|| self.last());
        }
    }

    fn end(&mut self) {
        let (job, revision) = self.record.clone();
        let Some(run) = job.run else { return };
        if self.log.contains(&Some(run.due_ms)) {
            self.ended.push(run.due_ms);
            let after = jobs::ended(&job, run.due_ms, JobEnd::Answered).unwrap();
            assert!(self.swap(after, revision));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn each_due_time_has_one_message_at_most(ops in prop::collection::vec(op(), 1..120)) {
        let mut world = World::new();
        for op in ops {
            world.apply(op);
        }
        let mut runs: Vec<_> = world.log.iter().flatten().collect();
        let all = runs.len();
        runs.sort();
        runs.dedup();
        prop_assert_eq!(runs.len(), all, "{:?}", world.log);
    }
}

#[test]
fn an_owner_that_dies_between_its_claim_and_the_message_loses_nothing() {
    let mut world = World::new();
    for op in [Op::Pass(10), Op::Read(0), Op::ReadPlace(0), Op::Claim(0), Op::Read(1), Op::Die(0)] {
        world.apply(op);
    }
    assert!(world.log.is_empty());
    // Something of an earlier run comes in between; the next owner finds its place.
    for op in [Op::Straggle, Op::Write(1), Op::Write(1), Op::Write(1)] {
        world.apply(op);
    }
    assert_eq!(world.log, [None, Some(BEGIN + 10 * MINUTE)]);
}
