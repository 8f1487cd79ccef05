//! What comes before the first model call: the inputs, the profile, the conversation; read side by side, and proven fresh by the
//! first writes.

use std::sync::Arc;

use futures_util::future::try_join_all;
use node::bus::{Write, WriteError};
use proto::codec;
use proto::event::MessageEvent;
use proto::id::{Attempt, ConversationId, Seq};
use proto::inbox::Inbox;
use proto::subject;
use proto::topology::{INBOX, SESSIONS};
use proto::transcript::{Body, Entry, Profile};

use super::agent::Agent;
use super::spoken::{Spoken, Stage};
use super::{Ending, Halt, Turn, prompt};
use crate::fence::Lost;
use crate::transcript::{
    AppendError, Beginning, Kept, Log, next_piece, own_part, patiently, rightful,
};

const NOT_STORED: &str = "I no longer have the message that I should answer. Please send it again.";

/// The session's profile with this turn in it.
#[derive(Clone, Debug)]
pub(super) struct Seat {
    profile: Profile,
    revision: u64,
    /// Whether the session had none before.
    is_new: bool,
}

impl Seat {
    /// The session as it is left for the next turn.
    pub(super) const fn keep(self, last: u64, entries: Vec<Arc<Entry>>) -> Kept {
        Kept { profile: self.profile, revision: self.revision, last, entries }
    }
}

/// Begins a fresh conversation.
pub(super) async fn begin_afresh(turn: &Turn) -> Result<(), Halt> {
    turn.shared.shelf.take(turn.order.of.sid);
    take_seat(turn, None, Conversation::Fresh).await?;
    Ok(())
}

/// Prepares the agent loop; or says how the turn ends without one.
pub(super) async fn agent(turn: &Turn) -> Result<Result<Agent<'_>, Ending>, Halt> {
    let kept = turn.shared.shelf.take(turn.order.of.sid);
    let known = kept.as_ref().map(|kept| (kept.profile.clone(), kept.revision));
    let (seat, events) =
        tokio::try_join!(take_seat(turn, known, Conversation::Current), inputs(turn))?;
    let Some(first) = events.first() else {
        return Ok(Err(Ending::Failed(NOT_STORED.into())));
    };
    let stage = Stage {
        of: turn.order.of,
        session: turn.order.session.clone(),
        address: turn.order.address.clone(),
        reply_to: first.id.clone(),
    };
    let begin = Beginning {
        system: turn.shared.node.settings.agent.system_prompt.clone()
            + &prompt::instructions(&events),
        history: prompt::history(&events),
        user: prompt::joined(&turn.order.inputs, &events),
    };
    turn.tracker.touch();
    let mut log = conversation(turn, &seat, kept).await?;
    open(&mut log, turn, &begin).await?;
    turn.tracker.touch();
    Ok(Ok(resumed(turn, seat, stage, log, &begin.user)))
}

/// The agent, with what earlier attempts have done of the turn.
fn resumed<'a>(turn: &'a Turn, seat: Seat, stage: Stage, log: Log, user: &Body) -> Agent<'a> {
    let mut agent = Agent {
        turn,
        seat,
        stage,
        spoken: Spoken::default(),
        steered: Vec::new(),
        taken: Vec::new(),
        usage: proto::turn::Usage::default(),
        iteration: 0,
        asks: 0,
        log,
    };
    for entry in own_part(agent.log.entries(), turn.order.of, user) {
        match &entry.body {
            Body::User { inputs, .. } => agent.taken.extend(inputs),
            Body::Assistant { text, .. } => {
                agent.spoken.resume(text);
                agent.iteration += 1;
                agent.steered.clone_from(&agent.taken);
            }
            Body::System { .. } | Body::Result { .. } | Body::Resumed => {}
        }
    }
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
async fn conversation(turn: &Turn, seat: &Seat, kept: Option<Kept>) -> Result<Log, Lost> {
    let Turn { shared, fence, order, .. } = turn;
    let who = (order.of, shared.node.id);
    let id = seat.profile.conversation;
    let known = kept.filter(|kept| kept.profile.conversation == id);
    let from = if known.is_some() { "memory" } else { "stream" };
    shared.metrics.conversations.with_label_values(&[from]).inc();
    // A session without a profile has said nothing yet; if that is wrong, the first append is refused.
    let is_empty = seat.is_new && order.of.attempt == Attempt::FIRST;
    let is_read = known.is_some() || is_empty;
    let stored = known.map_or((0, Vec::new()), |kept| (kept.last, kept.entries));
    let mut log = Log::known(&shared.node.bus, fence, who, id, stored);
    if !is_read {
        log.catch_up().await?;
    }
    Ok(log)
}

