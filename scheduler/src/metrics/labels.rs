//! The labels of what is counted, and all values that each can have.

use proto::activity::State;
use proto::lease::{Effect, Phase};
use proto::outbound::Kind;
use proto::receipt::{Decided, End, Fate, QueueReason, Refusal, Stage};
use proto::turn::Outcome;
use scheduler_core::Input;

pub(super) const INPUTS: &[&str] = &[
    "message",
    "refused",
    "edit",
    "withdrawal",
    "report",
    "hangup",
    "unreadable",
    "claim",
    "beat",
    "worker_gone",
    "adopt",
    "tick",
];
pub(super) const DECISIONS: &[(&str, &[&str])] = &[
    ("started", NO_REASON),
    ("interrupted", NO_REASON),
    ("steered", NO_REASON),
    ("answering", NO_REASON),
    ("done", NO_REASON),
    ("rolled_back", NO_REASON),
    ("merged", NO_REASON),
    ("collecting", NO_REASON),
    ("background", NO_REASON),
    ("edited", NO_REASON),
    ("withdrawn", NO_REASON),
    ("too_late", NO_REASON),
    ("refused", &["full", "busy", "not_now", "not_yours", "forbidden"]),
    (
        "queued",
        &[
            "not_steered",
            "burst",
            "asked",
            "starting",
            "stopping",
            "depth",
            "delegating",
            "compressing",
            "asking",
        ],
    ),
];
const NO_REASON: &[&str] = &["none"];
pub(super) const CLAIMS: &[&str] = &["granted", "denied"];
pub(super) const WRITES: &[&str] = &["done", "refused", "unknown"];
pub(super) const EFFECTS: &[&str] =
    &["order", "spawn", "job_ended", "reply", "notice", "ack", "question", "closed"];
pub(super) const ENDS: &[&str] =
    &["completed", "interrupted", "refused", "failed", "released", "withdrawn", "parked"];
pub(super) const FATES: &[&str] = &[
    "answered",
    "interrupted",
    "merged",
    "steered",
    "cleared",
    "withdrawn",
    "refused",
    "done",
    "parked",
];
pub(super) const RETRIES: &[&str] = &["evicted", "handed_back"];

/// A decision, and why.
pub(super) fn decision(decision: Decided) -> [&'static str; 2] {
    let refused = |why| ["refused", why];
    let queued = |why| ["queued", why];
    match decision {
        Decided::Started => ["started", "none"],
        Decided::Interrupted => ["interrupted", "none"],
        Decided::Steered => ["steered", "none"],
        Decided::Answering => ["answering", "none"],
        Decided::Done => ["done", "none"],
        Decided::RolledBack => ["rolled_back", "none"],
        Decided::Merged => ["merged", "none"],
        Decided::Collecting => ["collecting", "none"],
        Decided::Background => ["background", "none"],
        Decided::Edited => ["edited", "none"],
        Decided::Withdrawn => ["withdrawn", "none"],
        Decided::TooLate => ["too_late", "none"],
        Decided::Refused { reason: Refusal::Full } => refused("full"),
        Decided::Refused { reason: Refusal::Busy } => refused("busy"),
        Decided::Refused { reason: Refusal::NotNow } => refused("not_now"),
        Decided::Refused { reason: Refusal::NotYours } => refused("not_yours"),
        Decided::Refused { reason: Refusal::Forbidden } => refused("forbidden"),
        Decided::Queued { reason } => queued(match reason {
            QueueReason::Asked => "asked",
            QueueReason::Starting => "starting",
            QueueReason::Stopping => "stopping",
            QueueReason::Depth => "depth",
            QueueReason::Delegating => "delegating",
            QueueReason::Compressing => "compressing",
            QueueReason::Asking => "asking",
            QueueReason::NotSteered => "not_steered",
            QueueReason::Burst => "burst",
        }),
    }
}

pub(super) const fn end(end: End) -> &'static str {
    match end {
        End::Reported { outcome: Outcome::Completed } => "completed",
        End::Reported { outcome: Outcome::Interrupted } => "interrupted",
        End::Reported { outcome: Outcome::Refused } => "refused",
        End::Reported { outcome: Outcome::Failed } => "failed",
        End::Released { .. } => "released",
        End::Withdrawn => "withdrawn",
        End::Parked => "parked",
    }
}

pub(super) const fn fate(fate: Fate) -> &'static str {
    match fate {
        Fate::Answered => "answered",
        Fate::Interrupted => "interrupted",
        Fate::Merged => "merged",
        Fate::Steered => "steered",
        Fate::Cleared => "cleared",
        Fate::Withdrawn => "withdrawn",
        Fate::Refused => "refused",
        Fate::Done => "done",
        Fate::Parked => "parked",
    }
}

/// What a session with something in it is doing.
pub(super) const PHASES: &[&str] = &["collecting", "starting", "running", "stopping"];

pub(super) const fn phase(phase: &Phase) -> Option<&'static str> {
    match phase {
        Phase::Idle => None,
        Phase::Collecting { .. } => Some("collecting"),
        Phase::Starting { .. } => Some("starting"),
        Phase::Running { .. } => Some("running"),
        Phase::Stopping { .. } => Some("stopping"),
    }
}

/// What a running turn is busy with.
pub(super) fn states() -> Vec<&'static str> {
    State::ALL.map(State::name).to_vec()
}

/// For how long a turn has not advanced: at least so long, and less than the next.
pub(super) const IDLE: &[&str] = &["0s", "10s", "1m", "5m", "15m", "30m"];

pub(super) const fn idle(ms: u64) -> &'static str {
    match ms / 1000 {
        0..10 => "0s",
        10..60 => "10s",
        60..300 => "1m",
        300..900 => "5m",
        900..1800 => "15m",
        _ => "30m",
    }
}

/// What the person of a long turn is told.
pub(super) const STAGES: &[&str] = &["still_working", "warned", "timed_out"];

pub(super) const fn stage(stage: Stage) -> &'static str {
    match stage {
        Stage::StillWorking => "still_working",
        Stage::Warned => "warned",
        Stage::TimedOut => "timed_out",
    }
}

/// How far an interrupt has come.
pub(super) const STEPS: &[&str] = &["sent", "stopped"];

/// Why a partition is no longer decided for here.
pub(super) const RELEASES: &[&str] = &["handed_over", "cut_off", "lost", "failed"];

pub(super) const fn input(input: &Input) -> &'static str {
    match input {
        Input::Message { .. } => "message",
        Input::Refused { .. } => "refused",
        Input::Edit { .. } => "edit",
        Input::Withdrawal { .. } => "withdrawal",
        Input::Report { .. } => "report",
        Input::Hangup { .. } => "hangup",
        Input::Unreadable { .. } => "unreadable",
        Input::Claim(_) => "claim",
        Input::Beat { .. } => "beat",
        Input::WorkerGone(_) => "worker_gone",
        Input::Adopt(_) => "adopt",
        Input::Tick => "tick",
    }
}

pub(super) const fn effect(effect: &Effect) -> &'static str {
    match effect {
        Effect::Order => "order",
        Effect::Reply { .. } => "reply",
        Effect::Spawn { .. } => "spawn",
        Effect::Roster { .. } | Effect::Restart { .. } | Effect::Cron { .. } => "notice",
        Effect::JobEnded { .. } => "job_ended",
        Effect::Send { outbound } => match outbound.kind {
            Kind::Reply => "reply",
            Kind::Notice => "notice",
            Kind::Ack => "ack",
            Kind::Question => "question",
            Kind::Closed => "closed",
        },
    }
}
