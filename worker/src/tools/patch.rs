//! `patch`: replaces a piece of a file that is given as it stands there.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};

use super::files::replace;
use super::workspace::Workspace;
use super::{Effort, Output, Tool, arguments};
use crate::models::ToolSpec;

/// The largest file that is changed.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// The tool.
pub(super) struct Patch(pub(super) Workspace);

#[derive(Deserialize)]
struct Call {
    path: String,
    old: String,
    new: String,
    #[serde(default)]
    all: bool,
}

impl Patch {
    async fn change(&self, call: &Value) -> Output {
        let call: Call = match arguments(call) {
            Ok(call) => call,
            Err(output) => return output,
        };
        match self.changed(&call).await {
            Ok(count) => Output::done(format!("replaced {count} in {}", call.path)),
            Err(why) => Output::failed(format_args!("{}: {why}", call.path)),
        }
    }

    async fn changed(&self, call: &Call) -> Result<usize, String> {
        let path = self.0.resolve(&call.path).map_err(|error| error.to_string())?;
        let size = tokio::fs::metadata(&path).await.map_err(|error| error.to_string())?.len();
        if size > FILE_BYTES_MAX {
            return Err("larger than 4 MB; use the terminal".into());
        }
        let text = tokio::fs::read_to_string(&path).await.map_err(|error| error.to_string())?;
        let changed = apply(&text, call)?;
        replace(&path, changed.0.as_bytes()).await.map_err(|error| error.to_string())?;
        Ok(changed.1)
    }
}

/// The text with the piece replaced, and how often.
fn apply(text: &str, call: &Call) -> Result<(String, usize), String> {
    if call.old.is_empty() || call.old == call.new {
        return Err("`old` must be what stands there, and differ from `new`".into());
    }
    match text.matches(&call.old).count() {
        0 => Err(not_there(text, &call.old)),
        count if count > 1 && !call.all => Err(format!(
            "`old` stands there {count} times; give more of what is around it, or say `all`"
        )),
        count => Ok((text.replace(&call.old, &call.new), count)),
    }
}

/// Says where the piece may be meant: where its first line stands with other spaces.
fn not_there(text: &str, old: &str) -> String {
    let first = old.trim().lines().next().unwrap_or_default().trim();
    let near = text.lines().enumerate().find(|(_, line)| !first.is_empty() && line.trim() == first);
    match near {
        Some((at, line)) => {
            format!(
                "`old` does not stand there exactly; line {} is near, with other spaces or lines after it: {line:?}",
                at + 1
            )
        }
        None => "`old` does not stand there; read the file first".into(),
    }
}

impl Tool for Patch {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "patch".into(),
            description: "Replaces a piece of a text file. `old` is the piece exactly as it stands there, with enough around it to \
                          be found once."
                .into(),
            parameters: json!({ "type": "object", "required": ["path", "old", "new"], "properties": {
                "path": { "type": "string", "description": "relative to the workspace" },
                "old": { "type": "string" },
                "new": { "type": "string" },
                "all": { "type": "boolean", "description": "replace it wherever it stands" },
            }}),
        }
    }

    fn summary(&self, call: &Value) -> String {
        call["path"].as_str().unwrap_or_default().to_owned()
    }

    fn run<'a>(&'a self, call: &'a Value, effort: &'a Effort) -> BoxFuture<'a, Output> {
        effort.until_cut(self.change(call)).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::effort;
    use super::*;

    #[tokio::test]
    async fn a_piece_is_replaced_once_or_everywhere_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a");
        std::fs::write(&file, "one\n  two\none\n").unwrap();
        let patch = Patch(Workspace::open(folder.path()).unwrap());
        let run = async |old: &str, all: bool| {
            let call = json!({ "path": "a", "old": old, "new": "three", "all": all });
            patch.run(&call, &effort()).await.text
        };
        assert!(run("one", false).await.contains("2 times"));
        assert!(run("two\nx", false).await.contains("line 2"));
        assert_eq!(run("  two", false).await, "replaced 1 in a");
        assert_eq!(run("one", true).await, "replaced 2 in a");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "three\nthree\nthree\n");
        assert!(run("four", false).await.contains("read the file"));
    }
}
