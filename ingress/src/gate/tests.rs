//! The gate's policy in stories: what is for the agent, and who may use which command. (Who may talk at all is in
//! `proto/tests/access.rs`, and the gate as a whole, with a broker, in `tests/tests/access.rs`.)

use node::settings::{Access, Bots, ChannelAccess, PlatformAccess, UnauthorizedDm};
use proto::access::Rules;
use proto::command::{Parsed, Spec};
use proto::event::BusyMode;
use proto::session::ChatKind;

use super::*;

fn policy(settings: PlatformAccess) -> Policy {
    let (policy, wrong) = Policy::with("telegram", Rules::default(), settings);
    assert!(wrong.is_empty(), "{wrong:?}");
    policy
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn arrival(text: &str, place: Place) -> Arrival {
    Arrival {
        id: "1".into(),
        deed: Deed::Wrote,
        place,
        sender: Sender { id: "u".into(), ..Sender::default() },
        attention: Attention::default(),
        text: text.into(),
        media: Vec::new(),
        reply_to: None,
        history: Vec::new(),
    }
}

fn group(chat: &str, thread: Option<&str>) -> Place {
    let thread = thread.map(str::to_owned);
    Place { chat: chat.into(), kind: ChatKind::Group, thread, ..Place::default() }
}

fn dm() -> Place {
    Place { chat: "u".into(), ..Place::default() }
}

#[test]
fn in_a_group_only_what_addresses_the_agent_is_for_it() {
    let policy = policy(PlatformAccess {
        mention_patterns: words(&["\\bhermes\\b"]),
        free_channels: words(&["free", "mixed/open"]),
        ignored_channels: words(&["quiet", "mixed/closed"]),
        ..PlatformAccess::default()
    });
    let heeds = |arrival: &Arrival| policy.heeds(arrival, false);
    let no = Err(Unheeded::NotAddressed);
    let elsewhere = Err(Unheeded::OtherChannel);
    let mentioned = Attention { mentioned: true, replied: false };
    let replied = Attention { mentioned: false, replied: true };
    for (text, place, attention, outcome) in [
        ("hello all", group("c", None), Attention::default(), no),
        ("hello all", group("c", Some("t")), Attention::default(), no),
        ("hello you", group("c", None), mentioned, Ok(())),
        ("yes", group("c", None), replied, Ok(())),
        ("ask Hermes!", group("c", None), Attention::default(), Ok(())),
        ("hermeses", group("c", None), Attention::default(), no),
        ("/stop", group("c", None), Attention::default(), Ok(())),
        ("/stop@otherbot", group("c", None), Attention::default(), no),
        ("/unknown", group("c", None), Attention::default(), no),
        ("stop", group("c", None), Attention::default(), no),
        ("stop", group("c", None), replied, Ok(())),
        ("hello all", group("free", None), Attention::default(), Ok(())),
        ("hello all", group("free", Some("t")), Attention::default(), Ok(())),
        ("hello all", group("mixed", Some("open")), Attention::default(), Ok(())),
        ("hello all", group("mixed", Some("other")), Attention::default(), no),
        ("hello you", group("mixed", Some("closed")), mentioned, elsewhere),
        ("/stop", group("quiet", None), mentioned, elsewhere),
        ("hello", dm(), Attention::default(), Ok(())),
    ] {
        let arrival = Arrival { attention, ..arrival(text, place) };
        assert_eq!(heeds(&arrival), outcome, "{arrival:?}");
    }
    let pressed = Arrival { deed: Deed::Pressed, ..arrival("/approve", group("c", None)) };
    assert_eq!(heeds(&pressed), Ok(()));
    let taken_back = Deed::Withdrew { message: "0".into() };
    assert_eq!(heeds(&Arrival { deed: taken_back, ..arrival("", group("c", None)) }), Ok(()));
}

#[test]
fn a_thread_that_is_a_chat_of_its_own_has_the_settings_of_its_channel() {
    let channel = ChannelAccess {
        prompt: Some("parent".into()),
        busy_mode: Some(BusyMode::Queue),
        ..ChannelAccess::default()
    };
    let topic = ChannelAccess { prompt: Some("topic".into()), ..ChannelAccess::default() };
    let policy = policy(PlatformAccess {
        ignored_channels: words(&["quiet"]),
        busy_mode: Some(BusyMode::Steer),
        channel: [("C1".to_owned(), channel), ("C1/t".to_owned(), topic)].into(),
        ..PlatformAccess::default()
    });
    let place = |parent: &str| Place {
        chat: "thread-7".into(),
        kind: ChatKind::Thread,
        parent: Some(parent.into()),
        ..Place::default()
    };
    let prompt = |place: &Place| policy.channel(place).and_then(|channel| channel.prompt.clone());
    assert_eq!(prompt(&place("C1")).as_deref(), Some("parent"));
    assert_eq!(policy.mode(&place("C1")), Some(BusyMode::Queue));
    assert_eq!(policy.mode(&place("C2")), Some(BusyMode::Steer));
    assert_eq!(prompt(&group("C1", Some("t"))).as_deref(), Some("topic"));
    assert_eq!(policy.mode(&group("C1", Some("t"))), Some(BusyMode::Steer));
    assert_eq!(policy.heeds(&arrival("/stop", place("quiet")), false), Err(Unheeded::OtherChannel));
}

#[test]
fn a_thread_in_which_the_agent_takes_part_needs_no_mention_unless_the_operator_wants_it() {
    let heeds = |settings: PlatformAccess, place, engaged| {
        policy(settings).heeds(&arrival("and now?", place), engaged).is_ok()
    };
    let strict = PlatformAccess { thread_require_mention: true, ..PlatformAccess::default() };
    assert!(heeds(PlatformAccess::default(), group("c", Some("t")), true));
    assert!(!heeds(PlatformAccess::default(), group("c", Some("t")), false));
    assert!(!heeds(PlatformAccess::default(), group("c", None), true));
    assert!(!heeds(strict, group("c", Some("t")), true));
    let free = PlatformAccess { require_mention: false, ..PlatformAccess::default() };
    assert!(heeds(free, group("c", None), false));
    let only = PlatformAccess { only_channels: words(&["c"]), ..PlatformAccess::default() };
    assert!(!heeds(only.clone(), group("d", Some("t")), true));
    assert!(heeds(only, dm(), false), "a direct chat is no channel");
}

#[test]
fn bots_are_not_listened_to_unless_the_operator_wants_it() {
    let heeds = |bots, mentioned| {
        let settings = PlatformAccess { allow_bots: bots, ..PlatformAccess::default() };
        let mut arrival = arrival("hello", dm());
        arrival.sender.is_bot = true;
        arrival.attention.mentioned = mentioned;
        policy(settings).heeds(&arrival, false)
    };
    assert_eq!(heeds(Bots::None, true), Err(Unheeded::Bot));
    assert_eq!(heeds(Bots::Mentions, false), Err(Unheeded::Bot));
    assert_eq!(heeds(Bots::Mentions, true), Ok(()));
    assert_eq!(heeds(Bots::All, false), Ok(()));
}

fn spec(text: &str) -> &'static Spec {
    let Parsed::Command(command) = proto::command::parse(text) else { panic!("a command") };
    command.spec
}

