//! What is watched is what there is: the table of metrics is made from the code, and dashboards, rules and runbooks name nothing
//! else.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use prometheus::Registry;
use prometheus::proto::{MetricFamily, MetricType};
use serde_json::Value;

/// Labels whose values are the operator's, so that the table does not list them.
const OPEN: [&str; 4] = ["platform", "account", "tool", "version"];
/// What is not ours and may be asked for too: the scraper's own, and those that every process has.
const FOREIGN: [&str; 3] = ["up", "ALERTS", "process_"];

const INTRODUCTION: &str = "\
# Metrics

Made from the code by `GOLDEN=write cargo test -p talaria-tests --test observability`; a test fails when they differ.

Every service answers `/metrics`. All series exist from the start, at 0; no label holds an id, so that their number does not grow
with use. Which session it is that hangs is not a question for metrics: `talaria explain`, `/agents` and `/status` name sessions.
";

/// All instruments of all services.
fn families() -> Vec<MetricFamily> {
    let registry = Registry::new();
    node::vitals::register(&registry, None).unwrap();
    node::hooks::Hooks::start(&BTreeMap::new(), &registry).unwrap();
    scheduler::describe(&registry).unwrap();
    worker::describe(&registry, &["terminal"]).unwrap();
    ingress::describe(&registry);
    registry.gather().into_iter().filter(|family| family.name().starts_with("talaria_")).collect()
}

fn unit(name: &str) -> &'static str {
    let name = name.trim_end_matches("_total");
    if name.ends_with("_seconds") {
        "seconds"
    } else if name.ends_with("_bytes") {
        "bytes"
    } else if name.ends_with("tokens") {
        "tokens"
    } else {
        ""
    }
}

fn kind(family: &MetricFamily) -> &'static str {
    match family.get_field_type() {
        MetricType::COUNTER => "counter",
        MetricType::GAUGE => "gauge",
        MetricType::HISTOGRAM => "histogram",
        MetricType::SUMMARY | MetricType::UNTYPED => "other",
    }
}

fn labels(family: &MetricFamily) -> String {
    let mut values: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for label in family.get_metric().iter().flat_map(|metric| metric.get_label()) {
        values.entry(label.name()).or_default().insert(label.value());
    }
    let shown = values.iter().map(|(name, values)| {
        if OPEN.contains(name) {
            return format!("`{name}`");
        }
        let values: Vec<_> = values.iter().copied().collect();
        format!("`{name}`: {}", values.join(", "))
    });
    shown.collect::<Vec<_>>().join("; ")
}

fn buckets(family: &MetricFamily) -> String {
    let metric = &family.get_metric()[0];
    let bounds: Vec<f64> =
        metric.get_histogram().get_bucket().iter().map(|bucket| bucket.upper_bound()).collect();
    match bounds.as_slice() {
        [] => String::new(),
        [first, .., last] => format!("{first} to {last}, {}", bounds.len()),
        [only] => only.to_string(),
    }
}

fn table() -> String {
    let mut text = INTRODUCTION.to_owned();
    text += "\n| name | type | unit | labels | buckets | meaning |\n|---|---|---|---|---|---|\n";
    for family in families() {
        let (name, help) = (family.name(), family.help());
        let _ = writeln!(
            text,
            "| `{name}` | {} | {} | {} | {} | {help} |",
            kind(&family),
            unit(name),
            labels(&family),
            buckets(&family),
        );
    }
    text
}

#[test]
fn the_table_of_metrics_is_what_the_code_has() {
    let path = deploy().join("docs/metrics.md");
    if std::env::var("GOLDEN").is_ok_and(|wish| wish == "write") {
        std::fs::write(&path, table()).unwrap();
    }
    let said = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(said, table(), "{} is old: GOLDEN=write makes it anew", path.display());
}

#[test]
fn every_instrument_says_what_it_is_and_exists_from_the_start() {
    for family in families() {
        let name = family.name();
        assert!(family.help().len() > 10, "{name} says nothing");
        assert!(!family.get_metric().is_empty(), "{name} does not exist from the start");
        let counts = family.get_field_type() == MetricType::COUNTER;
        assert_eq!(name.ends_with("_total"), counts, "{name}: counters, and only they, end so");
        assert!(family.get_metric().len() <= 100, "{name} has too many series");
        for label in family.get_metric().iter().flat_map(|metric| metric.get_label()) {
            let id = label.value().len() > 24 || label.value().contains(':');
            assert!(!id, "{name}: {}={} looks like an id", label.name(), label.value());
        }
    }
}

#[test]
fn dashboards_and_rules_ask_for_metrics_that_exist() {
    let mut known: BTreeSet<String> = BTreeSet::new();
    for family in families() {
        let name = family.name().to_owned();
        if family.get_field_type() == MetricType::HISTOGRAM {
            known.extend(["_bucket", "_sum", "_count"].map(|end| format!("{name}{end}")));
        } else {
            known.insert(name);
        }
    }
    for (_, text) in rules() {
        known.extend(fields(&text, "record").map(str::to_owned));
    }
    let mut asked = 0;
    for (path, expression) in expressions() {
        let names: Vec<_> = words(&expression).filter(|word| is_metric(word)).collect();
        assert!(!names.is_empty(), "{path}: no metric in {expression}");
        for name in names {
            asked += 1;
            let foreign = FOREIGN.iter().any(|begin| name.starts_with(begin));
            assert!(foreign || known.contains(name), "{path}: there is no metric {name}");
        }
    }
    assert!(asked > 100, "only {asked} metrics are asked for");
}

