//! `search_files`: names and contents of the workspace's files, leaving out what `.gitignore` does.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use globset::{Glob, GlobMatcher};
use ignore::WalkBuilder;
use regex::bytes::Regex;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::workspace::Workspace;
use super::{Effort, Output, Tool, arguments};
use crate::models::ToolSpec;

/// How many lines or names are shown.
const FOUND_MAX: usize = 200;
/// Files larger than this are left out.
const FILE_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// The most of one line that is shown.
const LINE_BYTES_MAX: usize = 200;

/// The tool.
pub(super) struct SearchFiles(pub(super) Workspace);

#[derive(Deserialize)]
struct Call {
    #[serde(default)]
    pattern: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    path: Option<String>,
}

/// A search on its own thread.
struct Search {
    root: PathBuf,
    from: PathBuf,
    pattern: Option<Regex>,
    name: Option<GlobMatcher>,
    cut: CancellationToken,
}

impl SearchFiles {
    async fn search(&self, call: &Value, effort: &Effort) -> Output {
        let call: Call = match arguments(call) {
            Ok(call) => call,
            Err(output) => return output,
        };
        let search = match self.prepared(&call, effort.cut.child_token()) {
            Ok(search) => search,
            Err(why) => return Output::failed(why),
        };
        // The thread ends soon after its call, whether that is cut or dropped.
        let _end = search.cut.clone().drop_guard();
        match tokio::task::spawn_blocking(move || search.run()).await {
            Ok(lines) if lines.is_empty() => Output::done("[nothing found]"),
            Ok(lines) => Output::done(lines.join("\n")),
            Err(error) => Output::failed(error),
        }
    }

    fn prepared(&self, call: &Call, cut: CancellationToken) -> Result<Search, String> {
        if call.pattern.is_none() && call.name.is_none() {
            return Err("give a pattern, a name, or both".into());
        }
        let from = self
            .0
            .resolve(call.path.as_deref().unwrap_or("."))
            .map_err(|error| error.to_string())?;
        let pattern = call.pattern.as_deref().map(Regex::new).transpose();
        let name = call.name.as_deref().map(Glob::new).transpose();
        Ok(Search {
            root: self.0.root().to_owned(),
            from,
            pattern: pattern.map_err(|error| error.to_string())?,
            name: name.map_err(|error| error.to_string())?.map(|glob| glob.compile_matcher()),
            cut,
        })
    }
}

impl Search {
    fn run(&self) -> Vec<String> {
        let mut found = Vec::new();
        let walk =
            WalkBuilder::new(&self.from).require_git(false).sort_by_file_path(Path::cmp).build();
        for entry in walk.flatten() {
            if self.cut.is_cancelled() || found.len() >= FOUND_MAX {
                break;
            }
            let path = entry.path();
            let is_wanted = |glob: &GlobMatcher| {
                glob.is_match(path.strip_prefix(&self.root).unwrap_or(path))
                    || path.file_name().is_some_and(|name| glob.is_match(name))
            };
            let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
            if !is_file || !self.name.as_ref().is_none_or(is_wanted) {
                continue;
            }
            let shown = path.strip_prefix(&self.root).unwrap_or(path).display().to_string();
            match &self.pattern {
                None => found.push(shown),
                Some(pattern) => {
                    // What cannot be read is not searched.
                    let _ = self.lines(path, &shown, pattern, &mut found);
                }
            }
        }
        if found.len() >= FOUND_MAX {
            found.push("[and perhaps more; narrow it down]".into());
        }
        found
    }

    fn lines(
        &self,
        path: &Path,
        shown: &str,
        pattern: &Regex,
        found: &mut Vec<String>,
    ) -> std::io::Result<()> {
        let file = File::open(path)?;
        if file.metadata()?.len() > FILE_BYTES_MAX {
            return Ok(());
        }
        let mut reader = BufReader::new(file.take(FILE_BYTES_MAX));
        if reader.fill_buf()?.contains(&0) {
            return Ok(());
        }
        let (mut line, mut number) = (Vec::new(), 0_u64);
        while reader.read_until(b'\n', &mut line)? > 0 {
            number += 1;
            if pattern.is_match(&line) {
                let text = String::from_utf8_lossy(&line);
                found.push(format!(
                    "{shown}:{number}: {}",
                    crate::text::start(text.trim_end(), LINE_BYTES_MAX)
                ));
                if found.len() >= FOUND_MAX || self.cut.is_cancelled() {
                    break;
                }
            }
            line.clear();
        }
        Ok(())
    }
}

impl Tool for SearchFiles {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "search_files".into(),
            description: "Searches the workspace: lines that match a regular expression, files whose name matches a glob, or lines \
                          in such files."
                .into(),
            parameters: json!({ "type": "object", "properties": {
                "pattern": { "type": "string", "description": "a regular expression for lines" },
                "name": { "type": "string", "description": "a glob such as *.rs or src/**/mod.rs" },
                "path": { "type": "string", "description": "where to begin; the top if left out" },
            }}),
        }
    }

    fn is_read_only(&self) -> bool {
        true
    }

    fn summary(&self, call: &Value) -> String {
        [&call["pattern"], &call["name"]]
            .into_iter()
            .filter_map(Value::as_str)
            .collect::<Vec<_>>()
            .join(" in ")
    }

    fn run<'a>(&'a self, call: &'a Value, effort: &'a Effort) -> BoxFuture<'a, Output> {
        effort.until_cut(self.search(call, effort)).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::effort;
    use super::*;

    #[tokio::test]
    async fn lines_and_names_are_found_and_what_is_ignored_or_outside_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        std::fs::create_dir_all(at("src/deep")).unwrap();
        std::fs::create_dir_all(at("target")).unwrap();
        std::fs::write(at(".gitignore"), "target\n").unwrap();
        std::fs::write(at("src/a.rs"), "fn one() {}\nfn two() {}\n").unwrap();
        std::fs::write(at("src/deep/b.rs"), "fn two() {}\n").unwrap();
        std::fs::write(at("src/c.txt"), "fn two\n").unwrap();
        std::fs::write(at("target/d.rs"), "fn two() {}\n").unwrap();
        std::fs::write(at("src/e.rs"), b"\0fn two").unwrap();
        let search = SearchFiles(Workspace::open(folder.path()).unwrap());
        let run = async |call: Value| search.run(&call, &effort()).await.text;
        let found = run(json!({ "pattern": "fn t.o\\b", "name": "*.rs" })).await;
        assert_eq!(found, "src/a.rs:2: fn two() {}\nsrc/deep/b.rs:1: fn two() {}");
        assert_eq!(run(json!({ "name": "src/**/b.rs" })).await, "src/deep/b.rs");
        assert_eq!(run(json!({ "pattern": "nowhere" })).await, "[nothing found]");
        for call in [json!({}), json!({ "pattern": "(" }), json!({ "name": "x", "path": "../" })] {
            assert!(run(call).await.starts_with("error: "));
        }
    }
}
