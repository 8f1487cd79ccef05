//! Taking part in a rolling restart: each process looks whether there is a plan and whose turn it is, and ends itself when its
//! turn has come. Whoever starts it again is a supervisor, which sees the exit code 75. Schedulers say how far it is: the others
//! may not write to people.

use std::time::{Duration, Instant};

use bytes::Bytes;
use proto::codec;
use proto::id::ProcessId;
use proto::member::Role;
use proto::outbound::Outbound;
use proto::rollout::{Rollout, Stand};
use proto::subject;
use proto::topology::FLEET;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::bus::{Bus, Stored, Write};
use crate::members::{self, Members};

/// How often it is looked whether there is a plan.
const LOOK: Duration = Duration::from_millis(500);
/// How long a process that has gone may take to be started again before the rollout stops.
const REPLACED_WITHIN: Duration = Duration::from_secs(60);
/// How long progress is tried to be said.
const SAY: Duration = Duration::from_secs(2);

/// Whether a process says how far a restart is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Voice {
    /// It does: it is a scheduler.
    Speaks,
    /// It only takes part.
    Silent,
}

/// Returns when a plan says that it is the turn of one of `ours`.
pub async fn wanted(bus: Bus, ours: Vec<ProcessId>, voice: Voice) {
    let mut follower = Follower { bus, ours, voice, following: None };
    let mut tick = tokio::time::interval(LOOK);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        if follower.look().await {
            return;
        }
    }
}

/// A plan that is being followed.
struct Following {
    rollout: Rollout,
    revision: u64,
    living: watch::Receiver<Members>,
    stand: Option<Stand>,
    since: Instant,
    /// Up to which place it was said whose turn it is.
    told: usize,
}

struct Follower {
    bus: Bus,
    ours: Vec<ProcessId>,
    voice: Voice,
    following: Option<Following>,
}

impl Follower {
    /// Looks once; true if it is our turn.
    async fn look(&mut self) -> bool {
        let key = subject::bucket_subject(FLEET, subject::rollout_key());
        let Ok(stored) = self.bus.last_nearby(&subject::bucket_stream(FLEET), &key).await else {
            return false;
        };
        let stored = stored.filter(Stored::is_value);
        let rollout = stored.as_ref().and_then(|s| codec::decode::<Rollout>(&s.payload).ok());
        let (Some(stored), Some(rollout)) = (stored, rollout) else {
            self.following = None;
            return false;
        };
        if self.following.as_ref().is_none_or(|old| old.revision != stored.sequence) {
            let living = members::follow(self.bus.clone(), CancellationToken::new());
            let (revision, since) = (stored.sequence, Instant::now());
            let (stand, told) = (None, 0);
            self.following = Some(Following { rollout, revision, living, stand, since, told });
        }
        let Some(following) = &mut self.following else { return false };
        let stand = following.rollout.stand(&following.living.borrow());
        if following.stand != Some(stand) {
            following.stand = Some(stand);
            following.since = Instant::now();
        }
        if self.voice == Voice::Speaks {
            self.tell(stand).await;
        }
        matches!(stand, Stand::Turn { id, .. } if self.ours.contains(&id))
    }

    /// Says whose turn it is, for all whose turn has come, and how it ended. Those who say the same say it under the same id.
    async fn tell(&mut self, stand: Stand) {
        let Some(following) = &mut self.following else { return };
        let plan = &following.rollout.plan;
        let (come, ended) = match stand {
            Stand::Turn { place, .. } => (place, None),
            Stand::Awaiting { role, gone } if following.since.elapsed() > REPLACED_WITHIN => {
                (gone, Some(("stopped", stopped(gone, plan.len(), role))))
            }
            Stand::Awaiting { gone, .. } => (gone, None),
            Stand::Done => {
                let text = format!("Restarted: all {} processes have started again.", plan.len());
                (plan.len(), Some(("done", text)))
            }
        };
        let planned = plan.iter().enumerate().map(|(at, member)| (at + 1, member));
        for (place, planned) in planned.take(come).skip(following.told) {
            let member = following.living.borrow().get(&planned.id).cloned();
            let member = member.unwrap_or_else(|| planned.clone());
            let text = progress(place, plan.len(), member.role, member.id, member.turns);
            if !say(&self.bus, following.rollout.says(&format!("{place}"), text)).await {
                return;
            }
            following.told = place;
        }
        if let Some((what, text)) = ended {
            self.end(what, text).await;
        }
    }

    /// Says how it ended, under an id that all processes share, and takes the plan away.
    async fn end(&mut self, what: &str, text: String) {
        let Some(Following { rollout, revision, .. }) = self.following.take() else { return };
        if !say(&self.bus, rollout.says(what, text)).await {
            return;
        }
        let key = subject::bucket_subject(FLEET, subject::rollout_key());
        // An empty value is none. Refused: another process was faster.
        let write = Write { expect: Some(revision), ..Write::default() };
        let _ = self.bus.write(key, Bytes::new(), write).await;
    }
}

fn progress(place: usize, of: usize, role: Role, id: ProcessId, turns: u32) -> String {
    let turns = match turns {
        0 => String::new(),
        1 => "; its turn is handed over".into(),
        turns => format!("; its {turns} turns are handed over"),
    };
    format!("Restarting, {place} of {of}: {role} {id}{turns}. Messages are answered meanwhile.")
}

fn stopped(gone: usize, of: usize, role: Role) -> String {
    format!(
        "The restart stopped at {gone} of {of}: no new {role} has come within {} s, so the others were left running. Does \
         something start processes again that end with exit code 75?",
        REPLACED_WITHIN.as_secs()
    )
}

async fn say(bus: &Bus, outbound: Outbound) -> bool {
    let subject = subject::outbox(&outbound.address, outbound.session.sid());
    let (payload, id) = (codec::encode(&outbound).into(), outbound.id.to_string());
    let said = bus.write_until(&subject, payload, &id, SAY).await;
    said.inspect_err(|error| tracing::warn!(%error, "the progress of a restart was not said"))
        .is_ok()
}
