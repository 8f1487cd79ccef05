//! A turn of some forty events, stopped or killed at each of them: whatever is left of the conversation, a strict provider takes it.

use std::sync::Arc;

use futures_util::StreamExt;
use proto::codec;
use proto::inbox::Inbox;
use proto::transcript::{Body, CallStatus};
use proto::turn::{Control, Decision, News, Outcome};
use serde_json::json;

use super::client;
use super::events::Events;
use super::provider::{Form, Provider, Step};
use super::rig::{Hands, Rig};
use super::tool::{Manner, Probe};
use crate::metrics::Ended;
use crate::tools::Tool;

/// The first turn looks at two things, does three, dares one, and answers; any other only answers.
fn script(said: &str, calls: usize) -> Step {
    let call = |name| (name, json!({}));
    let of = |words: &[&'static str], calls| Step { words: words.to_vec(), calls };
    match (said.contains("begin"), calls) {
        (true, 0) => of(&["I ", "look."], vec![call("look"), call("look")]),
        (true, 1) => of(&[], vec![call("act"), call("break"), call("act")]),
        (true, 2) => of(&["Now."], vec![call("dare")]),
        (true, _) => of(&["All ", "is ", "done."], vec![]),
        (false, _) => of(&["Good."], vec![]),
    }
}

fn tools(events: &Events) -> Vec<Arc<dyn Tool>> {
    let probe = |name, manner| -> Arc<dyn Tool> {
        Arc::new(Probe { name, manner, events: events.clone() })
    };
    vec![
        probe("look", Manner::Looks),
        probe("act", Manner::Acts),
        probe("dare", Manner::Dares),
        probe("break", Manner::Panics),
    ]
}

/// Approves whatever is asked; being asked is an event.
async fn approve(rig: &Rig, events: Events, hands: Hands) {
    let mut inbox = rig.shared.node.bus.client().subscribe("inbox.>").await.unwrap();
    while let Some(message) = inbox.next().await {
        if let Ok(Inbox::Report(report)) = codec::decode(&message.payload)
            && let News::Asked { ask, .. } = report.news
            && report.of == hands.of
        {
            events.happen("asked a person");
            hands.control(&Control::Answer { of: hands.of, ask, decision: Decision::Approved });
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Blow {
    Interrupt,
    Kill,
}

/// Runs the first turn and deals the blow at event `at`; tells how many events there were, if it was never dealt.
async fn first_turn(
    rig: &Rig,
    events: &Events,
    chat: &str,
    at: usize,
    blow: Blow,
) -> Option<usize> {
    let asked = rig.say(chat, "begin").await;
    let (turn, hands) = asked.turn(1);
    let victim = hands.clone();
    events.each(move |number| {
        if number == at {
            match blow {
                Blow::Interrupt => victim.interrupt(),
                Blow::Kill => victim.fence.lose(),
            }
        }
    });
    let ended = tokio::select! {
        ended = turn.run() => ended,
        () = approve(rig, events.clone(), hands) => unreachable!("the subscription lasts"),
    };
    let seen = events.seen().len();
    match (ended, blow) {
        (Ended::Lost, Blow::Kill) => {
            rig.shared.shelf.take(asked.event.session.sid());
            events.each(|_| {});
            let (turn, hands) = asked.turn(2);
            let ended = tokio::select! {
                ended = turn.run() => ended,
                () = approve(rig, events.clone(), hands) => unreachable!("the subscription lasts"),
            };
            assert_eq!(ended, Ended::Completed, "resumed after {at}");
            let News::Finished { outcome: Outcome::Completed, reply, .. } = asked.news().await
            else {
                panic!("a reply")
            };
            assert!(reply.ends_with("All is done."), "{at}: {reply}");
        }
        (Ended::Interrupted, Blow::Interrupt) => {}
        // The last events may come when the turn has all that it needs.
        (Ended::Completed, _) => return (seen < at).then_some(seen),
        (ended, _) => panic!("{ended:?} after a {blow:?} at {at}"),
    }
    None
}

fn every_event(form: Form, blow: Blow) {
    node::process::block_on(async {
        let events = Events::default();
        let provider = Provider::start(Arc::new(script), events.clone()).await;
        let model = client(&provider, form);
        let Some(rig) = Rig::start(model, (tools(&events), |_: &mut _| {})).await else {
            return Ok(());
        };
        let mut count = None;
        for at in 1.. {
            let chat = format!("{at}");
            count = first_turn(&rig, &events, &chat, at, blow).await;
            events.each(|_| {});
            let next = rig.say(&chat, "thanks").await;
            assert_eq!(next.turn(1).0.run().await, Ended::Completed, "{form:?} {blow:?} at {at}");
            assert_eq!(provider.refusals(), Vec::<String>::new(), "{form:?} {blow:?} at {at}");
            check(&next.transcript().await, at);
            if count.is_some() {
                break;
            }
        }
        assert!(count.is_some_and(|count| count >= 35), "{count:?} events");
        Ok(())
    })
    .unwrap();
}

/// The stored conversation itself: each call has exactly one result before anyone speaks again.
fn check(bodies: &[Body], at: usize) {
    let mut open: Vec<&str> = Vec::new();
    for body in bodies {
        match body {
            Body::Assistant { calls, .. } => {
                assert!(open.is_empty(), "{at}: {bodies:#?}");
                open = calls.iter().map(|call| call.id.as_str()).collect();
            }
            Body::Result { call, .. } => {
                let place = open.iter().position(|id| id == call);
                open.remove(place.unwrap_or_else(|| panic!("{at}: {bodies:#?}")));
            }
            Body::User { .. } => assert!(open.is_empty(), "{at}: {bodies:#?}"),
            Body::System { .. }
            | Body::Resumed
            | Body::Attached { .. }
            | Body::Compressed { .. }
            | Body::Withdrawn { .. } => {}
        }
    }
}

#[test]
fn an_interrupt_anywhere_leaves_a_conversation_that_openai_takes() {
    every_event(Form::OpenAi, Blow::Interrupt);
}

#[test]
fn an_interrupt_anywhere_leaves_a_conversation_that_anthropic_takes() {
    every_event(Form::Anthropic, Blow::Interrupt);
}

#[test]
fn a_turn_that_is_killed_anywhere_is_resumed_to_its_end() {
    every_event(Form::OpenAi, Blow::Kill);
    every_event(Form::Anthropic, Blow::Kill);
}

/// CASES B04: three calls in a row, and a hint during the second.
#[test]
fn a_hint_is_seen_after_the_tool_that_runs_and_the_next_is_not_started() {
    node::process::block_on(async {
        let events = Events::default();
        let script = |said: &str, calls: usize| match (said.contains("begin"), calls) {
            (true, 0) => Step { words: vec![], calls: vec![("act", json!({})); 3] },
            _ => Step { words: vec!["As you wish."], calls: vec![] },
        };
        let provider = Provider::start(Arc::new(script), events.clone()).await;
        let model = client(&provider, Form::OpenAi);
        let Some(rig) = Rig::start(model, (tools(&events), |_: &mut _| {})).await else { return Ok(()) };
        let asked = rig.say("b04", "begin").await;
        let hint = rig.say("b04", "/steer skip the rest").await.seq;
        let (turn, hands) = asked.turn(1);
        let steer = Control::Steer { of: hands.of, seq: hint };
        let seen = events.clone();
        let second = async {
            while seen.seen().iter().filter(|what| **what == "tool begins").count() < 2 {
                tokio::task::yield_now().await;
            }
            hands.control(&steer);
            std::future::pending::<()>().await;
        };
        let ended = tokio::select! { ended = turn.run() => ended, () = second => unreachable!("never ends") };
        assert_eq!(ended, Ended::Completed);
        let begun = events.seen().iter().filter(|what| **what == "tool begins").count();
        assert_eq!(begun, 2, "the third was not started");
        let bodies = asked.transcript().await;
        let statuses: Vec<_> = bodies
            .iter()
            .filter_map(|body| if let Body::Result { status, .. } = body { Some(*status) } else { None })
            .collect();
        assert_eq!(statuses, [CallStatus::Done, CallStatus::Done, CallStatus::Skipped]);
        let News::Finished { steered, .. } = asked.news().await else { panic!("finished") };
        assert_eq!(steered, [hint]);
        assert!(provider.refusals().is_empty(), "{:?}", provider.refusals());
        assert_eq!(provider.requests().len(), 2, "a request for each step");
        assert_eq!(hands.gauge.read().api_call_count, 2);
        Ok(())
    })
    .unwrap();
}