#[test]
fn every_instrument_is_looked_at() {
    let all: String = expressions().into_iter().map(|(_, text)| text + "\n").collect();
    let unseen: Vec<_> = families()
        .into_iter()
        .map(|family| family.name().to_owned())
        .filter(|name| !all.contains(name.as_str()))
        .collect();
    assert!(unseen.is_empty(), "no dashboard and no rule shows {unseen:?}");
}

#[test]
fn every_alert_has_a_runbook_and_every_runbook_an_alert() {
    let mut alerts = BTreeSet::new();
    for (path, text) in rules() {
        for rule in text.split("\n      - ").skip(1) {
            let Some(name) = rule.strip_prefix("alert: ") else { continue };
            let name = name.lines().next().unwrap_or_default().trim();
            for field in ["severity:", "summary:", "description:"] {
                assert!(rule.contains(field), "{path}: {name} has no {field}");
            }
            let link = format!("runbook: deploy/docs/runbooks/{name}.md");
            assert!(rule.contains(&link), "{path}: {name} does not link {link}");
            alerts.insert(name.to_owned());
        }
    }
    let pages: BTreeSet<_> = files("docs/runbooks", "md")
        .into_iter()
        .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    assert_eq!(pages, alerts);
    assert!(alerts.len() >= 15, "{alerts:?}");
    for page in files("docs/runbooks", "md") {
        let text = std::fs::read_to_string(&page).unwrap();
        for part in ["## What it means", "## What to look at", "## What to do"] {
            assert!(text.contains(part), "{}: no part {part:?}", page.display());
        }
    }
}

#[test]
fn dashboards_are_well_made() {
    let mut uids = BTreeSet::new();
    for (path, board) in dashboards() {
        assert!(uids.insert(board["uid"].as_str().unwrap().to_owned()), "{path}: the uid is taken");
        let mut ids = BTreeSet::new();
        let mut places: Vec<[u64; 4]> = Vec::new();
        for panel in board["panels"].as_array().unwrap() {
            let title = panel["title"].as_str().unwrap();
            assert!(ids.insert(panel["id"].as_u64().unwrap()), "{path}: {title}: the id is taken");
            let place = ["x", "y", "w", "h"].map(|key| panel["gridPos"][key].as_u64().unwrap());
            assert!(place[0] + place[2] <= 24, "{path}: {title} is too wide");
            let free = places.iter().all(|other| !overlap(*other, place));
            assert!(free, "{path}: {title} covers another panel");
            places.push(place);
            if ["text", "row"].contains(&panel["type"].as_str().unwrap()) {
                continue;
            }
            let described = panel["description"].as_str().is_some_and(|text| text.len() > 20);
            assert!(described, "{path}: {title} has no description");
            assert!(
                panel["fieldConfig"]["defaults"]["unit"].is_string(),
                "{path}: {title}: no unit"
            );
            assert_eq!(panel["datasource"]["uid"], "${datasource}", "{path}: {title}");
        }
    }
    assert!(uids.len() >= 6, "{uids:?}");
}

const fn overlap([ax, ay, aw, ah]: [u64; 4], [bx, by, bw, bh]: [u64; 4]) -> bool {
    ax < bx + bw && bx < ax + aw && ay < by + bh && by < ay + ah
}

/// Every query of every dashboard and rule, with where it stands.
fn expressions() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (path, board) in dashboards() {
        for panel in board["panels"].as_array().unwrap() {
            for target in panel["targets"].as_array().into_iter().flatten() {
                found.push((path.clone(), target["expr"].as_str().unwrap().to_owned()));
            }
        }
    }
    for (path, text) in rules() {
        for rule in text.split("\n      - ").skip(1) {
            let (_, rest) = rule.split_once("expr:").unwrap_or_else(|| panic!("{path}: {rule}"));
            // What follows the expression are the rule's other fields.
            let expression = rest.split("\n        ").take_while(|line| {
                !["for:", "labels:", "annotations:"].iter().any(|field| line.starts_with(field))
            });
            found.push((path.clone(), expression.collect::<Vec<_>>().join(" ")));
        }
    }
    found
}

fn is_metric(word: &str) -> bool {
    word.starts_with("talaria") || word == "up" || word.starts_with("process_") || word == "ALERTS"
}

fn words(expression: &str) -> impl Iterator<Item = &str> {
    // Strings are label values.
    let outside = expression.split('"').step_by(2);
    outside
        .flat_map(|part| part.split(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != ':'))
}

/// The values of a field of all rules of a file.
fn fields<'a>(text: &'a str, field: &'a str) -> impl Iterator<Item = &'a str> {
    text.lines()
        .filter_map(move |line| line.trim_start_matches([' ', '-']).strip_prefix(field))
        .filter_map(|rest| rest.strip_prefix(": "))
}

fn rules() -> Vec<(String, String)> {
    texts("prometheus/rules", "yaml")
}

fn dashboards() -> Vec<(String, Value)> {
    let read = |(path, text): (String, String)| {
        let board = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"));
        (path, board)
    };
    texts("grafana/dashboards", "json").into_iter().map(read).collect()
}

fn texts(folder: &str, ending: &str) -> Vec<(String, String)> {
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).unwrap();
        (path.display().to_string(), text)
    };
    files(folder, ending).into_iter().map(read).collect()
}

fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(deploy().join(folder)).unwrap();
    let mut paths: Vec<_> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|found| found == ending))
        .collect();
    paths.sort();
    paths
}

fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy")
}
