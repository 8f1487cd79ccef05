//! The commands that people type: one registry, from which parsing, help and the busy behaviour are made.

use std::fmt::Write as _;

/// Which command it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Name {
    /// Stop the running turn and clear the queue.
    Stop,
    /// Begin a fresh conversation.
    New,
    /// Run after the current turn, without interrupting it.
    Queue,
    /// Give the running turn a hint.
    Steer,
    /// Allow what a turn asked for.
    Approve,
    /// Refuse what a turn asked for.
    Deny,
    /// Say what the session is doing.
    Status,
    /// List the commands.
    Help,
}

/// One command: how it is typed and what it is for.
#[derive(Debug)]
pub struct Spec {
    /// Which one.
    pub name: Name,
    /// What is typed after the slash, the usual form first.
    pub words: &'static [&'static str],
    /// The form of its arguments, for help.
    pub args: &'static str,
    /// One line of help.
    pub help: &'static str,
    /// Whether its arguments are words for the agent.
    pub takes_prompt: bool,
}

/// All commands, in the order in which help shows them.
pub const REGISTRY: &[Spec] = &[
    Spec {
        name: Name::Stop,
        words: &["stop"],
        args: "",
        help: "stop the running turn and clear the queue",
        takes_prompt: false,
    },
    Spec {
        name: Name::Queue,
        words: &["queue", "q"],
        args: "<message>",
        help: "run this after the current turn, without interrupting it",
        takes_prompt: true,
    },
    Spec {
        name: Name::Steer,
        words: &["steer"],
        args: "<hint>",
        help: "give the running turn a hint, without interrupting it",
        takes_prompt: true,
    },
    Spec {
        name: Name::New,
        words: &["new", "reset"],
        args: "",
        help: "begin a fresh conversation",
        takes_prompt: false,
    },
    Spec {
        name: Name::Approve,
        words: &["approve"],
        args: "[id]",
        help: "allow what the agent asked for",
        takes_prompt: false,
    },
    Spec {
        name: Name::Deny,
        words: &["deny"],
        args: "[id] [reason]",
        help: "refuse what the agent asked for",
        takes_prompt: false,
    },
    Spec {
        name: Name::Status,
        words: &["status"],
        args: "",
        help: "say what this session is doing",
        takes_prompt: false,
    },
    Spec {
        name: Name::Help,
        words: &["help", "commands"],
        args: "",
        help: "list the commands",
        takes_prompt: false,
    },
];

/// A command that was recognised, with what stood behind it.
#[derive(Clone, Copy, Debug)]
pub struct Command<'a> {
    /// The command's entry in the registry.
    pub spec: &'static Spec,
    /// The rest of the text, trimmed.
    pub args: &'a str,
}

/// What a text means.
#[derive(Clone, Copy, Debug)]
pub enum Parsed<'a> {
    /// A command of the registry.
    Command(Command<'a>),
    /// Anything else, also a slash and an unknown word: words for the agent.
    Text,
}

/// Recognises a command. `/stop`, `/STOP now` and `/stop@somebot` are commands, and so are the plain words `stop` and
/// `Stop.` alone; `/stopwatch`, `/etc/hosts` and `please stop the music` are text. Ingress has already removed a suffix
/// that names another bot.
#[must_use]
pub fn parse(text: &str) -> Parsed<'_> {
    let text = text.trim();
    let Some(rest) = text.strip_prefix('/') else { return plain_stop(text) };
    let (head, args) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let word = head.split_once('@').map_or(head, |(word, _)| word);
    let spec = REGISTRY.iter().find(|spec| spec.words.iter().any(|w| w.eq_ignore_ascii_case(word)));
    spec.map_or(Parsed::Text, |spec| Parsed::Command(Command { spec, args: args.trim() }))
}

fn plain_stop(text: &str) -> Parsed<'_> {
    let word = text.strip_suffix(['.', '!']).unwrap_or(text);
    let spec = REGISTRY.iter().find(|spec| spec.name == Name::Stop);
    match spec {
        Some(spec) if word.eq_ignore_ascii_case("stop") => {
            Parsed::Command(Command { spec, args: "" })
        }
        _ => Parsed::Text,
    }
}

/// The list of commands, one a line, for `/help`.
#[must_use]
pub fn help() -> String {
    let mut text = String::from("Commands:");
    for spec in REGISTRY {
        let gap = if spec.args.is_empty() { "" } else { " " };
        let _ = write!(text, "\n/{}{gap}{} — {}", spec.words[0], spec.args, spec.help);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Option<Name> {
        match parse(text) {
            Parsed::Command(command) => Some(command.spec.name),
            Parsed::Text => None,
        }
    }

    #[test]
    fn commands_and_text_are_told_apart() {
        for stop in ["/stop", " /STOP ", "/stop@somebot", "/stop now", "stop", "Stop.", " STOP "] {
            assert_eq!(name(stop), Some(Name::Stop), "{stop:?}");
        }
        for text in
            ["please stop the music", "/stopwatch", "/etc/hosts", "/unknown", "", "/", "stop it"]
        {
            assert_eq!(name(text), None, "{text:?}");
        }
        assert_eq!(name("/q x"), Some(Name::Queue));
        assert_eq!(name("/reset"), Some(Name::New));
    }

    #[test]
    fn arguments_are_what_follows() {
        let Parsed::Command(command) = parse("/queue  two  words ") else { panic!("a command") };
        assert_eq!(command.args, "two  words");
    }

    #[test]
    fn no_word_names_two_commands() {
        let mut words: Vec<_> = REGISTRY.iter().flat_map(|spec| spec.words).collect();
        words.sort();
        let all = words.len();
        words.dedup();
        assert_eq!(words.len(), all);
    }
}
