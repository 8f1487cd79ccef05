//! The tools that a model may call.

pub(crate) mod attachment;
pub(crate) mod background;
pub(crate) mod danger;
mod fetch;
mod files;
mod html;
mod patch;
mod process;
pub(crate) mod sandbox;
mod search;
mod shell;
mod speak;
mod terminal;
mod web_search;
mod workspace;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use futures_util::future::BoxFuture;
use node::exit::Exit;
use node::settings;
use proto::id::Seq;
use proto::id::Sid;
use proto::transcript::CallStatus;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use self::background::Background;
use self::danger::Danger;
pub(crate) use self::process::environment;
use self::sandbox::{Held, Sandbox};
pub(crate) use self::terminal::passed;
use self::workspace::Workspace;
use crate::activity::Tracker;
use crate::models::ToolSpec;
use crate::speech::Speech;
use crate::text;

/// The most of a tool's output that a conversation keeps.
pub(crate) const OUTPUT_BYTES_MAX: usize = 30 * 1024;

/// The largest file that is read as a whole.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// One tool.
pub(crate) trait Tool: Send + Sync {
    /// How a model sees it.
    fn spec(&self) -> ToolSpec;

    /// Whether calls of it change nothing, so that several may run at once.
    fn is_read_only(&self) -> bool {
        false
    }

    /// After how long a call stops by itself.
    fn limit(&self, _arguments: &Value) -> Option<Duration> {
        None
    }

    /// Why a person should be asked first, if they should.
    fn danger(&self, _arguments: &Value) -> Option<Danger> {
        None
    }

    /// What a call does, in a few words for people.
    fn summary(&self, arguments: &Value) -> String;

    /// Runs a call. When `effort.cut` is cancelled it returns soon, with what there is; when the future is dropped, whatever
    /// it started is ended.
    fn run<'a>(&'a self, arguments: &'a Value, effort: &'a Effort) -> BoxFuture<'a, Output>;
}

/// What a call runs under.
#[derive(Clone, Debug)]
pub(crate) struct Effort {
    /// When to stop.
    pub(crate) cut: CancellationToken,
    /// Where progress is noted.
    pub(crate) tracker: Tracker,
    /// The session that it is for.
    pub(crate) session: Sid,
}

impl Effort {
    /// Runs something that has no end of its own, until the stop.
    pub(crate) async fn until_cut(&self, work: impl Future<Output = Output>) -> Output {
        tokio::select! {
            biased;
            () = self.cut.cancelled() => Output::new(CallStatus::Interrupted, "[interrupted]"),
            output = work => output,
        }
    }
}

/// What came out of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Output {
    /// How it went.
    pub(crate) status: CallStatus,
    /// The words for the model.
    pub(crate) text: String,
    /// The message whose words are in it.
    pub(crate) heard: Option<Seq>,
}

impl Output {
    pub(crate) fn new(status: CallStatus, text: impl Into<String>) -> Self {
        Self { status, text: text::shorten(text.into(), OUTPUT_BYTES_MAX), heard: None }
    }

    pub(crate) fn done(text: impl Into<String>) -> Self {
        Self::new(CallStatus::Done, text)
    }

    pub(crate) fn failed(why: impl std::fmt::Display) -> Self {
        Self::new(CallStatus::Failed, format!("error: {why}"))
    }
}

/// All tools of a worker.
pub(crate) struct Toolbox {
    tools: Vec<Arc<dyn Tool>>,
    specs: Vec<ToolSpec>,
    held: Held,
    workspace: Workspace,
}

