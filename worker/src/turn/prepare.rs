//! What comes before the first model call: the inputs, the profile, the conversation; read side by side, and proven fresh by the
//! first writes.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{join_all, try_join_all};
use node::bus::{Write, WriteError};
use proto::codec;
use proto::event::MessageEvent;
use proto::id::{Attempt, ConversationId, Seq};
use proto::inbox::Inbox;
use proto::subject;
use proto::topology::{INBOX, SESSIONS};
use proto::transcript::{Body, Entry, Profile};

use super::admission::{self, Admitted};
use super::compress::Room;
use super::desk::known_of;
use super::sight::Album;
use super::spoken::{Spoken, Stage};
use super::work::Work;
use super::{Ending, Halt, Turn, prompt};
use crate::fence::Lost;
use crate::models::Model;
use crate::transcript::{
    AppendError, Beginning, Kept, Log, next_piece, own_part, patiently, rightful,
};

/// The pause before a profile is read back.
const PAUSE: Duration = Duration::from_millis(10);
const NOT_STORED: &str = "I no longer have the message that I should answer. Please send it again.";

/// The session's profile with this turn in it.
#[derive(Clone, Debug)]
pub(super) struct Seat {
    profile: Profile,
    revision: u64,
    since: Since,
}

/// What has happened to the session since this worker knew it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Since {
    /// It had no profile before: it has said nothing yet.
    New,
    /// Nothing: each turn writes the profile, and it was as we left it.
    Unchanged,
    /// Other turns may have run.
    Unknown,
}

impl Seat {
    /// The session's profile.
    pub(super) const fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Notes something in the profile. It only saves work later, so what cannot be written now is left out.
    pub(super) async fn note(
        &mut self,
        turn: &Turn,
        change: impl FnOnce(&mut Profile),
    ) -> Result<(), Lost> {
        let mut profile = self.profile.clone();
        change(&mut profile);
        turn.fence.check()?;
        let key = subject::bucket_subject(SESSIONS, &turn.order.of.sid.to_string());
        let write = Write { expect: Some(self.revision), ..Write::default() };
        match turn.shared.node.bus.write(key, codec::encode(&profile).into(), write).await {
            Ok(written) => (self.profile, self.revision) = (profile, written.sequence),
            // If it was written after all, the next turn finds that out.
            Err(error) => tracing::warn!(%error, "a profile was not written"),
        }
        turn.fence.check()
    }

    /// The session as it is left for the next turn.
    pub(super) fn keep(self, last: u64, entries: Vec<Arc<Entry>>) -> Kept {
        Kept { profile: self.profile, revision: self.revision, last, entries }
    }
}

/// Begins a fresh conversation.
pub(super) async fn begin_afresh(turn: &Turn) -> Result<(), Halt> {
    let sid = turn.order.of.sid;
    turn.shared.shelf.take(sid);
    let seat = take_seat(turn, None, &Wanted::Fresh).await?;
    turn.tell_session_reset(seat.profile.previous, seat.profile.conversation);
    turn.shared.shelf.put(sid, seat.keep(0, Vec::new()));
    Ok(())
}

/// Prepares the agent loop for what the turn may answer; or says how the turn ends without one.
pub(super) async fn agent(turn: &Turn) -> Result<Result<(Work<'_>, Admitted), Ending>, Halt> {
    let wanted = if turn.order.fresh { Wanted::Fresh } else { Wanted::Current };
    let kept = turn.shared.shelf.take(turn.order.of.sid);
    let (seat, admitted) =
        tokio::try_join!(seat(turn, kept.as_ref(), &wanted), admission::admitted(turn))?;
    let admitted = match admitted {
        Ok(admitted) => admitted,
        Err(ending) => return Ok(Err(ending)),
    };
    if turn.order.fresh {
        turn.tell_session_reset(seat.profile.previous, seat.profile.conversation);
    }
    let agent = answering(turn, seat, kept, &admitted.events, &admitted.inputs).await?;
    Ok(agent.map(|agent| (agent, admitted)))
}

