//! `talaria bench`: what this machine does, beside what its broker would allow. A broker of its own in a temporary folder, all
//! services in one process, a model that answers at once, and a platform that takes everything.

mod decisions;
mod latency;
mod load;
mod raw;
mod report;
mod rig;
mod stats;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use node::exit::Exit;

pub use self::decisions::Decisions;
pub use self::raw::Raw;
pub use self::report::{DISPATCH, INTERRUPT, Ratios, Report, TURNS};
pub use self::stats::Percentiles;

use self::rig::Rig;
use crate::nats_server::{Server, obtain};
use crate::{console, data};

/// With how many sessions the turns per second are measured.
const SESSIONS: [usize; 4] = [1, 10, 100, 1000];

/// The command's flags.
#[derive(Args, Debug)]
pub struct BenchArgs {
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
    /// Measure less: half a minute instead of two, figures less sure
    #[arg(long)]
    quick: bool,
    /// Folder whose `tools` may hold a downloaded nats-server; nothing else in it is touched
    #[arg(long, value_name = "DIR", default_value = data::DEFAULT)]
    data: PathBuf,
}

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// How many operations, one after another.
    pub operations: usize,
    /// How long the turns of each number of sessions are counted.
    pub time: Duration,
    /// How many turns run at once when memory is measured.
    pub held: usize,
}

impl Effort {
    /// Enough for figures that one can compare.
    pub const FULL: Self = Self { operations: 1000, time: Duration::from_secs(10), held: 1000 };
    /// Enough to see that it works.
    pub const QUICK: Self = Self { operations: 100, time: Duration::from_secs(2), held: 300 };
}

/// Measures and prints.
///
/// # Errors
/// When there is no broker to be had (exit 69), or the system does not do its part.
pub async fn run(args: &BenchArgs) -> anyhow::Result<()> {
    let effort = if args.quick { Effort::QUICK } else { Effort::FULL };
    let report = measure(&args.data.join("tools"), effort).await?;
    let text = if args.json { serde_json::to_string_pretty(&report)? } else { report.to_string() };
    Ok(console::say(&text)?)
}

/// Measures; `tools` may hold a downloaded nats-server.
///
/// # Errors
/// When there is no broker to be had, or the system does not do its part.
pub async fn measure(tools: &std::path::Path, effort: Effort) -> anyhow::Result<Report> {
    let unavailable = |error: anyhow::Error| error.context(Exit::Unavailable);
    let binary = obtain(tools).await.map_err(|error| unavailable(error.into()))?;
    let folder = tempfile::tempdir().context("no temporary folder")?;
    let server = Server::start(&binary, folder.path(), None)
        .await
        .map_err(|error| unavailable(error.into()))?;
    console::note("measuring the broker …");
    let raw = raw::measure(&server, effort.operations).await.context("measuring the broker")?;
    console::note("measuring the scheduler …");
    let decisions = decisions::measure(&server, effort.operations * 4).await?;
    let mut rig = Rig::start(&server).await.context("starting the system")?;
    console::note("measuring latencies …");
    let latency = latency::measure(&mut rig, effort.operations).await.context("latencies")?;
    console::note("measuring memory …");
    let bytes = load::bytes_per_turn(&mut rig, effort.held).await.context("memory")?;
    let mut turns = BTreeMap::new();
    for sessions in SESSIONS {
        console::note(&format!("measuring turns per second with {sessions} sessions …"));
        let rate = load::turns_per_second(&mut rig, sessions, effort.time).await;
        turns.insert(sessions, rate.with_context(|| format!("{sessions} sessions"))?);
    }
    rig.stop().await.context("stopping the system")?;
    server.stop().await;
    Ok(Report::new(raw, decisions, &latency, turns, bytes))
}
