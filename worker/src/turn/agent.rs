//! Who carries the work of a turn out: the built-in loop, or an external agent.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::external::AcpAgent;
use super::work::Work;
use super::{Ending, Halt, Turn};

/// Something that can carry out the work of a turn. It speaks through the work's words, notes its progress with the work's
/// tracker, stores what it does in the work's log, and ends soon after the work's cut.
pub(super) trait Agent: Send + Sync {
    /// Does the work, to its end.
    fn carry_out<'a>(&'a self, work: &'a mut Work<'_>) -> BoxFuture<'a, Result<Ending, Halt>>;
}

/// The agent that the settings choose.
pub(super) fn of(turn: &Turn) -> Box<dyn Agent + '_> {
    let acp = &turn.shared.node.settings.agent.acp;
    if acp.command.is_empty() { Box::new(BuiltIn) } else { Box::new(AcpAgent(acp)) }
}

/// The built-in loop of model and tools.
pub(super) struct BuiltIn;

impl Agent for BuiltIn {
    fn carry_out<'a>(&'a self, work: &'a mut Work<'_>) -> BoxFuture<'a, Result<Ending, Halt>> {
        work.run_loop().boxed()
    }
}
