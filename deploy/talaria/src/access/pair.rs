//! `talaria pair`: who was let in or shut out while the system ran, and who waits to be let in.

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use node::bus::{Bus, Write};
use node::identities;
use node::process::CommonArgs;
use proto::access::Standing;
use proto::codec;
use proto::id::OutboundId;
use proto::identity::{Person, Request};
use proto::outbound::{Kind, Outbound};
use proto::subject;
use serde_json::{Value, json};

use super::{ago, connect, table};
use crate::console;

const WELCOME: &str = "You have been let in. Write, and I will answer.";

/// The command's flags.
#[derive(Args, Debug)]
pub struct PairArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Show who was let in or shut out, and who waits
    List {
        #[command(flatten)]
        common: CommonArgs,
        /// Print one JSON object instead of text
        #[arg(long)]
        json: bool,
    },
    /// Let someone in, by the code that they were given or by their id
    Approve {
        /// The platform, for example telegram
        platform: String,
        /// The six digits that they were given
        #[arg(required_unless_present = "user")]
        code: Option<String>,
        /// Let in whoever has this id on the platform, without a code
        #[arg(long, value_name = "ID", conflicts_with = "code")]
        user: Option<String>,
        #[command(flatten)]
        common: CommonArgs,
        /// Print one JSON object instead of text
        #[arg(long)]
        json: bool,
    },
    /// Shut someone out, whatever lists they are on; what they have waiting is refused
    Revoke {
        /// The platform, for example telegram
        platform: String,
        /// Their id on the platform
        user: String,
        #[command(flatten)]
        common: CommonArgs,
        /// Print one JSON object instead of text
        #[arg(long)]
        json: bool,
    },
}

/// Carries the command out.
///
/// # Errors
/// When the code is wrong or the platform locked (exit 1), or the broker cannot be reached (69).
pub async fn run(args: &PairArgs) -> anyhow::Result<()> {
    match &args.command {
        Command::List { common, json } => {
            let known = Known::read(&connect(common).await?).await?;
            console::say(&if *json { format!("{:#}", known.as_json()) } else { known.as_text() })?;
        }
        Command::Approve { platform, code, user, common, json } => {
            let bus = connect(common).await?;
            let person = match (code, user) {
                (Some(code), _) => approve(&bus, platform, code).await?,
                (None, Some(user)) => identities::allow(&bus, platform, user, None).await?,
                (None, None) => bail!("give the code, or --user ID"),
            };
            told(&person, "may talk to the agent", *json)?;
        }
        Command::Revoke { platform, user, common, json } => {
            let person = identities::revoke(&connect(common).await?, platform, user).await?;
            told(&person, "is shut out", *json)?;
        }
    }
    Ok(())
}

/// Lets in whoever was given a code, and tells them.
///
/// # Errors
/// When the code is wrong, the platform is locked, or the broker does not answer.
pub async fn approve(bus: &Bus, platform: &str, code: &str) -> anyhow::Result<Person> {
    let (person, request) = identities::approve(bus, platform, code.trim()).await?;
    if let Err(error) = welcome(bus, request).await {
        console::note(&format!("they could not be told ({error:#}); tell them to write again"));
    }
    Ok(person)
}

async fn welcome(bus: &Bus, request: Request) -> anyhow::Result<()> {
    let Request { address, session, code, asked_at_ms, .. } = request;
    let unique = code.map_or_else(|| asked_at_ms.to_string(), |code| code.salt);
    let outbound = Outbound {
        id: OutboundId::of_arrival(&unique, "approved"),
        session,
        address,
        reply_to: None,
        turn: None,
        attempt: None,
        kind: Kind::Notice,
        text: WELCOME.into(),
        ask: None,
        replaces: None,
    };
    let subject = subject::outbox(&outbound.address, outbound.session.sid());
    let id = outbound.id.to_string();
    let write = Write { id: Some(&id), ..Write::default() };
    bus.write(subject, codec::encode(&outbound).into(), write)
        .await
        .context("the broker did not take the notice")?;
    Ok(())
}

fn told(person: &Person, what: &str, json: bool) -> anyhow::Result<()> {
    let text = if json {
        format!("{:#}", json!(person))
    } else {
        format!("{} on {} {what}", shown(&person.id, person.name.as_deref()), person.platform)
    };
    Ok(console::say(&text)?)
}

