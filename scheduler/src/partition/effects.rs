//! Effects as they go out: what a lease says must be sent, made into messages.

use std::time::Duration;

use bytes::Bytes;
use node::bus::Stored;
use node::trace;
use proto::activity::Activity;
use proto::codec;
use proto::event::MessageEvent;
use proto::id::Seq;
use proto::inbox::Inbox;
use proto::lease::{Effect, Lease, Phase};
use proto::outbound::Outbound;
use proto::session::SessionKey;
use proto::subject;
use proto::topology::{INBOX, LEASES};
use proto::turn::{News, TurnOrder, TurnRef};
use scheduler_core::{Input, Session};
use tracing::Span;

use super::round::Work;
use super::{Owner, rollout, takeover};
use crate::jobs;

/// How long a worker may take to say what a turn does.
const DOING: Duration = Duration::from_millis(300);

/// An effect as it goes out. Orders have no id: a repeated one is denied at the claim, and must not be swallowed as a duplicate.
pub(crate) struct Message {
    pub(crate) subject: String,
    pub(crate) payload: Bytes,
    pub(crate) id: Option<String>,
    /// The trace that it is part of.
    pub(crate) span: Span,
}

pub(crate) async fn message(
    owner: &Owner,
    session: &Session,
    effect: &Effect,
    work: &[Work],
) -> anyhow::Result<Option<Message>> {
    let outbound = match effect {
        Effect::Order => return order(owner, session, work).await,
        Effect::Spawn { seq, session } => return spawn(owner, *seq, session, work).await,
        Effect::Roster { outbound, sessions } => roster(owner, outbound.clone(), sessions).await?,
        Effect::Restart { outbound } => rollout::begin(owner, outbound.clone()).await?,
        Effect::Send { outbound } => outbound.clone(),
        Effect::Cron { seq, outbound } => cron(owner, *seq, outbound.clone(), work).await?,
        Effect::JobEnded { due_ms, end } => {
            jobs::ended(&owner.jobs, &session.lease.session, *due_ms, *end).await?;
            return Ok(None);
        }
        Effect::Reply { report, outbound } => {
            let Some(text) = reply_text(owner, *report, work).await? else { return Ok(None) };
            let text = jobs::label(&owner.jobs, &session.lease.session).await? + &text;
            fit(Outbound { text, ..outbound.clone() }, owner.bus.payload_limit())
        }
    };
    let subject = subject::outbox(&outbound.address, session.sid());
    let payload = codec::encode(&outbound).into();
    Ok(Some(Message { subject, payload, id: Some(outbound.id.to_string()), span: Span::current() }))
}

async fn order(owner: &Owner, session: &Session, work: &[Work]) -> anyhow::Result<Option<Message>> {
    let Some(turn) = session.lease.phase.turn() else { return Ok(None) };
    let order = TurnOrder {
        of: TurnRef { sid: session.sid(), turn: turn.id, attempt: turn.attempt },
        session: session.lease.session.clone(),
        kind: turn.kind,
        inputs: turn.inputs.clone(),
        address: turn.origin.address.clone(),
        fresh: turn.fresh,
        forget: turn.forget.clone(),
    };
    let leading = Seq::new(turn.id.get());
    let span = if work.iter().any(|work| work.input.seq() == Some(leading)) {
        Span::current()
    } else {
        trace_of(owner, session, leading).await?
    };
    let subject = subject::turn(&owner.pool, session.sid());
    Ok(Some(Message { subject, payload: codec::encode(&order).into(), id: None, span }))
}

/// The trace of a message that has waited: its turn belongs to it, and not to whatever let the turn begin.
async fn trace_of(owner: &Owner, session: &Session, leading: Seq) -> anyhow::Result<Span> {
    let span = tracing::info_span!(
        "schedule",
        session = %session.lease.session.shown(owner.masked),
        trace_id = tracing::field::Empty,
    );
    if !span.is_disabled()
        && let Some(stored) = owner.bus.message(INBOX, leading.get()).await?
    {
        trace::continue_from(&span, Some(&stored.headers));
    }
    Ok(span)
}

/// The words of a reply: from the report of this round, or from the log.
async fn reply_text(owner: &Owner, at: Seq, work: &[Work]) -> anyhow::Result<Option<String>> {
    let here = work.iter().find_map(|work| {
        if let Input::Report { seq, report } = &work.input {
            (*seq == at).then(|| report.clone())
        } else {
            None
        }
    });
    let report = match here {
        Some(report) => report,
        None => match from_log(owner, at).await? {
            Some(Inbox::Report(report)) => report,
            Some(_) | None => return Ok(None),
        },
    };
    Ok(match report.news {
        News::Finished { reply, .. } => Some(reply),
        News::Said { text, .. } => Some(text),
        News::Asked { .. } | News::AskClosed { .. } | News::HandedBack => None,
    })
}

