//! Session keys: who shares a conversation and who does not, in every form there is, and that no ids can make two conversations
//! one.

use std::collections::HashSet;

use proptest::prelude::*;
use proto::session::{ChatKind, Isolation, SessionKey, SessionParts, Source};
use talaria_proto as proto;

const KINDS: [ChatKind; 4] = [ChatKind::Dm, ChatKind::Group, ChatKind::Channel, ChatKind::Thread];
const SHARED: Isolation = Isolation { per_user_in_groups: false, per_user_in_threads: false };
const THREADS_TOO: Isolation = Isolation { per_user_in_groups: true, per_user_in_threads: true };
const ONLY_THREADS: Isolation = Isolation { per_user_in_groups: false, per_user_in_threads: true };

fn key(isolation: Isolation, kind: ChatKind, of: (&str, Option<&str>, Option<&str>)) -> String {
    let (chat, thread, person) = of;
    let source = Source { platform: "telegram", kind, chat, thread, person };
    SessionKey::new(source.parts(isolation)).to_string()
}

#[test]
fn a_direct_chat_is_named_by_its_id_else_by_its_person_else_by_its_thread() {
    let dm = |chat, thread, person| key(Isolation::default(), ChatKind::Dm, (chat, thread, person));
    assert_eq!(dm("99", None, Some("u")), "telegram:dm:99");
    assert_eq!(dm("99", Some("t"), Some("u")), "telegram:dm:99:t");
    assert_eq!(dm("99", Some("t"), Some("v")), "telegram:dm:99:t");
    assert_eq!(dm("", None, Some("u")), "telegram:dm::@:u");
    assert_eq!(dm("", Some("t"), Some("u")), "telegram:dm::t:u");
    assert_eq!(dm("", Some("t"), None), "telegram:dm::t");
    assert_eq!(dm("", None, None), "telegram:dm:");
    for isolation in [SHARED, THREADS_TOO, ONLY_THREADS] {
        assert_eq!(key(isolation, ChatKind::Dm, ("99", Some("t"), Some("u"))), "telegram:dm:99:t");
    }
}

#[test]
fn in_company_the_two_options_decide_who_shares() {
    let default = Isolation::default();
    let (plain, thread) = (("c", None, Some("u")), ("c", Some("t"), Some("u")));
    for (kind, name) in [(ChatKind::Group, "group"), (ChatKind::Channel, "channel")] {
        let of = |isolation, of| key(isolation, kind, of);
        assert_eq!(of(default, plain), format!("telegram:{name}:c:@:u"));
        assert_eq!(of(default, ("c", None, None)), format!("telegram:{name}:c"));
        assert_eq!(of(SHARED, plain), format!("telegram:{name}:c"));
        assert_eq!(of(default, thread), format!("telegram:{name}:c:t"));
        assert_eq!(of(THREADS_TOO, thread), format!("telegram:{name}:c:t:u"));
        assert_eq!(of(THREADS_TOO, plain), format!("telegram:{name}:c:@:u"));
        // Threads are never more private than the group around them.
        assert_eq!(of(ONLY_THREADS, thread), format!("telegram:{name}:c:t"));
        assert_eq!(of(ONLY_THREADS, plain), format!("telegram:{name}:c"));
    }
    // A thread that is a chat of its own is a thread.
    assert_eq!(key(default, ChatKind::Thread, plain), "telegram:thread:c");
    assert_eq!(key(THREADS_TOO, ChatKind::Thread, plain), "telegram:thread:c:@:u");
}

#[test]
fn a_masked_name_shows_no_id() {
    let key = SessionKey::new(SessionParts {
        platform: "telegram/main",
        kind: ChatKind::Group,
        chat: "!room:org",
        thread: None,
        participant: Some("12345"),
    });
    let chat = proto::access::masked("!room:org");
    assert_eq!(key.shown(true).to_string(), format!("telegram/main:group:{chat}:@:5994471abb01"));
    assert_eq!(key.shown(false).to_string(), key.to_string());
    let beside = key.background(proto::id::Seq::new(7));
    assert!(beside.shown(true).to_string().ends_with(":5994471abb01:@background:7"));
}

#[test]
fn a_session_is_shared_exactly_if_two_people_have_the_same() {
    for isolation in [Isolation::default(), SHARED, THREADS_TOO, ONLY_THREADS] {
        for kind in KINDS {
            for (chat, thread) in [("c", None), ("c", Some("t")), ("", None), ("", Some("t"))] {
                let parts = |person| {
                    let platform = "telegram";
                    Source { platform, kind, chat, thread, person: Some(person) }.parts(isolation)
                };
                let same = SessionKey::new(parts("a")) == SessionKey::new(parts("b"));
                // Two people never write in one direct chat, even where the key has only its id.
                let shared = same && kind != ChatKind::Dm;
                assert_eq!(parts("a").are_shared(), shared, "{isolation:?} {kind} {chat:?}");
            }
        }
    }
}

