//! Sub-agents: their work reaches the parent, their budget is the turn's, and a stop reaches the last of them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use proto::activity::State;
use proto::transcript::{Body, CallStatus};
use proto::turn::News;
use serde_json::{Value, json};

use super::client;
use super::events::Events;
use super::provider::{Form, Provider, Step};
use super::rig::Rig;
use super::tool::{Manner, Probe};
use crate::metrics::Ended;
use crate::tools::Tool;

fn say(words: &'static str) -> Step {
    Step { words: vec![words], calls: vec![] }
}

fn call(name: &'static str, arguments: Value) -> Step {
    Step { words: vec![], calls: vec![(name, arguments)] }
}

fn delegate(goals: &[&str]) -> Step {
    let tasks: Vec<Value> = goals.iter().map(|goal| json!({ "goal": goal })).collect();
    call("delegate", json!({ "tasks": tasks }))
}

fn tools(events: &Events, manner: Manner) -> Vec<Arc<dyn Tool>> {
    vec![Arc::new(Probe { name: "act", manner, events: events.clone() })]
}

fn results(bodies: &[Body]) -> Vec<(CallStatus, String)> {
    let result = |body: &Body| {
        if let Body::Result { status, output, .. } = body {
            Some((*status, output.clone()))
        } else {
            None
        }
    };
    bodies.iter().filter_map(result).collect()
}

#[test]
fn two_children_work_at_once_and_their_words_reach_the_parent() {
    node::process::block_on(async {
        let events = Events::default();
        let script = |said: &str, calls: usize| match (said, calls) {
            ("begin", 0) => delegate(&["task X", "task Y"]),
            ("begin", _) => say("Both are done."),
            (_, 0) => call("act", json!({})),
            ("task X", _) => say("X is blue."),
            (_, _) => say("Y is red."),
        };
        let provider = Provider::start(Arc::new(script), events.clone()).await;
        let model = client(&provider, Form::Anthropic);
        let Some(rig) = Rig::start(model, (tools(&events, Manner::Acts), |_: &mut _| {})).await
        else {
            return Ok(());
        };
        let asked = rig.say("c", "begin").await;
        let (turn, hands) = asked.turn(1);
        let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
        let (states, gauge) = (Arc::clone(&seen), hands.gauge.clone());
        events.each(move |_| states.lock().unwrap().push(gauge.read().state));
        assert_eq!(turn.run().await, Ended::Completed);
        assert!(seen.lock().unwrap().contains(&State::Delegating));
        let [(CallStatus::Done, output)] = &results(&asked.transcript().await)[..] else {
            panic!("one result")
        };
        assert!(output.contains("X is blue.") && output.contains("Y is red."), "{output}");
        let News::Finished { reply, usage, .. } = asked.news().await else { panic!("finished") };
        assert_eq!(reply, "Both are done.");
        assert_eq!(usage.output, 6 * 5, "the calls of all three count");
        assert_eq!(hands.gauge.read().budget_used, 6);
        assert_eq!(provider.refusals(), Vec::<String>::new());
        Ok(())
    })
    .unwrap();
}

/// CASES B11, second run: a stop reaches the grandchildren, and no further tool or model call begins.
#[test]
fn a_stop_reaches_the_grandchildren_at_once() {
    node::process::block_on(async {
        let events = Events::default();
        let script = |said: &str, _| match said {
            "begin" => delegate(&["child one", "child two"]),
            "child one" => delegate(&["grandchild"]),
            _ => call("act", json!({})),
        };
        let provider = Provider::start(Arc::new(script), events.clone()).await;
        let model = client(&provider, Form::OpenAi);
        let Some(rig) = Rig::start(model, (tools(&events, Manner::Hangs), |_: &mut _| {})).await
        else {
            return Ok(());
        };
        let asked = rig.say("c", "begin").await;
        let (turn, hands) = asked.turn(1);
        let stop = async {
            while events.seen().iter().filter(|what| **what == "tool begins").count() < 2 {
                tokio::task::yield_now().await;
            }
            hands.interrupt();
            (Instant::now(), events.seen().len())
        };
        let (ended, (stopped, before)) = tokio::join!(turn.run(), stop);
        assert_eq!(ended, Ended::Interrupted);
        assert!(stopped.elapsed() < Duration::from_secs(1), "{:?}", stopped.elapsed());
        assert_eq!(events.seen().len(), before, "nothing began after the stop");
        assert_eq!(results(&asked.transcript().await)[0].0, CallStatus::Interrupted);
        let next = rig.say("c", "act").await;
        assert_eq!(next.turn(1).0.fence.check(), Ok(()));
        Ok(())
    })
    .unwrap();
}

#[test]
fn the_budget_is_shared_and_the_depth_is_limited() {
    node::process::block_on(async {
        let events = Events::default();
        let script = |said: &str, calls: usize| match (said, calls) {
            ("begin", 0) => delegate(&["endless", "endless"]),
            ("begin", _) => say("Enough."),
            // A grandchild may not delegate any more: the model is told that there is no such tool.
            ("deeper", _) => delegate(&["deepest"]),
            (_, 0) => delegate(&["deeper"]),
            (_, _) => call("act", json!({})),
        };
        let provider = Provider::start(Arc::new(script), events.clone()).await;
        let model = client(&provider, Form::OpenAi);
        let small = |settings: &mut node::settings::Settings| settings.agent.max_iterations = 12;
        let Some(rig) = Rig::start(model, (tools(&events, Manner::Acts), small)).await else {
            return Ok(());
        };
        let asked = rig.say("c", "begin").await;
        let (turn, hands) = asked.turn(1);
        assert_eq!(turn.run().await, Ended::Completed);
        assert_eq!(hands.gauge.read().budget_used, 12, "not one more than the budget");
        let sum_ups =
            provider.requests().iter().filter(|request| request["tool_choice"] == "none").count();
        assert!(sum_ups >= 4, "each agent sums up once: {sum_ups}");
        let told = provider
            .requests()
            .iter()
            .any(|request| request["messages"].to_string().contains("there is no tool"));
        assert!(told);
        assert_eq!(provider.refusals(), Vec::<String>::new());
        Ok(())
    })
    .unwrap();
}