/// An input that is no longer in memory. One that has expired or cannot be read has no effect any more.
async fn from_log(owner: &Owner, at: Seq) -> anyhow::Result<Option<Inbox>> {
    let Some(stored) = owner.bus.message(INBOX, at.get()).await? else { return Ok(None) };
    match codec::decode(&stored.payload) {
        Ok(input) => Ok(Some(input)),
        Err(error) => {
            owner.metrics.poison.inc();
            tracing::error!(seq = %at, %error, "an input that an effect refers to cannot be read");
            Ok(None)
        }
    }
}

/// Cuts a reply that the broker would not take; what the model said stays whole in the transcript.
fn fit(mut outbound: Outbound, limit: usize) -> Outbound {
    const MARK: &str = "\n\n[cut: longer than can be delivered]";
    // JSON escapes make a text grow at most sixfold.
    let room = limit / 6;
    if outbound.text.len() > room && codec::encode(&outbound).len() > limit {
        outbound.text.truncate(outbound.text.floor_char_boundary(room - MARK.len()));
        outbound.text += MARK;
    }
    outbound
}

/// A message: from this round, or from the log.
async fn message_at(
    owner: &Owner,
    at: Seq,
    work: &[Work],
) -> anyhow::Result<Option<Box<MessageEvent>>> {
    let here = work.iter().find_map(|work| {
        if let Input::Message { seq, event } = &work.input {
            (*seq == at).then(|| event.clone())
        } else {
            None
        }
    });
    Ok(match here {
        Some(event) => Some(event),
        None => match from_log(owner, at).await? {
            Some(Inbox::Message(event)) => Some(event),
            Some(_) | None => None,
        },
    })
}

/// Carries out the `/cron` at `at`, and says what came of it.
async fn cron(
    owner: &Owner,
    at: Seq,
    outbound: Outbound,
    work: &[Work],
) -> anyhow::Result<Outbound> {
    let text = match message_at(owner, at, work).await? {
        Some(event) => match jobs::find_command(&owner.jobs, at, &event) {
            Ok(request) => owner.jobs.answer(&request).await?.text,
            Err(why) => why,
        },
        None => "The command is no longer known; please send it again.".into(),
    };
    Ok(Outbound { text, ..outbound })
}

/// The message of a `/background`, as the first one of its own session.
async fn spawn(
    owner: &Owner,
    at: Seq,
    key: &SessionKey,
    work: &[Work],
) -> anyhow::Result<Option<Message>> {
    let Some(mut event) = message_at(owner, at, work).await? else { return Ok(None) };
    event.text = event.prompt().to_owned();
    event.session = key.clone();
    let sid = key.sid();
    let subject = subject::inbox(owner.bus.partition_of(sid), sid);
    let payload = codec::encode(&Inbox::Message(event)).into();
    Ok(Some(Message {
        subject,
        payload,
        id: Some(format!("background-{}", at.get())),
        span: Span::current(),
    }))
}

/// The answer to `/agents`: what the asking session knows, and what each of its background sessions does now.
async fn roster(
    owner: &Owner,
    mut outbound: Outbound,
    sessions: &[SessionKey],
) -> anyhow::Result<Outbound> {
    for key in sessions {
        let sid = key.sid();
        let lease_key = subject::lease_key(owner.bus.partition_of(sid), sid);
        let subject = subject::bucket_subject(LEASES, &lease_key);
        let stored = owner.bus.last_nearby(&takeover::bucket_stream(), &subject).await?;
        let state = match stored
            .filter(Stored::is_value)
            .map(|stored| codec::decode::<Lease>(&stored.payload))
        {
            Some(Ok(lease)) => {
                let session = Session::restore(lease, owner.now());
                let doing = doing(owner, &session).await;
                session.status(owner.now(), node::clock::wall_ms(), doing.as_ref())
            }
            Some(Err(_)) | None => "beginning".to_owned(),
        };
        outbound.text += &format!("\n{key}: {state}");
    }
    Ok(outbound)
}

/// What the turn of a session does, as its worker says: another scheduler hears its heartbeats.
async fn doing(owner: &Owner, session: &Session) -> Option<Activity> {
    let Phase::Running { worker, .. } = &session.lease.phase else { return None };
    let sid = session.sid();
    let asked = owner.bus.ask(subject::activity(*worker), &sid);
    tokio::time::timeout(DOING, asked).await.ok()?.ok()?
}
