//! Every sentence that the scheduler says to people, in one place; an acknowledgement is derived from the decision itself.

use proto::activity::{Activity, State};
use proto::command::{REGISTRY, Spec};
use proto::event::{BusyMode, User};
use proto::id::AskId;
use proto::lease::{Ask, Last};
use proto::receipt::{Decided, QueueReason, Refusal};
use proto::session::SessionKey;
use proto::turn::{AskKind, Decision, Scope};

use crate::policy::TimeoutSetting;

/// What became of a message; `place` is its place in the queue, from 1.
pub(crate) fn decided(decision: Decided, place: usize) -> String {
    let Decided::Queued { reason } = decision else {
        return match decision {
            Decided::Interrupted => "Interrupting; your message is next.".into(),
            Decided::RolledBack => "Taking the turn back; your message is next.".into(),
            Decided::Steered => "Passed on to the running turn; you hear when it is seen.".into(),
            Decided::Queued { .. }
            | Decided::Answering
            | Decided::Started
            | Decided::Merged
            | Decided::Collecting
            | Decided::Background
            | Decided::Done
            | Decided::Edited
            | Decided::Withdrawn
            | Decided::TooLate
            | Decided::Refused { .. } => because(decision).into(),
        };
    };
    let why = match reason {
        QueueReason::Asked | QueueReason::Burst => "",
        QueueReason::Starting => " The turn before it is still starting.",
        QueueReason::Stopping => " The turn before it is still stopping.",
        QueueReason::Depth => {
            " Several turns in a row were interrupted, so this one is left to finish; /stop stops it."
        }
        QueueReason::Delegating => " Sub-agents are at work; /stop stops them.",
        QueueReason::Compressing => " The conversation is being compressed.",
        QueueReason::NotSteered => " The running turn cannot take it as a hint.",
        QueueReason::Asking => {
            return format!(
                "A decision is open: /approve or /deny. Your message decides nothing and is queued ({}).",
                ordinal(place)
            );
        }
    };
    format!("Queued ({}).{why}", ordinal(place))
}

/// The reason of a decision, for `/why` and for whoever looks at receipts.
#[must_use]
pub const fn because(decision: Decided) -> &'static str {
    match decision {
        Decided::Started => "nothing ran, so it started a turn",
        Decided::Interrupted => "a turn ran, and the mode says that a message interrupts",
        Decided::RolledBack => "a turn ran, and the mode says that a message takes it back",
        Decided::Steered => "a turn ran, and it was passed on as a hint",
        Decided::Answering => "the running turn had asked, and waited for words",
        Decided::Merged => "it belongs to a message before it",
        Decided::Collecting => "more that belongs to it may follow",
        Decided::Background => "it runs beside the conversation",
        Decided::Done => "it is a command, and was carried out",
        Decided::Edited => "it replaced a message that was waiting",
        Decided::Withdrawn => "its sender took it back",
        Decided::TooLate => "its turn had begun already",
        Decided::Refused { reason: Refusal::Full } => "too many messages waited",
        Decided::Refused { reason: Refusal::Busy } => {
            "a turn ran, and the mode says that no message is taken meanwhile"
        }
        Decided::Refused { reason: Refusal::NotYours } => {
            "the message that it changes is someone else's"
        }
        Decided::Refused { reason: Refusal::Forbidden } => {
            "whoever runs this system does not allow it"
        }
        Decided::Refused { reason: Refusal::NotNow } => {
            "it changes the conversation, and a turn was using it"
        }
        Decided::Queued { reason } => match reason {
            QueueReason::Asked => "a turn ran, and the mode or the command says that it waits",
            QueueReason::Starting => "the turn before it was still starting",
            QueueReason::Stopping => "the turn before it was still stopping",
            QueueReason::Depth => "several turns in a row had been interrupted",
            QueueReason::Delegating => "sub-agents were at work",
            QueueReason::Compressing => "the conversation was being compressed",
            QueueReason::NotSteered => "the running turn could not take it as a hint",
            QueueReason::Burst => "it waited for more of its kind, or for what was being collected",
            QueueReason::Asking => "a decision was open, and words decide nothing",
        },
    }
}

/// `/why`
pub(crate) fn why(last: Option<&Last>) -> String {
    match last {
        None => "Nothing has been decided here yet.".into(),
        Some(Last { message, decision }) => {
            format!("Message {message} was {}: {}.", outcome(*decision), because(*decision))
        }
    }
}

/// What a decision made of a message.
#[must_use]
pub const fn outcome(decision: Decided) -> &'static str {
    match decision {
        Decided::Started => "started",
        Decided::Queued { .. } => "queued",
        Decided::Interrupted => "put next, and the turn interrupted",
        Decided::RolledBack => "put next, and the turn taken back",
        Decided::Steered => "passed on",
        Decided::Answering => "taken as the answer",
        Decided::Merged => "merged",
        Decided::Collecting => "held for a moment",
        Decided::Background => "started beside this",
        Decided::Done => "carried out",
        Decided::Edited => "applied",
        Decided::Withdrawn => "withdrawn",
        Decided::TooLate => "without effect",
        Decided::Refused { .. } => "refused",
    }
}

