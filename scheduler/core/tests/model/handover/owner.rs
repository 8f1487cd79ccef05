//! What an owner does, in the steps between which it may be paused.

use proto::id::{Epoch, Seq};
use proto::lease::{Lease, Phase};
use proto::receipt::Fact;
use proto::turn::{ClaimReply, Control};
use scheduler_core::{Session, Signal, Time};

use super::{Checkpoint, Fated, Handover, Job, Owner, Said, Slip, Stage, State, Work};
use crate::kit::key;

impl State {
    /// Fences the owner before: its checkpoints are refused from now on.
    pub(crate) fn take(&mut self, s: usize) {
        self.takeovers += 1;
        self.checkpoint.epoch += 1;
        let Checkpoint { epoch, cursor, settled } = self.checkpoint;
        self.owners[s] =
            Owner { epoch, cursor, settled, stage: Stage::Loading, ..Owner::default() };
    }

    /// Reads the record. Whatever runs is adopted, and what may not have been sent is.
    pub(crate) fn load(&mut self, system: &Handover, s: usize) {
        self.owners[s].stage = Stage::Ready;
        let Some(mut lease) = self.stored.clone() else { return };
        if self.revision <= self.owners[s].settled || system.bug == Some(Slip::SkipsEffects) {
            lease.effects.clear();
        }
        let session = Session::restore(lease, Time::from_ms(0));
        if !session.is_idle() || !session.lease.effects.is_empty() {
            self.owners[s].session = Some(session);
            self.owners[s].revision = self.revision;
            self.begin(system, s, Work::Adopt);
        }
    }

    /// The record as an owner finds it when it has nothing in memory.
    fn fetch(&mut self, system: &Handover, s: usize) {
        if self.owners[s].session.is_some() {
            return;
        }
        let epoch = Epoch::new(self.owners[s].epoch);
        let session = match self.stored.clone() {
            Some(mut lease) => {
                let out = lease.epoch == epoch || self.revision <= self.owners[s].settled;
                if out || system.bug == Some(Slip::SkipsEffects) {
                    lease.effects.clear();
                }
                Session::restore(lease, Time::from_ms(0))
            }
            None => Session::new(key(), epoch, Time::from_ms(0)),
        };
        self.owners[s].session = Some(session);
        self.owners[s].revision = self.revision;
    }

    /// Applies something; the write is a step of its own.
    pub(crate) fn begin(&mut self, system: &Handover, s: usize, work: Work) {
        let newer =
            self.stored.as_ref().is_some_and(|lease| lease.epoch.get() > self.owners[s].epoch);
        let looks = self.owners[s].session.is_none() && system.bug != Some(Slip::NeverStepsDown);
        if newer && looks {
            self.owners[s] = Owner::default();
            return;
        }
        self.fetch(system, s);
        if self.apply(system, s, work) {
            self.owners[s].stage = Stage::Writing(work);
            if system.bug == Some(Slip::ChecksTooEarly) && work == Work::Read {
                let ahead = self.owners[s].cursor + 1;
                if self.checkpoint.epoch == self.owners[s].epoch {
                    self.checkpoint.cursor = ahead;
                }
            }
        } else {
            self.written(s, work);
        }
    }

    fn apply(&mut self, system: &Handover, s: usize, work: Work) -> bool {
        let input = self.input(system, s, work);
        // Each step has a clock of its own that begins at 0: only what is due decides, and the space stays finite.
        let now = Time::from_ms(if let Work::Tick(ms) = work { ms } else { 0 });
        let owner = &mut self.owners[s];
        let session = owner.session.as_mut().expect("it was read");
        let fences = session.lease.epoch.get() < owner.epoch && !session.is_idle();
        session.lease.epoch = Epoch::new(owner.epoch);
        let mut signals = Vec::new();
        let mut changed = fences && system.bug != Some(Slip::AdoptsSilently);
        changed |= session.step(&system.policy, now, &input, &mut signals);
        *session = Session::restore(session.lease.clone(), Time::from_ms(0));
        owner.said = signals.into_iter().filter_map(said).collect();
        changed
    }

