//! What a chat completion asks for, as far as we can do it; and the errors as clients of this API expect them.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use proto::event::{Line, Media, MediaKind, Speaker};
use serde::Deserialize;
use serde_json::json;

use crate::publish::RETRY_AFTER;

/// The shape of a request. What is not named here (temperature, tools of the client …) is ours to decide, and ignored.
#[derive(Debug, Deserialize)]
struct Body {
    #[serde(default)]
    model: Option<String>,
    messages: Vec<Message>,
    #[serde(default)]
    stream: Option<bool>,
    #[serde(default)]
    stream_options: Option<StreamOptions>,
    #[serde(default)]
    n: Option<u32>,
}

#[derive(Debug, Default, Deserialize)]
struct StreamOptions {
    #[serde(default)]
    include_usage: Option<bool>,
}

#[derive(Debug, Deserialize)]
struct Message {
    role: Role,
    #[serde(default)]
    content: Option<Content>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Role {
    System,
    Developer,
    User,
    Assistant,
    Tool,
    Function,
}

#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "expected a string or an array of parts")]
enum Content {
    Text(String),
    Parts(Vec<Part>),
}

#[derive(Debug, Deserialize)]
struct Part {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    refusal: Option<String>,
    #[serde(default)]
    image_url: Option<ImageUrl>,
}

#[derive(Debug, Deserialize)]
struct ImageUrl {
    url: String,
}

/// How the answer is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// At once, as one object.
    Whole,
    /// As it comes, in chunks.
    Stream {
        /// Whether the last chunk says what it cost.
        usage: bool,
    },
}

/// A request that makes sense.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    /// The model's name, to be repeated in the answer.
    pub(crate) model: String,
    pub(crate) form: Form,
    /// Everything but the last words of the person.
    pub(crate) history: Vec<Line>,
    /// The last words of the person.
    pub(crate) text: String,
    pub(crate) media: Vec<Media>,
}

/// Reads a request.
pub(crate) fn read(bytes: &[u8]) -> Result<Asked, ApiError> {
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let body: Body = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let path = error.path().to_string();
        let what: String = error.inner().to_string().chars().take(200).collect();
        ApiError::invalid((path != ".").then_some(path), what)
    })?;
    if body.n.is_some_and(|n| n != 1) {
        return Err(ApiError::invalid(Some("n".into()), "only one choice can be had"));
    }
    let param = Some("messages".to_owned());
    let Some(last) = body.messages.iter().rposition(|message| message.role == Role::User) else {
        return Err(ApiError::invalid(param, "there is no message with the role user"));
    };
    let mut history = Vec::new();
    let (mut text, mut media) = (String::new(), Vec::new());
    for (index, message) in body.messages.into_iter().enumerate() {
        let (words, images) = words(message.content, index)?;
        if index == last {
            (text, media) = (words, images);
            continue;
        }
        let speaker = match message.role {
            Role::System | Role::Developer => Speaker::System,
            Role::User => Speaker::User,
            Role::Assistant | Role::Tool | Role::Function => Speaker::Assistant,
        };
        if !words.is_empty() {
            history.push(Line { speaker, text: words });
        }
    }
    if text.trim().is_empty() && media.is_empty() {
        return Err(ApiError::invalid(param, "the last message of the user is empty"));
    }
    let usage = body.stream_options.unwrap_or_default().include_usage.unwrap_or_default();
    let form = if body.stream.unwrap_or_default() { Form::Stream { usage } } else { Form::Whole };
    let model = body.model.unwrap_or_else(|| super::MODEL.to_owned());
    Ok(Asked { model, form, history, text, media })
}

fn words(content: Option<Content>, index: usize) -> Result<(String, Vec<Media>), ApiError> {
    let parts = match content {
        None => return Ok((String::new(), Vec::new())),
        Some(Content::Text(text)) => return Ok((text, Vec::new())),
        Some(Content::Parts(parts)) => parts,
    };
    let (mut text, mut media) = (Vec::new(), Vec::new());
    for (number, part) in parts.into_iter().enumerate() {
        let param = || Some(format!("messages[{index}].content[{number}]"));
        match (part.kind.as_str(), part.text, part.refusal, part.image_url) {
            ("text", Some(words), _, _) | ("refusal", _, Some(words), _) => text.push(words),
            ("image_url", _, _, Some(image)) => media.push(picture(image.url)),
            ("text" | "refusal" | "image_url", ..) => {
                return Err(ApiError::invalid(param(), "the part lacks what its type says"));
            }
            _ => {
                let what = "only parts of type text and image_url are understood";
                return Err(ApiError::invalid(param(), what));
            }
        }
    }
    Ok((text.join("\n"), media))
}

