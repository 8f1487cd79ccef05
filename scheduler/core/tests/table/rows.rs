//! The rows: what the core does with an input, in each state and mode.

use std::fmt;

use proto::activity::State;
use proto::command::REGISTRY;
use proto::event::{BusyMode, MediaKind};
use proto::lease::{Effect, Phase};
use proto::outbound::{Kind, Outbound};
use proto::receipt::Decided;
use proto::turn::{Control, Outcome};

use crate::kit::{Story, W1, media};

/// How a session comes into a state.
type Begin = fn() -> Story;

/// The states.
pub(crate) const STATES: [(&str, Begin); 9] = [
    ("idle", Story::new),
    ("collecting", collecting),
    ("starting", starting),
    ("running", running),
    ("asking", asking),
    ("wondering", wondering),
    ("delegating", delegating),
    ("at depth limit", at_depth_limit),
    ("stopping", stopping),
];

fn collecting() -> Story {
    let mut story = Story::new();
    story.shows("u", Some("x"));
    story
}

fn starting() -> Story {
    let mut story = Story::new();
    story.says("a");
    story
}

fn running() -> Story {
    let mut story = starting();
    story.claims(W1, 1, 1);
    story
}

fn asking() -> Story {
    let mut story = running();
    story.asks(W1, 1, 1, 1);
    story
}

fn wondering() -> Story {
    let mut story = running();
    story.wonders(W1, 1, 1, 1);
    story
}

fn delegating() -> Story {
    let mut story = running();
    story.beats_with(W1, (1, 1), State::Delegating, &[]);
    story
}

fn at_depth_limit() -> Story {
    let mut story = running();
    for _ in 0..3 {
        let turn = story.turn().id.get();
        story.says("/interrupt b").finishes(W1, turn, 1, Outcome::Interrupted);
        let turn = story.turn().id.get();
        story.claims(W1, turn, 1);
    }
    story
}

fn stopping() -> Story {
    let mut story = running();
    story.says("/interrupt b");
    story
}

/// The inputs by name, in the order of the table. Commands are named as they are typed.
pub(crate) fn kinds() -> Vec<String> {
    let plain =
        ["text", "photo", "part of the album", "part of another album", "voice", "document"];
    let commands = REGISTRY.iter().map(|spec| {
        let args = if spec.takes_prompt() { " words" } else { "" };
        format!("/{}{args}", spec.words[0])
    });
    plain.into_iter().map(str::to_owned).chain(commands).collect()
}

fn give(story: &mut Story, kind: &str, mode: BusyMode) {
    let (text, file) = match kind {
        "text" => ("words", None),
        "photo" => ("", Some(media(MediaKind::Photo, None))),
        "part of the album" => ("", Some(media(MediaKind::Photo, Some("x")))),
        "part of another album" => ("", Some(media(MediaKind::Photo, Some("y")))),
        "voice" => ("", Some(media(MediaKind::Voice, None))),
        "document" => ("", Some(media(MediaKind::Document, None))),
        command => (command, None),
    };
    story.writes(|event| {
        event.mode = Some(mode);
        event.text = text.into();
        event.media = file.into_iter().collect();
    });
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Result {
    pub(crate) decision: Decided,
    /// The state afterwards.
    pub(crate) state: &'static str,
    /// How many wait then.
    pub(crate) queued: usize,
    /// What goes out, except what is said.
    pub(crate) effects: Vec<&'static str>,
    /// What the worker is told.
    pub(crate) told: Vec<String>,
    /// What is said, its first line.
    pub(crate) said: Option<String>,
}

/// One row: all modes in which the same happens.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) kind: String,
    pub(crate) state: &'static str,
    pub(crate) modes: Vec<BusyMode>,
    pub(crate) result: Result,
}

impl Row {
    /// The modes in a few words.
    pub(crate) fn modes(&self) -> String {
        if self.modes.len() == BusyMode::ALL.len() {
            return "any".into();
        }
        self.modes.iter().map(|mode| mode.name()).collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Result { decision, state, queued, effects, told, said } = &self.result;
        write!(f, "{} | {} | {} -> {decision:?}", self.kind, self.state, self.modes())?;
        write!(f, " | {state}, {queued} queued | {}", effects.join(" "))?;
        write!(f, " | {} | {}", told.join(" "), said.as_deref().unwrap_or_default())
    }
}

fn result(mut story: Story, kind: &str, mode: BusyMode) -> Result {
    // What is said does not depend on what was said a moment before.
    story.policy.ack_interval = 0;
    give(&mut story, kind, mode);
    let effect = |effect: &Effect| match effect {
        Effect::Order => Some("order"),
        Effect::Spawn { .. } => Some("spawn"),
        Effect::Send { outbound } if outbound.kind == Kind::Closed => Some("closed"),
        Effect::Reply { .. } => Some("reply"),
        Effect::Send { .. }
        | Effect::Roster { .. }
        | Effect::Restart { .. }
        | Effect::Cron { .. }
        | Effect::JobEnded { .. } => None,
    };
    let said = |effect: &Effect| match effect {
        Effect::Send { outbound: Outbound { text, .. } }
        | Effect::Roster { outbound: Outbound { text, .. }, .. }
        | Effect::Restart { outbound: Outbound { text, .. } } => {
            text.lines().next().map(str::to_owned)
        }
        Effect::Cron { .. } => Some("what the jobs say".to_owned()),
        Effect::Order | Effect::Spawn { .. } | Effect::Reply { .. } | Effect::JobEnded { .. } => {
            None
        }
    };
    let told = |control: Control| match control {
        Control::Interrupt { reason, .. } => format!("interrupt:{reason:?}"),
        Control::Abandon { .. } => "abandon".into(),
        Control::Steer { .. } => "steer".into(),
        Control::Answer { decision, .. } => format!("answer:{decision:?}"),
    };
    Result {
        decision: story.decision().expect("every message is decided"),
        state: match story.session.lease.phase {
            Phase::Idle => "idle",
            Phase::Collecting { .. } => "collecting",
            Phase::Starting { .. } => "starting",
            Phase::Running { .. } => "running",
            Phase::Stopping { .. } => "stopping",
        },
        queued: story.session.lease.queue.len(),
        effects: story.effects.iter().filter_map(effect).collect(),
        told: story.told().into_iter().map(told).collect(),
        said: story.effects.iter().find_map(said),
    }
}

/// The whole table.
pub(crate) fn all() -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for kind in kinds() {
        for (state, story) in STATES {
            let first = rows.len();
            for mode in BusyMode::ALL {
                let result = result(story(), &kind, mode);
                match rows[first..].iter_mut().find(|row| row.result == result) {
                    Some(row) => row.modes.push(mode),
                    None => rows.push(Row { kind: kind.clone(), state, modes: vec![mode], result }),
                }
            }
        }
    }
    rows
}
