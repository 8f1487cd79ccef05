//! One message is one trace over all services, with what the agent did in the terms of OpenTelemetry's conventions, received by a
//! real OTLP receiver; and the logs name the trace.

use std::collections::{BTreeMap, BTreeSet};

use proto::member::Role;
use talaria_tests::model::Step;
use talaria_tests::otlp::{Collector, Span};
use talaria_tests::process::Place;
use talaria_tests::{Setup, World};

const SERVICE: &str = env!("CARGO_BIN_EXE_service");

#[tokio::test(flavor = "multi_thread")]
async fn one_message_is_one_trace() {
    let collector = Collector::start().await;
    let setup = Setup::default()
        .set("telemetry.log", "info")
        .set("telemetry.log_format", "json")
        .set("model.openai_api_key", "sk-very-secret");
    let world = World::new(setup).await;
    let place = Place { environment: collector.environment(), ..Place::default() };
    let mut processes = [Role::Scheduler, Role::Worker, Role::Ingress]
        .map(|role| world.spawn_at(role, SERVICE, &place));
    for process in &mut processes {
        process.ready().await;
    }
    let [_scheduler, worker, ingress] = &processes;
    world.model.on("look", [Step::terminal("echo private words"), Step::Say("seen".into())]);
    let chat = world.chat(ingress.address(), "c1");

    let id = chat.say("look").await;
    assert_eq!(chat.reply_to(&id).await, "seen");

    let spans = collector
        .wait_for("the delivery of the reply in a trace", |spans| {
            let reply = |span: &&Span| {
                span.name == "deliver"
                    && span.attributes.get("kind").is_some_and(|kind| kind == "Reply")
            };
            let trace = spans.iter().find(reply)?.trace.clone();
            let of = |name: &str| {
                spans.iter().filter(|span| span.trace == trace && span.name == name).count()
            };
            let whole =
                [("ingress", 1), ("schedule", 2), ("invoke_agent talaria", 1), ("chat fake", 2)];
            let whole = whole.into_iter().all(|(name, count)| of(name) >= count);
            whole.then(|| {
                spans.iter().filter(|span| span.trace == trace).cloned().collect::<Vec<_>>()
            })
        })
        .await;
    hangs_together(&spans);
    says_what_was_done(&spans, &worker.log());
}

/// Every span is below another, up to the one of the message's arrival.
fn hangs_together(spans: &[Span]) {
    let ids: BTreeMap<&str, &Span> = spans.iter().map(|span| (&*span.id, span)).collect();
    let first: Vec<_> = spans.iter().filter(|span| span.parent.is_empty()).collect();
    assert_eq!(first.iter().map(|span| &*span.name).collect::<Vec<_>>(), ["ingress"], "{spans:#?}");
    for span in spans.iter().filter(|span| !span.parent.is_empty()) {
        assert!(ids.contains_key(&*span.parent), "{} hangs in the air: {spans:#?}", span.name);
    }
    let services: BTreeSet<_> = spans.iter().map(|span| &*span.service).collect();
    assert_eq!(
        services,
        BTreeSet::from(["talaria-ingress", "talaria-scheduler", "talaria-worker"])
    );
}

/// The agent's steps are there, and nothing private.
fn says_what_was_done(spans: &[Span], log: &str) {
    let named =
        |name: &str| spans.iter().find(|span| span.name == name).expect("a span of that name");
    let (agent, model, tool) =
        (named("invoke_agent talaria"), named("chat fake"), named("execute_tool terminal"));
    assert_eq!((&model.parent, &tool.parent), (&agent.id, &agent.id), "{spans:#?}");
    let has = |span: &Span, key: &str, value: &str| {
        assert_eq!(span.attributes.get(key).map(String::as_str), Some(value), "{span:#?}");
    };
    has(agent, "gen_ai.operation.name", "invoke_agent");
    has(model, "gen_ai.operation.name", "chat");
    has(model, "gen_ai.provider.name", "openai");
    has(model, "gen_ai.request.model", "fake");
    has(tool, "gen_ai.operation.name", "execute_tool");
    has(tool, "gen_ai.tool.name", "terminal");
    assert!(model.attributes.contains_key("gen_ai.usage.output_tokens"), "{model:#?}");
    assert_eq!(
        agent.attributes["gen_ai.conversation.id"],
        model.attributes["gen_ai.conversation.id"]
    );

    let all = format!("{spans:?}");
    for private in ["private words", "look\"", "sk-very-secret"] {
        assert!(!all.contains(private), "{private:?} is in a trace");
    }
    let line = log.lines().find(|line| line.contains("turn ended")).expect("the end is logged");
    assert!(line.contains(&agent.trace), "the trace's id is not in {line}");
    assert!(line.contains("\"session\""), "the session is not in {line}");
}
