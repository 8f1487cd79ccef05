//! `talaria platforms`: what each platform can do, as its adapter says. The page of the documentation is made from the same.

use std::fmt::Write as _;
use std::time::Duration;

use clap::Args;
use ingress::adapter::{Capabilities, Drafts, Messages, Rate, Repeats, Transport};
use ingress::registry;
use serde_json::{Value, json};

use crate::console;

/// The command's flags.
#[derive(Args, Debug)]
pub struct PlatformsArgs {
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// Prints the platforms.
///
/// # Errors
/// When standard output is closed.
pub fn run(args: &PlatformsArgs) -> anyhow::Result<()> {
    if args.json {
        return Ok(console::say(&format!("{:#}", as_json()))?);
    }
    let (names, rows) = rows();
    let width = rows.iter().map(|(what, _)| what.len()).max().unwrap_or_default();
    let mut text = String::new();
    for (index, name) in names.iter().enumerate() {
        let _ = writeln!(text, "{}{name}", if index > 0 { "\n" } else { "" });
        for (what, values) in &rows {
            let value = values.get(index).map_or("", String::as_str);
            let _ = writeln!(text, "  {what:<width$}  {value}");
        }
    }
    Ok(console::say(&text)?)
}

/// The page of the documentation.
#[must_use]
pub fn page() -> String {
    let (names, rows) = rows();
    let mut page = String::from(
        "# Platforms\n\nWhat each platform can do, as its adapter says; delivery follows it. This page is made from the code \
         (`talaria platforms` prints the same), and a test keeps it so.\n\n",
    );
    let _ = writeln!(page, "| | {} |", names.join(" | "));
    let _ = writeln!(page, "|---|{}", "---|".repeat(names.len()));
    for (what, values) in rows {
        let _ = writeln!(page, "| {what} | {} |", values.join(" | "));
    }
    page
}

/// The names of the platforms, and what each of them says of each thing.
fn rows() -> (Vec<String>, Vec<(&'static str, Vec<String>)>) {
    let all: Vec<_> = registry::platforms().collect();
    let names = all.iter().map(|(name, can)| format!("{} (`{name}`)", can.name)).collect();
    let of = |look: fn(&Capabilities) -> String| all.iter().map(|(_, can)| look(can)).collect();
    let rows = vec![
        ("messages come by", of(|can| list(can.transports))),
        ("streamed text", of(|can| drafts(can.drafts))),
        (
            "longest message",
            of(|can| shown(can, |m| format!("{} {}", m.text.max, m.text.unit.name()))),
        ),
        ("markup", of(|can| shown(can, |m| m.dialect.name().into()))),
        ("edits", of(|can| shown(can, |m| yes(m.edit)))),
        ("deletes", of(|can| shown(can, |m| yes(m.delete)))),
        ("reactions", of(|can| shown(can, |m| yes(m.react)))),
        ("typing", of(|can| shown(can, |m| yes(m.typing.is_some())))),
        ("buttons", of(|can| shown(can, |m| yes(m.buttons)))),
        ("threads", of(|can| shown(can, |m| yes(m.threads)))),
        ("replies", of(|can| shown(can, |m| yes(m.replies)))),
        ("files to the agent", of(|can| shown(can, |m| size(m.media_in)))),
        ("files from the agent", of(|can| shown(can, |m| size(m.media_out)))),
        ("a send whose answer is lost", of(|can| shown(can, |m| repeats(m.repeats).into()))),
        ("calls to one person", of(|can| shown(can, |m| rate(m.rates.direct)))),
        ("calls to one group", of(|can| shown(can, |m| rate(m.rates.group)))),
        ("calls from one account", of(|can| shown(can, |m| rate(m.rates.account)))),
        ("tested against", of(|can| can.tested.into())),
    ];
    (names, rows)
}

fn shown(can: &Capabilities, look: impl Fn(&Messages) -> String) -> String {
    can.messages.as_ref().map_or_else(|| "the other end's".into(), look)
}

fn list(transports: &[Transport]) -> String {
    transports.iter().map(|transport| transport.name()).collect::<Vec<_>>().join(", ")
}

fn yes(can: bool) -> String {
    if can { "yes" } else { "no" }.into()
}

fn drafts(drafts: Drafts) -> String {
    match drafts {
        Drafts::None => "no".into(),
        Drafts::Pieces => "piece by piece".into(),
        Drafts::Whole { every, growth } => {
            format!("edited, every {} s and {growth} characters at the earliest", seconds(every))
        }
    }
}

fn size(limit: Option<usize>) -> String {
    limit.map_or_else(|| "no".into(), |bytes| format!("up to {} MiB", bytes / (1024 * 1024)))
}

fn rate(rate: Rate) -> String {
    format!("{} in {} s", rate.calls, seconds(rate.per))
}

fn seconds(time: Duration) -> String {
    time.as_secs_f64().to_string()
}

const fn repeats(repeats: Repeats) -> &'static str {
    match repeats {
        Repeats::Key => "is repeated, and recognised by its key",
        Repeats::LookUp => "is looked for",
        Repeats::Never => "is repeated with a label",
    }
}

fn as_json() -> Value {
    let platform = |(name, can): (&str, &Capabilities)| {
        let drafts = match can.drafts {
            Drafts::None => Value::Null,
            Drafts::Pieces => json!({ "form": "pieces" }),
            Drafts::Whole { every, growth } => {
                json!({ "form": "whole", "every_ms": every.as_millis(), "growth": growth })
            }
        };
        json!({
            "platform": name,
            "name": can.name,
            "transports": can.transports.iter().map(|transport| transport.name()).collect::<Vec<_>>(),
            "drafts": drafts,
            "messages": can.messages.map(|can| messages(&can)),
            "tested": can.tested,
        })
    };
    json!({ "platforms": registry::platforms().map(platform).collect::<Vec<_>>() })
}

fn messages(can: &Messages) -> Value {
    let rate = |rate: Rate| json!({ "calls": rate.calls, "per_ms": rate.per.as_millis() });
    json!({
        "text": { "max": can.text.max, "unit": can.text.unit.name(), "counts_markup": can.text.counts_markup },
        "markup": can.dialect.name(),
        "edit": can.edit, "delete": can.delete, "react": can.react, "typing": can.typing.is_some(),
        "buttons": can.buttons, "threads": can.threads, "replies": can.replies,
        "media_in": can.media_in, "media_out": can.media_out,
        "repeats": repeats(can.repeats),
        "rates": {
            "direct": rate(can.rates.direct), "group": rate(can.rates.group), "account": rate(can.rates.account),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_of_platforms_is_that_of_the_adapters() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/platforms.md");
        let should = page();
        if std::env::var_os("PLATFORMS").is_some_and(|value| value == "write") {
            std::fs::write(&path, &should).unwrap();
        }
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(found == should, "PLATFORMS=write rewrites {}", path.display());
    }

    #[test]
    fn every_platform_is_named_once() {
        let names: Vec<_> = registry::platforms().map(|(name, _)| name).collect();
        let mut unique = names.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), names.len());
        assert_eq!(as_json()["platforms"].as_array().map(Vec::len), Some(names.len()));
    }
}
