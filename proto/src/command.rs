//! The commands that people type: one registry, from which parsing, help and the busy behaviour are made.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Which command it is, by what it does while a turn runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Name {
    /// It takes the session in hand, and ends what runs.
    Control(Control),
    /// Its words go to the agent, in the way that it names.
    Message(Message),
    /// It changes the conversation: a turn of its own when nothing runs, refused otherwise.
    Conversation(Conversation),
    /// It is carried out at once and disturbs nothing.
    Bypass(Bypass),
}

/// Commands that take the session in hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Control {
    /// Stop the running turn and clear the queue.
    Stop,
    /// Begin a fresh conversation.
    New,
}

/// Commands whose words go to the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Message {
    /// Run after the current turn, without interrupting it.
    Queue,
    /// Give the running turn a hint.
    Steer,
    /// Interrupt the running turn, whatever the mode says.
    Interrupt,
    /// Run beside this conversation.
    Background,
}

/// Commands that change the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Conversation {
    /// Go back to the conversation that was set aside.
    Resume,
    /// Answer the last message again.
    Retry,
    /// Forget the last turns.
    Undo,
    /// Shorten the conversation.
    Compress,
    /// Show or choose the model.
    Model,
}

/// Commands that disturb nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Bypass {
    /// Allow what a turn asked for.
    Approve,
    /// Refuse what a turn asked for.
    Deny,
    /// Choose what a message does to a running turn.
    Busy,
    /// Approve everything without asking.
    Yolo,
    /// Give the running turn more time without progress.
    Extend,
    /// Say what the session is doing.
    Status,
    /// List what runs in this chat.
    Agents,
    /// List, make and change scheduled jobs.
    Cron,
    /// Say why the last decision was made.
    Why,
    /// Say who the sender is.
    Whoami,
    /// Make the chat its platform's home channel. Ingress carries it out.
    SetHome,
    /// Have every process finish what it does, and start again.
    Restart,
    /// Nothing: what platforms send when a chat is opened.
    Start,
    /// List the commands.
    Help,
}

/// Who may use a command. Ingress checks it, where it knows who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Who {
    /// Everyone who may talk to the agent.
    Anyone,
    /// Whom the operator has named.
    Admin,
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
    /// Who may use it.
    pub who: Who,
    /// One line of help; empty for one that help does not show.
    pub help: &'static str,
}

impl Spec {
    /// Whether a turn of this session answers it, when nothing stands in the way.
    #[must_use]
    pub const fn leads_a_turn(&self) -> bool {
        match self.name {
            Name::Control(Control::New) | Name::Conversation(_) => true,
            Name::Message(message) => !matches!(message, Message::Background),
            Name::Control(Control::Stop) | Name::Bypass(_) => false,
        }
    }

    /// Whether its arguments are words for the agent.
    #[must_use]
    pub const fn takes_prompt(&self) -> bool {
        matches!(self.name, Name::Message(_))
    }
}

const fn spec(
    name: Name,
    words: &'static [&'static str],
    args: &'static str,
    help: &'static str,
) -> Spec {
    Spec { name, words, args, who: Who::Anyone, help }
}

/// All commands, in the order in which help shows them.
pub const REGISTRY: &[Spec] = &[
    spec(Name::Control(Control::Stop), &["stop"], "", "stop the running turn and clear the queue"),
    spec(
        Name::Message(Message::Queue),
        &["queue", "q"],
        "<message>",
        "run this after the current turn",
    ),
    spec(
        Name::Message(Message::Steer),
        &["steer"],
        "<hint>",
        "give the running turn a hint, without interrupting it",
    ),
    spec(
        Name::Message(Message::Interrupt),
        &["interrupt"],
        "<message>",
        "interrupt the running turn with this",
    ),
    spec(
        Name::Message(Message::Background),
        &["background", "bg"],
        "<message>",
        "run this beside the conversation",
    ),
    spec(Name::Control(Control::New), &["new", "reset"], "", "begin a fresh conversation"),
    spec(
        Name::Conversation(Conversation::Resume),
        &["resume"],
        "",
        "go back to the conversation before this one",
    ),
    spec(Name::Conversation(Conversation::Retry), &["retry"], "", "answer the last message again"),
    spec(
        Name::Conversation(Conversation::Undo),
        &["undo"],
        "[n]",
        "forget the last turn, or the last n",
    ),
    spec(
        Name::Conversation(Conversation::Compress),
        &["compress", "compact"],
        "",
        "shorten the conversation",
    ),
    spec(
        Name::Conversation(Conversation::Model),
        &["model"],
        "[name|default]",
        "show or choose the model of this session",
    ),
    spec(
        Name::Bypass(Bypass::Approve),
        &["approve"],
        "[id|all] [session|always]",
        "allow what the agent asked for, once or also later",
    ),
    spec(
        Name::Bypass(Bypass::Deny),
        &["deny"],
        "[id|all] [reason]",
        "refuse what the agent asked for",
    ),
    spec(
        Name::Bypass(Bypass::Busy),
        &["busy"],
        "[interrupt|queue|steer|collect|reject|rollback|default]",
        "show or choose what a message does while a turn runs",
    ),
    spec(
        Name::Bypass(Bypass::Yolo),
        &["yolo"],
        "[on|off]",
        "approve whatever the agent asks, without asking you",
    ),
    spec(
        Name::Bypass(Bypass::Extend),
        &["extend"],
        "<minutes>",
        "let the running turn be without progress for longer; 0 takes it back",
    ),
    spec(Name::Bypass(Bypass::Status), &["status"], "", "say what this session is doing"),
    spec(Name::Bypass(Bypass::Agents), &["agents", "tasks"], "", "list what runs in this chat"),
    spec(
        Name::Bypass(Bypass::Cron),
        &["cron", "jobs"],
        "[list|add <schedule> <message>|remove|pause|resume|run|stop <id>]",
        "list, make and change what is done at set times",
    ),
    spec(Name::Bypass(Bypass::Why), &["why"], "", "say why the last decision was made"),
    spec(Name::Bypass(Bypass::Whoami), &["whoami"], "", "say who you are here"),
    spec(
        Name::Bypass(Bypass::SetHome),
        &["sethome"],
        "",
        "make this chat the one for what is sent to no particular chat",
    ),
    Spec {
        name: Name::Bypass(Bypass::Restart),
        words: &["restart"],
        args: "",
        who: Who::Admin,
        help: "start the fleet again, one process at a time, while it works (administrators)",
    },
    spec(Name::Bypass(Bypass::Help), &["help", "commands"], "", "list the commands"),
    spec(Name::Bypass(Bypass::Start), &["start"], "", ""),
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

/// Recognises a command. `/stop` and `/STOP now` are commands, and so are the plain words `stop` and `Stop.` alone;
/// `/stopwatch`, `/etc/hosts` and `please stop the music` are text. So is `/stop@somebot`: ingress has removed the name from
/// what is meant for us (see [`addressed`]), and what is left is meant for someone else.
#[must_use]
pub fn parse(text: &str) -> Parsed<'_> {
    let text = text.trim();
    let Some(rest) = text.strip_prefix('/') else { return plain_stop(text) };
    let (word, args) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    spec_of(word).map_or(Parsed::Text, |spec| Parsed::Command(Command { spec, args: args.trim() }))
}