fn ordinal(place: usize) -> String {
    if place <= 1 { "next".into() } else { format!("number {place}") }
}

pub(crate) fn refused(reason: Refusal, waiting: usize) -> String {
    match reason {
        Refusal::Full => format!(
            "Not taken: {waiting} messages wait already. Wait for an answer, or /stop to clear them, then send it again."
        ),
        Refusal::Busy => {
            "Not taken: a turn is running. Wait for its answer, or /stop it, then send it again."
                .into()
        }
        Refusal::NotYours => "That message is someone else's.".into(),
        Refusal::Forbidden => "This is not allowed here.".into(),
        Refusal::NotNow => "Not now: a turn is running. Wait for it, or /stop it.".into(),
    }
}

pub(crate) fn not_now(spec: &Spec) -> String {
    format!("/{} cannot be done while a turn runs. Wait for it, or /stop it.", spec.words[0])
}

pub(crate) fn command_in_command(inner: &str) -> String {
    format!("{inner:?} is a command and cannot run later or elsewhere; send it by itself.")
}

pub(crate) fn background() -> String {
    "Started beside the conversation; its answer comes here. /agents lists what runs.".into()
}

pub(crate) fn restarting() -> String {
    "Restarting: what runs is handed over and goes on afterwards, and messages are answered then."
        .into()
}

pub(crate) fn resumed() -> String {
    "The conversation goes on where it was stopped.".into()
}

pub(crate) fn steer_seen() -> String {
    "The agent has seen your hint.".into()
}

/// To whoever waits for the answer to a message that has become part of another one's turn.
pub(crate) fn merged() -> String {
    "This was taken together with the message before it, whose answer answers both.".into()
}

/// The same for words that went into the running turn.
pub(crate) fn went_into_turn(answers: bool) -> String {
    if answers {
        "The running turn has taken this as the answer to its question.".into()
    } else {
        "The running turn has taken this as a hint.".into()
    }
}

pub(crate) fn no_such_mode(word: &str) -> String {
    let modes: Vec<_> = BusyMode::ALL.iter().map(|mode| mode.name()).collect();
    format!("There is no mode {word:?}. Choose one of {}, or default.", modes.join(", "))
}

pub(crate) fn busy_mode(chosen: Option<BusyMode>, default: BusyMode) -> String {
    match chosen {
        Some(mode) => {
            format!("While a turn runs, a message is taken as: {} (chosen here).", mode.name())
        }
        None => format!(
            "While a turn runs, a message is taken as: {} (the default here).",
            default.name()
        ),
    }
}

pub(crate) fn yolo(on: bool) -> String {
    if on {
        "From now on everything that the agent asks here is approved without asking you. /yolo off ends it.".into()
    } else {
        "The agent asks before it does something dangerous.".into()
    }
}

pub(crate) fn whoami(user: &User, session: &SessionKey) -> String {
    let name = user.name.as_deref().map(|name| format!(" ({name})")).unwrap_or_default();
    format!("You are {}{name}. This session is {session}.", user.id)
}

pub(crate) fn no_home() -> String {
    "There is no home channel here: this chat exists only while someone is connected to it.".into()
}

pub(crate) fn nothing_runs() -> String {
    "Nothing is running.".into()
}

