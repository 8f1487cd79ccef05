//! A turn that an external agent carries out: a small one, as a child process that speaks the protocol.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use node::settings::Settings;
use proto::codec;
use proto::inbox::Inbox;
use proto::transcript::Body;
use proto::turn::{Control, Decision, News};

use super::client;
use super::events::Events;
use super::provider::{Form, Provider, Step};
use super::rig::Rig;
use crate::metrics::Ended;

/// Says hello, asks for permission when the prompt has "dare", and waits to be cancelled when it has "wait".
pub(super) const AGENT: &str = r#"
import json, os, sys
able, kept = sys.argv[1] if len(sys.argv) > 1 else "", "sessions.json"
def sessions(): return json.load(open(kept)) if os.path.exists(kept) else {}
def keep(all): json.dump(all, open(kept, "w"))
current = "s"
def send(message): print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
def say(text): send({"method": "session/update", "params": {"sessionId": current, "update":
    {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}}})
prompt = None
for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    if method == "initialize":
        send({"id": id, "result": {"protocolVersion": 1, "agentCapabilities":
            {"loadSession": able == "load", "sessionCapabilities": {"resume": {}} if able == "resume" else {}}}})
    elif method == "session/new":
        all = sessions()
        current = "s%d" % len(all)
        keep({**all, current: []})
        send({"id": id, "result": {"sessionId": current}})
    elif method in ("session/load", "session/resume"):
        current = message["params"]["sessionId"]
        if method == "session/" + able and current in sessions():
            for text in sessions()[current] if able == "load" else []: say(text)
            send({"id": id, "result": {}})
        else:
            send({"id": id, "error": {"code": -32602, "message": "no such session"}})
    elif method == "session/prompt":
        prompt, text = id, message["params"]["prompt"][0]["text"]
        all = sessions()
        if current in all: keep({**all, current: all[current] + [text]})
        say("Hello, ")
        if "dare" in text:
            send({"id": 99, "method": "session/request_permission", "params": {"sessionId": current,
                "toolCall": {"toolCallId": "t", "title": "delete it all"}, "options": [
                    {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
                    {"optionId": "no", "name": "No", "kind": "reject_once"}]}})
        elif "deaf" in text or "wait" in text:
            deaf = "deaf" in text
        elif "recall" in text:
            say("%s: %s" % (current, " ".join(" | ".join(sessions()[current]).split())))
            send({"id": prompt, "result": {"stopReason": "end_turn"}})
        else:
            say("you said: " + text)
            send({"id": prompt, "result": {"stopReason": "end_turn"}})
    elif method == "session/cancel" and not deaf:
        say("stopping.")
        send({"id": prompt, "result": {"stopReason": "cancelled"}})
    elif id == 99:
        say(message["result"]["outcome"]["optionId"])
        send({"id": prompt, "result": {"stopReason": "end_turn"}})
"#;

async fn rig() -> Option<Rig> {
    rig_of("").await
}

/// One that can take up its sessions again by `load`, by `resume`, or not at all.
async fn rig_of(able: &str) -> Option<Rig> {
    let able = able.to_owned();
    if std::process::Command::new("python3").arg("--version").output().is_err() {
        let _ = std::io::Write::write_all(&mut std::io::stderr(), b"skipped: no python3\n");
        return None;
    }
    let script = |_: &str, _| Step { words: vec!["not asked"], calls: vec![] };
    let provider = Provider::start(Arc::new(script), Events::default()).await;
    let external = move |settings: &mut Settings| {
        settings.agent.acp.command = "python3".into();
        settings.agent.acp.args = vec!["-c".into(), AGENT.into(), able];
    };
    Rig::start(client(&provider, Form::OpenAi), (vec![], external)).await
}

#[test]
fn its_words_are_the_reply_and_it_knows_what_was_said_before() {
    node::process::block_on(async {
        let Some(rig) = rig().await else { return Ok(()) };
        let first = rig.say("x", "one").await;
        assert_eq!(first.turn(1).0.run().await, Ended::Completed);
        let News::Finished { reply, .. } = first.news().await else { panic!("finished") };
        assert_eq!(reply, "Hello, you said: one");
        let second = rig.say("x", "two").await;
        assert_eq!(second.turn(1).0.run().await, Ended::Completed);
        let News::Finished { reply, .. } = second.news().await else { panic!("finished") };
        assert!(reply.contains("PERSON: one") && reply.ends_with("[Now]\ntwo"), "{reply}");
        Ok(())
    })
    .unwrap();
}

async fn reply(rig: &Rig, chat: &str, text: &str) -> String {
    let asked = rig.say(chat, text).await;
    assert_eq!(asked.turn(1).0.run().await, Ended::Completed);
    let News::Finished { reply, .. } = asked.news().await else { panic!("finished") };
    reply
}

#[test]
fn it_takes_up_its_session_again_where_it_can() {
    node::process::block_on(async {
        for able in ["load", "resume"] {
            let Some(rig) = rig_of(able).await else { return Ok(()) };
            assert_eq!(reply(&rig, "x", "one").await, "Hello, you said: one");
            // What the session that is loaded repeats is not heard; only the news is told.
            assert_eq!(reply(&rig, "x", "recall").await, "Hello, s0: one | recall", "{able}");
            assert_eq!(reply(&rig, "y", "recall").await, "Hello, s1: recall", "{able}");
            // A session that is gone is replaced by one that is told everything.
            let folder = rig.shared.node.settings.worker.workspace.clone();
            std::fs::write(folder.join("sessions.json"), "{}")?;
            let heard = reply(&rig, "x", "recall").await;
            assert!(heard.contains("s0: [The conversation so far] PERSON: one"), "{able}: {heard}");
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn its_requests_for_permission_are_questions() {
    node::process::block_on(async {
        let Some(rig) = rig().await else { return Ok(()) };
        for (decision, expected) in
            [(Decision::Approved, "Hello, yes"), (Decision::Denied { reason: None }, "Hello, no")]
        {
            let asked = rig.say("x", "dare").await;
            let (turn, hands) = asked.turn(1);
            let mut inbox = rig.shared.node.bus.client().subscribe("inbox.>").await?;
            let reply = async {
                while let Some(message) = inbox.next().await {
                    if let Ok(Inbox::Report(report)) = codec::decode(&message.payload)
                        && let News::Asked { ask, text, .. } = report.news
                    {
                        assert!(text.contains("delete it all"), "{text}");
                        let decision = decision.clone();
                        return hands.control(&Control::Answer { of: hands.of, ask, decision });
                    }
                }
            };
            let (ended, ()) = tokio::join!(turn.run(), reply);
            assert_eq!(ended, Ended::Completed);
            let News::Finished { reply, .. } = asked.news().await else { panic!("finished") };
            assert_eq!(reply, expected);
        }
        Ok(())
    })
    .unwrap();
}

/// One that listens stops at once; one that does not is killed two seconds later.
#[test]
fn a_stop_is_told_to_it_and_then_enforced() {
    node::process::block_on(async {
        let Some(rig) = rig().await else { return Ok(()) };
        let limits = [
            ("wait", Duration::ZERO, Duration::from_millis(1500)),
            ("deaf", Duration::from_secs(2), Duration::from_secs(6)),
        ];
        for (text, least, most) in limits {
            let asked = rig.say("x", text).await;
            let (turn, hands) = asked.turn(1);
            let stop = async {
                while hands.gauge.read().state != proto::activity::State::Streaming {
                    tokio::task::yield_now().await;
                }
                hands.interrupt();
                Instant::now()
            };
            let (ended, stopped) = tokio::join!(turn.run(), stop);
            let took = stopped.elapsed();
            assert_eq!(ended, Ended::Interrupted, "{text}");
            assert!(took >= least && took < most, "{text}: {took:?}");
            let last = asked.transcript().await.pop();
            assert!(matches!(last, Some(Body::Assistant { partial: true, .. })), "{last:?}");
        }
        Ok(())
    })
    .unwrap();
}
