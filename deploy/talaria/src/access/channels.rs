//! `talaria channels`: the chats that messages came from, by name, and the home channels.

use clap::Args;
use node::channels;
use node::process::CommonArgs;
use serde_json::json;

use super::{connect, table};
use crate::console;

/// The command's flags.
#[derive(Args, Debug)]
pub struct ChannelsArgs {
    /// Only this platform's
    platform: Option<String>,
    #[command(flatten)]
    common: CommonArgs,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// Prints the chats.
///
/// # Errors
/// When the broker cannot be reached (exit 69), or standard output is closed.
pub async fn run(args: &ChannelsArgs) -> anyhow::Result<()> {
    let bus = connect(&args.common).await?;
    let platform = args.platform.as_deref();
    let channels = channels::all(&bus, platform).await?;
    let mut homes = channels::homes(&bus).await?;
    homes.retain(|home| platform.is_none_or(|platform| home.address.platform == platform));
    if args.json {
        let object = json!({ "channels": channels, "homes": homes });
        return Ok(console::say(&format!("{object:#}"))?);
    }
    let rows: Vec<Vec<String>> = channels
        .iter()
        .map(|channel| {
            let address = &channel.address;
            let is_home = homes.iter().any(|home| home.address == *address);
            vec![
                format!("{}:{}", address.platform, channels::shown(address)),
                channel.name.as_deref().unwrap_or_default().escape_debug().to_string(),
                address.kind.to_string(),
                address.account.clone(),
                if is_home { "home".into() } else { String::new() },
            ]
        })
        .collect();
    if rows.is_empty() {
        return Ok(console::say("no message has come from any chat yet")?);
    }
    Ok(console::say(&table(&rows))?)
}
