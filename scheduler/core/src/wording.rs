//! Every sentence that the scheduler says to people, in one place; an acknowledgement is derived from the decision itself.

use proto::activity::{Activity, State};
use proto::command::Spec;
use proto::id::AskId;
use proto::receipt::{Decided, QueueReason};
use proto::turn::Decision;

/// What became of a message; `place` is its place in the queue, from 1.
pub(crate) fn decided(decision: Decided, place: usize) -> String {
    let reason = match decision {
        Decided::Started => return "On it.".into(),
        Decided::Interrupted => return "Interrupting; your message is next.".into(),
        Decided::Steered => return "Passed on to the running turn.".into(),
        Decided::Done => return "Done.".into(),
        Decided::Refused => return "Refused.".into(),
        Decided::Queued { reason } => reason,
    };
    let why = match reason {
        QueueReason::Asked => "",
        QueueReason::Starting => " The turn before it is still starting.",
        QueueReason::Stopping => " The turn before it is still stopping.",
        QueueReason::Depth => {
            " Several turns in a row were interrupted, so this one is left to finish; /stop stops it."
        }
        QueueReason::Delegating => " Sub-agents are at work; /stop stops them.",
        QueueReason::Compressing => " The conversation is being compressed.",
        QueueReason::Asking => {
            return format!(
                "A decision is open: /approve or /deny. Your message decides nothing and is queued ({}).",
                ordinal(place)
            );
        }
    };
    format!("Queued ({}).{why}", ordinal(place))
}

fn ordinal(place: usize) -> String {
    if place <= 1 { "next".into() } else { format!("number {place}") }
}

pub(crate) fn queue_full(limit: usize) -> String {
    format!(
        "Not taken: {limit} messages wait already. Wait for an answer, or /stop to clear them, then send it again."
    )
}

pub(crate) fn nothing_runs() -> String {
    "Nothing is running.".into()
}

pub(crate) fn stopped(dropped: usize) -> String {
    format!("Stopped.{}", dropped_text(dropped))
}

pub(crate) fn already_stopping(dropped: usize) -> String {
    format!("Already stopping.{}", dropped_text(dropped))
}

fn dropped_text(dropped: usize) -> String {
    match dropped {
        0 => String::new(),
        1 => " One queued message was dropped.".into(),
        n => format!(" {n} queued messages were dropped."),
    }
}

pub(crate) fn resetting() -> String {
    "Stopping; a fresh conversation follows.".into()
}

pub(crate) fn usage(spec: &Spec) -> String {
    format!("Usage: /{} {} — {}", spec.words[0], spec.args, spec.help)
}

pub(crate) fn nothing_asked() -> String {
    "Nothing waits for a decision.".into()
}

pub(crate) fn not_an_ask(text: &str) -> String {
    format!("{text:?} is not the id of a question; /status lists the open ones.")
}

pub(crate) fn ask_is_closed(ask: AskId) -> String {
    format!("Question {ask} is no longer open; /status lists the open ones.")
}

pub(crate) fn not_yours_to_decide() -> String {
    "Only the person whose message started the turn can decide this.".into()
}

pub(crate) fn decision(decision: &Decision) -> String {
    match decision {
        Decision::Approved => "Approved.".into(),
        Decision::Denied { .. } => "Denied.".into(),
    }
}

pub(crate) fn parked(crashes: u8) -> String {
    format!(
        "This message was given up: its worker died {crashes} times. Send it again to try once more."
    )
}

pub(crate) fn status_idle() -> String {
    "idle; nothing queued".into()
}

pub(crate) fn still_working(activity: &Activity, running_ms: u64) -> String {
    format!("Still working, {} so far: {}.", duration(running_ms), self::activity(activity))
}

pub(crate) fn warning(activity: &Activity, idle_ms: u64, timeout_ms: u64) -> String {
    format!(
        "No progress for {} ({}). In {} it will be stopped. Wait, or /stop.",
        duration(idle_ms),
        self::activity(activity),
        duration(timeout_ms.saturating_sub(idle_ms)),
    )
}

pub(crate) fn timed_out(activity: &Activity, idle_ms: u64) -> String {
    let stuck = match &activity.tool {
        Some(tool) => format!("stuck in the tool {tool}"),
        None => format!("last seen {}", self::activity(activity)),
    };
    format!(
        "Stopped: no progress for {}, {stuck}, at step {} of {}. Send the message again to retry, or /new to begin afresh. The \
         limit is the setting agent.timeout (0 turns it off).",
        duration(idle_ms),
        activity.iteration,
        activity.max_iterations,
    )
}

pub(crate) fn activity(activity: &Activity) -> String {
    let doing = match activity.state {
        State::Preparing => "preparing".into(),
        State::WaitingForModel => "waiting for the model".into(),
        State::Streaming => "the model is answering".into(),
        State::RunningTool => match &activity.tool {
            Some(tool) => format!("running {tool}"),
            None => "running a tool".into(),
        },
        State::WaitingForHuman => "waiting for a decision".into(),
        State::WaitingForQuota => "waiting for the provider's quota".into(),
        State::Compressing => "compressing the conversation".into(),
        State::Delegating => "sub-agents at work".into(),
    };
    if activity.max_iterations == 0 {
        return doing;
    }
    format!("step {} of {}, {doing}", activity.iteration, activity.max_iterations)
}

/// A duration for people: the two largest units at most.
pub(crate) fn duration(ms: u64) -> String {
    let seconds = ms / 1000;
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    match (hours, minutes) {
        (0, 0) => format!("{seconds} s"),
        (0, _) if seconds.is_multiple_of(60) => format!("{minutes} min"),
        (0, _) => format!("{minutes} min {} s", seconds % 60),
        _ => format!("{hours} h {minutes} min"),
    }
}
