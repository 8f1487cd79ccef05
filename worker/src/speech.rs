//! Sound into words and words into sound, by a service with the OpenAI form of the API. Requests belong to the future that waits for
//! them: dropping it ends them.

use std::time::Duration;

use anyhow::Context;
use node::exit::Exit;
use node::settings::Speech as Settings;
use reqwest::multipart::{Form, Part};
use reqwest::{RequestBuilder, Response, Url};
use serde_json::{Value, json};

/// The largest recording that is sent: what the public services take.
pub(crate) const SOUND_BYTES_MAX: usize = 25 * 1024 * 1024;
/// The longest text that is spoken.
pub(crate) const SPOKEN_CHARS_MAX: usize = 4000;
/// The most of a spoken text's sound that is taken.
const SPEECH_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Why there are no words, or no sound.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SpeechError {
    /// The service refused.
    #[error("the speech service answered with status {0}")]
    Status(u16),
    /// It did not work.
    #[error("the speech service cannot be used: {0}")]
    Http(reqwest::Error),
    /// It answered with something else.
    #[error("the speech service answered with something unexpected")]
    Answer,
}

impl From<reqwest::Error> for SpeechError {
    fn from(error: reqwest::Error) -> Self {
        Self::Http(error.without_url())
    }
}

/// The service, as far as there is one.
pub(crate) struct Speech {
    http: reqwest::Client,
    settings: Settings,
}

impl Speech {
    /// The service of the settings.
    ///
    /// # Errors
    /// When its address is none: exit 78.
    pub(crate) fn new(settings: &Settings) -> anyhow::Result<Self> {
        if !settings.url.is_empty() {
            let url = settings.url.parse::<Url>();
            url.with_context(|| format!("bad worker.speech.url {:?}", settings.url))
                .context(Exit::Configuration)?;
        }
        let limit = settings.timeout.limit().unwrap_or(Duration::MAX);
        let builder = crate::http::builder().redirect(reqwest::redirect::Policy::none());
        let http = builder.timeout(limit).build().context("no HTTP client")?;
        Ok(Self { http, settings: settings.clone() })
    }

    /// How long one request may take.
    pub(crate) fn limit(&self) -> Option<Duration> {
        self.settings.timeout.limit()
    }

    /// Whether someone listens.
    pub(crate) fn listens(&self) -> bool {
        !self.settings.url.is_empty() && !self.settings.listen_model.is_empty()
    }

    /// Whether someone speaks.
    pub(crate) fn speaks(&self) -> bool {
        !self.settings.url.is_empty() && !self.settings.speak_model.is_empty()
    }

    /// The words of a recording; the name's ending tells the service what sort of file it is.
    pub(crate) async fn words(&self, sound: Vec<u8>, name: &str) -> Result<String, SpeechError> {
        let form = Form::new()
            .text("model", self.settings.listen_model.clone())
            .text("response_format", "json")
            .part("file", Part::bytes(sound).file_name(name.to_owned()));
        let answer = self.ask("transcriptions", |request| request.multipart(form)).await?;
        let answer: Value = answer.json().await?;
        let text = answer["text"].as_str().ok_or(SpeechError::Answer)?;
        Ok(text.trim().to_owned())
    }

    /// A text as sound, in the form of an MP3 file.
    pub(crate) async fn sound(&self, text: &str) -> Result<Vec<u8>, SpeechError> {
        let body = json!({
            "model": self.settings.speak_model,
            "voice": self.settings.voice,
            "input": text,
            "response_format": "mp3",
        });
        let mut answer = self.ask("speech", |request| request.json(&body)).await?;
        let mut sound = Vec::new();
        while let Some(chunk) = answer.chunk().await? {
            sound.extend_from_slice(&chunk);
            if sound.len() > SPEECH_BYTES_MAX {
                return Err(SpeechError::Answer);
            }
        }
        Ok(sound)
    }

    async fn ask(
        &self,
        what: &str,
        with: impl FnOnce(RequestBuilder) -> RequestBuilder,
    ) -> Result<Response, SpeechError> {
        let url = format!("{}/audio/{what}", self.settings.url.trim_end_matches('/'));
        let mut request = self.http.post(url);
        if let Some(key) = self.settings.key.given() {
            request = request.bearer_auth(key);
        }
        let answer = with(request).send().await?;
        let status = answer.status();
        if status.is_success() { Ok(answer) } else { Err(SpeechError::Status(status.as_u16())) }
    }
}
