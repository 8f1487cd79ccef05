//! The work of one agent on a turn, and the built-in loop that does it: ask the model, do what it wants, ask again, until it is done,
//! stopped, or out of steps.

use std::sync::Arc;

use proto::id::Seq;
use proto::transcript::{Body, ToolCall};
use proto::turn::{StopReason, Usage};
use tokio_util::sync::CancellationToken;

use super::agent::{self, BuiltIn};
use super::compress::Room;
use super::model_call::Called;
use super::prepare::Seat;
use super::sight::Album;
use super::spoken::{Spoken, Stage};
use super::{Ending, Halt, Stop, Turn};
use crate::activity::Tracker;
use crate::mcp::McpTool;
use crate::models::{Answer, Calls, Model, ToolSpec};
use crate::tools::Tool;
use crate::transcript::Log;

/// The work of one agent: the turn's own, or one that works for it.
pub(super) struct Work<'a> {
    pub(super) turn: &'a Turn,
    /// The place in the session; a sub-agent has none.
    pub(super) seat: Option<Seat>,
    /// Where its words are shown; a sub-agent speaks to its parent only.
    pub(super) stage: Option<Stage>,
    /// How many agents stand above it.
    pub(super) depth: u8,
    /// How many model calls it may make, whatever the turn may.
    pub(super) limit: u32,
    /// When to stop whatever is in flight.
    pub(super) cut: CancellationToken,
    /// Where its progress is noted.
    pub(super) tracker: Tracker,
    pub(super) log: Log,
    pub(super) spoken: Spoken,
    /// The hints that the model has seen.
    pub(super) steered: Vec<Seq>,
    /// The hints that are in the conversation.
    pub(super) taken: Vec<Seq>,
    pub(super) usage: Usage,
    /// Model calls so far.
    pub(super) iteration: u32,
    /// The tools that it has.
    pub(super) specs: Arc<[ToolSpec]>,
    /// Those of them that are elsewhere.
    pub(super) remote: Arc<[Arc<McpTool>]>,
    /// Who answers.
    pub(super) model: Arc<dyn Model>,
    /// The pictures that were fetched.
    pub(super) album: Album,
    /// How full the model's context is.
    pub(super) room: Room,
}

