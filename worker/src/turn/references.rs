//! What a person points at in a message: `@file:path[:from-to]`, `@folder:path`, `@diff`, `@staged`, `@git:n`, `@url:address`. It is
//! read by the tools that the agent itself would use, under the same rules, and put behind the message.

use futures_util::future::join_all;
use proto::transcript::CallStatus;
use serde_json::{Value, json};

use super::Turn;
use crate::tools::Effort;
use crate::tools::danger::is_secret;

/// How many things one message can point at.
const REFERENCES_MAX: usize = 10;
/// How many commits `@git:n` can show.
const COMMITS_MAX: u32 = 10;
/// How long a command of git may take.
const GIT_SECONDS: u64 = 30;

/// One thing.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Reference<'a> {
    /// As it was written.
    written: &'a str,
    /// The tool that reads it, and with what; or why it is not read.
    read: Result<(&'static str, Value), &'static str>,
}

/// What a text points at, in order, each once.
fn references(text: &str) -> Vec<Reference<'_>> {
    let mut found: Vec<Reference<'_>> = Vec::new();
    for word in text.split_whitespace() {
        let word = word.trim_end_matches([',', ';', ')', '?', '!']);
        let written = word.strip_suffix('.').unwrap_or(word);
        if let Some(read) = written.strip_prefix('@').and_then(reading)
            && found.len() < REFERENCES_MAX
            && !found.iter().any(|known| known.written == written)
        {
            found.push(Reference { written, read });
        }
    }
    found
}

/// How it is read; none if it is an ordinary word (`@ada`).
fn reading(word: &str) -> Option<Result<(&'static str, Value), &'static str>> {
    let git = |command: &str| {
        let command = format!("git --no-pager {command}");
        Ok(("terminal", json!({ "command": command, "timeout_seconds": GIT_SECONDS })))
    };
    let (kind, rest) = word.split_once(':').unwrap_or((word, ""));
    Some(match (kind, rest) {
        ("diff", "") => git("diff"),
        ("staged", "") => git("diff --staged"),
        ("git", count) => match count.parse::<u32>() {
            Ok(count @ 1..=COMMITS_MAX) => git(&format!("log -p -n {count}")),
            _ => Err("@git takes a number from 1 to 10"),
        },
        ("file" | "folder" | "url", "") => return None,
        ("file" | "folder", path) if is_secret(path) => Err("keys and passwords are not read"),
        ("file", path) => Ok(("read_file", lines(path))),
        ("folder", path) => Ok(("list_files", json!({ "path": path }))),
        ("url", address) => Ok(("web_fetch", json!({ "url": address }))),
        _ => return None,
    })
}

/// `path`, `path:7` or `path:7-20`, as arguments of `read_file`.
fn lines(path: &str) -> Value {
    let ranged = path.rsplit_once(':').and_then(|(path, range)| {
        let (from, to) = range.split_once('-').unwrap_or((range, range));
        let (from, to) = (from.parse::<u64>().ok()?, to.parse::<u64>().ok()?);
        (from > 0 && to >= from)
            .then(|| json!({ "path": path, "offset": from, "limit": to - from + 1 }))
    });
    ranged.unwrap_or_else(|| json!({ "path": path }))
}

impl Turn {
    /// What a text points at, each with what is there; all of it within `most` bytes.
    pub(super) async fn pointed_at(&self, text: &str, most: usize) -> Vec<String> {
        let found = references(text);
        let read = join_all(found.iter().map(|reference| self.read(reference))).await;
        let total: usize = read.iter().map(String::len).sum();
        if total > most {
            let names: Vec<_> = found.iter().map(|reference| reference.written).collect();
            return vec![format!(
                "[{} left out: together they would fill more than half of what can be read at once; ask for parts of them]",
                names.join(", ")
            )];
        }
        read
    }

    async fn read(&self, reference: &Reference<'_>) -> String {
        let written = reference.written;
        let (name, arguments) = match &reference.read {
            Ok(read) => read,
            Err(why) => return format!("[{written}: {why}]"),
        };
        let Some(tool) = self.shared.tools.find(name) else {
            return format!("[{written}: there is no {name} here]");
        };
        self.tracker.enter(proto::activity::State::Preparing, written);
        let session = self.order.of.sid;
        let effort = Effort { cut: self.cut.clone(), tracker: self.tracker.clone(), session };
        let output = tool.run(arguments, &effort).await;
        if output.status == CallStatus::Done {
            format!("[{written}]\n{}\n[end of {written}]", output.text)
        } else {
            format!("[{written}: {}]", output.text)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_pointed_at_is_found_and_what_only_looks_like_it_is_not() {
        let text = "Compare @file:src/a.rs:3-9, (@folder:src) and @diff. @ada said @file: and mail@url:x, @git:99 @diff \
                    @file:.env @url:https://x.example/a?b=c";
        let found = references(text);
        let written: Vec<_> = found.iter().map(|reference| reference.written).collect();
        assert_eq!(
            written,
            [
                "@file:src/a.rs:3-9",
                "@diff",
                "@git:99",
                "@file:.env",
                "@url:https://x.example/a?b=c"
            ]
        );
        let part = json!({ "path": "src/a.rs", "offset": 3, "limit": 7 });
        assert_eq!(found[0].read, Ok(("read_file", part)));
        assert!(found[2].read.is_err() && found[3].read.is_err());
        assert_eq!(lines("a:b"), json!({ "path": "a:b" }));
        assert_eq!(lines("a:7"), json!({ "path": "a", "offset": 7, "limit": 1 }));
    }
}
