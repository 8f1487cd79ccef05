//! Who may do what on the broker: for each service the subjects that it needs, and no more. Made from the same names and
//! subjects as everything else, so that a stream or a subject cannot change without its permissions.

use std::fmt;

use crate::member::Role;
use crate::subject;
use crate::topology::{
    self, ACCOUNTS, CHANNELS, DELIVERIES, EVENTS, FLEET, IDENTITIES, INBOX, JOBS, LEASES, MEMBERS,
    MEMORY, OUTBOX, POISON, SESSIONS, TRANSCRIPT, TURNS,
};

/// A user of the broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum User {
    /// One of the services.
    Service(Role),
    /// A person, or a job that sets the streams up: administrates the streams, reads everything, writes no lease, no
    /// conversation, and no turn order.
    Operator,
}

impl User {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::Service(Role::Ingress),
        Self::Service(Role::Scheduler),
        Self::Service(Role::Worker),
        Self::Operator,
    ];
}

impl fmt::Display for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Service(role) => write!(f, "{role}"),
            Self::Operator => f.write_str("operator"),
        }
    }
}

/// What a user may do; everything else is refused by the broker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permissions {
    /// Subjects that it may publish to, with the broker's wildcards.
    pub publish: Vec<String>,
    /// Subjects that it may subscribe to.
    pub subscribe: Vec<String>,
    /// Whether it may answer each request once, wherever the answer goes.
    pub answers: bool,
}

/// What a user may do.
#[must_use]
pub fn of(user: User) -> Permissions {
    let mut may = match user {
        User::Service(Role::Ingress) => ingress(),
        User::Service(Role::Scheduler) => scheduler(),
        User::Service(Role::Worker) => worker(),
        User::Operator => return operator(),
    };
    if let User::Service(role) = user {
        // Every service compares the streams with its settings, says that it is alive, and follows who else is, and whether and
        // when it is to restart.
        may.publish.extend(all_streams().iter().map(|stream| api("STREAM.INFO", &[stream])));
        may.publish.push(key(MEMBERS, &subject::members_of(role)));
        may.publish.push(api("DIRECT.GET", &[&bucket(MEMBERS)]));
        may.publish.push(api("DIRECT.GET", &[&bucket(FLEET), &key(FLEET, subject::rollout_key())]));
        may.subscribe.push(key(MEMBERS, "*.*"));
        may.subscribe.push(format!("{}.>", subject::reply_prefix(&service_name(role))));
    }
    may
}

/// The name of a service's process, which its connection and its answers have.
#[must_use]
pub fn service_name(role: Role) -> String {
    format!("talaria-{role}")
}

fn ingress() -> Permissions {
    let mut publish = vec![
        stored(INBOX),
        // Notices of the gate: pairing codes, refusals.
        stored(OUTBOX),
        key(DELIVERIES, ">"),
        // Which process holds an account.
        key(ACCOUNTS, ">"),
        api("STREAM.MSG.GET", &[&bucket(ACCOUNTS)]),
        key(CHANNELS, ">"),
        key(POISON, ">"),
        // Requests to be approved, and what the settings say; approving is an operator's.
        key(IDENTITIES, &subject::requests_of(None)),
        key(IDENTITIES, subject::all_rules()),
        api("STREAM.MSG.GET", &[&bucket(CHANNELS)]),
        api("STREAM.MSG.GET", &[&bucket(IDENTITIES)]),
        // How many wait to be approved.
        api("DIRECT.GET", &[&bucket(IDENTITIES)]),
        api("STREAM.MSG.GET", &[&bucket(POISON)]),
        // The ledger of deliveries, and what the page and the API show of a session.
        api("STREAM.MSG.GET", &[&bucket(DELIVERIES)]),
        api("DIRECT.GET", &[&bucket(SESSIONS), &key(SESSIONS, "*")]),
        api("DIRECT.GET", &[&bucket(LEASES), &key(LEASES, "*.*")]),
        api("DIRECT.GET", &[INBOX, &stored(INBOX)]),
        api("DIRECT.GET", &[TRANSCRIPT]),
    ];
    publish.extend(consumers(OUTBOX, &stored(OUTBOX)));
    publish.push(acknowledgements(OUTBOX));
    // The files of platforms are asked for by workers, piece by piece.
    let subscribe = [subject::drafts(), subject::events(), subject::all_media()];
    let subscribe = subscribe.map(str::to_owned).to_vec();
    Permissions { publish, subscribe, answers: true }
}

