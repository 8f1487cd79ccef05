//! `talaria explain`: what became of a message, read from the receipts of the last days.

mod path;
mod read;

use anyhow::bail;
use clap::Args;
use node::bus::Bus;
use node::exit::Exit;
use node::process::CommonArgs;
use node::settings::Flags;

pub use self::path::{Path, Step};

use crate::console;

/// The command's flags.
#[derive(Args, Debug)]
pub struct ExplainArgs {
    /// The platform's id of the message, as logs and callbacks show it
    message: String,
    #[command(flatten)]
    common: CommonArgs,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// Prints the paths of a message: one for each session in which it was known.
///
/// # Errors
/// When nothing is known of it (exit 1), the broker cannot be reached (69), or standard output is closed.
pub async fn run(args: &ExplainArgs) -> anyhow::Result<()> {
    let loaded = args.common.load(Flags::default())?;
    let bus = Bus::connect(&loaded.settings.nats, "explain")
        .await
        .map_err(|error| anyhow::Error::new(error).context(Exit::Unavailable))?;
    let paths = paths(&bus, &args.message).await?;
    if paths.is_empty() {
        bail!(
            "nothing is known of message {:?}: it never came, or its receipts are older than {} days",
            args.message,
            read::DAYS,
        );
    }
    if args.json {
        let object = serde_json::json!({ "message": args.message, "paths": paths });
        return Ok(console::say(&format!("{object:#}"))?);
    }
    let texts: Vec<_> = paths.iter().map(ToString::to_string).collect();
    Ok(console::say(&texts.join("\n"))?)
}

/// The paths of a message, in the order in which its sessions heard of it.
///
/// # Errors
/// When the receipts cannot be read.
pub async fn paths(bus: &Bus, message: &str) -> anyhow::Result<Vec<Path>> {
    let mut subjects = Vec::new();
    read::receipts(bus, proto::subject::events(), |subject, _, receipt| {
        let names = receipt.facts.iter().any(|fact| path::names(fact, message));
        if names && !subjects.iter().any(|(known, _)| known == subject) {
            subjects.push((subject.to_owned(), receipt.session));
        }
    })
    .await?;
    let mut paths = Vec::with_capacity(subjects.len());
    for (subject, session) in subjects {
        let mut facts = Vec::new();
        read::receipts(bus, &subject, |_, at, receipt| {
            facts.extend(receipt.facts.into_iter().map(|fact| (at, fact)));
        })
        .await?;
        paths.extend(Path::of(message, &session, &facts));
    }
    Ok(paths)
}
