//! The decision table as data: the real core is run for every state, mode and kind of input, and what it does must be what
//! `table.txt` and the pages in `deploy/docs` say. `TABLE=write cargo test -p scheduler-core --test table` writes them.

mod commands;
#[path = "../kit/mod.rs"]
mod kit;
mod page;
mod rows;

use std::path::Path;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/table/table.txt");
const DOCS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/docs");

/// Compares a file with what it should hold, or writes it.
#[track_caller]
fn is_current(path: &Path, should: &str) {
    if std::env::var_os("TABLE").is_some_and(|wish| wish == "write") {
        std::fs::write(path, should).expect("the file can be written");
        return;
    }
    let found = std::fs::read_to_string(path).unwrap_or_default();
    let differs = should.lines().zip(found.lines()).find(|(should, found)| should != found);
    assert!(
        found == should,
        "{} differs from the code, first here: {differs:#?}\nTABLE=write rewrites it.",
        path.display()
    );
}

#[test]
fn the_decisions_are_those_of_the_golden_table() {
    let rows = rows::all();
    assert!(rows.len() >= 200, "{} rows", rows.len());
    let text: String = rows.iter().map(|row| format!("{row}\n")).collect();
    is_current(Path::new(GOLDEN), &text);
}

#[test]
fn the_page_of_decisions_is_that_of_the_code() {
    is_current(&Path::new(DOCS).join("decision-table.md"), &page::render(&rows::all()));
}

#[test]
fn the_page_of_commands_is_that_of_the_registry() {
    is_current(&Path::new(DOCS).join("commands.md"), &commands::render());
}