impl Work<'_> {
    /// Has it done, by whoever does such work.
    pub(super) async fn run(&mut self) -> Result<Ending, Halt> {
        if self.is_answered() {
            return Ok(Ending::Completed);
        }
        let turn = self.turn;
        // Sub-agents are our own.
        let agent = if self.depth == 0 { agent::of(turn) } else { Box::new(BuiltIn) };
        agent.carry_out(self).await
    }

    /// Runs the loop to its end.
    pub(super) async fn run_loop(&mut self) -> Result<Ending, Halt> {
        self.reach_servers().await;
        loop {
            if let Some(stop) = self.turn.stopped() {
                return Ok(Ending::Stopped(stop));
            }
            self.take_steers().await?;
            if let Some(stop) = Box::pin(self.make_room()).await? {
                return Ok(Ending::Stopped(stop));
            }
            let calls = self.next_calls();
            let mut answer = match Box::pin(self.call_model(calls)).await? {
                Called::Answered(answer) => answer,
                Called::Stopped(stop) => return self.cut_off(stop).await,
                Called::Failed(error) => {
                    self.store_partial().await?;
                    return Ok(Ending::Failed(error.for_people()));
                }
            };
            self.saw_hints();
            name_apart(&mut answer.calls, self.iteration);
            if calls == Calls::Forbidden {
                answer.calls.clear();
            }
            self.store_answer(&answer).await?;
            if answer.calls.is_empty() {
                return Ok(Ending::Completed);
            }
            let names: Vec<String> = answer.calls.iter().map(|call| call.name.clone()).collect();
            Box::pin(self.run_calls(answer.calls)).await?;
            if self.depth == 0 {
                self.turn.tell_agent_step(self.iteration, &names);
            }
        }
    }

    /// Counts the next model call. When the budget is gone there is one more, to sum up.
    fn next_calls(&mut self) -> Calls {
        let is_free = self.iteration < self.limit && self.turn.budget.take();
        self.iteration += 1;
        self.tracker.called(self.iteration, self.turn.budget.used());
        if is_free { Calls::Allowed } else { Calls::Forbidden }
    }

    /// Adds the tools of MCP servers.
    async fn reach_servers(&mut self) {
        let tools = tokio::select! {
            () = self.cut.cancelled() => return,
            tools = self.turn.shared.servers.tools() => tools,
        };
        if !tools.is_empty() {
            let own = self.specs.iter().cloned();
            self.specs = own.chain(tools.iter().map(|tool| tool.spec())).collect();
            self.remote = tools.into();
        }
    }

    /// Whether an earlier attempt got the whole answer, and only its report is missing.
    fn is_answered(&self) -> bool {
        let is_mark = |body: &Body| matches!(body, Body::Resumed);
        let last = self.log.entries().iter().rev().find(|entry| !is_mark(&entry.body));
        last.is_some_and(|entry| {
            entry.turn == self.turn.order.of.turn
                && matches!(&entry.body, Body::Assistant { calls, partial: false, .. } if calls.is_empty())
        }) && self.iteration > 0
    }

    /// The hints that came and are not in the conversation yet. They are for the turn's own agent.
    pub(super) fn new_steers(&self) -> Vec<Seq> {
        if self.depth > 0 {
            return Vec::new();
        }
        let wishes = self.turn.wishes.borrow();
        let is_new = |seq: &&Seq| !self.taken.contains(seq);
        wishes.steers().iter().filter(is_new).copied().collect()
    }

    /// The model has answered with every hint before it that is in the conversation.
    fn saw_hints(&mut self) {
        self.steered.clone_from(&self.taken);
        if self.depth == 0 {
            self.tracker.saw(&self.steered);
        }
    }

    /// Puts the hints that came into the conversation.
    async fn take_steers(&mut self) -> Result<(), Halt> {
        for seq in self.new_steers() {
            // A hint that may not be given any more waits, and is refused aloud as a turn of its own.
            if let Some(event) = self.turn.input(seq).await?
                && self.turn.may_still(&event).await?
            {
                let text = self.turn.words(&event, &*self.model).await;
                self.log.append(Body::User { inputs: vec![seq], text }).await?;
                self.taken.push(seq);
            }
        }
        Ok(())
    }

    /// Stores what the model had said when it was stopped.
    pub(super) async fn cut_off(&mut self, stop: Stop) -> Result<Ending, Halt> {
        match stop {
            // It leaves no trace, so there is nothing to store.
            Stop::Interrupt(StopReason::Rollback | StopReason::Withdrawn) => {}
            Stop::Interrupt(_) => self.store_partial().await?,
            // The next attempt asks again.
            Stop::HandBack => self.spoken.take_back(),
        }
        Ok(Ending::Stopped(stop))
    }

    /// Has the conversation forget this turn, if that is how it was stopped.
    pub(super) async fn leave_no_trace(&mut self, ending: &Ending) -> Result<(), Halt> {
        if let Ending::Stopped(Stop::Interrupt(StopReason::Rollback | StopReason::Withdrawn)) =
            ending
        {
            let turn = self.turn.order.of.turn;
            self.log.append(Body::Withdrawn { turn, inputs: Vec::new() }).await?;
        }
        Ok(())
    }

    /// Stores words that were cut off, if there are any.
    pub(super) async fn store_partial(&mut self) -> Result<(), Halt> {
        let text = self.spoken.segment().to_owned();
        if !text.is_empty() {
            // The model has begun to answer with these hints before it.
            self.saw_hints();
            self.log.append(Body::Assistant { text, calls: Vec::new(), partial: true }).await?;
        }
        Ok(())
    }

    async fn store_answer(&mut self, answer: &Answer) -> Result<(), Halt> {
        let text = self.spoken.segment().to_owned();
        let calls = answer.calls.clone();
        self.log.append(Body::Assistant { text, calls, partial: false }).await?;
        Ok(())
    }
}

/// Gives every call of an answer an id of its own: strict providers refuse two of one name.
fn name_apart(calls: &mut [ToolCall], iteration: u32) {
    for at in 0..calls.len() {
        let (before, rest) = calls.split_at_mut(at);
        let call = &mut rest[0];
        if call.id.is_empty() || before.iter().any(|other| other.id == call.id) {
            call.id = format!("call_{iteration}_{at}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_calls_of_an_answer_have_one_id() {
        let call =
            |id: &str| ToolCall { id: id.into(), name: "t".into(), arguments: String::new() };
        let mut calls = [call("a"), call("a"), call(""), call("b")];
        name_apart(&mut calls, 3);
        let ids: Vec<_> = calls.iter().map(|call| call.id.as_str()).collect();
        assert_eq!(ids, ["a", "call_3_1", "call_3_2", "b"]);
    }
}
