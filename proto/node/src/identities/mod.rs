//! Who may talk to the agent, as far as it was decided while the system ran: people who were approved by their code, and people
//! who were shut out. Read each time it matters, so that a decision counts at once and everywhere.

mod code;
mod pairing;

use futures_util::future::{try_join, try_join_all};
use proto::access::{self, Applicant, Denied, Rules, Standing};
use proto::event::MessageEvent;
use proto::identity::{Person, Request};
use proto::subject;
use proto::topology::IDENTITIES;

pub use self::pairing::{
    ApproveError, CODE_TTL, FAILURES_MAX, LOCKED_FOR, PENDING_MAX, Requested, approve, request,
};
use crate::bucket::{self, Entry, Found, PutError};
use crate::bus::{Bus, ReadError};
use crate::clock;

/// How often a decision is written again when someone else decided at the same time.
const TRIES: usize = 5;

/// What is stored about someone, under whichever of their ids. To be shut out under one is to be shut out.
///
/// # Errors
/// When the broker does not answer.
pub async fn standing(bus: &Bus, platform: &str, names: &[String]) -> Result<Standing, ReadError> {
    let read = |name: &String| {
        let key = subject::person_key(platform, name);
        async move { bucket::read::<Person>(bus, IDENTITIES, &key).await }
    };
    let found = try_join_all(names.iter().map(read)).await?;
    let standings = found.into_iter().map(|(person, _)| match person {
        Found::Record(person) => person.standing,
        Found::Nothing => Standing::Unknown,
        // It may say that they are shut out.
        Found::Unreadable => Standing::Revoked,
    });
    Ok(standings.fold(Standing::Unknown, |worst, next| match (worst, next) {
        (Standing::Revoked, _) | (_, Standing::Revoked) => Standing::Revoked,
        (Standing::Paired, _) | (_, Standing::Paired) => Standing::Paired,
        (Standing::Unknown, Standing::Unknown) => Standing::Unknown,
    }))
}

/// Publishes the rules of an account, so that whoever takes up what waited judges by the same.
///
/// # Errors
/// When the broker does not take them.
pub async fn publish_rules(
    bus: &Bus,
    platform: &str,
    account: &str,
    rules: &Rules,
) -> Result<(), PutError> {
    let key = subject::rules_key(platform, account);
    let mut last = PutError::Overtaken;
    for _ in 0..TRIES {
        let (found, revision) = bucket::read::<Rules>(bus, IDENTITIES, &key)
            .await
            .map_err(|error| PutError::Unavailable { bucket: IDENTITIES, source: error.into() })?;
        if found.record().as_ref() == Some(rules) {
            return Ok(());
        }
        match bucket::put(bus, IDENTITIES, &key, rules, revision, None).await {
            Ok(_) => return Ok(()),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Whether the sender of a message that has waited may still talk to the agent, by today's rules.
///
/// # Errors
/// When the broker does not answer.
pub async fn may_still(bus: &Bus, event: &MessageEvent) -> Result<Result<(), Denied>, ReadError> {
    use access::Grounds;
    let grounds = event.admission.grounds;
    if grounds == Grounds::Proof {
        return Ok(Ok(()));
    }
    let platform = &event.address.platform;
    let ids = std::iter::once(&event.user.id).chain(&event.admission.aliases);
    // What the gate has noted are all forms already.
    let names = access::names(platform, ids.map(String::as_str), None);
    let key = subject::rules_key(platform, &event.address.account);
    let (standing, (rules, _)) =
        try_join(standing(bus, platform, &names), bucket::read::<Rules>(bus, IDENTITIES, &key))
            .await?;
    let who = Applicant {
        names: &names,
        roles: &[],
        kind: event.address.kind,
        chat: &event.address.chat,
    };
    let judged = match rules {
        Found::Record(rules) => rules.judge(who, standing),
        // Without the rules, what depends on them is as it was; what depends on a decision is known.
        Found::Nothing | Found::Unreadable => match standing {
            Standing::Revoked => Err(Denied::Revoked),
            Standing::Unknown if grounds == Grounds::Paired => Err(Denied::Unknown),
            Standing::Unknown | Standing::Paired => Ok(grounds),
        },
    };
    Ok(match judged {
        // Who has a role is known to the platform alone.
        Err(Denied::Unknown) if grounds == Grounds::Role => Ok(()),
        judged => judged.map(drop),
    })
}

/// Approves a person by their id, without a code. Whoever was shut out is let in again.
///
/// # Errors
/// When the broker does not answer, or others decide about the same person all the time.
pub async fn allow(
    bus: &Bus,
    platform: &str,
    id: &str,
    name: Option<String>,
) -> Result<Person, PutError> {
    decide(bus, platform, id, name, Standing::Paired).await
}

/// Shuts a person out, whatever lists they are on.
///
/// # Errors
/// When the broker does not answer, or others decide about the same person all the time.
pub async fn revoke(bus: &Bus, platform: &str, id: &str) -> Result<Person, PutError> {
    decide(bus, platform, id, None, Standing::Revoked).await
}

async fn decide(
    bus: &Bus,
    platform: &str,
    id: &str,
    name: Option<String>,
    standing: Standing,
) -> Result<Person, PutError> {
    let id = access::normal(platform, id);
    let key = subject::person_key(platform, &id);
    let mut last = PutError::Overtaken;
    for _ in 0..TRIES {
        let (found, revision) = bucket::read::<Person>(bus, IDENTITIES, &key)
            .await
            .map_err(|error| PutError::Unavailable { bucket: IDENTITIES, source: error.into() })?;
        let before = found.record();
        let person = Person {
            platform: platform.to_owned(),
            id: id.clone(),
            name: name.clone().or_else(|| before.and_then(|person| person.name)),
            standing,
            since_ms: clock::wall_ms(),
        };
        match bucket::put(bus, IDENTITIES, &key, &person, revision, None).await {
            Ok(_) => return Ok(person),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Everyone about whom something was decided, on all platforms or one.
///
/// # Errors
/// When the broker does not answer.
pub async fn people(bus: &Bus, platform: Option<&str>) -> Result<Vec<Person>, ReadError> {
    let entries = bucket::all(bus, IDENTITIES, &subject::people_of(platform)).await?;
    Ok(entries.into_iter().map(|entry| entry.record).collect())
}

/// Everyone who waits to be approved, on all platforms or one, with the revisions of their requests.
///
/// # Errors
/// When the broker does not answer.
pub async fn requests(bus: &Bus, platform: Option<&str>) -> Result<Vec<Entry<Request>>, ReadError> {
    bucket::all(bus, IDENTITIES, &subject::requests_of(platform)).await
}
