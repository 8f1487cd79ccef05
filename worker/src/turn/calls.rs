//! The tool calls of one answer: run, bounded, and each given exactly one result, whatever happens.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::join_all;
use proto::activity::State;
use proto::transcript::{Body, CallStatus, ToolCall};
use serde_json::Value;
use tracing::Instrument;

use super::approval::Verdict;
use super::desk::Desk;
use super::work::Work;
use super::{Halt, Stop};
use crate::mcp;
use crate::tools::danger::Danger;
use crate::tools::{Effort, Output, Tool};
use crate::transcript::CALL_AGAIN;

/// The result of a call that a person's hint came before.
const NEWS_FIRST: &str = "[not run: the person has said something meanwhile; read it, then decide whether this is still \
                          needed]";

/// Who runs a call.
enum Which {
    /// A tool of the worker.
    Tool(Arc<dyn Tool>),
    /// One that belongs to the turn.
    Desk(Desk),
}

/// A call that can be run.
struct Ready {
    which: Which,
    name: String,
    arguments: Value,
}

impl Ready {
    fn is_parallel(&self) -> bool {
        match &self.which {
            Which::Tool(tool) => tool.is_read_only(),
            Which::Desk(desk) => desk.is_parallel(),
        }
    }

    fn limit(&self) -> Option<Duration> {
        match &self.which {
            Which::Tool(tool) => tool.limit(&self.arguments),
            Which::Desk(_) => None,
        }
    }

    fn danger(&self) -> Option<Danger> {
        match &self.which {
            Which::Tool(tool) => tool.danger(&self.arguments),
            Which::Desk(desk) => desk.danger(),
        }
    }

    fn summary(&self) -> String {
        match &self.which {
            Which::Tool(tool) => tool.summary(&self.arguments),
            Which::Desk(desk) => desk.summary(&self.arguments),
        }
    }

    const fn delegates(&self) -> bool {
        matches!(self.which, Which::Desk(Desk::Delegate))
    }
}