#[test]
fn the_chats_that_once_became_one_are_different_sessions() {
    let long = "x".repeat(600);
    let longer = format!("{long}x");
    let chats = [
        ("a:b", Some("c")),
        ("a", Some("b:c")),
        ("a_b", None),
        ("a:b", None),
        ("a.b", None),
        ("C0AB", None),
        ("c0ab", None),
        ("room/1", None),
        ("room_1", None),
        ("x", None),
        ("x", Some("")),
        ("x", Some("@")),
        ("\u{e9}", None),
        ("e\u{301}", None),
        ("\u{1f600}", None),
        ("\u{1f601}", None),
        ("*", None),
        (">", None),
        ("a b", None),
        ("a  b", None),
        (&long, None),
        (&longer, None),
        ("..", None),
        ("a..b", None),
        (".a", None),
        ("a.", None),
        ("\0", None),
        ("../../etc", None),
        ("100123", None),
        ("-100123", None),
    ];
    let mut sids = HashSet::new();
    let mut count = 0;
    for kind in KINDS {
        for (chat, thread) in chats {
            for platform in ["webhook/demo", "webhook/demo:dm", "webhook/other", "telegram/demo"] {
                let source = Source { platform, kind, chat, thread, person: None };
                sids.insert(SessionKey::new(source.parts(Isolation::default())).sid());
                count += 1;
            }
        }
    }
    assert_eq!(sids.len(), count);
    // People and threads of one name are not mixed up either.
    let default = Isolation::default();
    let person = key(default, ChatKind::Group, ("c", None, Some("t")));
    assert_ne!(person, key(default, ChatKind::Group, ("c", Some("t"), Some("t"))));
}

/// Ids as platforms have them, and as nobody would.
fn id() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-c:%@/]{0,4}",
        "[-]?[0-9]{1,12}",
        "![a-z]{1,3}:[a-z]{1,3}\\.org",
        proptest::collection::vec(any::<char>(), 0..5).prop_map(String::from_iter),
        Just("x".repeat(600)),
        Just("x".repeat(601)),
    ]
}

type Parts = (String, usize, String, Option<String>, Option<String>);

fn parts() -> impl Strategy<Value = Parts> {
    (id(), 0..KINDS.len(), id(), proptest::option::of(id()), proptest::option::of(id()))
}

fn session(parts: &Parts) -> SessionKey {
    let (platform, kind, chat, thread, participant) = parts;
    SessionKey::new(SessionParts {
        platform,
        kind: KINDS[*kind],
        chat,
        thread: thread.as_deref(),
        participant: participant.as_deref(),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn different_parts_are_different_sessions_with_legal_names(a in parts(), b in parts()) {
        let (one, two) = (session(&a), session(&b));
        prop_assert_eq!(a == b, one == two, "{} and {}", one, two);
        prop_assert_eq!(a == b, one.sid() == two.sid());
        let sid = one.sid().to_string();
        prop_assert!(sid.len() == 32 && sid.bytes().all(|b| b.is_ascii_hexdigit()));
        prop_assert!(!one.to_string().contains(char::is_control));
    }

    #[test]
    fn a_mark_that_moves_between_the_parts_is_not_forgotten(
        pieces in proptest::collection::vec("[ab:@%]{0,2}", 3..6), cut in 1..5_usize,
    ) {
        // The same letters, cut in two places: they must never meet.
        let cut = cut.min(pieces.len() - 1);
        let other = if cut == 1 { 2 } else { cut - 1 };
        let at = |cut: usize| {
            let (chat, thread) = (pieces[..cut].join(":"), pieces[cut..].join(":"));
            (chat, thread)
        };
        let (one, two) = (at(cut), at(other));
        prop_assume!(one != two);
        let key = |(chat, thread): &(String, String)| {
            session(&("p".into(), 1, chat.clone(), Some(thread.clone()), None))
        };
        prop_assert_ne!(key(&one), key(&two));
    }
}

#[test]
fn a_million_random_pairs_do_not_meet() {
    // A plain generator: fast enough for a million in a debug build, and the same each time.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let letters = ['a', 'b', ':', '@', '%', '/', '.', '*', '>', ' ', 'é', '\u{301}', '😀', '\0'];
    let mut seen = HashSet::new();
    let mut keys = HashSet::new();
    while seen.len() < 1_000_000 {
        let mut word = || {
            let length = next(6);
            (0..length).map(|_| letters[usize::try_from(next(14)).unwrap()]).collect::<String>()
        };
        let (chat, thread) = (word(), word());
        if seen.insert((chat.clone(), thread.clone())) {
            // The names alone: their hashes are those of SHA-256, which takes long in a debug build.
            keys.insert(session(&("p".into(), 1, chat, Some(thread), None)));
        }
    }
    assert_eq!(keys.len(), seen.len());
}
