//! The fault suite: every role is killed, frozen, stopped and cut off at random under load, and then a checker reads the whole
//! history. Seeded: a seed that fails says how to repeat it.
//!
//! ```sh
//! FAULTS=200 cargo test -p talaria-tests --test faults -- --nocapture     # this many seeds
//! FAULT_SEED=17 cargo test -p talaria-tests --test faults -- --nocapture  # one of them
//! ```

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]
#![expect(clippy::print_stdout, reason = "the figures are for whoever runs it by name")]

mod checker;
mod fleet;
mod load;

use std::time::{Duration, Instant};

use talaria_tests::{Setup, World};

use crate::checker::{Figures, check};
use crate::fleet::Fleet;
use crate::load::Load;

const SERVICE: &str = env!("CARGO_BIN_EXE_service");
/// How many seeds a plain `cargo test` runs.
const SEEDS: u64 = 2;
/// How many faults each seed has.
const FAULTS: usize = 12;

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_doubled_or_out_of_order_whatever_breaks() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seeds: Vec<u64> = match number("FAULT_SEED") {
        Some(seed) => vec![seed],
        None => (1..=number("FAULTS").unwrap_or(SEEDS)).collect(),
    };
    let mut all = Figures::default();
    for seed in seeds {
        println!(
            "seed {seed} (repeat: FAULT_SEED={seed} cargo test -p talaria-tests --test faults)"
        );
        all.add(run(seed).await);
    }
    println!("{all}");
}

/// One run: load and faults together, then peace, then the check.
async fn run(seed: u64) -> Figures {
    let setup = Setup::default()
        .set("scheduler.lease_ttl", "2s")
        .set("scheduler.attempts", 50)
        .set("worker.drain", "300ms")
        .set("agent.busy_mode", "queue");
    let mut world = World::new(setup).await;
    let mut load = Load::new(&world, seed);
    let mut fleet = Fleet::start(&world, SERVICE, seed).await;
    let mut struck = Vec::new();
    for _ in 0..FAULTS {
        load.say(fleet.door()).await;
        struck.push(Instant::now());
        let fault = fleet.strike(&mut world).await;
        println!("  {fault}");
    }
    fleet.heal(&world).await;
    let said = load.finish(fleet.door()).await;
    let figures = check(&world, seed, &said, &struck).await;
    // Nothing is left behind when traffic ends.
    talaria_tests::wait::eventually("no order and no delivery is left", || async {
        let left = (world.nats.count("TURNS").await, world.nats.count("OUTBOX").await);
        (left == (Some(0), Some(0))).then_some(())
    })
    .await;
    tokio::time::timeout(Duration::from_secs(30), fleet.stop()).await.expect("all end");
    figures
}
