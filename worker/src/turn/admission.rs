//! Whether those whose messages a turn takes up may still talk to the agent: a message may have waited for hours, and its person
//! may have been shut out in the meantime. Each attempt asks anew, by the rules and decisions of that moment.

use futures_util::future::try_join_all;
use node::identities;
use proto::access::{Denied, Grounds};
use proto::event::MessageEvent;
use proto::id::Seq;

use super::{Ending, Halt, Summary, Turn};
use crate::fence::Lost;
use crate::transcript::patiently;

const REFUSED: &str = "This was not taken up: whoever wrote it may not talk to me any more.";

/// The inputs that a turn may answer.
pub(super) struct Admitted {
    pub(super) inputs: Vec<Seq>,
    /// Their messages, as far as they are still stored.
    pub(super) events: Vec<MessageEvent>,
    /// How many it may not.
    left_out: usize,
}

/// Sorts the inputs of a turn; or says how the turn ends when there is none that it may answer.
pub(super) async fn admitted(turn: &Turn) -> Result<Result<Admitted, Ending>, Halt> {
    let all = &turn.order.inputs;
    let asked = all.iter().map(|seq| async move {
        let event = turn.input(*seq).await?;
        Ok::<_, Lost>(match event {
            Some(event) if !turn.may_still(&event).await? => None,
            // What is gone is for the preparation to say.
            event => Some((*seq, event)),
        })
    });
    let (inputs, events): (Vec<Seq>, Vec<_>) =
        try_join_all(asked).await?.into_iter().flatten().unzip();
    if inputs.is_empty() && !all.is_empty() {
        tracing::info!("a turn is refused: its people may not talk to the agent any more");
        return Ok(Err(Ending::Refused(REFUSED.into())));
    }
    let left_out = all.len() - inputs.len();
    Ok(Ok(Admitted { inputs, events: events.into_iter().flatten().collect(), left_out }))
}

impl Admitted {
    /// The summary of the turn, which also says what was left out of it.
    pub(super) fn told(&self, summary: Summary) -> Summary {
        let told = match self.left_out {
            0 => return summary,
            1 => "[One message was left out".to_owned(),
            many => format!("[{many} messages were left out"),
        };
        let reply =
            format!("{told}: whoever wrote it may not talk to me any more.]\n\n{}", summary.reply);
        Summary { reply, ..summary }
    }
}

impl Turn {
    /// Whether the sender of a message may still talk to the agent.
    pub(super) async fn may_still(&self, event: &MessageEvent) -> Result<bool, Lost> {
        if event.admission.grounds == Grounds::Proof {
            return Ok(true);
        }
        let bus = &self.shared.node.bus;
        let judged = patiently(&self.fence, || identities::may_still(bus, event)).await?;
        Ok(match judged {
            Ok(()) => true,
            Err(Denied::Revoked | Denied::Nameless | Denied::Unknown) => false,
        })
    }
}