/// Takes the session's profile for this turn. What this worker has kept of the session saves a look.
pub(super) async fn seat(turn: &Turn, kept: Option<&Kept>, wanted: &Wanted) -> Result<Seat, Halt> {
    let known = kept.map(|kept| (kept.profile.clone(), kept.revision));
    take_seat(turn, known, wanted).await
}

/// Prepares the agent loop for some inputs: usually the turn's own.
pub(super) async fn answering<'a>(
    turn: &'a Turn,
    seat: Seat,
    kept: Option<Kept>,
    events: &[MessageEvent],
    inputs: &[Seq],
) -> Result<Result<Work<'a>, Ending>, Halt> {
    let Some(first) = events.first() else {
        return Ok(Err(Ending::Failed(NOT_STORED.into())));
    };
    // The run of a scheduled job shows nothing before its end: it may have nothing to report.
    let stage = turn.order.session.job().is_none().then(|| Stage {
        of: turn.order.of,
        session: turn.order.session.clone(),
        address: turn.order.address.clone(),
        reply_to: first.id.clone(),
    });
    let mut begin = Beginning {
        system: turn.shared.node.settings.agent.system_prompt.clone()
            + &prompt::instructions(events),
        history: prompt::history(events),
        media: prompt::pictures(events),
        user: prompt::joined(inputs, events),
    };
    turn.tracker.touch();
    let mut log = conversation(turn, &seat, kept).await?;
    let model = model_of(turn, &seat, first);
    if !is_there(log.entries(), &begin.user) {
        let words = events.iter().map(|event| turn.words(event, &*model));
        let text = join_all(words).await.join("\n\n");
        begin.user = Body::User { inputs: inputs.to_vec(), text };
        turn.fence.check()?;
    }
    if log.entries().is_empty() {
        begin.system += &known_of(turn, first).await?;
        turn.tell_session_start(seat.profile.conversation, first);
    }
    open(&mut log, turn, &begin).await?;
    turn.tracker.touch();
    turn.tell_agent_start(first);
    Ok(Ok(Work { model, ..resumed(turn, seat, stage, log, &begin.user) }))
}

/// Who answers: the model that the session has chosen, else its channel's, else the worker's own.
fn model_of(turn: &Turn, seat: &Seat, first: &MessageEvent) -> Arc<dyn Model> {
    let chosen = seat.profile.model.as_deref();
    if let (None, Some(name)) = (chosen, first.admission.model.as_deref()) {
        match turn.shared.find_model(name) {
            Ok(model) => return model,
            Err(error) => {
                tracing::error!("the channel's model {name} cannot be had: {error:#}");
            }
        }
    }
    turn.shared.model_named(chosen)
}

/// Whether an earlier attempt has put the person's words into the conversation.
fn is_there(entries: &[Arc<Entry>], user: &Body) -> bool {
    let Body::User { inputs: wanted, .. } = user else { return false };
    entries.iter().any(|entry| matches!(&entry.body, Body::User { inputs, .. } if inputs == wanted))
}

/// An agent that has done nothing yet.
pub(super) fn bare(turn: &Turn, seat: Seat, log: Log) -> Work<'_> {
    let model = turn.shared.model_named(seat.profile.model.as_deref());
    Work {
        turn,
        seat: Some(seat),
        stage: None,
        specs: turn.shared.specs(0),
        remote: Arc::from([]),
        depth: 0,
        limit: turn.shared.node.settings.agent.max_iterations,
        cut: turn.cut.clone(),
        tracker: turn.tracker.clone(),
        spoken: Spoken::default(),
        steered: Vec::new(),
        taken: Vec::new(),
        usage: proto::turn::Usage::default(),
        iteration: 0,
        model,
        album: Album::default(),
        room: Room::default(),
        log,
    }
}

