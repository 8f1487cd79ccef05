//! `talaria permissions`: what each service may do on the broker, as nats-server reads it. The chart and Compose use a copy,
//! which a test keeps equal to this.

use std::fmt::Write as _;

use proto::permission::{self, Permissions, User};

const HEAD: &str = "\
# What each of Talaria's users may do on the broker. Written by `talaria permissions`; a test keeps it equal to the code.
# For use inside `authorization { }`: include this file, then give each user its permissions:
#   users: [ { user: ingress, password: $NATS_PASSWORD_INGRESS, permissions: $INGRESS }, ... ]
";

/// The configuration: one variable for each user, named after it.
#[must_use]
pub fn text() -> String {
    let mut text = HEAD.to_owned();
    for user in User::ALL {
        let name = user.to_string().to_uppercase();
        let Permissions { publish, subscribe, answers } = permission::of(user);
        let _ = write!(
            text,
            "\n{name} {{\n  publish: {{ allow: {} }}\n  subscribe: {{ allow: {} }}\n",
            list(publish),
            list(subscribe)
        );
        if answers {
            text.push_str("  allow_responses: { max: 1, expires: \"1m\" }\n");
        }
        text.push_str("}\n");
    }
    text
}

fn list(mut subjects: Vec<String>) -> String {
    subjects.sort();
    let lines: String = subjects.iter().map(|subject| format!("    \"{subject}\"\n")).collect();
    format!("[\n{lines}  ]")
}
