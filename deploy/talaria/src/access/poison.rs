//! `talaria poison`: what came from platforms, could not be read, and was set aside.

use clap::Args;
use node::bucket;
use node::process::CommonArgs;
use proto::poison::Poison;
use proto::topology::POISON;
use serde_json::json;

use super::{ago, connect};
use crate::console;

/// How much of each is shown to people, in characters.
const SHOWN_MAX: usize = 200;

/// The command's flags.
#[derive(Args, Debug)]
pub struct PoisonArgs {
    #[command(flatten)]
    common: CommonArgs,
    /// Print one JSON object instead of text, with the whole of what was kept
    #[arg(long)]
    json: bool,
}

/// Prints what was set aside, the oldest first.
///
/// # Errors
/// When the broker cannot be reached (exit 69), or standard output is closed.
pub async fn run(args: &PoisonArgs) -> anyhow::Result<()> {
    let bus = connect(&args.common).await?;
    let entries = bucket::all::<Poison>(&bus, POISON, ">").await?;
    let mut poison: Vec<Poison> = entries.into_iter().map(|entry| entry.record).collect();
    poison.sort_by_key(|poison| poison.at_ms);
    if args.json {
        return Ok(console::say(&format!("{:#}", json!({ "poison": poison })))?);
    }
    if poison.is_empty() {
        return Ok(console::say("everything that came could be read")?);
    }
    let texts: Vec<String> = poison
        .iter()
        .map(|one| {
            let Poison { platform, account, why, what, size, at_ms } = one;
            let start: String = what.chars().take(SHOWN_MAX).collect();
            let start = start.escape_debug();
            format!("{platform}/{account}, {}, {size} bytes: {why}\n  {start}", ago(*at_ms))
        })
        .collect();
    Ok(console::say(&texts.join("\n"))?)
}