fn picture(url: String) -> Media {
    let data = url.strip_prefix("data:").and_then(|data| data.split([';', ',']).next());
    let mime = data.filter(|mime| !mime.is_empty()).map(str::to_owned);
    Media { url, kind: MediaKind::Photo, mime, name: None, group: None }
}

/// An error as clients of this API expect it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    pub(crate) message: String,
    pub(crate) kind: &'static str,
    pub(crate) param: Option<String>,
    pub(crate) code: Option<&'static str>,
}

impl ApiError {
    /// Something is wrong with the request.
    pub(crate) fn invalid(param: Option<String>, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request_error", message).at(param)
    }

    /// Anything else.
    pub(crate) fn new(status: StatusCode, kind: &'static str, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), kind, param: None, code: None }
    }

    fn at(self, param: Option<String>) -> Self {
        Self { param, ..self }
    }

    /// The same with a code for programs.
    pub(crate) fn code(self, code: &'static str) -> Self {
        Self { code: Some(code), ..self }
    }

    /// The object.
    pub(crate) fn json(&self) -> serde_json::Value {
        json!({ "error": {
            "message": self.message, "type": self.kind, "param": self.param, "code": self.code,
        } })
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.json())).into_response();
        let headers = response.headers_mut();
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(header::RETRY_AFTER, RETRY_AFTER.as_secs().into());
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn read_json(value: &Value) -> Result<Asked, ApiError> {
        read(value.to_string().as_bytes())
    }

    #[test]
    fn the_last_words_of_the_person_are_asked_and_the_rest_is_history() {
        let asked = read_json(&json!({
            "model": "gpt-4o", "temperature": 0.2, "stream": true,
            "stream_options": { "include_usage": true },
            "messages": [
                { "role": "developer", "content": "be brief" },
                { "role": "user", "content": "one" },
                { "role": "assistant", "content": null, "tool_calls": [] },
                { "role": "assistant", "content": [{ "type": "text", "text": "two" }] },
                { "role": "user", "content": [
                    { "type": "text", "text": "three" },
                    { "type": "image_url", "image_url": { "url": "data:image/png;base64,AA", "detail": "low" } },
                ] },
            ],
        }))
        .unwrap();
        assert_eq!((asked.model.as_str(), asked.text.as_str()), ("gpt-4o", "three"));
        assert_eq!(asked.form, Form::Stream { usage: true });
        assert_eq!(asked.media[0].mime.as_deref(), Some("image/png"));
        let lines: Vec<_> =
            asked.history.iter().map(|line| (line.speaker, line.text.as_str())).collect();
        let expected =
            [(Speaker::System, "be brief"), (Speaker::User, "one"), (Speaker::Assistant, "two")];
        assert_eq!(lines, expected);
    }

    #[test]
    fn mistakes_name_their_parameter() {
        let param = |value: Value| {
            let error = read_json(&value).unwrap_err();
            assert_eq!(
                (error.status, error.kind),
                (StatusCode::BAD_REQUEST, "invalid_request_error")
            );
            error.param
        };
        let one = |content: Value| json!({ "messages": [{ "role": "user", "content": content }] });
        assert_eq!(param(json!({})), None);
        assert_eq!(param(json!({ "messages": [] })).as_deref(), Some("messages"));
        let role = json!({ "messages": [{ "role": "robot", "content": "x" }] });
        assert_eq!(param(role).as_deref(), Some("messages[0].role"));
        assert_eq!(param(one(json!(7))).as_deref(), Some("messages[0].content"));
        assert_eq!(param(one(json!(""))).as_deref(), Some("messages"));
        let audio = json!([{ "type": "input_audio", "input_audio": {} }]);
        assert_eq!(param(one(audio)).as_deref(), Some("messages[0].content[0]"));
        let two = json!({ "n": 2, "messages": [{ "role": "user", "content": "x" }] });
        assert_eq!(param(two).as_deref(), Some("n"));
        assert_eq!(read(b"{\"messages\": [").unwrap_err().status, StatusCode::BAD_REQUEST);
    }
}
