//! `text_to_speech`: a text as a sound file in the workspace, by the speech service of the settings.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};

use super::workspace::Workspace;
use super::{Effort, Output, Tool, arguments};
use crate::models::ToolSpec;
use crate::speech::{SPOKEN_CHARS_MAX, Speech};

/// The tool.
pub(super) struct Speak {
    pub(super) workspace: Workspace,
    pub(super) speech: Arc<Speech>,
}

#[derive(Deserialize)]
struct Call {
    text: String,
    path: String,
}

impl Speak {
    async fn speak(&self, call: &Value) -> Output {
        let call: Call = match arguments(call) {
            Ok(call) => call,
            Err(output) => return output,
        };
        if call.text.trim().is_empty() || call.text.chars().count() > SPOKEN_CHARS_MAX {
            return Output::failed(format_args!("a text of 1 to {SPOKEN_CHARS_MAX} characters"));
        }
        let path = match self.workspace.resolve(&call.path) {
            Ok(path) => path,
            Err(error) => return Output::failed(error),
        };
        let sound = match self.speech.sound(&call.text).await {
            Ok(sound) => sound,
            Err(error) => return Output::failed(error),
        };
        if let Some(folder) = path.parent()
            && let Err(error) = tokio::fs::create_dir_all(folder).await
        {
            return Output::failed(error);
        }
        match tokio::fs::write(&path, &sound).await {
            Ok(()) => Output::done(format!("{} bytes of MP3 are in {}", sound.len(), call.path)),
            Err(error) => Output::failed(error),
        }
    }
}

impl Tool for Speak {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "text_to_speech".into(),
            description: "Speaks a text into an MP3 file of the workspace.".into(),
            parameters: json!({ "type": "object", "required": ["text", "path"], "properties": {
                "text": { "type": "string", "description": "at most 4000 characters" },
                "path": { "type": "string", "description": "relative to the workspace, with .mp3 at the end" },
            }}),
        }
    }

    fn limit(&self, _arguments: &Value) -> Option<Duration> {
        self.speech.limit()
    }

    fn summary(&self, call: &Value) -> String {
        call["path"].as_str().unwrap_or_default().to_owned()
    }

    fn run<'a>(&'a self, call: &'a Value, effort: &'a Effort) -> BoxFuture<'a, Output> {
        effort.until_cut(self.speak(call)).boxed()
    }
}
