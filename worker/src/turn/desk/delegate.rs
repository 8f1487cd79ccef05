//! `delegate`: other agents work on parts of the task, at the same time, each in a conversation of its own. They spend from the
//! turn's budget, their progress is the turn's progress, and a stop reaches all of them, also one that is only just born.

use futures_util::future::join_all;
use proto::transcript::{Body, CallStatus};
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::work::Work;
use super::super::{Ending, Halt};
use super::object;
use crate::tools::{Output, arguments};

/// What each sub-agent is told.
const INSTRUCTIONS: &str = "You work for another agent, on one task, alone: no one can be asked. Do it with the tools, then say what \
                            you found or did, with everything that the other one needs to know, and nothing else.";

#[derive(Clone, Debug, Deserialize)]
struct Task {
    goal: String,
    #[serde(default)]
    context: Option<String>,
}

#[derive(Deserialize)]
struct Call {
    tasks: Vec<Task>,
}

pub(super) fn schema() -> (&'static str, Value) {
    let task = object(
        &["goal"],
        json!({
            "goal": { "type": "string", "description": "what to do, complete in itself" },
            "context": { "type": "string", "description": "what one must know for it" },
        }),
    );
    let about = "Gives tasks to agents that work on them at the same time, each alone and without this conversation. Returns what \
                 they say when all are done.";
    (about, object(&["tasks"], json!({ "tasks": { "type": "array", "items": task } })))
}

/// What became of one task.
struct Outcome {
    status: CallStatus,
    text: String,
}

impl Work<'_> {
    /// Puts sub-agents to work and waits for them.
    pub(super) async fn delegate(&self, call: &Value) -> Output {
        let Call { tasks } = match arguments(call) {
            Ok(call) => call,
            Err(output) => return output,
        };
        let most = self.turn.shared.node.settings.agent.delegates;
        if tasks.is_empty() || tasks.len() > most {
            return Output::failed(format_args!("between 1 and {most} tasks at once"));
        }
        let outcomes = join_all(tasks.iter().map(|task| self.one(task))).await;
        let worst = outcomes.iter().map(|outcome| outcome.status).fold(
            CallStatus::Done,
            |worst, status| match (worst, status) {
                (CallStatus::Interrupted, _) | (_, CallStatus::Interrupted) => {
                    CallStatus::Interrupted
                }
                (CallStatus::Failed, _) | (_, CallStatus::Failed) => CallStatus::Failed,
                _ => CallStatus::Done,
            },
        );
        let share = crate::tools::OUTPUT_BYTES_MAX / outcomes.len();
        let parts = tasks.iter().zip(outcomes).map(|(task, outcome)| {
            let goal = crate::text::start(&task.goal, 100);
            crate::text::shorten(format!("[task: {goal}]\n{}", outcome.text), share)
        });
        Output::new(worst, parts.collect::<Vec<_>>().join("\n\n"))
    }

    async fn one(&self, task: &Task) -> Outcome {
        let number = self.turn.counts.child();
        let mut child = self.child(number);
        let ending = match Box::pin(child.work(task)).await {
            Ok(ending) => ending,
            Err(Halt::Lost | Halt::TooLarge) => Ending::Failed("[it could not go on]".into()),
        };
        let said = child.spoken.text().to_owned();
        self.turn.counts.spent(child.usage);
        match ending {
            Ending::Completed => Outcome { status: CallStatus::Done, text: said },
            Ending::Stopped(_) => {
                Outcome { status: CallStatus::Interrupted, text: format!("{said}\n[interrupted]") }
            }
            Ending::Failed(why) | Ending::Refused(why) => {
                Outcome { status: CallStatus::Failed, text: format!("{said}\n[failed] {why}") }
            }
        }
    }

    /// A sub-agent that has not begun.
    fn child(&self, number: u32) -> Work<'_> {
        let depth = self.depth + 1;
        let shared = &self.turn.shared;
        Work {
            turn: self.turn,
            seat: None,
            stage: None,
            depth,
            limit: shared.node.settings.agent.delegate_iterations,
            // Born after a stop, it is born stopped.
            cut: self.cut.child_token(),
            tracker: self.tracker.child(number),
            specs: shared.specs(depth),
            remote: std::sync::Arc::from([]),
            log: self.log.branch(number),
            spoken: super::super::spoken::Spoken::default(),
            steered: Vec::new(),
            taken: Vec::new(),
            usage: proto::turn::Usage::default(),
            iteration: 0,
            model: self.model.clone(),
            album: super::super::sight::Album::default(),
            room: super::super::compress::Room::default(),
        }
    }

    /// The life of a sub-agent.
    async fn work(&mut self, task: &Task) -> Result<Ending, Halt> {
        if let Some(stop) = self.turn.stopped() {
            return Ok(Ending::Stopped(stop));
        }
        let context =
            task.context.as_deref().map(|words| format!("\n\n{words}")).unwrap_or_default();
        self.log.append(Body::System { text: INSTRUCTIONS.into() }).await?;
        let text = format!("{}{context}", task.goal);
        self.log.append(Body::User { inputs: Vec::new(), text }).await?;
        self.run().await
    }
}
