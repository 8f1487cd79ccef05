//! What an operator wants of one account, ready to be asked. Pure: no clock, no I/O.

use node::settings::{Access, Bots, ChannelAccess, PlatformAccess, UnauthorizedDm};
use proto::access::{self, Applicant, Rules};
use proto::command::{Bypass, Command, Name, Parsed, Spec, Who};
use proto::event::BusyMode;
use proto::session::ChatKind;
use regex::{Regex, RegexBuilder};

use super::arrival::{Arrival, Deed, Place};

/// How many commands are named to someone who may not use another.
const NAMED_MAX: usize = 12;

/// The wishes for one account of a platform.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Who may talk to the agent.
    pub rules: Rules,
    /// The account's own mail domain: within it, the part before the `@` names a person.
    pub home_domain: Option<String>,
    /// What someone unknown gets.
    pub unauthorized: UnauthorizedDm,
    /// Whether the adapter itself tells its people at once what was refused, so that no notice is needed.
    pub answers_itself: bool,
    /// Everything else.
    pub(super) settings: PlatformAccess,
    patterns: Vec<Regex>,
    /// A command that is for administrators here, and elsewhere for anyone.
    pub(super) reserved: Option<Name>,
}

/// Why something is not for the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unheeded {
    /// It comes from a group and neither mentions the agent nor answers it.
    NotAddressed,
    /// Its channel is one that is not listened to.
    OtherChannel,
    /// A bot sent it.
    Bot,
}

impl Policy {
    /// The policy that the settings have for an account. What cannot be used in them is left out, and said in the second part.
    #[must_use]
    pub fn new(platform: &str, account: &str, access: &Access) -> (Self, Vec<String>) {
        let settings = access.of(platform, account);
        let users = settings.allowed_users.iter().chain(&access.allowed_users);
        let rules = Rules {
            allow_all: settings.allow_all,
            allow_all_platforms: access.allow_all,
            users: users.map(|user| access::normal(platform, user)).collect(),
            groups: settings.allowed_groups.clone(),
            roles: settings.allowed_roles.clone(),
        };
        Self::with(platform, rules, settings)
    }

    /// The policy of something that has its own rules.
    #[must_use]
    pub fn with(platform: &str, rules: Rules, settings: PlatformAccess) -> (Self, Vec<String>) {
        let mut wrong = Vec::new();
        let patterns = settings
            .mention_patterns
            .iter()
            .filter_map(|pattern| {
                let built = RegexBuilder::new(pattern).case_insensitive(true).build();
                built
                    .map_err(|error| wrong.push(format!("mention pattern {pattern:?}: {error}")))
                    .ok()
            })
            .collect();
        let known = |word: &&String| {
            *word != "*"
                && !matches!(proto::command::parse(&format!("/{word}")), Parsed::Command(_))
        };
        let commands = settings.user_commands.iter().chain(&settings.group_user_commands);
        wrong.extend(commands.filter(known).map(|word| format!("there is no command {word:?}")));
        // Mail comes from anywhere, and an answer to a forged sender reaches someone else.
        let default =
            if platform == "email" { UnauthorizedDm::Ignore } else { UnauthorizedDm::Pair };
        let unauthorized = settings.unauthorized_dm.unwrap_or(default);
        (
            Self {
                rules,
                home_domain: None,
                unauthorized,
                answers_itself: false,
                settings,
                patterns,
                reserved: None,
            },
            wrong,
        )
    }

    /// Whether nobody can be let in, and nobody can ask.
    #[must_use]
    pub fn shuts_everyone_out(&self) -> bool {
        !self.rules.allow_someone() && self.unauthorized == UnauthorizedDm::Ignore
    }

    /// All forms of a sender's ids.
    pub(super) fn names(&self, platform: &str, arrival: &Arrival) -> Vec<String> {
        let sender = &arrival.sender;
        let ids = std::iter::once(&sender.id).chain(&sender.aliases).map(String::as_str);
        access::names(platform, ids, self.home_domain.as_deref())
    }

    /// A sender as the rules see them.
    pub(super) fn applicant<'a>(arrival: &'a Arrival, names: &'a [String]) -> Applicant<'a> {
        Applicant {
            names,
            roles: &arrival.sender.roles,
            kind: arrival.place.kind,
            chat: &arrival.place.chat,
        }
    }

