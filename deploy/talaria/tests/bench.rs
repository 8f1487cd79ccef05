//! The bench runs, and reports what others read from it. The figures themselves are not judged: machines differ.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use talaria::bench::{Effort, measure};

const TOOLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.talaria/tools");

#[tokio::test(flavor = "multi_thread")]
async fn the_report_has_every_figure() {
    let effort = Effort { operations: 10, time: Duration::from_millis(300), held: 50 };
    let report = measure(Path::new(TOOLS), effort).await.unwrap();
    let figures = serde_json::to_value(&report).unwrap();

    let raw = ["publish_ack_us", "request_reply_us", "core_one_way_us", "pull_us"];
    let raw = raw.map(|name| format!("/raw/{name}"));
    let system = ["dispatch_ms", "interrupt_ms", "stop_ack_ms", "reply_ms"];
    let system = system.map(|name| format!("/{name}"));
    let percentiles = raw
        .iter()
        .chain(&system)
        .flat_map(|name| ["p50", "p99"].map(|percentile| format!("{name}/{percentile}")));
    let others = [
        "/raw/pipelined_publish_per_s",
        "/scheduler/inputs_per_s",
        "/scheduler/kv_updates_per_s",
        "/scheduler/ratio",
        "/turns_per_s/1",
        "/turns_per_s/10",
        "/turns_per_s/100",
        "/turns_per_s/1000",
        "/bytes_per_turn",
        "/ratios/dispatch_over_hops",
        "/ratios/interrupt_over_hops",
        "/ratios/turns_over_publishes",
    ];
    for name in percentiles.chain(others.map(str::to_owned)) {
        let figure = figures.pointer(&name).and_then(Value::as_f64);
        assert!(figure.is_some_and(|figure| figure >= 0.0), "{name} in {figures:#}");
    }
    assert!(report.to_string().contains("dispatch_over_hops"));
}