/// The agent, with what earlier attempts have done of the turn.
fn resumed<'a>(
    turn: &'a Turn,
    seat: Seat,
    stage: Option<Stage>,
    log: Log,
    user: &Body,
) -> Work<'a> {
    let mut agent = Work { stage, ..bare(turn, seat, log) };
    for entry in own_part(agent.log.entries(), turn.order.of, user) {
        match &entry.body {
            Body::User { inputs, .. } | Body::Result { inputs, .. } => agent.taken.extend(inputs),
            Body::Assistant { text, .. } => {
                agent.spoken.resume(text);
                agent.iteration += 1;
                agent.steered.clone_from(&agent.taken);
            }
            Body::System { .. }
            | Body::Resumed
            | Body::Attached { .. }
            | Body::Compressed { .. }
            | Body::Withdrawn { .. } => {}
        }
    }
    turn.budget.spend(agent.iteration);
    agent
}

/// Appends what is missing before the model can be asked.
async fn open(log: &mut Log, turn: &Turn, begin: &Beginning) -> Result<(), Halt> {
    while let Some(body) = next_piece(log.entries(), turn.order.of, begin) {
        match log.append(body).await {
            // A straggler wrote; what is missing is found out anew.
            Ok(()) | Err(AppendError::Overtaken) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// The conversation, from memory if it is there, else from the stream.
pub(super) async fn conversation(
    turn: &Turn,
    seat: &Seat,
    kept: Option<Kept>,
) -> Result<Log, Halt> {
    let Turn { shared, fence, order, .. } = turn;
    let who = (order.of, shared.node.id);
    let id = seat.profile.conversation;
    let known = kept.filter(|kept| kept.profile.conversation == id);
    let from = if known.is_some() { "memory" } else { "stream" };
    shared.metrics.conversations.with_label_values(&[from]).inc();
    // If either is wrong, the first append is refused.
    let is_read = match seat.since {
        Since::New => order.of.attempt == Attempt::FIRST,
        Since::Unchanged => known.is_some(),
        Since::Unknown => false,
    };
    let stored = known.map_or((0, Vec::new()), |kept| (kept.last, kept.entries));
    let mut log = Log::known(&shared.node.bus, fence, who, id, stored);
    if !is_read {
        log.catch_up().await?;
    }
    for gone in &order.forget {
        if log.entries().iter().any(|entry| entry.turn == *gone) {
            log.append(Body::Withdrawn { turn: *gone, inputs: Vec::new() }).await?;
        }
    }
    Ok(log)
}

/// Messages of the log. What is gone or unreadable is left out.
pub(super) async fn messages(turn: &Turn, seqs: &[Seq]) -> Result<Vec<MessageEvent>, Halt> {
    let found = try_join_all(seqs.iter().map(|seq| turn.input(*seq))).await?;
    Ok(found.into_iter().flatten().collect())
}

impl Turn {
    /// One message of the log.
    pub(super) async fn input(&self, seq: Seq) -> Result<Option<MessageEvent>, Lost> {
        let bus = &self.shared.node.bus;
        let stored = patiently(&self.fence, || bus.message(INBOX, seq.get())).await?;
        let Some(stored) = stored else {
            tracing::warn!(%seq, "an input is no longer stored");
            return Ok(None);
        };
        match codec::decode(&stored.payload) {
            Ok(Inbox::Message(event) | Inbox::Edit(event)) => Ok(Some(*event)),
            Ok(
                Inbox::Report(_)
                | Inbox::Hangup { .. }
                | Inbox::Withdrawal { .. }
                | Inbox::Refused { .. },
            ) => Ok(None),
            Err(error) => {
                self.shared.metrics.poison.inc();
                tracing::error!(%error, %seq, "an input cannot be read");
                Ok(None)
            }
        }
    }
}

/// What a turn wants of the session's profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// The current conversation.
    Current,
    /// A fresh one; the current one is set aside.
    Fresh,
    /// The one that was set aside; the current one takes its place.
    Previous,
    /// The current one, and from now on this model; none is the worker's own.
    Model(Option<String>),
}

/// A profile as it was found: none if there is none that can be read. The revision is that of whatever stands there.
type Found = (Option<Profile>, u64);

/// Writes this attempt into the session's profile, so that an older one that is late finds itself refused.
async fn take_seat(
    turn: &Turn,
    known: Option<(Profile, u64)>,
    wanted: &Wanted,
) -> Result<Seat, Halt> {
    let bus = &turn.shared.node.bus;
    let key = subject::bucket_subject(SESSIONS, &turn.order.of.sid.to_string());
    let (mut since, mut found): (_, Found) = match known {
        Some((profile, revision)) => (Since::Unchanged, (Some(profile), revision)),
        None => (Since::Unknown, stored(turn, &key, Replica::Nearby).await?),
    };
    loop {
        let (current, revision) = found;
        if let Some(current) = &current
            && !may_follow(turn, current).await?
        {
            turn.fence.lose();
            return Err(Halt::Lost);
        }
        let profile = next_profile(turn, current.as_ref(), wanted);
        turn.fence.check()?;
        let write = Write { expect: Some(revision), ..Write::default() };
        match bus.write(key.clone(), codec::encode(&profile).into(), write).await {
            Ok(written) => {
                let since = if current.is_none() { Since::New } else { since };
                return Ok(Seat { profile, revision: written.sequence, since });
            }
            Err(WriteError::TooLarge) => return Err(Halt::TooLarge),
            Err(error @ (WriteError::Refused | WriteError::Unknown)) => {
                tracing::debug!(%error, "a profile is read back");
            }
        }
        // Either ours is there, or someone else's is, or neither and the broker was busy with another write.
        tokio::time::sleep(PAUSE).await;
        since = Since::Unknown;
        found = stored(turn, &key, Replica::Leader).await?;
        if found.0.as_ref() == Some(&profile) {
            return Ok(Seat { profile, revision: found.1, since });
        }
    }
}

/// The profile with this attempt in it. What an earlier attempt of the turn has changed is not changed again.
fn next_profile(turn: &Turn, current: Option<&Profile>, wanted: &Wanted) -> Profile {
    let of = turn.order.of;
    let own = ConversationId::from(of.turn);
    let model = if let Wanted::Model(model) = wanted { model.clone() } else { None };
    let Some(current) = current else {
        return Profile {
            conversation: own,
            turn: of.turn,
            attempt: of.attempt,
            previous: None,
            model,
            external: None,
        };
    };
    let same = Profile { turn: of.turn, attempt: of.attempt, ..current.clone() };
    if current.turn == of.turn {
        return same;
    }
    match (wanted, current.previous) {
        (Wanted::Fresh, _) => {
            Profile { conversation: own, previous: Some(current.conversation), ..same }
        }
        (Wanted::Previous, Some(previous)) => {
            Profile { conversation: previous, previous: Some(current.conversation), ..same }
        }
        (Wanted::Model(_), _) => Profile { model, ..same },
        (Wanted::Current | Wanted::Previous, _) => same,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Replica {
    /// Fast, and possibly a moment behind.
    Nearby,
    Leader,
}

async fn stored(turn: &Turn, key: &str, replica: Replica) -> Result<Found, Lost> {
    let bus = &turn.shared.node.bus;
    let stream = format!("KV_{SESSIONS}");
    let stored = patiently(&turn.fence, || async {
        match replica {
            Replica::Nearby => bus.last_nearby(&stream, key).await,
            Replica::Leader => bus.last(&stream, key).await,
        }
    })
    .await?;
    let Some(stored) = stored else { return Ok((None, 0)) };
    if !stored.is_value() {
        return Ok((None, stored.sequence));
    }
    let profile = codec::decode(&stored.payload).inspect_err(|error| {
        turn.shared.metrics.poison.inc();
        tracing::error!(%error, "a profile cannot be read; the session begins anew");
    });
    Ok((profile.ok(), stored.sequence))
}

/// Whether this attempt may come after the one that wrote the profile. A queued message may start after a later one, so turns
/// in the wrong order are settled by the lease.
async fn may_follow(turn: &Turn, current: &Profile) -> Result<bool, Lost> {
    let of = turn.order.of;
    if current.turn == of.turn {
        return Ok(current.attempt <= of.attempt);
    }
    if current.turn < of.turn {
        return Ok(true);
    }
    let node = &turn.shared.node;
    patiently(&turn.fence, || rightful(&node.bus, of, node.id)).await
}