    /// Whether something is for the agent; `engaged` tells whether it has taken part in this thread before.
    pub(super) fn heeds(&self, arrival: &Arrival, engaged: bool) -> Result<(), Unheeded> {
        let Self { settings, .. } = self;
        let mentioned = arrival.attention.mentioned || self.is_called(&arrival.text);
        match settings.allow_bots {
            Bots::None if arrival.sender.is_bot => return Err(Unheeded::Bot),
            Bots::Mentions if arrival.sender.is_bot && !mentioned => return Err(Unheeded::Bot),
            Bots::None | Bots::Mentions | Bots::All => {}
        }
        let place = &arrival.place;
        if place.kind == ChatKind::Dm {
            return Ok(());
        }
        let only = &settings.only_channels;
        if lists(&settings.ignored_channels, place) || !only.is_empty() && !lists(only, place) {
            return Err(Unheeded::OtherChannel);
        }
        let is_pressed = matches!(arrival.deed, Deed::Pressed);
        // The platform does not say again whom a message was for that is taken back.
        let is_withdrawn = matches!(arrival.deed, Deed::Withdrew { .. });
        let is_command = arrival.text.trim_start().starts_with('/')
            && matches!(proto::command::parse(&arrival.text), Parsed::Command(_));
        let in_thread = place.thread.is_some() || place.kind == ChatKind::Thread;
        let is_free = !settings.require_mention
            || lists(&settings.free_channels, place)
            || (in_thread && engaged && !settings.thread_require_mention);
        if mentioned
            || arrival.attention.replied
            || is_pressed
            || is_withdrawn
            || is_command
            || is_free
        {
            Ok(())
        } else {
            Err(Unheeded::NotAddressed)
        }
    }

    /// Whether the outcome of [`heeds`](Self::heeds) may depend on what has happened in a thread.
    pub(super) const fn asks_for_threads(&self) -> bool {
        self.settings.require_mention && !self.settings.thread_require_mention
    }

    fn is_called(&self, text: &str) -> bool {
        self.patterns.iter().any(|pattern| pattern.is_match(text))
    }

    /// Whether someone may use a command in a chat.
    pub(super) fn may_use(&self, spec: &Spec, kind: ChatKind, names: &[String]) -> bool {
        let (admins, commands) = self.tier(kind);
        let is_admin = admins.iter().any(|admin| admin == "*" || names.contains(admin));
        let always =
            matches!(spec.name, Name::Bypass(Bypass::Help | Bypass::Whoami | Bypass::Start));
        let listed =
            || commands.iter().any(|word| word == "*" || spec.words.contains(&word.as_str()));
        let is_free = spec.who == Who::Anyone && self.reserved != Some(spec.name);
        is_admin || (is_free && (admins.is_empty() || always || listed()))
    }

    /// What someone is told who may not use a command.
    pub(super) fn may_instead(
        &self,
        command: &Command<'_>,
        kind: ChatKind,
        names: &[String],
    ) -> String {
        let others: Vec<String> = proto::command::REGISTRY
            .iter()
            .filter(|spec| !spec.help.is_empty() && self.may_use(spec, kind, names))
            .take(NAMED_MAX)
            .map(|spec| format!("/{}", spec.words[0]))
            .collect();
        let word = command.spec.words[0];
        format!("Only administrators may use /{word} here. You may use {}.", others.join(", "))
    }

    /// The administrators of a chat, and what the others may use there.
    fn tier(&self, kind: ChatKind) -> (&[String], &[String]) {
        let PlatformAccess { admins, user_commands, group_admins, group_user_commands, .. } =
            &self.settings;
        if kind == ChatKind::Dm {
            let commands =
                if user_commands.is_empty() { group_user_commands } else { user_commands };
            return (admins, commands);
        }
        let own_admins = if group_admins.is_empty() { admins } else { group_admins };
        let own = if group_user_commands.is_empty() { user_commands } else { group_user_commands };
        (own_admins, own)
    }

    /// What a message does to a running turn in a chat.
    pub(super) fn mode(&self, place: &Place) -> Option<BusyMode> {
        self.channel(place).and_then(|channel| channel.busy_mode).or(self.settings.busy_mode)
    }

    /// What holds for a chat: for its topic, else for itself, else for the channel that it belongs to.
    pub(super) fn channel(&self, place: &Place) -> Option<&ChannelAccess> {
        names_of(place).find_map(|name| self.settings.channel.get(&name))
    }
}

fn lists(list: &[String], place: &Place) -> bool {
    names_of(place).any(|name| list.iter().any(|entry| entry == "*" || *entry == name))
}

/// The names under which settings may speak of a chat, the narrowest first.
fn names_of(place: &Place) -> impl Iterator<Item = String> {
    let topic = place.thread.as_ref().map(|thread| format!("{}/{thread}", place.chat));
    topic.into_iter().chain([place.chat.clone()]).chain(place.parent.clone())
}