/// The messages that the turn answers. What is gone or unreadable is left out.
async fn inputs(turn: &Turn) -> Result<Vec<MessageEvent>, Halt> {
    let found = try_join_all(turn.order.inputs.iter().map(|seq| turn.input(*seq))).await?;
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
            Ok(Inbox::Message(event)) => Ok(Some(*event)),
            Ok(Inbox::Report(_) | Inbox::Hangup { .. }) => Ok(None),
            Err(error) => {
                self.shared.metrics.poison.inc();
                tracing::error!(%error, %seq, "an input cannot be read");
                Ok(None)
            }
        }
    }
}

/// Which conversation a turn wants.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Conversation {
    Current,
    Fresh,
}

/// Writes this attempt into the session's profile, so that an older one that is late finds itself refused.
async fn take_seat(
    turn: &Turn,
    mut known: Option<(Profile, u64)>,
    wanted: Conversation,
) -> Result<Seat, Halt> {
    let (bus, of) = (&turn.shared.node.bus, turn.order.of);
    let key = subject::bucket_subject(SESSIONS, &of.sid.to_string());
    let mut nearby = true;
    loop {
        let found = match known.take() {
            Some(known) => Some(known),
            None => stored(turn, &key, nearby).await?,
        };
        nearby = false;
        let (current, revision) = found.map_or((None, 0), |(profile, at)| (Some(profile), at));
        if let Some(current) = &current
            && !may_follow(turn, current).await?
        {
            turn.fence.lose();
            return Err(Halt::Lost);
        }
        let profile = Profile {
            conversation: match (&current, wanted) {
                (Some(current), Conversation::Current) => current.conversation,
                (None, Conversation::Current) | (_, Conversation::Fresh) => {
                    ConversationId::from(of.turn)
                }
            },
            turn: of.turn,
            attempt: of.attempt,
        };
        turn.fence.check()?;
        let write = Write { expect: Some(revision), ..Write::default() };
        match bus.write(key.clone(), codec::encode(&profile).into(), write).await {
            Ok(written) => {
                let is_new = current.is_none();
                return Ok(Seat { profile, revision: written.sequence, is_new });
            }
            Err(WriteError::TooLarge) => return Err(Halt::TooLarge),
            // Read again from the leader: either it is there, or someone else's is.
            Err(WriteError::Refused | WriteError::Unknown) => {
                if let Some((stored, revision)) = stored(turn, &key, false).await? {
                    if stored == profile {
                        return Ok(Seat { profile, revision, is_new: false });
                    }
                    known = Some((stored, revision));
                }
            }
        }
    }
}

/// The stored profile and its revision.
async fn stored(turn: &Turn, key: &str, nearby: bool) -> Result<Option<(Profile, u64)>, Lost> {
    let bus = &turn.shared.node.bus;
    let stream = format!("KV_{SESSIONS}");
    let stored = patiently(&turn.fence, || async {
        if nearby { bus.last_nearby(&stream, key).await } else { bus.last(&stream, key).await }
    })
    .await?;
    Ok(stored.filter(node::bus::Stored::is_value).and_then(|stored| {
        match codec::decode(&stored.payload) {
            Ok(profile) => Some((profile, stored.sequence)),
            Err(error) => {
                turn.shared.metrics.poison.inc();
                tracing::error!(%error, "a profile cannot be read; the session begins anew");
                None
            }
        }
    }))
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
