//! A turn whose tools say more than its model can read.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use proto::activity::State;
use proto::transcript::Body;
use proto::turn::{Control, StopReason};
use serde_json::json;

use super::client_of;
use super::events::Events;
use super::provider::{Form, Provider, Script, Step};
use super::rig::Rig;
use super::tool::{Manner, Probe};
use crate::metrics::Ended;
use crate::tools::Tool;

const STEPS: usize = 14;

/// Fourteen calls in the first turn, whatever the conversation looks like; and a summary when one is wanted.
fn script() -> Arc<Script> {
    let made = AtomicUsize::new(0);
    Arc::new(move |said: &str, _| {
        if said.starts_with("Sum up") {
            return Step { words: vec!["THE GIST"], calls: vec![] };
        }
        if made.fetch_add(1, Ordering::Relaxed) < STEPS {
            return Step { words: vec![], calls: vec![("talk", json!({}))] };
        }
        Step { words: vec!["Done."], calls: vec![] }
    })
}

fn talk(events: &Events) -> Vec<Arc<dyn Tool>> {
    vec![Arc::new(Probe { name: "talk", manner: Manner::Talks, events: events.clone() })]
}

#[test]
fn a_long_turn_is_compressed_on_the_way_and_goes_on() {
    node::process::block_on(async {
        for form in [Form::OpenAi, Form::Anthropic] {
            let events = Events::default();
            let provider = Provider::start(script(), events.clone()).await;
            let model = client_of(&provider, form, 8000);
            let Some(rig) = Rig::start(model, (talk(&events), |_: &mut _| {})).await else {
                return Ok(());
            };
            let asked = rig.say("c", "begin with the first words").await;
            assert_eq!(asked.turn(1).0.run().await, Ended::Completed);
            let stored = asked.stored().await;
            let count =
                stored.iter().filter(|body| matches!(body, Body::Compressed { .. })).count();
            assert!((1..6).contains(&count), "{count} compressions");
            // Another worker, which has nothing in memory, goes on from what is stored.
            rig.shared.shelf.take(asked.event.session.sid());
            let next = rig.say("c", "and now?").await;
            assert_eq!(next.turn(1).0.run().await, Ended::Completed);
            assert_eq!(provider.refusals(), Vec::<String>::new());
            let requests = provider.requests();
            let last = requests.last().map(ToString::to_string).unwrap_or_default();
            for words in ["first words", "THE GIST", "and now?"] {
                assert!(last.contains(words), "{words} in {last}");
            }
            let longest =
                requests.iter().map(|request| request["messages"].to_string().len()).max();
            assert!(longest.is_some_and(|bytes| bytes < 8000 * 4), "{longest:?} bytes");
        }
        Ok(())
    })
    .unwrap();
}

/// A plain message waits for the compression; it is stored, and then the turn ends.
#[test]
fn a_message_does_not_disturb_a_compression_and_a_stop_does() {
    node::process::block_on(async {
        for (reason, is_stored) in [(StopReason::Message, true), (StopReason::Stop, false)] {
            let events = Events::default();
            let provider = Provider::start(script(), events.clone()).await;
            let model = client_of(&provider, Form::OpenAi, 8000);
            let Some(rig) = Rig::start(model, (talk(&events), |_: &mut _| {})).await else {
                return Ok(());
            };
            let asked = rig.say("c", "begin").await;
            let (turn, hands) = asked.turn(1);
            let victim = hands.clone();
            events.each(move |_| {
                if victim.gauge.read().state == State::Compressing {
                    victim.control(&Control::Interrupt { of: victim.of, reason });
                }
            });
            assert_eq!(turn.run().await, Ended::Interrupted);
            let stored = asked.stored().await;
            let was = stored.iter().any(|body| matches!(body, Body::Compressed { .. }));
            assert_eq!(was, is_stored, "{reason:?}");
        }
        Ok(())
    })
    .unwrap();
}
