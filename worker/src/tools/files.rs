//! Files of the workspace: read, write, list.

use std::fmt::Write as _;
use std::path::Path;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};

use super::workspace::Workspace;
use super::{Effort, OUTPUT_BYTES_MAX, Output, Tool, arguments};
use crate::models::ToolSpec;

/// How many lines are read when no limit is given.
const LINES: usize = 2000;
/// How many entries of a folder are shown.
const ENTRIES_MAX: usize = 1000;
/// The largest file that is written in one call.
const WRITE_BYTES_MAX: usize = 4 * 1024 * 1024;

fn path_of(arguments: &Value) -> String {
    arguments["path"].as_str().unwrap_or(".").to_owned()
}

/// `read_file`
pub(super) struct ReadFile(pub(super) Workspace);

#[derive(Deserialize)]
struct Read {
    path: String,
    #[serde(default)]
    offset: Option<usize>,
    #[serde(default)]
    limit: Option<usize>,
}

impl Tool for ReadFile {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "read_file".into(),
            description: "Reads a text file of the workspace.".into(),
            parameters: json!({ "type": "object", "required": ["path"], "properties": {
                "path": { "type": "string", "description": "relative to the workspace" },
                "offset": { "type": "integer", "description": "the first line, counted from 1" },
                "limit": { "type": "integer", "description": "how many lines; 2000 if left out" },
            }}),
        }
    }

    fn is_read_only(&self) -> bool {
        true
    }

    fn summary(&self, arguments: &Value) -> String {
        path_of(arguments)
    }

    fn run<'a>(&'a self, call: &'a Value, effort: &'a Effort) -> BoxFuture<'a, Output> {
        effort.until_cut(self.read(call)).boxed()
    }
}

impl ReadFile {
    async fn read(&self, call: &Value) -> Output {
        let call: Read = match arguments(call) {
            Ok(call) => call,
            Err(output) => return output,
        };
        let path = match self.0.resolve(&call.path) {
            Ok(path) => path,
            Err(error) => return Output::failed(error),
        };
        let first = call.offset.unwrap_or(1).max(1);
        match lines(&path, first, call.limit.unwrap_or(LINES)).await {
            Ok(text) if text.is_empty() => Output::done("[empty]"),
            Ok(text) => Output::done(text),
            Err(error) => Output::failed(format_args!("{}: {error}", call.path)),
        }
    }
}

/// Reads lines `first..first + limit`, and no more of them than a conversation keeps.
async fn lines(path: &Path, first: usize, limit: usize) -> std::io::Result<String> {
    let file = tokio::fs::File::open(path).await?;
    if !file.metadata().await?.is_file() {
        return Err(std::io::Error::other("not a file"));
    }
    let mut reader = BufReader::new(file);
    let (mut out, mut line, mut number) = (String::new(), Vec::new(), 0);
    loop {
        line.clear();
        // A file without line ends is read in pieces, so that it never is in memory as a whole.
        let mut piece = tokio::io::AsyncReadExt::take(&mut reader, OUTPUT_BYTES_MAX as u64);
        if piece.read_until(b'\n', &mut line).await? == 0 {
            return Ok(out);
        }
        number += 1;
        if number < first {
            continue;
        }
        if number - first >= limit || out.len() + line.len() > OUTPUT_BYTES_MAX {
            let _ = write!(out, "[there is more; go on with offset {number}]");
            return Ok(out);
        }
        out += &String::from_utf8_lossy(&line);
    }
}

/// `write_file`
pub(super) struct WriteFile(pub(super) Workspace);

#[derive(Deserialize)]
struct Write {
    path: String,
    content: String,
}

impl Tool for WriteFile {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "write_file".into(),
            description: "Writes a text file of the workspace, replacing what is there. Makes missing folders."
                .into(),
            parameters: json!({ "type": "object", "required": ["path", "content"], "properties": {
                "path": { "type": "string", "description": "relative to the workspace" },
                "content": { "type": "string" },
            }}),
        }
    }

    fn summary(&self, arguments: &Value) -> String {
        path_of(arguments)
    }

    fn run<'a>(&'a self, call: &'a Value, effort: &'a Effort) -> BoxFuture<'a, Output> {
        effort.until_cut(self.write(call)).boxed()
    }
}

impl WriteFile {
    async fn write(&self, call: &Value) -> Output {
        let call: Write = match arguments(call) {
            Ok(call) => call,
            Err(output) => return output,
        };
        if call.content.len() > WRITE_BYTES_MAX {
            return Output::failed("the content is larger than 4 MB; write it in parts");
        }
        let path = match self.0.resolve(&call.path) {
            Ok(path) => path,
            Err(error) => return Output::failed(error),
        };
        match replace(&path, call.content.as_bytes()).await {
            Ok(()) => Output::done(format!("wrote {} bytes", call.content.len())),
            Err(error) => Output::failed(format_args!("{}: {error}", call.path)),
        }
    }
}

