//! Subjects and keys: the only place where one is built or parsed.

use crate::event::Address;
use crate::id::{ConversationId, Partition, ProcessId, Sid};
use crate::member::Role;

/// A subject that is not of the expected form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unexpected subject {0:?}")]
pub struct SubjectError(pub String);

/// Where the inputs of a session go.
#[must_use]
pub fn inbox(partition: Partition, sid: Sid) -> String {
    format!("inbox.{partition}.{sid}")
}

/// All inputs of a partition.
#[must_use]
pub fn inbox_of(partition: Partition) -> String {
    format!("inbox.{partition}.>")
}

/// The session that an input is for.
///
/// # Errors
/// When the subject is not `inbox.<p>.<sid>`.
pub fn inbox_sid(subject: &str) -> Result<Sid, SubjectError> {
    let mut tokens = subject.split('.');
    match (tokens.next(), tokens.next(), tokens.next(), tokens.next()) {
        (Some("inbox"), Some(_), Some(sid), None) => sid.parse().ok(),
        _ => None,
    }
    .ok_or_else(|| SubjectError(subject.to_owned()))
}

/// The order of a session's turn, for the workers of a pool.
#[must_use]
pub fn turn(pool: &str, sid: Sid) -> String {
    format!("turn.{}.{sid}", token(pool))
}

/// All orders of a pool.
#[must_use]
pub fn turns_of(pool: &str) -> String {
    format!("turn.{}.*", token(pool))
}

/// What is to be delivered to a session's chat.
#[must_use]
pub fn outbox(address: &Address, sid: Sid) -> String {
    format!("outbox.{}.{}.{sid}", token(&address.platform), token(&address.account))
}

/// Everything that one account delivers.
#[must_use]
pub fn outbox_of(platform: &str, account: &str) -> String {
    format!("outbox.{}.{}.*", token(platform), token(account))
}

/// The session that a delivery is for.
///
/// # Errors
/// When the subject is not `outbox.<platform>.<account>.<sid>`.
pub fn outbox_sid(subject: &str) -> Result<Sid, SubjectError> {
    let mut tokens = subject.split('.');
    match (tokens.next(), tokens.nth(2), tokens.next()) {
        (Some("outbox"), Some(sid), None) => sid.parse().ok(),
        _ => None,
    }
    .ok_or_else(|| SubjectError(subject.to_owned()))
}

/// Where the drafts for one account go.
#[must_use]
pub fn draft(platform: &str, account: &str) -> String {
    format!("draft.{}.{}", token(platform), token(account))
}

/// One conversation of a session.
#[must_use]
pub fn transcript(sid: Sid, conversation: ConversationId) -> String {
    format!("transcript.{sid}.{}", conversation.get())
}

/// All conversations of a session.
#[must_use]
pub fn transcripts_of(sid: Sid) -> String {
    format!("transcript.{sid}.*")
}

/// What was decided about a session.
#[must_use]
pub fn event(sid: Sid) -> String {
    format!("event.{sid}")
}

/// What was decided about all sessions.
#[must_use]
pub const fn events() -> &'static str {
    "event.*"
}

/// Where claims of a partition are asked.
#[must_use]
pub fn claim(partition: Partition) -> String {
    format!("scheduler.{partition}.claim")
}

/// Where heartbeats of a partition are sent.
#[must_use]
pub fn beat(partition: Partition) -> String {
    format!("scheduler.{partition}.beat")
}

/// Where one worker listens.
#[must_use]
pub fn control(worker: ProcessId) -> String {
    format!("worker.{worker}.control")
}

/// The name of the durable consumer that all workers of a pool share.
#[must_use]
pub fn pool_consumer(pool: &str) -> String {
    format!("workers-{}", token(pool))
}

/// The name of the durable consumer that delivers for one account.
#[must_use]
pub fn account_consumer(platform: &str, account: &str) -> String {
    format!("deliver-{}-{}", token(platform), token(account))
}

/// The key of a lease in the `leases` bucket.
#[must_use]
pub fn lease_key(partition: Partition, sid: Sid) -> String {
    format!("{partition}.{sid}")
}

/// The session of a lease key; none for the bucket's other keys.
#[must_use]
pub fn lease_sid(key: &str) -> Option<Sid> {
    key.split_once('.').and_then(|(_, sid)| sid.parse().ok())
}

/// The keys of all leases of a partition.
#[must_use]
pub fn leases_of(partition: Partition) -> String {
    format!("{partition}.*")
}

/// The key of a partition's checkpoint in the `leases` bucket.
#[must_use]
pub fn checkpoint_key(partition: Partition) -> String {
    format!("checkpoint.{partition}")
}

/// The key of the rollout in the `fleet` bucket.
#[must_use]
pub const fn rollout_key() -> &'static str {
    "restart"
}

/// The key of a process in the `members` bucket.
#[must_use]
pub fn member_key(role: Role, id: ProcessId) -> String {
    format!("{role}.{id}")
}

/// The subject under which a bucket stores a key.
#[must_use]
pub fn bucket_subject(bucket: &str, key: &str) -> String {
    format!("$KV.{bucket}.{key}")
}

/// The key of a bucket that a subject stores.
#[must_use]
pub fn bucket_key<'a>(bucket: &str, subject: &'a str) -> Option<&'a str> {
    subject.strip_prefix("$KV.")?.strip_prefix(bucket)?.strip_prefix('.')
}

/// A name as one subject token: letters, digits, `-` and `_` stay, any other byte becomes `=XX`. Reversible, so that two
/// names never meet, and never a wildcard or a separator.
#[must_use]
pub fn token(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') {
            out.push(char::from(byte));
        } else {
            out += &format!("={byte:02X}");
        }
    }
    if out.is_empty() { "=".to_owned() } else { out }
}