pub(crate) fn stopped(dropped: usize, suspended: bool) -> String {
    let after = if suspended {
        " The next message begins a fresh conversation; /resume first to keep this one."
    } else {
        ""
    };
    format!("Stopped.{}{after}", dropped_text(dropped))
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

/// What was decided on so many asks; `lasts` if the like of one of them can be approved for longer.
pub(crate) fn decision(decision: &Decision, count: usize, lasts: bool) -> String {
    let done = match decision {
        Decision::ApprovedFor { scope } if lasts => {
            let until = match scope {
                Scope::Session => "in this session, until /new",
                Scope::Always => "from you, from now on",
            };
            return format!("Approved, and the like of it {until}.");
        }
        Decision::ApprovedFor { .. } => "Approved",
        Decision::Approved => "Approved",
        Decision::Denied { .. } => "Denied",
        Decision::Answered { .. } => "Answered",
    };
    if count == 1 { format!("{done}.") } else { format!("{done}, all {count}.") }
}

/// What a turn waits for.
pub(crate) fn open_asks(asks: &[Ask]) -> String {
    let of = |kind| {
        let ids = asks.iter().filter(move |ask| ask.kind == kind).map(|ask| ask.id.to_string());
        ids.collect::<Vec<_>>().join(", ")
    };
    let (decisions, questions) = (of(AskKind::Approval), of(AskKind::Question));
    let mut lines = Vec::new();
    if !decisions.is_empty() {
        lines.push(format!("waits for a decision: {decisions} — /approve or /deny"));
    }
    if !questions.is_empty() {
        lines.push(format!("waits for an answer: {questions} — your next message is it"));
    }
    lines.join("\n")
}

pub(crate) fn parked(crashes: u8) -> String {
    format!(
        "This message was given up: its worker died {crashes} times. Send it again to try once more."
    )
}

pub(crate) fn status_idle(suspended: bool) -> String {
    let stopped =
        if suspended { "; the conversation was stopped, /resume goes on with it" } else { "" };
    format!("idle; nothing queued{stopped}")
}

pub(crate) fn status_collecting(parts: usize) -> String {
    format!("waiting for more; {parts} so far")
}

pub(crate) fn still_working(activity: Option<&Activity>, running_ms: u64) -> String {
    let doing = activity.map_or_else(String::new, |doing| format!(": {}", self::activity(doing)));
    format!("Still working, {} so far{doing}.", duration(running_ms))
}

pub(crate) fn warning(activity: Option<&Activity>, idle_ms: u64, timeout_ms: u64) -> String {
    let doing = activity.map_or_else(String::new, |doing| format!(" ({})", self::activity(doing)));
    format!(
        "No progress for {}{doing}. In {} it will be stopped. Wait, /extend <minutes> to give it more time, or /stop.",
        duration(idle_ms),
        duration(timeout_ms.saturating_sub(idle_ms)),
    )
}

/// Where it was stuck, for how long, at which step, and what to do.
pub(crate) fn timed_out(
    activity: Option<&Activity>,
    idle_ms: u64,
    setting: TimeoutSetting,
) -> String {
    let idle = duration(idle_ms);
    let Some(activity) = activity else {
        return format!(
            "Stopped after {idle}: its worker says nothing of its progress. {}",
            what_next(setting)
        );
    };
    let stuck = match activity.state {
        State::Preparing => "It was stuck while it was being prepared".into(),
        State::WaitingForModel | State::Streaming => {
            "It was waiting for the model's provider, which did not answer".into()
        }
        State::WaitingForQuota => "It was waiting for the provider's quota".into(),
        State::RunningTool => match &activity.current_tool {
            Some(tool) => format!("It was stuck in the tool {tool}"),
            None => "It was stuck in a tool".into(),
        },
        State::WaitingForHuman => "It was waiting for a decision".into(),
        State::Compressing => "It was stuck while the conversation was compressed".into(),
        State::Delegating => "Its sub-agents made no progress".into(),
    };
    let on = match activity.last_activity_desc.as_str() {
        "" => String::new(),
        words => format!(" ({words})"),
    };
    let Activity { api_call_count, max_iterations, .. } = activity;
    let what_next = if activity.state == State::Preparing {
        "/retry tries again, /new begins afresh. The limit is the setting agent.setup_timeout."
            .into()
    } else {
        what_next(setting)
    };
    format!(
        "Stopped: no progress for {idle}. {stuck}{on}, at step {api_call_count} of {max_iterations}. {what_next}"
    )
}

fn what_next(setting: TimeoutSetting) -> String {
    let name = match setting {
        TimeoutSetting::Agent => "agent.timeout",
        TimeoutSetting::Platform => "agent.platform.<name>.timeout",
        TimeoutSetting::Pool => "agent.pool.<name>.timeout",
        TimeoutSetting::Cron => {
            return "The limit of scheduled jobs is the setting cron.timeout (0 turns it off); /cron shows when it runs next."
                .into();
        }
    };
    format!(
        "/retry tries again, /new begins afresh; /extend <minutes> gives a running turn more time. The limit is the setting \
         {name} (0 turns it off)."
    )
}

pub(crate) fn extended(minutes: u64, limit_ms: u64) -> String {
    let limit = duration(limit_ms);
    match minutes {
        0 => format!("This turn is stopped after {limit} without progress, as usual."),
        _ => format!(
            "This turn is stopped only after {limit} without progress. /extend 0 takes that back."
        ),
    }
}

pub(crate) fn is_extended(by_ms: u64) -> String {
    format!("may be without progress {} longer than usual", duration(by_ms))
}

pub(crate) fn no_timeout() -> String {
    "There is no limit here: turns are never stopped for making no progress.".into()
}

/// The usage of a command by its word.
pub(crate) fn usage_of(word: &str) -> String {
    let spec = REGISTRY.iter().find(|spec| spec.words.contains(&word));
    spec.map(usage).unwrap_or_default()
}

/// What a turn does and how it gets on, for `/status` and `/agents`.
pub(crate) fn summary(activity: &Activity, idle_ms: u64) -> String {
    let mut text = self::activity(activity);
    let words = activity.last_activity_desc.as_str();
    if !words.is_empty() && !text.contains(words) {
        text += &format!(" ({words})");
    }
    if activity.budget_max > 0 {
        text += &format!("; {} of {} model calls", activity.budget_used, activity.budget_max);
    }
    text + &format!("; last progress {} ago", duration(idle_ms))
}

pub(crate) fn activity(activity: &Activity) -> String {
    let doing = match activity.state {
        State::Preparing => "preparing".into(),
        State::WaitingForModel => "waiting for the model".into(),
        State::Streaming => "the model is answering".into(),
        State::RunningTool => match &activity.current_tool {
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
    format!("step {} of {}, {doing}", activity.api_call_count, activity.max_iterations)
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