impl Work<'_> {
    /// Runs the calls and stores their results, in order.
    pub(super) async fn run_calls(&mut self, calls: Vec<ToolCall>) -> Result<(), Halt> {
        let ready: Vec<Result<Ready, Output>> = calls.iter().map(|call| self.ready(call)).collect();
        let is_harmless =
            |ready: &Result<Ready, Output>| ready.as_ref().map_or(true, Ready::is_parallel);
        if calls.len() > 1 && ready.iter().all(is_harmless) {
            return self.run_together(calls, ready).await;
        }
        for (call, ready) in calls.into_iter().zip(ready) {
            let output = match self.turn.stopped() {
                Some(stop) => skipped(stop),
                // What was said may make the rest needless, so the model hears it first.
                None if !self.new_steers().is_empty() => {
                    Output::new(CallStatus::Skipped, NEWS_FIRST)
                }
                None => self.run_one(ready).await?,
            };
            self.store_result(call, output).await?;
        }
        Ok(())
    }

    /// Runs calls that change nothing at the same time.
    async fn run_together(
        &mut self,
        calls: Vec<ToolCall>,
        ready: Vec<Result<Ready, Output>>,
    ) -> Result<(), Halt> {
        self.turn.fence.check()?;
        let names = calls.iter().map(|call| call.name.as_str()).collect::<Vec<_>>().join(", ");
        if ready.iter().flatten().any(Ready::delegates) {
            self.tracker.enter(State::Delegating, &names);
        } else {
            let limits = ready.iter().flatten().map(Ready::limit);
            self.tracker.tool(&calls[0].name, &names, limits.flatten().max());
        }
        let outputs = {
            let agent = &*self;
            let runs = ready.into_iter().map(|ready| async {
                match ready {
                    Ok(ready) => agent.execute(ready).await,
                    Err(output) => output,
                }
            });
            join_all(runs).await
        };
        for (call, output) in calls.into_iter().zip(outputs) {
            self.store_result(call, output).await?;
        }
        Ok(())
    }

    async fn run_one(&self, ready: Result<Ready, Output>) -> Result<Output, Halt> {
        let ready = match ready {
            Ok(ready) => ready,
            Err(output) => return Ok(output),
        };
        let summary = ready.summary();
        if let Some(danger) = ready.danger() {
            match Box::pin(self.ask_approval(&summary, &danger)).await? {
                Verdict::Approved => {}
                Verdict::Refused(why) => return Ok(Output::new(CallStatus::Skipped, why)),
                Verdict::Stopped(stop) => return Ok(skipped(stop)),
            }
        }
        self.turn.fence.check()?;
        if ready.delegates() {
            self.tracker.enter(State::Delegating, &summary);
        } else {
            self.tracker.tool(&ready.name, &summary, ready.limit());
        }
        let output = self.execute(ready).await;
        self.tracker.touch();
        Ok(output)
    }

    /// Finds the tool and reads the arguments; the error is for the model.
    fn ready(&self, call: &ToolCall) -> Result<Ready, Output> {
        let Some(which) = self.which(&call.name) else {
            let names = self.specs.iter().map(|spec| &*spec.name).collect::<Vec<_>>().join(", ");
            let why = format!("there is no tool {:?}; there are {names}", call.name);
            return Err(Output::failed(why));
        };
        let text = if call.arguments.trim().is_empty() { "{}" } else { &call.arguments };
        match serde_json::from_str(text) {
            Ok(arguments) => Ok(Ready { which, name: call.name.clone(), arguments }),
            Err(error) => Err(Output::failed(format_args!("the arguments are not JSON: {error}"))),
        }
    }

    fn which(&self, name: &str) -> Option<Which> {
        let deepest = self.turn.shared.node.settings.agent.delegate_depth;
        let is_meant = |desk: &Desk| desk.name() == name && desk.is_for(self.depth, deepest);
        if let Some(desk) = Desk::ALL.into_iter().find(is_meant) {
            return Some(Which::Desk(desk));
        }
        let remote = self.remote.iter().find(|tool| tool.name() == name);
        let remote = remote.map(|tool| -> Arc<dyn Tool> { Arc::clone(tool) as _ });
        self.turn.shared.tools.find(name).or(remote).map(Which::Tool)
    }

    /// What its calls run under.
    pub(super) fn effort(&self) -> Effort {
        let session = self.turn.order.of.sid;
        Effort { cut: self.cut.clone(), tracker: self.tracker.clone(), session }
    }

    async fn execute(&self, ready: Ready) -> Output {
        let Ready { which, name, arguments } = ready;
        let is_remote = self.remote.iter().any(|tool| tool.name() == name);
        let label = if is_remote { mcp::LABEL } else { &name };
        let span = tracing::info_span!("tool", name);
        node::trace::describe(
            &span,
            format!("execute_tool {name}"),
            [
                ("gen_ai.operation.name", "execute_tool".into()),
                ("gen_ai.tool.name", name.clone().into()),
                ("gen_ai.tool.type", "function".into()),
            ],
        );
        let effort = self.effort();
        let started = Instant::now();
        let run = match &which {
            Which::Tool(tool) => tool.run(&arguments, &effort),
            Which::Desk(desk) => self.at_desk(*desk, &arguments),
        };
        let run = AssertUnwindSafe(run).catch_unwind();
        let output = run.instrument(span.clone()).await.unwrap_or_else(|_| {
            tracing::error!(tool = name.as_str(), "a tool panicked");
            Output::failed("the tool broke down; whether it did anything is not known")
        });
        if output.status == CallStatus::Failed {
            node::trace::attribute(&span, "error.type", "tool_error");
        }
        let seconds = started.elapsed().as_secs_f64();
        self.turn.shared.metrics.tool.with_label_values(&[label]).observe(seconds);
        output
    }

    async fn store_result(&mut self, call: ToolCall, output: Output) -> Result<(), Halt> {
        let Output { status, mut text, heard } = output;
        if status == CallStatus::Interrupted && self.turn.stopped() == Some(Stop::HandBack) {
            text = format!("{text} {CALL_AGAIN}");
        }
        let inputs = Vec::from_iter(heard);
        self.log.append(Body::Result { call: call.id, output: text, status, inputs }).await?;
        // They are in the conversation now, and no hint any more.
        self.taken.extend(heard);
        Ok(())
    }
}

/// The result of a call that was never started.
fn skipped(stop: Stop) -> Output {
    let why = match stop {
        Stop::Interrupt(_) => "[not run: the turn was interrupted]".to_owned(),
        Stop::HandBack => format!("[not run] {CALL_AGAIN}"),
    };
    Output::new(CallStatus::Skipped, why)
}