/// The text without our own name behind its command: `/stop@us now` says `/stop now`. Everything else stays as it was
/// written, above all a command for another bot. For ingress, which alone knows what we are called on a platform.
#[must_use]
pub fn addressed<'a>(text: &'a str, own_name: &str) -> Cow<'a, str> {
    let slash = text.trim_start().strip_prefix('/');
    let head = slash.and_then(|rest| rest.split(char::is_whitespace).next()).unwrap_or_default();
    match head.split_once('@') {
        Some((word, name)) if name.eq_ignore_ascii_case(own_name) && spec_of(word).is_some() => {
            Cow::Owned(text.replacen(head, word, 1))
        }
        Some(_) | None => Cow::Borrowed(text),
    }
}

fn spec_of(word: &str) -> Option<&'static Spec> {
    REGISTRY.iter().find(|spec| spec.words.iter().any(|w| w.eq_ignore_ascii_case(word)))
}

fn plain_stop(text: &str) -> Parsed<'_> {
    let word = text.strip_suffix(['.', '!']).unwrap_or(text);
    let spec = REGISTRY.iter().find(|spec| spec.name == Name::Control(Control::Stop));
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
    for spec in REGISTRY.iter().filter(|spec| !spec.help.is_empty()) {
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
        for stop in ["/stop", " /STOP ", "/stop now", "stop", "Stop.", " STOP "] {
            assert_eq!(name(stop), Some(Name::Control(Control::Stop)), "{stop:?}");
        }
        let texts = [
            "please stop the music",
            "/stopwatch",
            "/stop@otherbot",
            "stop@thisbot",
            "/etc/hosts",
            "/unknown",
            "",
            "/",
            "stop it",
        ];
        for text in texts {
            assert_eq!(name(text), None, "{text:?}");
        }
        assert_eq!(name("/q x"), Some(Name::Message(Message::Queue)));
        assert_eq!(name("/reset"), Some(Name::Control(Control::New)));
    }

    #[test]
    fn a_command_with_our_name_is_ours_and_with_another_name_is_text() {
        for (text, left) in [
            ("/stop@thisbot", "/stop"),
            ("/STOP@ThisBot", "/STOP"),
            (" /steer@thisbot use @thisbot", " /steer use @thisbot"),
            ("/stop@otherbot", "/stop@otherbot"),
            ("/stop@thisbotx", "/stop@thisbotx"),
            ("/stop@", "/stop@"),
            ("/stop@thisbot@thisbot", "/stop@thisbot@thisbot"),
            ("/unknown@thisbot", "/unknown@thisbot"),
            ("stop", "stop"),
            ("ask @thisbot to /stop", "ask @thisbot to /stop"),
            ("", ""),
        ] {
            assert_eq!(addressed(text, "thisbot"), left, "{text:?}");
        }
        let of = |text| name(&addressed(text, "thisbot"));
        assert_eq!(of("/stop@thisbot"), Some(Name::Control(Control::Stop)));
        assert_eq!(of("/q@THISBOT x"), Some(Name::Message(Message::Queue)));
        assert_eq!(of("/stop@otherbot"), None);
    }

    #[test]
    fn arguments_are_what_follows() {
        let Parsed::Command(command) = parse("/queue  two  words ") else { panic!("a command") };
        assert_eq!(command.args, "two  words");
    }

    #[test]
    fn every_command_is_recognised_by_each_of_its_words() {
        for spec in REGISTRY {
            for word in spec.words {
                assert_eq!(name(&format!("/{word}")), Some(spec.name));
                assert_eq!(name(&format!("/{word}x")), None);
            }
        }
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
