//! `talaria deliveries`: what could not be delivered, and sending it again.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use node::bucket::{self, Found};
use node::bus::Bus;
use node::exit::Exit;
use node::process::CommonArgs;
use node::settings::Flags;
use proto::codec;
use proto::delivery::{End, Line};
use proto::id::OutboundId;
use proto::subject;
use proto::topology::DELIVERIES;
use serde_json::json;

use crate::console;

/// How long storing a delivery again may take.
const STORE: Duration = Duration::from_secs(10);
/// How much of a text the list shows, in characters.
const SHOWN: usize = 60;

/// The command's flags.
#[derive(Args, Debug)]
pub struct DeliveriesArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    /// List what could not be delivered, and why
    List(ListArgs),
    /// Send something that could not be delivered once more
    Resend(ResendArgs),
}

#[derive(Args, Debug)]
struct ListArgs {
    #[command(flatten)]
    common: CommonArgs,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Args, Debug)]
struct ResendArgs {
    /// The ids, as the list shows them
    #[arg(required_unless_present = "all")]
    ids: Vec<String>,
    /// Send everything that the list shows
    #[arg(long, conflicts_with = "ids")]
    all: bool,
    #[command(flatten)]
    common: CommonArgs,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// Lists dead deliveries or sends them again.
///
/// # Errors
/// When an id is not that of a dead delivery (exit 1), the broker cannot be reached (69), or standard output is closed.
pub async fn run(args: &DeliveriesArgs) -> anyhow::Result<()> {
    match &args.what {
        What::List(args) => list(args).await,
        What::Resend(args) => resend(args).await,
    }
}

async fn connect(common: &CommonArgs) -> anyhow::Result<Bus> {
    let loaded = common.load(Flags::default())?;
    Bus::connect(&loaded.settings.nats, "deliveries")
        .await
        .map_err(|error| anyhow::Error::new(error).context(Exit::Unavailable))
}

/// What can be sent again: it is dead, or sending it again was begun and not finished.
async fn dead(bus: &Bus) -> anyhow::Result<Vec<Line>> {
    let entries = bucket::all::<Line>(bus, DELIVERIES, ">").await?;
    let mut lines: Vec<Line> = entries.into_iter().map(|entry| entry.record).collect();
    lines.retain(|line| line.outbound.is_some() && line.end != Some(End::Delivered));
    lines.sort_by_key(|line| line.at_ms);
    Ok(lines)
}

async fn list(args: &ListArgs) -> anyhow::Result<()> {
    let bus = connect(&args.common).await?;
    let lines = dead(&bus).await?;
    if args.json {
        return Ok(console::say(&format!("{:#}", json!({ "dead": lines })))?);
    }
    if lines.is_empty() {
        return Ok(console::say("everything was delivered")?);
    }
    let mut text = String::new();
    for line in &lines {
        let Some(outbound) = &line.outbound else { continue };
        let words: String = outbound.text.chars().take(SHOWN).collect();
        let why = line.why.as_deref().unwrap_or("being sent again");
        let _ = writeln!(text, "{}  {}/{}  {why}", outbound.id, line.platform, line.account);
        let _ = writeln!(text, "    {}", words.replace('\n', " "));
    }
    let _ =
        writeln!(text, "\n`talaria deliveries resend ID` sends one again, `--all` all of them.");
    Ok(console::say(&text)?)
}

async fn resend(args: &ResendArgs) -> anyhow::Result<()> {
    let bus = connect(&args.common).await?;
    let lines = dead(&bus).await?;
    let known = |line: &Line| line.outbound.as_ref().map(|outbound| outbound.id.clone());
    let ids: Vec<OutboundId> = if args.all {
        lines.iter().filter_map(known).collect()
    } else {
        let find =
            |id: &String| lines.iter().filter_map(known).find(|known| known.to_string() == *id);
        let found = args.ids.iter().map(|id| {
            find(id).with_context(|| {
                format!("{id} is not dead; `talaria deliveries list` shows what is")
            })
        });
        found.collect::<anyhow::Result<_>>()?
    };
    for id in &ids {
        again(&bus, id).await.with_context(|| format!("{id} was not sent again; try once more"))?;
    }
    if args.json {
        return Ok(console::say(&format!("{:#}", json!({ "resent": ids })))?);
    }
    Ok(console::say(&format!("sent again: {}", ids.len()))?)
}

/// Puts a dead delivery back into the queue. First its record is opened again, so that it counts as not delivered; it keeps what
/// is to be sent until it is, so that nothing is lost if this breaks off between the two.
async fn again(bus: &Bus, id: &OutboundId) -> anyhow::Result<()> {
    let key = subject::delivery_key(id);
    let (found, revision) = bucket::read::<Line>(bus, DELIVERIES, &key).await?;
    let Found::Record(line) = found else { bail!("its record is gone") };
    let outbound = line.outbound.clone().context("its record does not hold what is to be sent")?;
    bucket::put(bus, DELIVERIES, &key, &Line { end: None, why: None, ..line }, revision, None)
        .await?;
    let to = subject::outbox(&outbound.address, outbound.session.sid());
    let unique = format!("{id}-again-{}", u64::from_be_bytes(node::process::random()));
    bus.write_until(&to, codec::encode(&outbound).into(), &unique, STORE).await?;
    Ok(())
}
