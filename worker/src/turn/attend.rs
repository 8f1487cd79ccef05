//! What comes along with a message, made into words before the model is asked: voice notes are transcribed, pictures described for a
//! model that cannot see, documents and what the person points at read. A stop ends it at once, and whatever cannot be had stays a
//! line that says so.

use std::collections::BTreeMap;
use std::sync::Arc;

use proto::activity::State;
use proto::event::{Media, MediaKind, MessageEvent};

use super::{Turn, prompt};
use crate::models::{Calls, Image, Message, Model, ModelError, Request, Words};
use crate::speech::SOUND_BYTES_MAX;

/// The longest document whose text is put into the conversation.
const DOCUMENT_BYTES_MAX: usize = 100 * 1024;
/// The longest description of a picture, tokens.
const DESCRIPTION_TOKENS: u32 = 500;
/// The endings of files that are text, whatever their MIME type is said to be.
const TEXT_ENDINGS: [&str; 12] =
    ["txt", "md", "csv", "tsv", "json", "yaml", "yml", "toml", "xml", "log", "ini", "html"];
const DESCRIBE: &str = "Describe this picture for someone who cannot see it: what it shows, and all text in it, word for word.";

impl Turn {
    /// The words of one message, with those of what came along.
    pub(super) async fn words(&self, event: &MessageEvent, model: &dyn Model) -> String {
        let mut words = prompt::words(event);
        // A stop is not kept waiting; what was said is kept in any case.
        let more = tokio::select! {
            biased;
            () = self.cut.cancelled() => Vec::new(),
            more = self.attended(event, model) => more,
        };
        for piece in more {
            words.push('\n');
            words += &piece;
        }
        words
    }

    async fn attended(&self, event: &MessageEvent, model: &dyn Model) -> Vec<String> {
        let mut pieces = Vec::new();
        for media in &event.media {
            pieces.extend(self.heard_or_seen(media, model).await);
            self.tracker.touch();
        }
        let half = usize::try_from(model.context_tokens() * 2).unwrap_or(usize::MAX);
        pieces.extend(self.pointed_at(event.prompt(), half).await);
        pieces
    }

    /// An attachment in words; none where the line that names it is all there is to say.
    async fn heard_or_seen(&self, media: &Media, model: &dyn Model) -> Option<String> {
        match media.kind {
            MediaKind::Voice if self.shared.speech.listens() => {
                self.tracker.enter(State::Preparing, "transcribing a voice note");
                Some(match self.transcribed(media).await {
                    Ok(text) if text.is_empty() => "[nothing is said in the voice note]".into(),
                    Ok(text) => format!("[the voice note says: \"{text}\"]"),
                    Err(why) => format!("[the voice note could not be transcribed: {why}]"),
                })
            }
            MediaKind::Photo if !model.sees() => {
                let eyes = self.shared.eyes()?;
                self.tracker.enter(State::Preparing, "looking at a picture");
                Some(match self.described(media, &*eyes).await {
                    Ok(text) => format!("[the photo shows: {text}]"),
                    Err(why) => format!("[the photo could not be looked at: {why}]"),
                })
            }
            MediaKind::Document if is_text(media) => {
                self.tracker.enter(State::Preparing, "reading a document");
                let name = media.name.as_deref().unwrap_or("the document");
                Some(match self.document(media).await {
                    Ok(text) => format!("[contents of {name}]\n{text}\n[end of {name}]"),
                    Err(why) => format!("[{name} could not be read: {why}]"),
                })
            }
            MediaKind::Voice
            | MediaKind::Photo
            | MediaKind::Document
            | MediaKind::Audio
            | MediaKind::Video => None,
        }
    }

    async fn transcribed(&self, media: &Media) -> Result<String, String> {
        let fetched = self.shared.attachments.fetch(&media.url, SOUND_BYTES_MAX, &self.tracker);
        let sound = fetched.await.map_err(|error| error.to_string())?;
        let name = media.name.as_deref().unwrap_or("voice.ogg");
        self.shared.speech.words(sound, name).await.map_err(|error| error.to_string())
    }

    async fn described(&self, media: &Media, eyes: &dyn Model) -> Result<String, String> {
        let picture = self.shared.attachments.picture(&media.url, &self.tracker);
        let picture = picture.await.map_err(|error| error.to_string())?;
        self.seen(Arc::new(picture), DESCRIBE, eyes).await.map_err(|error| error.to_string())
    }

    /// What a model that sees says of a picture.
    pub(super) async fn seen(
        &self,
        picture: Arc<Image>,
        question: &str,
        eyes: &dyn Model,
    ) -> Result<String, ModelError> {
        let request = Request {
            messages: vec![Message::User(question)],
            images: BTreeMap::from([(0, vec![picture])]),
            tools: &[],
            calls: Calls::Forbidden,
            max_tokens: DESCRIPTION_TOKENS,
        };
        let (words, mut signs) = Words::channel();
        let mut call = eyes.call(request, words);
        let answer = loop {
            tokio::select! {
                biased;
                Some(_) = signs.recv() => self.tracker.touch(),
                answer = &mut call => break answer?,
            }
        };
        self.counts.spent(answer.usage);
        if answer.text.trim().is_empty() { Err(ModelError::Empty) } else { Ok(answer.text) }
    }

    async fn document(&self, media: &Media) -> Result<String, String> {
        let fetched = self.shared.attachments.fetch(&media.url, DOCUMENT_BYTES_MAX, &self.tracker);
        let bytes = fetched.await.map_err(|error| error.to_string())?;
        String::from_utf8(bytes).map_err(|_| "it is not text".into())
    }
}

fn is_text(media: &Media) -> bool {
    let mime = media.mime.as_deref().unwrap_or_default();
    let of_mime =
        mime.starts_with("text/") || ["application/json", "application/xml"].contains(&mime);
    let ending = media.name.as_deref().and_then(|name| name.rsplit_once('.')).map(|(_, end)| end);
    of_mime || ending.is_some_and(|end| TEXT_ENDINGS.iter().any(|t| end.eq_ignore_ascii_case(t)))
}
