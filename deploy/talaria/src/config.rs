//! `talaria config`: the settings that apply, where each came from, and the keys that no setting has.

use std::fmt::Write as _;

use clap::Args;
use node::process::CommonArgs;
use node::settings::{Effective, Flags, Loaded};
use serde_json::{Map, Value, json};

use crate::console;

/// The command's flags.
#[derive(Args, Debug)]
pub struct ConfigArgs {
    #[command(flatten)]
    common: CommonArgs,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// Prints the settings.
///
/// # Errors
/// When they cannot be read (exit 78), or standard output is closed.
pub fn run(args: &ConfigArgs) -> anyhow::Result<()> {
    let loaded = args.common.load(Flags::default())?;
    if args.json {
        console::say(&format!("{:#}", as_json(&loaded)))?;
    } else {
        console::say(&as_text(&loaded))?;
        loaded.warnings.iter().for_each(|warning| console::note(&format!("warning: {warning}")));
    }
    Ok(())
}

/// One section after another, as `talaria.toml` would have them, with the origin of each line.
fn as_text(loaded: &Loaded) -> String {
    let mut text = String::new();
    let mut section = "";
    for (name, Effective { value, origin }) in &loaded.effective {
        let (table, key) = name.rsplit_once('.').unwrap_or(("", name));
        if table != section {
            let gap = if section.is_empty() { "" } else { "\n" };
            let _ = writeln!(text, "{gap}[{table}]");
            section = table;
        }
        let value = if value == "null" { "(not set)" } else { value };
        let line = format!("{key} = {value}");
        let _ = writeln!(text, "{line:<60} # {origin}");
    }
    text
}

fn as_json(loaded: &Loaded) -> Value {
    let settings: Map<String, Value> = loaded
        .effective
        .iter()
        .map(|(name, Effective { value, origin })| {
            let value = serde_json::from_str(value).unwrap_or_else(|_| json!(value));
            (name.clone(), json!({ "value": value, "origin": origin }))
        })
        .collect();
    json!({ "settings": settings, "warnings": loaded.warnings })
}

#[cfg(test)]
mod tests {
    use node::settings;

    use super::*;

    fn loaded(toml: &str) -> Loaded {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("talaria.toml");
        std::fs::write(&file, toml).unwrap();
        settings::load(Some(&file), Flags::default().set("model.name", Some("scripted"))).unwrap()
    }

    #[test]
    fn text_shows_sections_values_and_origins() {
        let text = as_text(&loaded("[agent]\ntimeout = \"30m\"\n"));
        let line = |start: &str| text.lines().find(|line| line.starts_with(start)).unwrap();
        assert!(text.contains("[agent]\n"), "{text}");
        assert!(line("timeout = \"30m\"").ends_with("talaria.toml"), "{text}");
        assert!(line("name = \"scripted\"").ends_with("# flag"), "{text}");
        assert!(line("max_iterations").ends_with("# default"), "{text}");
    }

    #[test]
    fn json_has_values_as_values_and_no_secret() {
        let shown =
            as_json(&loaded("[agent]\nmax_iterations = 7\n[ingress]\ntoken = \"hush\"\nx = 1\n"));
        assert_eq!(shown["settings"]["agent.max_iterations"]["value"], 7);
        assert_eq!(shown["settings"]["ingress.token"]["value"], "********");
        assert!(!shown.to_string().contains("hush"));
        assert_eq!(shown["warnings"].as_array().unwrap().len(), 1);
    }
}