impl Toolbox {
    /// The built-in tools.
    ///
    /// # Errors
    /// When the workspace cannot be used: exit 78.
    pub(crate) fn new(
        settings: &settings::Worker,
        background: Background,
        speech: Arc<Speech>,
    ) -> anyhow::Result<Self> {
        let workspace = Workspace::open(&settings.workspace)
            .with_context(|| format!("bad worker.workspace {:?}", settings.workspace))
            .context(Exit::Configuration)?;
        let limit = settings.tool_timeout.limit();
        let sandbox = Sandbox::new(settings, workspace.root())?;
        let held = sandbox.held();
        let place = terminal::Place { workspace: workspace.clone(), sandbox };
        let terminal = terminal::Terminal::new(place, limit, background.clone());
        let mut toolbox =
            Self { tools: Vec::new(), specs: Vec::new(), held, workspace: workspace.clone() };
        toolbox.add(vec![
            Arc::new(terminal),
            Arc::new(background::Process(background)),
            Arc::new(files::ReadFile(workspace.clone())),
            Arc::new(files::WriteFile(workspace.clone())),
            Arc::new(patch::Patch(workspace.clone())),
            Arc::new(files::ListFiles(workspace.clone())),
            Arc::new(search::SearchFiles(workspace.clone())),
            Arc::new(fetch::WebFetch::new(settings.fetch_private)?),
        ]);
        if let Some(tool) = web_search::WebSearch::new(&settings.search)? {
            toolbox.add(vec![Arc::new(tool)]);
        }
        if speech.speaks() {
            toolbox.add(vec![Arc::new(speak::Speak { workspace, speech })]);
        }
        Ok(toolbox)
    }

    /// The bytes of a file of the workspace; the error is for the model.
    pub(crate) async fn bytes(&self, path: &str) -> Result<Vec<u8>, String> {
        let place = self.workspace.resolve(path).map_err(|error| error.to_string())?;
        let read = async {
            let size = tokio::fs::metadata(&place).await?.len();
            if size > FILE_BYTES_MAX {
                return Err(std::io::Error::other("it is too large"));
            }
            tokio::fs::read(&place).await
        };
        read.await.map_err(|error| format!("{path}: {error}"))
    }

    /// How far commands are kept in.
    pub(crate) const fn held(&self) -> Held {
        self.held
    }

    /// Puts more tools in.
    pub(crate) fn add(&mut self, tools: Vec<Arc<dyn Tool>>) {
        self.specs.extend(tools.iter().map(|tool| tool.spec()));
        self.tools.extend(tools);
    }

    /// How models see them.
    pub(crate) fn specs(&self) -> &[ToolSpec] {
        &self.specs
    }

    /// Their names.
    pub(crate) fn names(&self) -> Vec<&str> {
        self.specs.iter().map(|spec| &*spec.name).collect()
    }

    /// A tool by name.
    pub(crate) fn find(&self, name: &str) -> Option<Arc<dyn Tool>> {
        let found = self.specs.iter().zip(&self.tools).find(|(spec, _)| spec.name == name);
        found.map(|(_, tool)| Arc::clone(tool))
    }
}

/// Reads a call's arguments; the error is for the model.
pub(crate) fn arguments<T: DeserializeOwned>(arguments: &Value) -> Result<T, Output> {
    if !arguments.is_object() {
        return Err(Output::failed("the arguments are not a JSON object"));
    }
    T::deserialize(arguments)
        .map_err(|error| Output::failed(format_args!("the arguments do not fit: {error}")))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn effort() -> Effort {
        Effort {
            cut: CancellationToken::new(),
            tracker: Tracker::new(1, Default::default()).0,
            session: Sid::new(1),
        }
    }

    #[test]
    fn every_tool_has_a_schema_for_an_object_and_refuses_other_arguments() {
        let folder = tempfile::tempdir().unwrap();
        let settings = settings::Worker {
            workspace: folder.path().join("new/workspace"),
            ..settings::Worker::default()
        };
        let speech = Arc::new(Speech::new(&settings.speech).unwrap());
        let toolbox = Toolbox::new(&settings, Background::new(), speech).unwrap();
        let names = [
            "terminal",
            "process",
            "read_file",
            "write_file",
            "patch",
            "list_files",
            "search_files",
            "web_fetch",
        ];
        assert_eq!(toolbox.names(), names);
        for spec in toolbox.specs() {
            assert_eq!(spec.parameters["type"], "object", "{}", spec.name);
            assert!(!spec.description.is_empty());
        }
        node::process::block_on(async {
            for name in names {
                let tool = toolbox.find(name).unwrap();
                let output = tool.run(&serde_json::json!(["no"]), &effort()).await;
                assert_eq!(output.status, CallStatus::Failed, "{name}");
            }
            Ok(())
        })
        .unwrap();
    }
}
