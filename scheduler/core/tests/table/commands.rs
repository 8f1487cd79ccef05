//! The registry of commands as a page for people.

use std::fmt::Write as _;

use proto::command::{Control, Name, REGISTRY, Who};

const INTRODUCTION: &str = "\
# Commands

This page is written by `TABLE=write cargo test -p scheduler-core --test table` from the registry in `proto/src/command.rs`;
a test fails when they differ. `stop` alone, as a plain word, is `/stop`. An unknown `/word` is text for the agent.

| command | also | who | while a turn runs | what it does |
|---|---|---|---|---|
";

pub(crate) fn render() -> String {
    let mut page = INTRODUCTION.to_owned();
    for spec in REGISTRY {
        let form = format!("/{} {}", spec.words[0], spec.args.replace('|', "\\|"));
        let also: Vec<_> = spec.words[1..].iter().map(|word| format!("`/{word}`")).collect();
        let who = match spec.who {
            Who::Anyone => "anyone",
            Who::Admin => "admins",
        };
        let busy = match spec.name {
            Name::Control(Control::Stop) => "stops it and clears the queue",
            Name::Control(Control::New) => "stops it, clears the queue, then starts",
            Name::Message(_) => "is taken as it says",
            Name::Conversation(_) => "is refused",
            Name::Bypass(_) => "is answered at once and disturbs nothing",
        };
        let help = if spec.help.is_empty() { "nothing: platforms send it" } else { spec.help };
        let (form, also) = (form.trim(), also.join(", "));
        let _ = writeln!(page, "| `{form}` | {also} | {who} | {busy} | {help} |");
    }
    page
}
