//! How much memory a running turn costs its worker: turns whose model is in the middle of its answer, in one process.
//! `cargo test --release -p talaria-tests --test memory -- --ignored` prints a table; `MEMORY=write` puts it into the docs.

use std::fmt::Write as _;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use proto::member::Role;
use talaria_tests::model::{Progress, Step};
use talaria_tests::{Setup, World};

const SERVICE: &str = env!("CARGO_BIN_EXE_service");
/// How many turns run at once.
const TURNS: [usize; 3] = [1, 1000, 5000];
/// What a turn may cost: far more is a mistake.
const KB_MAX: usize = 100;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "thousands of turns at once"]
async fn a_streaming_turn_is_small() {
    let setup = Setup::default()
        .set("worker.capacity", 6000)
        .set("scheduler.beat", "2s")
        .set("scheduler.lease_ttl", "60s");
    let world = World::new(setup).await;
    let _scheduler = world.spawn(Role::Scheduler, SERVICE).await;
    let worker = world.spawn(Role::Worker, SERVICE).await;
    let ingress = world.spawn(Role::Ingress, SERVICE).await;
    let words = "a few words of an answer that goes on ".repeat(10);
    world.model.on("work", [Step::Hold(words)]);
    let idle = worker.memory_kb();
    let mut table = String::from("| turns | the process, MB | per turn, kB |\n|---|---|---|\n");
    let _ = writeln!(table, "| 0 | {:.1} | |", idle as f64 / 1024.0);
    let mut begun = 0;
    let mut each = 0;
    for turns in TURNS {
        let chats = (begun..turns).map(|number| {
            let chat = world.chat(ingress.address(), &format!("c{number}"));
            async move { chat.say("work").await }
        });
        stream::iter(chats).buffer_unordered(32).collect::<Vec<_>>().await;
        begun = turns;
        let open = async {
            while world.model.calls().iter().filter(|c| c.progress == Progress::Open).count()
                < turns
            {
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(300), open).await.expect("all turns stream");
        // What was needed only to begin is given back.
        tokio::time::sleep(Duration::from_secs(3)).await;
        let used = worker.memory_kb();
        each = used.saturating_sub(idle) / turns;
        let _ = writeln!(table, "| {turns} | {:.1} | {each} |", used as f64 / 1024.0);
    }
    let _ = std::io::Write::write_all(&mut std::io::stderr(), table.as_bytes());
    if std::env::var("MEMORY").is_ok_and(|mode| mode == "write") {
        write(&table);
    }
    assert!(each < KB_MAX, "{each} kB for each of many turns");
}

/// Puts the table into its place in the docs.
fn write(table: &str) {
    const BEGIN: &str = "<!-- memory -->\n";
    const END: &str = "<!-- /memory -->";
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/docs/performance.md");
    let text = std::fs::read_to_string(page).expect("the page");
    let (before, rest) = text.split_once(BEGIN).expect("the mark where the table begins");
    let (_, after) = rest.split_once(END).expect("the mark where it ends");
    std::fs::write(page, format!("{before}{BEGIN}{table}{END}{after}")).expect("it is written");
}
