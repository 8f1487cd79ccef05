//! The streams and buckets as data: their names, subjects and limits. Whoever starts first creates them, or `talaria init`.

use std::time::Duration;

/// Inputs: messages and reports.
pub const INBOX: &str = "INBOX";
/// Turn orders.
pub const TURNS: &str = "TURNS";
/// Things to deliver.
pub const OUTBOX: &str = "OUTBOX";
/// Conversations.
pub const TRANSCRIPT: &str = "TRANSCRIPT";
/// Receipts.
pub const EVENTS: &str = "EVENTS";
/// The bucket of leases and checkpoints.
pub const LEASES: &str = "leases";
/// The bucket of session profiles.
pub const SESSIONS: &str = "sessions";
/// The bucket of what was delivered.
pub const DELIVERIES: &str = "deliveries";
/// The bucket of what is noted about people.
pub const MEMORY: &str = "memory";
/// The bucket of who may talk to the agent.
pub const IDENTITIES: &str = "identities";
/// The bucket of chats by name, and of home channels.
pub const CHANNELS: &str = "channels";
/// The bucket of what came from platforms and could not be read.
pub const POISON: &str = "poison";
/// The bucket of who holds which account.
pub const ACCOUNTS: &str = "accounts";
/// The bucket of scheduled jobs.
pub const JOBS: &str = "jobs";
/// The bucket of live processes.
pub const MEMBERS: &str = "members";

/// The bucket of what concerns the whole fleet.
pub const FLEET: &str = "fleet";

/// The metadata key of `INBOX` that holds the partition count: fixed when the stream is created, read from there by all.
pub const PARTITIONS: &str = "talaria-partitions";

/// How long a member counts as alive after its last sign of life.
pub const MEMBER_TTL: Duration = Duration::from_secs(5);

/// How messages leave a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retention {
    /// By age.
    Limits,
    /// When they are acknowledged.
    WorkQueue,
}

/// One stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamSpec {
    /// Its name.
    pub name: &'static str,
    /// What it stores.
    pub subjects: &'static str,
    /// How messages leave it.
    pub retention: Retention,
    /// After what time messages leave it whatever happens; zero means never.
    pub max_age: Duration,
    /// How many messages it keeps of each subject; none means all.
    pub per_subject: Option<i64>,
    /// How long it remembers message ids.
    pub duplicate_window: Duration,
}

/// One key-value bucket, of which only the newest value of each key is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketSpec {
    /// Its name.
    pub name: &'static str,
    /// After what time keys leave it; zero means never.
    pub max_age: Duration,
    /// Whether single keys may have a time to live.
    pub key_ttl: bool,
}

/// What an operator chooses about the streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retentions {
    /// How long inputs are kept, and with them the memory of what was applied.
    pub inbox: Duration,
    /// How long message ids are remembered.
    pub duplicate_window: Duration,
    /// How long receipts are kept.
    pub events: Duration,
}

/// All streams.
#[must_use]
pub fn streams(keep: Retentions) -> Vec<StreamSpec> {
    let window = Duration::from_secs(120).min(keep.inbox);
    let stream = |name, subjects, retention, max_age, per_subject| StreamSpec {
        name,
        subjects,
        retention,
        max_age,
        per_subject,
        duplicate_window: window,
    };
    vec![
        StreamSpec {
            duplicate_window: keep.duplicate_window,
            ..stream(INBOX, "inbox.*.*", Retention::Limits, keep.inbox, None)
        },
        stream(TURNS, "turn.*.*", Retention::WorkQueue, Duration::ZERO, Some(1)),
        stream(OUTBOX, "outbox.*.*.*", Retention::WorkQueue, keep.inbox, None),
        stream(TRANSCRIPT, "transcript.*.*", Retention::Limits, Duration::ZERO, None),
        stream(EVENTS, "event.*", Retention::Limits, keep.events, None),
    ]
}

/// All buckets.
#[must_use]
pub fn buckets(keep: Retentions) -> Vec<BucketSpec> {
    let bucket = |name, max_age, key_ttl| BucketSpec { name, max_age, key_ttl };
    vec![
        bucket(LEASES, Duration::ZERO, true),
        bucket(SESSIONS, Duration::ZERO, false),
        bucket(DELIVERIES, keep.inbox, false),
        bucket(MEMORY, Duration::ZERO, false),
        bucket(IDENTITIES, Duration::ZERO, true),
        bucket(CHANNELS, Duration::ZERO, false),
        bucket(POISON, keep.events, false),
        bucket(ACCOUNTS, Duration::ZERO, false),
        bucket(JOBS, Duration::ZERO, true),
        bucket(MEMBERS, MEMBER_TTL, false),
        bucket(FLEET, Duration::ZERO, false),
    ]
}