fn scheduler() -> Permissions {
    let mut publish = vec![
        // The first message of a background session.
        stored(INBOX),
        stored(TURNS),
        stored(OUTBOX),
        stored(EVENTS),
        key(LEASES, "*.*"),
        subject::controls().to_owned(),
        subject::activities().to_owned(),
        key(FLEET, subject::rollout_key()),
        api("STREAM.MSG.GET", &[&bucket(FLEET)]),
        api("DIRECT.GET", &[INBOX]),
        api("STREAM.MSG.GET", &[INBOX]),
        api("DIRECT.GET", &[&bucket(LEASES), &key(LEASES, "*.*")]),
        api("STREAM.MSG.GET", &[&bucket(LEASES)]),
        // Readers without a name: of the log, and of the leases at a takeover.
        api("CONSUMER.CREATE", &[INBOX]),
        api("CONSUMER.CREATE", &[&bucket(LEASES)]),
    ];
    // Scheduled jobs: their records, and a watch of all of them.
    publish.push(key(JOBS, subject::jobs()));
    publish.push(api("STREAM.MSG.GET", &[&bucket(JOBS)]));
    publish.push(api("DIRECT.GET", &[&bucket(JOBS), &key(JOBS, subject::jobs())]));
    publish.push(api("CONSUMER.CREATE", &[&bucket(JOBS)]));
    publish.extend(consumers(&bucket(JOBS), &key(JOBS, ">")));
    // What waits for whom, and how full the store is, as figures.
    publish.push("$JS.API.INFO".to_owned());
    publish.extend([TURNS, OUTBOX].map(|stream| api("CONSUMER.LIST", &[stream])));
    publish.extend(consumers(INBOX, subject::inboxes()));
    publish.extend(consumers(&bucket(LEASES), &key(LEASES, "*.*")));
    let subscribe = vec![
        subject::claims().to_owned(),
        subject::beats().to_owned(),
        subject::job_desk().to_owned(),
    ];
    Permissions { publish, subscribe, answers: true }
}

fn worker() -> Permissions {
    let publish = vec![
        stored(INBOX),
        stored(TRANSCRIPT),
        key(SESSIONS, "*"),
        key(MEMORY, ">"),
        subject::claims().to_owned(),
        subject::beats().to_owned(),
        subject::drafts().to_owned(),
        subject::all_media().to_owned(),
        subject::job_desk().to_owned(),
        // The consumer of a pool is made by `talaria init`: whoever may make one chooses where its messages go.
        api("CONSUMER.INFO", &[TURNS, "*"]),
        api("CONSUMER.MSG.NEXT", &[TURNS, "*"]),
        acknowledgements(TURNS),
        api("DIRECT.GET", &[INBOX]),
        api("STREAM.MSG.GET", &[INBOX]),
        api("DIRECT.GET", &[TRANSCRIPT]),
        api("DIRECT.GET", &[TRANSCRIPT, &stored(TRANSCRIPT)]),
        api("STREAM.MSG.GET", &[TRANSCRIPT]),
        api("DIRECT.GET", &[&bucket(SESSIONS), &key(SESSIONS, "*")]),
        api("STREAM.MSG.GET", &[&bucket(SESSIONS)]),
        api("STREAM.MSG.GET", &[&bucket(MEMORY)]),
        // Whether whoever wrote what has waited may still be answered.
        api("STREAM.MSG.GET", &[&bucket(IDENTITIES)]),
        // Where a message to another chat goes.
        api("STREAM.MSG.GET", &[&bucket(CHANNELS)]),
        api("DIRECT.GET", &[&bucket(CHANNELS)]),
        // Whether a turn is still its own.
        api("STREAM.MSG.GET", &[&bucket(LEASES)]),
    ];
    let subscribe = vec![subject::controls().to_owned(), subject::activities().to_owned()];
    Permissions { publish, subscribe, answers: true }
}

fn operator() -> Permissions {
    let keys = topology::buckets(any_retentions())
        .into_iter()
        .filter(|spec| ![LEASES, SESSIONS].contains(&spec.name))
        .map(|spec| key(spec.name, ">"));
    // Whoever is let in is told so.
    let mut publish =
        vec!["$JS.API.>".to_owned(), "$JS.ACK.>".to_owned(), stored(INBOX), stored(OUTBOX)];
    publish.push(subject::job_desk().to_owned());
    publish.extend(keys);
    Permissions { publish, subscribe: vec![">".to_owned()], answers: true }
}

/// What readers of one's own on a stream take: making them with this filter, asking, reading, taking them away.
fn consumers(stream: &str, filter: &str) -> [String; 4] {
    [
        api("CONSUMER.CREATE", &[stream, "*", filter]),
        api("CONSUMER.INFO", &[stream, "*"]),
        api("CONSUMER.MSG.NEXT", &[stream, "*"]),
        api("CONSUMER.DELETE", &[stream, "*"]),
    ]
}

/// A request to JetStream.
fn api(verb: &str, about: &[&str]) -> String {
    format!("$JS.API.{verb}.{}", about.join("."))
}

fn acknowledgements(stream: &str) -> String {
    format!("$JS.ACK.{stream}.>")
}

fn key(of: &str, key: &str) -> String {
    subject::bucket_subject(of, key)
}

fn bucket(name: &str) -> String {
    subject::bucket_stream(name)
}

/// The subjects that a stream stores.
fn stored(stream: &str) -> String {
    topology::streams(any_retentions())
        .into_iter()
        .find(|spec| spec.name == stream)
        .map(|spec| spec.subjects.to_owned())
        .unwrap_or_default()
}

fn all_streams() -> Vec<String> {
    let streams = topology::streams(any_retentions()).into_iter().map(|spec| spec.name.to_owned());
    let buckets = topology::buckets(any_retentions()).into_iter().map(|spec| bucket(spec.name));
    streams.chain(buckets).collect()
}

/// Names and subjects are the same whatever an operator chooses to keep.
const fn any_retentions() -> topology::Retentions {
    let any = topology::MEMBER_TTL;
    topology::Retentions { inbox: any, duplicate_window: any, events: any }
}
