//! Jobs as a session sees them: the `/cron` of its chat, and the runs that take place in a job's own session.

use proto::id::OutboundId;
use proto::job::{self, JobEnd};
use proto::lease::{Effect, Turn, Waiting};
use proto::outbound::Kind;
use proto::receipt::Decided;
use proto::turn::{Outcome, StopReason};

use super::wording::{is_silent, no_answer};
use crate::session::Step;

/// What the last word of a turn is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LastWord {
    /// It is delivered.
    Reply,
    /// It says that there is nothing to report: nothing is sent.
    Silent,
    /// There is none where there should be one.
    Missing,
}

impl Step<'_> {
    /// `/cron`: what is wanted is done when the answer is sent, since jobs are not part of the session.
    pub(crate) fn cron(&mut self, waiting: &Waiting) -> Decided {
        let id = OutboundId::of_input(waiting.seq, "ack");
        let outbound = self.outbound(id, Kind::Notice, &waiting.origin, String::new());
        self.lease().effects.push(Effect::Cron { seq: waiting.seq, outbound });
        Decided::Done
    }

    /// Weighs what a turn said last. Only the run of a job may be silent, and only there silence must be meant.
    pub(crate) fn last_word(&mut self, turn: &Turn, outcome: Outcome, reply: &str) -> LastWord {
        if !self.session.is_of_job() || outcome != Outcome::Completed {
            return LastWord::Reply;
        }
        if reply.trim().is_empty() {
            self.say_of_turn(turn, "no-answer", Kind::Notice, no_answer());
            LastWord::Missing
        } else if is_silent(reply) {
            LastWord::Silent
        } else {
            LastWord::Reply
        }
    }

    /// Tells the job, if the turn was a run of one, that the run is over.
    pub(crate) fn job_ended(&mut self, turn: &Turn, end: JobEnd) {
        let due_ms = job::run_due_ms(&turn.origin.message);
        if let Some(due_ms) = due_ms.filter(|_| self.session.is_of_job()) {
            self.lease().effects.push(Effect::JobEnded { due_ms, end });
        }
    }
}

/// How a run ended.
pub(crate) const fn end_of_job(
    outcome: Outcome,
    stopped: Option<StopReason>,
    word: LastWord,
) -> JobEnd {
    match (stopped, outcome, word) {
        (Some(StopReason::Timeout), Outcome::Interrupted, _) => JobEnd::TimedOut,
        (_, Outcome::Interrupted, _) => JobEnd::Stopped,
        (_, Outcome::Failed | Outcome::Refused, _) | (_, Outcome::Completed, LastWord::Missing) => {
            JobEnd::Failed
        }
        (_, Outcome::Completed, LastWord::Silent) => JobEnd::Silent,
        (_, Outcome::Completed, LastWord::Reply) => JobEnd::Answered,
    }
}
