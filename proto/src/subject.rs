//! Subjects and keys: the only place where one is built or parsed.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

use crate::event::Address;
use crate::id::{ConversationId, JobId, OutboundId, Partition, ProcessId, Sid};
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

/// What readers of any partition's inputs ask for.
#[must_use]
pub const fn inboxes() -> &'static str {
    "inbox.*.>"
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

/// Where claims of all partitions are asked.
#[must_use]
pub const fn claims() -> &'static str {
    "scheduler.*.claim"
}

/// Where heartbeats of all partitions are sent.
#[must_use]
pub const fn beats() -> &'static str {
    "scheduler.*.beat"
}

/// Where all workers listen.
#[must_use]
pub const fn controls() -> &'static str {
    "worker.*.control"
}

/// Where all workers are asked what their turns do.
#[must_use]
pub const fn activities() -> &'static str {
    "worker.*.activity"
}

/// Where the files of all accounts are asked for.
#[must_use]
pub const fn all_media() -> &'static str {
    "media.*.*"
}

/// Where the drafts for all accounts go.
#[must_use]
pub const fn drafts() -> &'static str {
    "draft.*.*"
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

/// Where one worker is asked what a session's turn is doing.
#[must_use]
pub fn activity(worker: ProcessId) -> String {
    format!("worker.{worker}.activity")
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

/// The key of what was decided about a person in the `identities` bucket. The id must be in normal form.
#[must_use]
pub fn person_key(platform: &str, id: &str) -> String {
    format!("person.{}.{}", token(platform), hashed(&[id]))
}

/// The key of a person's request to be approved in the `identities` bucket. The id must be in normal form.
#[must_use]
pub fn request_key(platform: &str, id: &str) -> String {
    format!("request.{}.{}", token(platform), hashed(&[id]))
}

/// The keys of what was decided about people: all, or those of a platform.
#[must_use]
pub fn people_of(platform: Option<&str>) -> String {
    platform
        .map_or_else(|| "person.>".to_owned(), |platform| format!("person.{}.*", token(platform)))
}

/// The keys of requests: all, or those of a platform.
#[must_use]
pub fn requests_of(platform: Option<&str>) -> String {
    platform
        .map_or_else(|| "request.>".to_owned(), |platform| format!("request.{}.*", token(platform)))
}

/// The key of a platform's failed approvals in the `identities` bucket.
#[must_use]
pub fn failures_key(platform: &str) -> String {
    format!("failures.{}", token(platform))
}

/// The key of an account's rules in the `identities` bucket.
#[must_use]
pub fn rules_key(platform: &str, account: &str) -> String {
    format!("rules.{}.{}", token(platform), token(account))
}

/// The keys of the rules of all accounts.
#[must_use]
pub const fn all_rules() -> &'static str {
    "rules.*.*"
}

/// The key of a chat or thread in the `channels` bucket.
#[must_use]
pub fn channel_key(address: &Address) -> String {
    let hash = match &address.thread {
        None => hashed(&[&address.chat]),
        Some(thread) => hashed(&[&address.chat, thread]),
    };
    format!("chat.{}.{}.{hash}", token(&address.platform), token(&address.account))
}

/// The keys of chats: all, or those of a platform.
#[must_use]
pub fn channels_of(platform: Option<&str>) -> String {
    platform.map_or_else(|| "chat.>".to_owned(), |platform| format!("chat.{}.>", token(platform)))
}

/// The key of a chat's earlier id in the `channels` bucket.
#[must_use]
pub fn moved_key(platform: &str, account: &str, chat: &str) -> String {
    format!("moved.{}.{}.{}", token(platform), token(account), hashed(&[chat]))
}

/// The key of a platform's home channel in the `channels` bucket.
#[must_use]
pub fn home_key(platform: &str) -> String {
    format!("home.{}", token(platform))
}

/// The keys of all home channels.
#[must_use]
pub const fn homes() -> &'static str {
    "home.*"
}

/// The key of something unreadable in the `poison` bucket.
#[must_use]
pub fn poison_key(platform: &str, account: &str, what: &[u8]) -> String {
    let mut hash = Sha256::new();
    hash.update(what);
    format!("{}.{}.{}", token(platform), token(account), hex(&hash.finalize()[..16]))
}

/// Ids as one subject token that hides them: 128 bits of a SHA-256, each part preceded by its length.
fn hashed(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    hex(&hash.finalize()[..16])
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The keys of all processes of a role in the `members` bucket.
#[must_use]
pub fn members_of(role: Role) -> String {
    format!("{role}.*")
}

/// The stream in which a bucket is stored.
#[must_use]
pub fn bucket_stream(bucket: &str) -> String {
    format!("KV_{bucket}")
}

/// What the answers to a service's requests begin with: each has its own, so that none can listen to another's.
#[must_use]
pub fn reply_prefix(service: &str) -> String {
    format!("_INBOX_{}", token(service))
}

/// The key of a delivery in the `deliveries` bucket.
#[must_use]
pub fn delivery_key(id: &OutboundId) -> String {
    token(&id.to_string())
}

/// The key of who holds an account in the `accounts` bucket: a hash of its platform and of what there is one of in the world,
/// so that a token is never seen.
#[must_use]
pub fn holder_key(platform: &str, identity: &str) -> String {
    hashed(&[platform, identity])
}

/// The key of how far an account's connection has come, in the same bucket.
#[must_use]
pub fn cursor_key(platform: &str, identity: &str) -> String {
    hashed(&["cursor", platform, identity])
}

/// Where files of an account's platform are asked for.
#[must_use]
pub fn media(platform: &str, account: &str) -> String {
    format!("media.{}.{}", token(platform), token(account))
}

/// The key of a scheduled job in the `jobs` bucket; the partition and the session are those of the chat that it was made in.
#[must_use]
pub fn job_key(partition: Partition, chat: Sid, job: JobId) -> String {
    format!("{partition}.{chat}.{job}")
}

/// The keys of all jobs of a chat.
#[must_use]
pub fn jobs_of(partition: Partition, chat: Sid) -> String {
    format!("{partition}.{chat}.*")
}

/// The keys that a job of that id has, wherever it was made.
#[must_use]
pub fn job_anywhere(job: JobId) -> String {
    format!("*.*.{job}")
}

/// The keys of all jobs.
#[must_use]
pub const fn jobs() -> &'static str {
    "*.*.*"
}

/// Where jobs are asked to be made, listed and changed.
#[must_use]
pub const fn job_desk() -> &'static str {
    "scheduler.jobs"
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

/// The name that a [`token`] stands for; none if it is not one.
#[must_use]
pub fn name_of(token: &str) -> Option<String> {
    if token == "=" {
        return Some(String::new());
    }
    let mut bytes = Vec::new();
    let mut rest = token.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'=' {
            let digit =
                |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
            bytes.push(digit(rest.next()?)? * 16 + digit(rest.next()?)?);
        } else if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') {
            bytes.push(byte);
        } else {
            return None;
        }
    }
    String::from_utf8(bytes).ok().filter(|name| !name.is_empty())
}