#[test]
fn commands_have_tiers_where_there_are_administrators() {
    let may = |settings: &PlatformAccess, who: &str, kind, text: &str| {
        policy(settings.clone()).may_use(spec(text), kind, &words(&[who]))
    };
    let (dm, group) = (ChatKind::Dm, ChatKind::Group);
    let none = PlatformAccess::default();
    assert!(may(&none, "u", dm, "/stop"));
    assert!(!may(&none, "u", dm, "/restart"), "nobody is an administrator");

    let tiers = PlatformAccess {
        admins: words(&["boss"]),
        user_commands: words(&["stop", "q"]),
        group_admins: words(&["captain"]),
        ..PlatformAccess::default()
    };
    for (who, kind, text, allowed) in [
        ("boss", dm, "/restart", true),
        ("boss", dm, "/model", true),
        ("u", dm, "/restart", false),
        ("u", dm, "/model", false),
        ("u", dm, "/stop", true),
        ("u", dm, "stop", true),
        ("u", dm, "/queue x", true),
        ("u", dm, "/help", true),
        ("u", dm, "/whoami", true),
        ("u", dm, "/approve", false),
        ("boss", group, "/model", false),
        ("captain", group, "/model", true),
        ("u", group, "/stop", true),
    ] {
        assert_eq!(may(&tiers, who, kind, text), allowed, "{who} {kind} {text}");
    }
    let all = PlatformAccess { user_commands: words(&["*"]), ..tiers };
    assert!(may(&all, "u", dm, "/model") && !may(&all, "u", dm, "/restart"));
}

#[test]
fn someone_who_may_not_is_told_what_they_may() {
    let settings = PlatformAccess {
        admins: words(&["boss"]),
        user_commands: words(&["stop"]),
        ..PlatformAccess::default()
    };
    let Parsed::Command(command) = proto::command::parse("/model x") else { panic!("a command") };
    let told = policy(settings).may_instead(&command, ChatKind::Dm, &words(&["u"]));
    assert_eq!(told, "Only administrators may use /model here. You may use /stop, /whoami, /help.");
}

#[test]
fn settings_become_a_policy_and_their_mistakes_are_named() {
    let platform = PlatformAccess {
        allowed_users: words(&["+49123@s.whatsapp.net"]),
        mention_patterns: words(&["(", "fine"]),
        user_commands: words(&["stop", "fly"]),
        ..PlatformAccess::default()
    };
    let access = Access {
        allowed_users: words(&["7"]),
        platform: [("whatsapp".to_owned(), platform)].into(),
        ..Access::default()
    };
    let (policy, wrong) = Policy::new("whatsapp", "main", &access);
    assert_eq!(policy.rules.users, ["49123", "7"]);
    assert_eq!(wrong.len(), 2, "{wrong:?}");
    assert!(wrong[0].contains("\"(\"") && wrong[1].contains("\"fly\""), "{wrong:?}");
    assert_eq!(policy.unauthorized, UnauthorizedDm::Pair);
    let (mail, _) = Policy::new("email", "main", &Access::default());
    assert_eq!(mail.unauthorized, UnauthorizedDm::Ignore);
    assert!(mail.shuts_everyone_out() && !policy.shuts_everyone_out());
}
