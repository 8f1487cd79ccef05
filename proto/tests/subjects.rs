//! Subjects and keys: what is built is what is parsed, and no name of the world outside can make two of them meet.

use proto::event::Address;
use proto::id::{ConversationId, JobId, Partition, ProcessId, Sid};
use proto::member::Role;
use proto::session::{ChatKind, SessionKey, SessionParts};
use proto::subject;
use proto::topology;
use talaria_proto as proto;

const NAMES: [&str; 12] = ["", "a", "A", "a.b", "a b", "a*", ">", "=", "=2E", "ä", "a-b_c", "日本"];

fn sids() -> impl Iterator<Item = Sid> {
    [0, 1, 0xab, u128::MAX, u128::MAX >> 1].into_iter().map(Sid::new)
}

fn address(platform: &str, account: &str) -> Address {
    let (platform, account) = (platform.to_owned(), account.to_owned());
    Address { platform, account, chat: String::new(), kind: ChatKind::Dm, thread: None }
}

#[test]
fn what_is_built_is_what_is_parsed() {
    for sid in sids() {
        for partition in Partition::all(64) {
            assert_eq!(subject::inbox_sid(&subject::inbox(partition, sid)), Ok(sid));
            assert_eq!(subject::lease_sid(&subject::lease_key(partition, sid)), Some(sid));
            assert_eq!(subject::lease_sid(&subject::checkpoint_key(partition)), None);
        }
        for platform in NAMES {
            for account in NAMES {
                let subject = subject::outbox(&address(platform, account), sid);
                assert_eq!(subject::outbox_sid(&subject), Ok(sid), "{subject}");
            }
        }
        let key = subject::lease_key(Partition::new(7), sid);
        let stored = subject::bucket_subject(topology::LEASES, &key);
        assert_eq!(subject::bucket_key(topology::LEASES, &stored), Some(key.as_str()));
    }
}

#[test]
fn a_foreign_subject_is_an_error() {
    for foreign in
        ["", "inbox", "inbox.1", "inbox.1.x", "outbox.1.2", "inbox.1.00.more", "turn.a.b"]
    {
        assert!(subject::inbox_sid(foreign).is_err(), "{foreign:?}");
        assert!(subject::outbox_sid(foreign).is_err(), "{foreign:?}");
    }
    assert_eq!(subject::bucket_key("leases", "$KV.leasesx.1"), None);
    assert_eq!(subject::bucket_key("leases", "$KV.sessions.1"), None);
}

#[test]
fn names_never_meet_and_are_never_more_than_one_token() {
    let mut tokens: Vec<_> =
        NAMES.iter().filter(|name| !name.is_empty()).map(|name| subject::token(name)).collect();
    for token in &tokens {
        let fine = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'=');
        assert!(!token.is_empty() && token.bytes().all(fine), "{token:?}");
    }
    let all = tokens.len();
    tokens.sort();
    tokens.dedup();
    assert_eq!(tokens.len(), all);
}

#[test]
fn every_subject_is_stored_by_the_stream_that_is_meant() {
    let (sid, partition) = (Sid::new(1), Partition::new(3));
    let stored_by = |subject: &str| -> Vec<&str> {
        let streams = topology::streams(retentions());
        streams
            .iter()
            .filter(|spec| matches(spec.subjects, subject))
            .map(|spec| spec.name)
            .collect()
    };
    for (subject, stream) in [
        (subject::inbox(partition, sid), topology::INBOX),
        (subject::turn("a.b", sid), topology::TURNS),
        (subject::outbox(&address("a.b", "c d"), sid), topology::OUTBOX),
        (subject::transcript(sid, ConversationId::new(1)), topology::TRANSCRIPT),
        (subject::event(sid), topology::EVENTS),
    ] {
        assert_eq!(stored_by(&subject), [stream], "{subject}");
    }
    let volatile = [
        subject::claim(partition),
        subject::beat(partition),
        subject::control(ProcessId::new(1)),
        subject::draft("a", "b"),
        subject::bucket_subject(
            topology::MEMBERS,
            &subject::member_key(Role::Worker, ProcessId::new(1)),
        ),
    ];
    for subject in volatile {
        assert!(stored_by(&subject).is_empty(), "{subject}");
    }
}

fn retentions() -> topology::Retentions {
    let long = std::time::Duration::from_secs(3600);
    topology::Retentions { inbox: long, duplicate_window: long, events: long }
}

/// Whether a subject matches a pattern of tokens and `*`.
fn matches(pattern: &str, subject: &str) -> bool {
    let (pattern, subject): (Vec<_>, Vec<_>) =
        (pattern.split('.').collect(), subject.split('.').collect());
    pattern.len() == subject.len() && pattern.iter().zip(subject).all(|(p, s)| *p == "*" || *p == s)
}

#[test]
fn the_sessions_beside_a_chat_name_it_and_no_chat_is_taken_for_one() {
    let job = JobId::new(0x4f2a);
    for chat in ["c", "@cron", ":@cron:00004f2a", "a:@background:1"] {
        for (thread, participant) in [(None, None), (Some(":@cron:"), None), (None, Some("@cron"))]
        {
            let parts =
                SessionParts { platform: "p", kind: ChatKind::Group, chat, thread, participant };
            let key = SessionKey::new(parts);
            assert_eq!((key.job(), key.chat()), (None, key.clone()), "{key}");
            let place = SessionKey::typed(&key.to_string()).unwrap().place().unwrap();
            assert_eq!((place.chat.as_str(), place.thread.as_deref()), (chat, thread), "{key}");
            assert_eq!(place.participant.as_deref(), participant, "{key}");
            assert_eq!(key.of_job(job).job(), Some((key.clone(), job)));
            assert_eq!(key.of_job(job).chat(), key);
            assert_eq!(key.of_job(job).place(), None);
            let beside = key.background(proto::id::Seq::new(7));
            assert_eq!((beside.job(), beside.chat()), (None, key.clone()));
            assert_ne!(key.of_job(job).sid(), key.sid());
        }
    }
}

#[test]
fn the_keys_of_jobs_are_found_by_their_chat_and_by_their_id() {
    let (sid, job) = (Sid::new(0xab), JobId::new(0x4f2a));
    let key = subject::job_key(Partition::new(7), sid, job);
    assert_eq!(key, format!("7.{sid}.00004f2a"));
    assert_eq!(subject::jobs_of(Partition::new(7), sid), format!("7.{sid}.*"));
    assert_eq!(subject::job_anywhere(job), "*.*.00004f2a");
}