    /// The compare-and-set. Refused: steps down before a newer owner, or applies the same to what is there now.
    pub(crate) fn write(&mut self, system: &Handover, s: usize) {
        let Stage::Writing(work) = self.owners[s].stage.clone() else { return };
        let refused = self.owners[s].revision != self.revision;
        if refused && system.bug != Some(Slip::Overwrites) {
            let stored = self.stored.clone().expect("someone wrote it");
            let newer = stored.epoch.get() > self.owners[s].epoch;
            if newer && system.bug != Some(Slip::NeverStepsDown) {
                self.owners[s] = Owner::default();
                return;
            }
            self.owners[s].session = Some(Session::restore(stored, Time::from_ms(0)));
            self.owners[s].revision = self.revision;
            if !self.apply(system, s, work) {
                self.written(s, work);
            }
            return;
        }
        let lease = self.owners[s].session.as_ref().expect("it was applied").lease.clone();
        self.went_back |= self.stored.as_ref().is_some_and(|stored| stored.epoch > lease.epoch);
        self.stored = Some(lease);
        self.revision += 1;
        self.owners[s].revision = self.revision;
        self.written(s, work);
    }

    /// What follows a write, or an input that changed nothing: what is said, and then the effects.
    fn written(&mut self, s: usize, work: Work) {
        for said in std::mem::take(&mut self.owners[s].said) {
            match (said, work) {
                (Said::Claim { granted }, Work::Claim(w, job)) => {
                    self.claim_is_answered(w, job, granted)
                }
                (Said::Claim { .. }, _) => {}
                (Said::Stop(worker, of), _) => {
                    for w in 0..2 {
                        let running = self.workers[w].running.map(Self::of);
                        self.workers[w].told_to_stop |= self.id(w) == worker && running == Some(of);
                    }
                }
                (Said::Settled(message, fate), _) => {
                    self.fates.entry(message).or_default().insert(Fated(format!("{fate:?}")));
                }
            }
        }
        let owner = &mut self.owners[s];
        let lease = &owner.session.as_ref().expect("it was applied").lease;
        owner.stage = if lease.effects.is_empty() { Stage::Ready } else { Stage::Publishing };
        if owner.stage == Stage::Ready {
            owner.settled = owner.settled.max(owner.revision);
        }
        if work == Work::Read {
            owner.cursor += 1;
        }
    }

    pub(crate) fn publish(&mut self, s: usize) {
        let session = self.owners[s].session.as_mut().expect("it was applied");
        let turn =
            session.lease.phase.turn().map(|turn| Job { turn: turn.id, attempt: turn.attempt });
        let effects = session.lease.effects.clone();
        session.effects_are_out();
        for effect in effects {
            self.deliver(effect, turn);
        }
        let owner = &mut self.owners[s];
        owner.stage = Stage::Ready;
        owner.settled = owner.settled.max(owner.revision);
    }

    /// Stores how far it has come, unless a newer owner has raised the epoch: then it steps down.
    pub(crate) fn store_checkpoint(&mut self, system: &Handover, s: usize) {
        let owner = &self.owners[s];
        let Owner { epoch, cursor, settled, .. } = *owner;
        if self.checkpoint.epoch == epoch {
            let cursor = self.checkpoint.cursor.max(cursor);
            self.checkpoint = Checkpoint { epoch, cursor, settled };
        } else if system.bug != Some(Slip::NeverStepsDown) {
            self.owners[s] = Owner::default();
        }
    }

    pub(crate) fn lease(&self, s: usize) -> Option<&Lease> {
        self.owners[s].session.as_ref().map(|session| &session.lease)
    }

    /// Whether the process that runs the turn, as an owner knows it, will never be heard of again.
    pub(crate) fn holder_is_gone(&self, s: usize) -> bool {
        let Some(Phase::Running { turn, worker }) = self.lease(s).map(|lease| &lease.phase) else {
            return false;
        };
        let of = Self::of(Job { turn: turn.id, attempt: turn.attempt });
        let reported =
            |entry: &super::Entry| matches!(entry, super::Entry::Report(report) if report.of == of);
        let seen = self.lease(s).map_or(Seq::default(), |lease| lease.seen);
        let unread = self.log.iter().skip(usize::try_from(seen.get()).unwrap_or_default());
        !(0..2).any(|w| self.id(w) == *worker && self.workers[w].running.map(Self::of) == Some(of))
            && !unread.into_iter().any(reported)
    }
}

fn said(signal: Signal) -> Option<Said> {
    match signal {
        Signal::Claim(answer) => {
            Some(Said::Claim { granted: matches!(answer, ClaimReply::Granted { .. }) })
        }
        Signal::Tell { worker, control: Control::Interrupt { of, .. } } => {
            Some(Said::Stop(worker, of))
        }
        Signal::Fact(Fact::Settled { message, fate, .. }) => Some(Said::Settled(message, fate)),
        _ => None,
    }
}
