//! Many sessions at once: turns per second when each person writes again as soon as the reply is there, and the memory that a
//! running turn takes.

use std::future::Future;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::Context;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use proto::outbound::Kind;

use super::rig::{HOLD, Rig, What};
use super::stats::rate;

/// Turns per second with so many sessions, over so long a time after a first round.
pub(super) async fn turns_per_second(
    rig: &mut Rig,
    sessions: usize,
    time: Duration,
) -> anyhow::Result<f64> {
    let mut saying = FuturesUnordered::new();
    for number in 0..sessions {
        saying.push(rig.saying(format!("load-{sessions}-{number}"), "hello"));
    }
    // The first round creates the sessions; the clock starts with its last reply.
    let (mut replies, mut began) = (0, None);
    loop {
        tokio::select! {
            Some(accepted) = saying.next() => { accepted?; }
            event = rig.event() => {
                let event = event?;
                if event.what != What::Handed(Kind::Reply) {
                    continue;
                }
                replies += 1;
                if replies == sessions {
                    began = Some(Instant::now());
                }
                if began.is_some_and(|began| began.elapsed() >= time) {
                    break;
                }
                saying.push(rig.saying(event.chat, "hello"));
            }
        }
    }
    let took = began.context("the clock was started")?.elapsed();
    let counted = replies - sessions;
    // What is still on its way belongs to no measurement.
    let open = sessions - 1;
    settle(rig, &mut saying, open).await?;
    Ok(rate(counted, took))
}

async fn settle(
    rig: &mut Rig,
    saying: &mut FuturesUnordered<impl Future<Output = anyhow::Result<Instant>>>,
    mut open: usize,
) -> anyhow::Result<()> {
    while open > 0 {
        tokio::select! {
            Some(accepted) = saying.next() => { accepted?; }
            event = rig.event() => {
                open -= usize::from(event?.what == What::Handed(Kind::Reply));
            }
        }
    }
    Ok(())
}

/// Bytes of resident memory that each of `count` turns takes while its model is streaming, the whole system in one process.
pub(super) async fn bytes_per_turn(rig: &mut Rig, count: usize) -> anyhow::Result<f64> {
    let before = resident()?;
    all(rig, count, HOLD, What::Began).await?;
    let after = resident()?;
    all(rig, count, "/stop", What::Dropped).await?;
    let turns = u32::try_from(count).context("a sensible number of turns")?;
    Ok((after.saturating_sub(before) as f64 / f64::from(turns)).round())
}

/// Says the same in many sessions, and waits until it has had its effect in all of them.
async fn all(rig: &mut Rig, count: usize, text: &'static str, until: What) -> anyhow::Result<()> {
    let mut saying = FuturesUnordered::new();
    for number in 0..count {
        saying.push(rig.saying(format!("memory-{number}"), text));
    }
    let mut had = 0;
    while had < count {
        tokio::select! {
            Some(accepted) = saying.next() => { accepted?; }
            event = rig.event() => had += usize::from(event?.what == until),
        }
    }
    Ok(())
}

/// The resident memory of this process, bytes.
fn resident() -> anyhow::Result<u64> {
    let text = if let Ok(status) = std::fs::read_to_string("/proc/self/status") {
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        line.context("no VmRSS")?.trim().trim_end_matches(" kB").to_owned()
    } else {
        let pid = std::process::id().to_string();
        let output = Command::new("ps").args(["-o", "rss=", "-p", &pid]).output()?;
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    let kib: u64 = text.parse().with_context(|| format!("unreadable memory {text:?}"))?;
    Ok(kib * 1024)
}
