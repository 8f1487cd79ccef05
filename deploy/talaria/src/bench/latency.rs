//! What the system adds to a message's way, one message at a time: to the model, from the model, and when it must stop.

use super::rig::{HOLD, Rig, What};
use super::stats::{Durations, Percentiles};
use proto::outbound::Kind;

/// In how many sessions the messages go, in turn.
const SESSIONS: usize = 50;

/// The latencies.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Latency {
    /// A message is accepted: its model call begins.
    pub(super) dispatch: Percentiles,
    /// The model is done: the reply is handed to the platform.
    pub(super) reply: Percentiles,
    /// A second message is accepted: the first one's model connection is closed.
    pub(super) interrupt: Percentiles,
    /// `/stop` is accepted: its acknowledgement is handed to the platform.
    pub(super) stop_ack: Percentiles,
}

/// Measures, `count` messages each.
pub(super) async fn measure(rig: &mut Rig, count: usize) -> anyhow::Result<Latency> {
    // The first turn of a session creates its subjects; that is not what is measured.
    turns(rig, SESSIONS).await?;
    let (dispatch, reply) = turns(rig, count).await?;
    let interrupt = interrupts(rig, count).await?;
    let stop_ack = stops(rig, count).await?;
    Ok(Latency {
        dispatch: dispatch.millis(),
        reply: reply.millis(),
        interrupt: interrupt.millis(),
        stop_ack: stop_ack.millis(),
    })
}

async fn turns(rig: &mut Rig, count: usize) -> anyhow::Result<(Durations, Durations)> {
    let (mut dispatch, mut reply) = (Durations::default(), Durations::default());
    for number in 0..count {
        let chat = format!("turn-{}", number % SESSIONS);
        let accepted = rig.say(&chat, "hello").await?;
        let began = rig.wait(&chat, What::Began).await?;
        let answered = rig.wait(&chat, What::Answered).await?;
        let handed = rig.wait(&chat, What::Handed(Kind::Reply)).await?;
        // The scheduler may be faster than the answer to our own publish.
        dispatch.push(began.saturating_duration_since(accepted));
        reply.push(handed.saturating_duration_since(answered));
    }
    Ok((dispatch, reply))
}

async fn interrupts(rig: &mut Rig, count: usize) -> anyhow::Result<Durations> {
    let mut interrupt = Durations::default();
    for number in 0..count {
        let chat = format!("interrupt-{}", number % SESSIONS);
        rig.say(&chat, HOLD).await?;
        rig.wait(&chat, What::Began).await?;
        let accepted = rig.say(&chat, "hello").await?;
        let dropped = rig.wait(&chat, What::Dropped).await?;
        rig.wait(&chat, What::Handed(Kind::Reply)).await?;
        interrupt.push(dropped.saturating_duration_since(accepted));
    }
    Ok(interrupt)
}

async fn stops(rig: &mut Rig, count: usize) -> anyhow::Result<Durations> {
    let mut ack = Durations::default();
    for number in 0..count {
        // Sessions of their own, since acknowledgements in one session are spaced out.
        let chat = format!("stop-{number}");
        rig.say(&chat, HOLD).await?;
        rig.wait(&chat, What::Began).await?;
        let accepted = rig.say(&chat, "/stop").await?;
        let told = |what| matches!(what, What::Handed(Kind::Ack | Kind::Notice));
        let handed = rig.wait_for(&chat, told).await?;
        ack.push(handed.saturating_duration_since(accepted));
    }
    Ok(ack)
}
