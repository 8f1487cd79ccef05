//! Who may talk to the agent: one rule, applied when a message arrives (by ingress) and again when it is taken up after it has
//! waited (by the worker). Whatever no rule allows is denied.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::session::ChatKind;

/// On what grounds a message was let in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grounds {
    /// Its own proof (a token, a signature, our own scheduler): there is no person to look up.
    #[default]
    Proof,
    /// Everyone of its platform, or of all platforms, may.
    Open,
    /// Everyone in its group may.
    Group,
    /// Its sender has a role that may. Only the platform knows who has it.
    Role,
    /// Its sender was paired.
    Paired,
    /// Its sender is on a list.
    Listed,
}

/// What the gate notes on a message that it lets in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Admission {
    /// Why its sender may talk to the agent.
    #[serde(default)]
    pub grounds: Grounds,
    /// The other ids by which the platform knows its sender.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// Whether several people speak in its session, so that each message must say who does.
    #[serde(default, skip_serializing_if = "is_false")]
    pub shared: bool,
    /// What the operator has set for its channel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// The model that answers in its channel, unless its people have chosen one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

impl Admission {
    /// Whether there is nothing to say, as for messages of our own.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde calls")]
const fn is_false(value: &bool) -> bool {
    !*value
}

/// What an operator allows for one account of a platform (`identities` bucket, key `rules.<platform>.<account>`): ingress
/// publishes it, so that a worker judges by the same rules.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rules {
    /// Everyone of the platform may.
    #[serde(default)]
    pub allow_all: bool,
    /// Everyone of every platform may.
    #[serde(default)]
    pub allow_all_platforms: bool,
    /// The people who may, in [`normal`] form; `*` is everyone.
    #[serde(default)]
    pub users: Vec<String>,
    /// The groups in which everyone may, by the chat's id; `*` is every group.
    #[serde(default)]
    pub groups: Vec<String>,
    /// The roles whose holders may, by the platform's id.
    #[serde(default)]
    pub roles: Vec<String>,
}

/// Who asks to be let in.
#[derive(Clone, Copy, Debug)]
pub struct Applicant<'a> {
    /// All ids by which the platform knows them, in [`normal`] form; empty if it does not say who they are.
    pub names: &'a [String],
    /// Their roles, by the platform's id.
    pub roles: &'a [String],
    /// What sort of chat they speak in.
    pub kind: ChatKind,
    /// Its id.
    pub chat: &'a str,
}

/// What is stored about a person.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Nothing.
    #[default]
    Unknown,
    /// An operator has approved them.
    Paired,
    /// An operator has shut them out: no list helps.
    Revoked,
}

/// Why someone is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Denied {
    /// An operator has shut them out.
    Revoked,
    /// The platform does not say who they are.
    Nameless,
    /// No rule allows them.
    Unknown,
}

impl Rules {
    /// Whether, and why, someone may talk to the agent.
    ///
    /// # Errors
    /// When they may not.
    pub fn judge(&self, who: Applicant<'_>, standing: Standing) -> Result<Grounds, Denied> {
        if standing == Standing::Revoked {
            return Err(Denied::Revoked);
        }
        if who.kind != ChatKind::Dm && has(&self.groups, who.chat) {
            return Ok(Grounds::Group);
        }
        if who.names.is_empty() {
            return Err(Denied::Nameless);
        }
        if self.allow_all {
            return Ok(Grounds::Open);
        }
        if who.roles.iter().any(|role| self.roles.contains(role)) {
            return Ok(Grounds::Role);
        }
        if standing == Standing::Paired {
            return Ok(Grounds::Paired);
        }
        if who.names.iter().any(|name| has(&self.users, name)) {
            return Ok(Grounds::Listed);
        }
        if self.allow_all_platforms { Ok(Grounds::Open) } else { Err(Denied::Unknown) }
    }

    /// Whether someone is allowed who was not paired.
    #[must_use]
    pub const fn allow_someone(&self) -> bool {
        self.allow_all
            || self.allow_all_platforms
            || !self.users.is_empty()
            || !self.groups.is_empty()
            || !self.roles.is_empty()
    }
}

fn has(list: &[String], name: &str) -> bool {
    list.iter().any(|entry| entry == "*" || entry == name)
}

/// An id in the form in which ids are compared: the forms under which one platform knows the same person become one. Names
/// that people choose are never ids.
#[must_use]
pub fn normal(platform: &str, id: &str) -> String {
    let id = id.trim();
    match platform {
        "whatsapp" => {
            // `+49123`, `49123@s.whatsapp.net` and `49123:7@s.whatsapp.net` (a device) are one person; `…@lid` is an id of
            // its own kind, which only the platform can translate.
            let (user, server) = id.split_once('@').unwrap_or((id, ""));
            let user = user.split(':').next().unwrap_or(user).trim_start_matches('+');
            if server == "lid" { format!("{user}@lid") } else { user.to_owned() }
        }
        "signal" if id.len() == 36 => id.to_ascii_lowercase(),
        "email" => id.to_lowercase(),
        _ => id.to_owned(),
    }
}

/// All forms of a person's ids, without repetitions. `home` is the account's own mail domain, within which the part before the
/// `@` names a person; elsewhere anyone could choose it.
#[must_use]
pub fn names<'a>(
    platform: &str,
    ids: impl IntoIterator<Item = &'a str>,
    home: Option<&str>,
) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let mut add = |name: String| {
        if !name.is_empty() && !names.contains(&name) {
            names.push(name);
        }
    };
    for id in ids {
        let name = normal(platform, id);
        let local = match (platform, name.rsplit_once('@'), home) {
            ("email", Some((local, domain)), Some(home)) if domain.eq_ignore_ascii_case(home) => {
                Some(local.to_owned())
            }
            _ => None,
        };
        add(name);
        local.into_iter().for_each(&mut add);
    }
    names
}

/// What stands for an id where ids are not to be seen: 12 hex digits of its SHA-256.
#[must_use]
pub fn masked(id: &str) -> String {
    Sha256::digest(id.as_bytes()).iter().take(6).fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
