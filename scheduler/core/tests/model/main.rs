//! A model of the protocol around the real core: one session, a scheduler that may crash between any write and what follows
//! it, two workers that may die or be cut off, orders and claims that are repeated, answers and controls that are lost.
//! `stateright` visits every order of events up to the bounds; `TALARIA_MODEL=large` raises them.
#![allow(clippy::wildcard_enum_match_arm, reason = "a model looks only at what it is about")]

mod handover;
#[path = "../kit/mod.rs"]
mod kit;
mod protocol;
mod world;

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::hash::Hash;

use scheduler_core::Policy;
use stateright::{Checker, HasDiscoveries, Model};

use crate::handover::{Handover, Slip};
use crate::world::{Bug, System};

fn system(messages: &'static [&'static str]) -> System {
    System {
        messages,
        scheduler_crashes: 1,
        worker_deaths: 1,
        losses: 1,
        policy: Policy {
            notify: None,
            timeout: None,
            setup: None,
            ack_interval: u64::MAX,
            ..Policy::default()
        },
        bug: None,
    }
}

fn is_large() -> bool {
    std::env::var_os("TALARIA_MODEL").is_some_and(|size| size == "large")
}

/// Fewer faults for longer stories, unless `TALARIA_MODEL=large` asks for all of them (minutes, and gigabytes).
fn smaller(system: System) -> System {
    if is_large() {
        return system;
    }
    System { losses: 0, ..system }
}

#[track_caller]
#[expect(clippy::print_stdout, reason = "the size of the space belongs to the result")]
fn holds<M>(system: M)
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync,
    M::Action: Clone + Debug + PartialEq + Send + Sync,
{
    let checker = system.checker().spawn_bfs().join();
    println!(
        "{}: {} states, depth {}, done: {}",
        std::thread::current().name().unwrap_or_default(),
        checker.unique_state_count(),
        checker.max_depth(),
        checker.is_done()
    );
    checker.assert_properties();
}

/// Checks that a seeded bug is found by the property that should find it.
#[track_caller]
fn finds(bug: Bug, property: &'static str) {
    let system = System { bug: Some(bug), worker_deaths: 0, losses: 0, ..system(&["a", "b"]) };
    let found = HasDiscoveries::AnyOf(BTreeSet::from([property]));
    let checker = system.checker().finish_when(found).spawn_bfs().join();
    assert!(checker.discovery(property).is_some(), "{bug:?} is not found");
}

#[test]
fn two_messages_survive_crashes_deaths_and_losses() {
    holds(system(&["a", "b"]));
}

#[test]
fn a_stop_between_two_messages_survives_too() {
    holds(smaller(system(&["a", "/stop", "b"])));
}

#[test]
fn a_queued_message_survives_too() {
    holds(smaller(system(&["a", "/queue b", "c"])));
}

#[test]
fn a_fresh_conversation_survives_too() {
    holds(smaller(system(&["a", "/new", "b"])));
}

fn handover(messages: &'static [&'static str]) -> Handover {
    let policy = Policy {
        notify: None,
        timeout: None,
        setup: None,
        ack_interval: u64::MAX,
        ..Policy::default()
    };
    Handover { messages, takeovers: 1, worker_deaths: 0, workers: 2, policy, bug: None }
}

#[track_caller]
fn slips(slip: Slip, property: &'static str) {
    let system = Handover { bug: Some(slip), ..handover(&["a", "b"]) };
    let found = HasDiscoveries::AnyOf(BTreeSet::from([property]));
    let checker = system.checker().finish_when(found).spawn_bfs().join();
    assert!(checker.discovery(property).is_some(), "{slip:?} is not found");
}

#[test]
fn two_owners_at_once_lose_and_double_nothing() {
    holds(handover(if is_large() { &["a", "/queue b"] } else { &["a"] }));
}

#[test]
fn two_owners_at_once_and_a_stop_lose_and_double_nothing() {
    holds(handover(&["a", "/stop"]));
}

#[test]
fn a_worker_that_dies_between_two_owners_is_replaced_once() {
    holds(Handover { worker_deaths: 1, ..handover(&["a"]) });
}

#[test]
fn writing_over_a_newer_owner_is_found() {
    slips(Slip::Overwrites, "a message has one end");
}

#[test]
fn adopting_without_a_write_is_found() {
    slips(Slip::AdoptsSilently, "who has a turn in hand has fenced the owner before");
}

#[test]
fn not_sending_what_is_found_unsent_is_found() {
    slips(Slip::SkipsEffects, "no message is lost");
}

#[test]
fn a_checkpoint_that_runs_ahead_is_found() {
    slips(Slip::ChecksTooEarly, "no message is lost");
}

#[test]
fn not_stepping_down_is_found() {
    slips(Slip::NeverStepsDown, "epochs do not go back");
}

#[test]
fn forgetting_what_was_seen_is_found() {
    finds(Bug::ForgetsSeen, "an attempt is run once");
}

#[test]
fn forgetful_workers_are_found() {
    finds(Bug::ForgetfulWorkers, "an attempt is run once");
}

#[test]
fn not_publishing_again_is_found() {
    finds(Bug::SkipsEffects, "it never gets stuck");
}