/// Writes beside the file and renames, so that whoever stops in between leaves the old file whole.
pub(super) async fn replace(path: &Path, content: &[u8]) -> std::io::Result<()> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(std::io::Error::other("not a file name"));
    };
    tokio::fs::create_dir_all(folder).await?;
    let mut hidden = std::ffi::OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".{:016x}", u64::from_be_bytes(node::process::random())));
    let beside = folder.join(hidden);
    let written = async {
        tokio::fs::write(&beside, content).await?;
        if let Ok(old) = tokio::fs::metadata(path).await {
            tokio::fs::set_permissions(&beside, old.permissions()).await?;
        }
        tokio::fs::rename(&beside, path).await
    }
    .await;
    if written.is_err() {
        let _ = tokio::fs::remove_file(&beside).await;
    }
    written
}

/// `list_files`
pub(super) struct ListFiles(pub(super) Workspace);

#[derive(Deserialize)]
struct List {
    #[serde(default)]
    path: Option<String>,
}

impl Tool for ListFiles {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "list_files".into(),
            description: "Lists a folder of the workspace, folders with a slash at the end.".into(),
            parameters: json!({ "type": "object", "properties": {
                "path": { "type": "string", "description": "relative to the workspace; its top if left out" },
            }}),
        }
    }

    fn is_read_only(&self) -> bool {
        true
    }

    fn summary(&self, arguments: &Value) -> String {
        path_of(arguments)
    }

    fn run<'a>(&'a self, call: &'a Value, effort: &'a Effort) -> BoxFuture<'a, Output> {
        effort.until_cut(self.list(call)).boxed()
    }
}

impl ListFiles {
    async fn list(&self, call: &Value) -> Output {
        let call: List = match arguments(call) {
            Ok(call) => call,
            Err(output) => return output,
        };
        let wanted = call.path.unwrap_or_else(|| ".".into());
        let path = match self.0.resolve(&wanted) {
            Ok(path) => path,
            Err(error) => return Output::failed(error),
        };
        let shown = self.0.shown(&path).display().to_string();
        match entries(&path).await {
            Ok(names) if names.is_empty() => Output::done(format!("[{shown}/ is empty]")),
            Ok(names) => Output::done(names),
            Err(error) => Output::failed(format_args!("{wanted}: {error}")),
        }
    }
}

async fn entries(path: &Path) -> std::io::Result<String> {
    let mut folder = tokio::fs::read_dir(path).await?;
    let mut names = Vec::new();
    while let Some(entry) = folder.next_entry().await? {
        let kind = entry.file_type().await?;
        let mut name = entry.file_name().to_string_lossy().into_owned();
        if kind.is_dir() {
            name.push('/');
        } else if kind.is_file() {
            let _ = std::fmt::Write::write_fmt(
                &mut name,
                format_args!("\t{} bytes", entry.metadata().await?.len()),
            );
        }
        names.push(name);
        if names.len() > ENTRIES_MAX {
            break;
        }
    }
    names.sort();
    if names.len() > ENTRIES_MAX {
        names.push("[and more]".into());
    }
    Ok(names.join("\n"))
}

#[cfg(test)]
mod tests {
    use proto::transcript::CallStatus;

    use super::super::tests::effort;
    use super::*;

    #[tokio::test]
    async fn what_is_written_can_be_listed_and_read_in_part() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = Workspace::open(folder.path()).unwrap();
        let (read, write) = (ReadFile(workspace.clone()), WriteFile(workspace.clone()));
        let content = "one\ntwo\nthree\n";
        let call = json!({ "path": "notes/a.txt", "content": content });
        assert_eq!(write.run(&call, &effort()).await, Output::done("wrote 14 bytes"));
        let listed = ListFiles(workspace).run(&json!({ "path": "notes" }), &effort()).await;
        assert_eq!(listed, Output::done("a.txt\t14 bytes"));
        let whole = read.run(&json!({ "path": "notes/a.txt" }), &effort()).await;
        assert_eq!(whole, Output::done(content));
        let part = json!({ "path": "notes/a.txt", "offset": 2, "limit": 1 });
        let part = read.run(&part, &effort()).await;
        assert_eq!(part, Output::done("two\n[there is more; go on with offset 3]"));
        for path in ["../x", "notes", "missing"] {
            let output = read.run(&json!({ "path": path }), &effort()).await;
            assert_eq!(output.status, CallStatus::Failed, "{path}");
        }
    }

    #[tokio::test]
    async fn a_call_under_a_stopped_turn_does_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let write = WriteFile(Workspace::open(folder.path()).unwrap());
        let effort = effort();
        effort.cut.cancel();
        let output = write.run(&json!({ "path": "a", "content": "x" }), &effort).await;
        assert_eq!(output.status, CallStatus::Interrupted);
        assert!(!folder.path().join("a").exists());
    }
}
