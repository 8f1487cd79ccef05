//! The tools of the desk: notes on a person, the past of a session, questions.

use std::sync::Arc;

use futures_util::StreamExt;
use proto::codec;
use proto::inbox::Inbox;
use proto::transcript::Body;
use proto::turn::{Control, Decision, News};
use serde_json::{Value, json};

use super::client;
use super::events::Events;
use super::provider::{Form, Provider, Script, Step};
use super::rig::Rig;
use crate::metrics::Ended;

/// Makes one call, then says something.
fn calls(name: &'static str, arguments: Value) -> Arc<Script> {
    Arc::new(move |said: &str, calls| match (said.starts_with("please"), calls) {
        (true, 0) => Step { words: vec![], calls: vec![(name, arguments.clone())] },
        _ => Step { words: vec!["The harbour is Marseille."], calls: vec![] },
    })
}

async fn rig(script: Arc<Script>) -> Option<(Rig, Provider)> {
    let provider = Provider::start(script, Events::default()).await;
    let model = client(&provider, Form::OpenAi);
    Some((Rig::start(model, (vec![], |_: &mut _| {})).await?, provider))
}

fn result(bodies: &[Body]) -> String {
    let result = |body: &Body| {
        if let Body::Result { output, .. } = body { Some(output.clone()) } else { None }
    };
    bodies.iter().filter_map(result).next_back().unwrap()
}

#[test]
fn a_note_is_known_in_the_persons_next_conversation() {
    node::process::block_on(async {
        let note = json!({ "action": "add", "text": "is called Ada" });
        let Some((rig, provider)) = rig(calls("memory", note)).await else { return Ok(()) };
        let asked = rig.say("one", "please note it").await;
        assert_eq!(asked.turn(1).0.run().await, Ended::Completed);
        assert_eq!(result(&asked.transcript().await), "- is called Ada");
        let other = rig.say("two", "hello").await;
        assert_eq!(other.turn(1).0.run().await, Ended::Completed);
        let last = provider.requests().pop().unwrap();
        assert!(
            last["messages"][0]["content"].as_str().unwrap().contains("- is called Ada"),
            "{last}"
        );
        Ok(())
    })
    .unwrap();
}

#[test]
fn the_past_of_a_session_is_found_and_not_that_of_others() {
    node::process::block_on(async {
        let query = json!({ "query": "marseille HARBOUR" });
        let Some((rig, _provider)) = rig(calls("session_search", query)).await else {
            return Ok(());
        };
        assert_eq!(rig.say("one", "which harbour?").await.turn(1).0.run().await, Ended::Completed);
        for (chat, found) in [("one", true), ("two", false)] {
            let asked = rig.say(chat, "please look").await;
            assert_eq!(asked.turn(1).0.run().await, Ended::Completed);
            let output = result(&asked.transcript().await);
            assert_eq!(output.contains("The harbour is Marseille."), found, "{chat}: {output}");
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_question_waits_for_its_answer() {
    node::process::block_on(async {
        let question = json!({ "question": "Which colour?", "options": ["red", "blue"] });
        let Some((rig, _provider)) = rig(calls("clarify", question)).await else { return Ok(()) };
        let asked = rig.say("q", "please ask").await;
        let answer = rig.say("q", "2").await;
        let (turn, hands) = asked.turn(1);
        let mut inbox = rig.shared.node.bus.client().subscribe("inbox.>").await?;
        let reply = async {
            while let Some(message) = inbox.next().await {
                if let Ok(Inbox::Report(report)) = codec::decode(&message.payload)
                    && let News::Asked { ask, text, .. } = report.news
                {
                    assert!(text.contains("Which colour?") && text.contains("2. blue"), "{text}");
                    let decision = Decision::Answered { seq: answer.seq };
                    hands.control(&Control::Answer { of: hands.of, ask, decision });
                    return;
                }
            }
        };
        let (ended, ()) = tokio::join!(turn.run(), reply);
        assert_eq!(ended, Ended::Completed);
        assert_eq!(result(&asked.transcript().await), "They answered: blue (option 2)");
        Ok(())
    })
    .unwrap();
}