fn shown(id: &str, name: Option<&str>) -> String {
    name.map_or_else(|| id.to_owned(), |name| format!("{id} ({})", name.escape_debug()))
}

/// What is known at a moment.
struct Known {
    people: Vec<Person>,
    requests: Vec<Request>,
}

impl Known {
    async fn read(bus: &Bus) -> anyhow::Result<Self> {
        let mut people = identities::people(bus, None).await?;
        people.sort_by(|a, b| (&a.platform, a.since_ms).cmp(&(&b.platform, b.since_ms)));
        let requests = identities::requests(bus, None).await?;
        let mut requests: Vec<Request> = requests.into_iter().map(|entry| entry.record).collect();
        requests.sort_by_key(|request| request.asked_at_ms);
        Ok(Self { people, requests })
    }

    /// The code is never shown: whoever was given it must say it.
    fn as_json(&self) -> Value {
        let waiting: Vec<Value> = self
            .requests
            .iter()
            .map(|request| {
                let Request { platform, id, name, asked_at_ms, code, .. } = request;
                json!({
                    "platform": platform, "id": id, "name": name, "asked_at_ms": asked_at_ms,
                    "has_code": code.is_some(),
                })
            })
            .collect();
        let of = |standing| -> Vec<&Person> {
            self.people.iter().filter(|person| person.standing == standing).collect()
        };
        json!({
            "approved": of(Standing::Paired), "revoked": of(Standing::Revoked), "waiting": waiting,
        })
    }

    fn as_text(&self) -> String {
        let mut rows = Vec::new();
        for request in &self.requests {
            let Request { platform, id, name, asked_at_ms, code, .. } = request;
            let what = if code.is_some() { "has a code" } else { "waits without a code" };
            let who = shown(id, name.as_deref());
            rows.push(vec![platform.clone(), who, what.to_owned(), ago(*asked_at_ms)]);
        }
        for person in &self.people {
            let what = match person.standing {
                Standing::Paired => "approved",
                Standing::Revoked => "shut out",
                Standing::Unknown => continue,
            };
            let who = shown(&person.id, person.name.as_deref());
            rows.push(vec![person.platform.clone(), who, what.to_owned(), ago(person.since_ms)]);
        }
        if rows.is_empty() {
            return "nobody was let in or shut out, and nobody waits".into();
        }
        table(&rows)
    }
}

#[cfg(test)]
mod tests {
    use proto::event::Address;
    use proto::identity::HiddenCode;
    use proto::session::{ChatKind, SessionKey, SessionParts};

    use super::*;

    fn request(id: &str, code: Option<HiddenCode>) -> Request {
        let (platform, kind) = ("telegram", ChatKind::Dm);
        let parts = SessionParts { platform, kind, chat: id, thread: None, participant: None };
        Request {
            platform: platform.into(),
            id: id.into(),
            name: Some("Eve\n[approved]".into()),
            address: Address {
                platform: platform.into(),
                account: "main".into(),
                chat: id.into(),
                kind,
                thread: None,
            },
            session: SessionKey::new(parts),
            asked_at_ms: 1,
            code,
        }
    }

    #[test]
    fn lists_show_who_waits_and_never_a_code() {
        let code = HiddenCode { salt: "5a17".into(), hash: "4a54".into() };
        let person = |id: &str, standing| Person {
            platform: "telegram".into(),
            id: id.into(),
            name: None,
            standing,
            since_ms: 1,
        };
        let known = Known {
            people: vec![person("1", Standing::Paired), person("2", Standing::Revoked)],
            requests: vec![request("3", Some(code)), request("4", None)],
        };
        let (text, object) = (known.as_text(), known.as_json());
        assert_eq!(text.lines().count(), 4, "a name cannot begin a line:\n{text}");
        for (line, words) in
            [(0, "has a code"), (1, "without a code"), (2, "approved"), (3, "shut out")]
        {
            assert!(text.lines().nth(line).unwrap().contains(words), "{text}");
        }
        for shown in [text, object.to_string()] {
            assert!(!shown.contains("5a17") && !shown.contains("4a54"), "{shown}");
        }
        assert_eq!(object["approved"][0]["id"], "1");
        assert_eq!(object["revoked"][0]["id"], "2");
        assert_eq!(object["waiting"][1]["has_code"], false);
    }
}
