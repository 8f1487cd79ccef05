//! The canary: a `/new` in a chat of the doctor's own. It is stored, decided on, run by a worker and answered through `OUTBOX`,
//! without a model or a platform.

use std::time::{Duration, Instant};

use anyhow::Context;
use async_nats::jetstream::consumer::{AckPolicy, pull};
use futures_util::StreamExt;
use node::bus::Bus;
use node::clock::wall_ms;
use proto::codec;
use proto::event::{Address, MessageEvent, User};
use proto::inbox::Inbox;
use proto::outbound::{Kind, Outbound};
use proto::receipt::{Fact, Receipt};
use proto::session::{ChatKind, SessionKey, SessionParts};
use proto::subject;
use proto::topology::OUTBOX;

use super::Finding;

/// The platform, account and chat of the doctor.
const NAME: &str = "doctor";
/// How long the whole way may take.
const LIMIT: Duration = Duration::from_secs(20);

/// Sends it, and says how far it came.
pub(super) async fn fly(bus: &Bus) -> Finding {
    let began = Instant::now();
    let mut passed = Vec::new();
    let outcome = tokio::time::timeout(LIMIT, flight(bus, &mut passed)).await;
    let way = passed.join(", ");
    match outcome {
        Ok(Ok(())) => {
            let took = began.elapsed().as_millis();
            Finding::fine("canary", format!("{way}, in {took} ms"))
        }
        Ok(Err(error)) => {
            Finding::broken("canary", format!("it came so far: {way}; then {error:#}"), MEND)
        }
        Err(_) => Finding::broken(
            "canary",
            format!("it came so far: {way}; nothing more within {} s", LIMIT.as_secs()),
            MEND,
        ),
    }
}

const MEND: &str = "look at the service that should have taken the next step: stored (broker), decided (scheduler), claimed and ended \
                    (worker), answered (scheduler)";

async fn flight(bus: &Bus, passed: &mut Vec<&'static str>) -> anyhow::Result<()> {
    let message = message();
    let (sid, id) = (message.session.sid(), message.id.clone());
    let mut receipts =
        bus.client().subscribe(subject::event(sid)).await.context("no receipts can be read")?;
    let stream = bus.stream().get_stream_no_info(OUTBOX).await.context("OUTBOX cannot be read")?;
    let consumer = stream
        .create_consumer(pull::Config {
            filter_subject: subject::outbox_of(NAME, NAME),
            ack_policy: AckPolicy::Explicit,
            inactive_threshold: Duration::from_secs(30),
            ..pull::Config::default()
        })
        .await
        .context("nothing can be read from OUTBOX")?;
    let input = codec::encode(&Inbox::Message(Box::new(message)));
    let to = subject::inbox(bus.partition_of(sid), sid);
    bus.write_until(&to, input.into(), &format!("{NAME}-{id}"), LIMIT)
        .await
        .context("it was not stored")?;
    passed.push("stored");
    let mut answers = consumer.messages().await.context("OUTBOX cannot be read")?;
    let mut answered = false;
    // The answer is durable and the receipts are not: it alone must come.
    while !answered {
        tokio::select! {
            Some(receipt) = receipts.next() => note(passed, &receipt.payload, &id),
            Some(answer) = answers.next() => {
                let answer = answer.context("OUTBOX cannot be read")?;
                answer.ack().await.map_err(|error| anyhow::anyhow!("the answer cannot be acknowledged: {error}"))?;
                answered = is_answer(&answer.payload, &id);
            }
        }
    }
    passed.push("answered");
    let _ = stream.delete_consumer(&consumer.cached_info().name).await;
    Ok(())
}

fn message() -> MessageEvent {
    let session = SessionKey::new(SessionParts {
        platform: NAME,
        kind: ChatKind::Dm,
        chat: NAME,
        thread: None,
        participant: None,
    });
    let address = Address {
        platform: NAME.into(),
        account: NAME.into(),
        chat: NAME.into(),
        kind: ChatKind::Dm,
        thread: None,
    };
    MessageEvent {
        id: hex::encode(node::process::random::<8>()),
        session,
        address,
        user: User { id: NAME.into(), name: None },
        text: "/new".into(),
        media: Vec::new(),
        reply_to: None,
        mode: None,
        history: Vec::new(),
        accepted_at_ms: wall_ms(),
        admission: proto::access::Admission::default(),
    }
}

fn is_answer(payload: &[u8], id: &str) -> bool {
    let outbound = codec::decode::<Outbound>(payload);
    outbound.is_ok_and(|outbound| {
        outbound.kind == Kind::Reply && outbound.reply_to.as_deref() == Some(id)
    })
}

fn note(passed: &mut Vec<&'static str>, payload: &[u8], id: &str) {
    let Ok(receipt) = codec::decode::<Receipt>(payload) else { return };
    for fact in &receipt.facts {
        let step = match fact {
            Fact::Decided { message, .. } if message == id => "decided",
            Fact::Claimed { .. } => "claimed by a worker",
            Fact::Ended { .. } => "ended",
            Fact::Decided { .. }
            | Fact::State { .. }
            | Fact::Settled { .. }
            | Fact::Retried { .. }
            | Fact::Slow { .. } => continue,
        };
        if !passed.contains(&step) {
            passed.push(step);
        }
    }
}
