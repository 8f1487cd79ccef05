//! Pairing: someone unknown gets a code, and an operator who is told it approves them. The broker forgets codes and failures by
//! its own clock, so that no two machines' clocks are compared.

use std::time::Duration;

use proto::access::Standing;
use proto::event::Address;
use proto::identity::{Failures, Person, Request};
use proto::session::SessionKey;
use proto::subject;
use proto::topology::IDENTITIES;

use super::{code, decide, requests};
use crate::bucket::{self, Found, PutError};
use crate::bus::{Bus, ReadError};
use crate::clock;

/// How long a code counts, and how long its person gets no other answer.
pub const CODE_TTL: Duration = Duration::from_secs(600);
/// How many codes of one platform count at once.
pub const PENDING_MAX: usize = 3;
/// How many wrong codes lock a platform.
pub const FAILURES_MAX: u32 = 5;
/// For how long.
pub const LOCKED_FOR: Duration = Duration::from_secs(3600);

/// What someone unknown is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Requested {
    /// Their code.
    Code(String),
    /// That too many others wait.
    TooMany,
    /// Nothing: they were told a moment ago.
    AlreadyTold,
    /// Nothing: the platform is locked.
    Locked,
}

/// Notes that someone unknown asks to be let in.
///
/// # Errors
/// When the broker does not answer.
pub async fn request(
    bus: &Bus,
    (platform, id): (&str, &str),
    name: Option<&str>,
    (address, session): (&Address, &SessionKey),
) -> Result<Requested, PutError> {
    let key = subject::request_key(platform, id);
    let ((failures, _), (earlier, revision)) =
        tokio::try_join!(failures(bus, platform), bucket::read::<Request>(bus, IDENTITIES, &key))
            .map_err(unavailable)?;
    if failures.count >= FAILURES_MAX {
        return Ok(Requested::Locked);
    }
    if earlier != Found::Nothing {
        return Ok(Requested::AlreadyTold);
    }
    let pending = requests(bus, Some(platform)).await.map_err(unavailable)?;
    let given = pending.iter().filter(|entry| entry.record.code.is_some()).count();
    let code = (given < PENDING_MAX).then(code::fresh);
    let request = Request {
        platform: platform.to_owned(),
        id: id.to_owned(),
        name: name.map(str::to_owned),
        address: address.clone(),
        session: session.clone(),
        asked_at_ms: clock::wall_ms(),
        code: code.as_deref().map(|code| code::hidden(platform, id, code)),
    };
    match bucket::put(bus, IDENTITIES, &key, &request, revision, Some(CODE_TTL)).await {
        Ok(_) => Ok(code.map_or(Requested::TooMany, Requested::Code)),
        // Another message of theirs, a moment before.
        Err(PutError::Overtaken) => Ok(Requested::AlreadyTold),
        Err(error @ PutError::Unavailable { .. }) => Err(error),
    }
}

/// A code that approves nobody.
#[derive(Debug, thiserror::Error)]
pub enum ApproveError {
    /// Nobody who waits has it.
    #[error(
        "nobody on {platform} waits with this code: it is wrong, was used, or is older than 10 minutes; {left} more wrong \
         codes lock the platform for an hour"
    )]
    Wrong {
        /// The platform.
        platform: String,
        /// How many more failures it takes.
        left: u32,
    },
    /// There were too many wrong ones.
    #[error(
        "{platform} is locked after {FAILURES_MAX} wrong codes, for up to an hour; `talaria pair approve {platform} --user ID` \
         works all the same"
    )]
    Locked {
        /// The platform.
        platform: String,
    },
    /// The broker does not answer.
    #[error(transparent)]
    Unavailable(#[from] PutError),
}

/// Approves whoever was given a code, which is then used up. Returns them, and the request, so that they can be told.
///
/// # Errors
/// When the code is wrong, the platform is locked, or the broker does not answer.
pub async fn approve(
    bus: &Bus,
    platform: &str,
    code: &str,
) -> Result<(Person, Request), ApproveError> {
    let locked = || ApproveError::Locked { platform: platform.to_owned() };
    let (before, _) = failures(bus, platform).await.map_err(unavailable)?;
    if before.count >= FAILURES_MAX {
        return Err(locked());
    }
    let pending = requests(bus, Some(platform)).await.map_err(unavailable)?;
    let mut found = None;
    for entry in pending {
        // All are compared, so that the time says nothing.
        if code::is_of(&entry.record, code) {
            found = Some(entry);
        }
    }
    let used = match &found {
        Some(entry) => match bucket::take(bus, IDENTITIES, &entry.key, entry.revision).await {
            Ok(()) => true,
            Err(PutError::Overtaken) => false,
            Err(error @ PutError::Unavailable { .. }) => return Err(error.into()),
        },
        None => false,
    };
    let Some(entry) = found.filter(|_| used) else {
        let count = fail(bus, platform).await?;
        if count >= FAILURES_MAX {
            return Err(locked());
        }
        let left = FAILURES_MAX - count;
        return Err(ApproveError::Wrong { platform: platform.to_owned(), left });
    };
    let Request { id, name, .. } = &entry.record;
    let person = decide(bus, platform, id, name.clone(), Standing::Paired).await?;
    succeed(bus, platform).await;
    Ok((person, entry.record))
}

/// How often wrong codes were entered, and the record's revision.
async fn failures(bus: &Bus, platform: &str) -> Result<(Failures, u64), ReadError> {
    let key = subject::failures_key(platform);
    let (found, revision) = bucket::read::<Failures>(bus, IDENTITIES, &key).await?;
    let failures = match found {
        Found::Nothing => Failures::default(),
        Found::Record(failures) => failures,
        // What cannot be read must not open a lock.
        Found::Unreadable => Failures { count: FAILURES_MAX },
    };
    Ok((failures, revision))
}

async fn fail(bus: &Bus, platform: &str) -> Result<u32, PutError> {
    let key = subject::failures_key(platform);
    loop {
        let (before, revision) = failures(bus, platform).await.map_err(unavailable)?;
        let count = before.count.saturating_add(1);
        let after = Failures { count };
        match bucket::put(bus, IDENTITIES, &key, &after, revision, Some(LOCKED_FOR)).await {
            Ok(_) => return Ok(count),
            Err(PutError::Overtaken) => {}
            Err(error @ PutError::Unavailable { .. }) => return Err(error),
        }
    }
}

/// A right code ends the row of wrong ones. If this cannot be noted, the wrong ones are forgotten within the hour.
async fn succeed(bus: &Bus, platform: &str) {
    if let Ok((Failures { count: 1.. }, revision)) = failures(bus, platform).await {
        let key = subject::failures_key(platform);
        if let Err(error) = bucket::take(bus, IDENTITIES, &key, revision).await {
            tracing::debug!(%error, "earlier wrong codes are still counted");
        }
    }
}

fn unavailable(error: ReadError) -> PutError {
    PutError::Unavailable { bucket: IDENTITIES, source: error.into() }
}
