//! The house rules, as tests: what a reviewer would otherwise have to say each time.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// How long a file may be.
const LINES_MAX: usize = 500;
/// The first tokens of the subjects of our protocol; only `proto/src/subject.rs` may build or parse one.
const SUBJECTS: [&str; 7] =
    ["inbox.", "turn.", "outbox.", "transcript.", "event.", "draft.", "scheduler."];

#[test]
fn every_file_is_short_and_says_what_it_is() {
    let mut faults = Vec::new();
    for (path, text) in sources() {
        let lines = text.lines().count();
        if lines > LINES_MAX {
            faults.push(format!("{path} has {lines} lines, more than {LINES_MAX}"));
        }
        if !text.starts_with("//! ") {
            faults.push(format!("{path} does not begin with a sentence on what it is (//!)"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn the_core_depends_on_the_wire_and_on_what_is_pure() {
    let manifest = read(&root().join("scheduler/core/Cargo.toml"));
    assert_eq!(dependencies(&manifest), ["proto", "croner", "jiff"]);
}

#[test]
fn the_wire_depends_on_no_runtime() {
    let manifest = read(&root().join("proto/Cargo.toml"));
    assert_eq!(dependencies(&manifest), ["serde", "serde_json", "sha2", "thiserror"]);
}

#[test]
fn no_service_depends_on_another() {
    let services = ["scheduler", "worker", "ingress"];
    for service in services {
        let manifest = read(&root().join(service).join("Cargo.toml"));
        for other in services.iter().filter(|other| **other != service) {
            let found = dependencies(&manifest).into_iter().any(|name| name == *other);
            assert!(!found, "{service} depends on {other}");
        }
    }
}

#[test]
fn subjects_are_made_in_one_place() {
    let mut faults = Vec::new();
    for (path, text) in production() {
        if path == "proto/src/subject.rs" || path == "proto/src/topology.rs" {
            continue;
        }
        for (number, line) in code(&text) {
            let begun = |subject: &str| line.contains(&format!("\"{subject}"));
            // Only a subject goes on with a token; a setting's or a file's name has no placeholder or wildcard behind it.
            let built = ["{", "*", ">"].iter().any(|mark| {
                SUBJECTS.iter().any(|subject| line.contains(&format!("\"{subject}{mark}")))
            });
            let parsed =
                line.contains("strip_prefix(") && SUBJECTS.iter().any(|subject| begun(subject));
            if built || parsed || line.contains("\"$KV.") {
                faults.push(format!("{path}:{number}: {}", line.trim()));
            }
        }
    }
    assert!(faults.is_empty(), "use proto::subject:\n{}", faults.join("\n"));
}

#[test]
fn production_code_has_no_shortcuts() {
    let shortcuts = [".unwrap()", "todo!(", "unimplemented!(", "dbg!(", "#[ignore", "#[allow("];
    let mut faults = Vec::new();
    for (path, text) in production() {
        for (number, line) in code(&text) {
            if let Some(shortcut) = shortcuts.iter().find(|shortcut| line.contains(**shortcut)) {
                faults.push(format!("{path}:{number}: {shortcut}"));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn nothing_is_left_for_later_in_a_comment() {
    let marks = ["TODO", "FIXME", "XXX", "HACK"];
    let mut faults = Vec::new();
    for (path, text) in sources().into_iter().filter(|(path, _)| path != "tests/tests/tidy.rs") {
        for (number, line) in text.lines().enumerate() {
            let words = line.split(|c: char| !c.is_ascii_alphanumeric());
            if words.into_iter().any(|word| marks.contains(&word)) {
                faults.push(format!("{path}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_package_has_the_lints_of_the_workspace() {
    let mut manifests = Vec::new();
    visit(&root(), "toml", &mut manifests);
    for manifest in manifests.iter().filter(|path| path.ends_with("Cargo.toml")) {
        let text = read(manifest);
        let fine = text.contains("[workspace]") || text.contains("[lints]\nworkspace = true");
        assert!(fine, "{}", manifest.display());
    }
}

/// The lines of production code with their numbers: no comments, and nothing from the unit tests on, which stand at the end.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line));
    lines
        .take_while(|(_, line)| !line.starts_with("#[cfg(test)]"))
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
}

/// Our source files without tests, by path.
fn production() -> BTreeMap<String, String> {
    let of_tests = |path: &str| {
        path.starts_with("tests/")
            || path.contains("/tests/")
            || path.contains("/benches/")
            || path.ends_with("/tests.rs")
            || is_test_module(path)
    };
    sources().into_iter().filter(|(path, _)| !of_tests(path)).collect()
}

/// Whether a file is declared as `#[cfg(test)] mod name;` beside it.
fn is_test_module(path: &str) -> bool {
    let path = root().join(path);
    let (Some(folder), Some(name)) = (path.parent(), path.file_stem()) else { return false };
    let declared = format!("#[cfg(test)]\nmod {};", name.to_string_lossy());
    ["mod.rs", "lib.rs"].iter().any(|parent| {
        std::fs::read_to_string(folder.join(parent)).is_ok_and(|text| text.contains(&declared))
    })
}

/// All our source files, by path.
fn sources() -> BTreeMap<String, String> {
    let mut files = Vec::new();
    visit(&root(), "rs", &mut files);
    assert!(files.len() > 30, "the sources are found");
    let named = |path: PathBuf| {
        let name = path.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
        (name, read(&path))
    };
    files.into_iter().map(named).collect()
}

fn visit(folder: &Path, extension: &str, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            visit(&path, extension, files);
        } else if path.extension().is_some_and(|found| found == extension) {
            files.push(path);
        }
    }
}

/// The names in a manifest's `[dependencies]`.
fn dependencies(manifest: &str) -> Vec<&str> {
    let section = manifest.split("\n[").find_map(|part| part.strip_prefix("dependencies]\n"));
    let lines = section.unwrap_or_default().lines().filter(|line| !line.trim().is_empty());
    lines
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split(['.', ' ', '=']).next())
        .collect()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}
