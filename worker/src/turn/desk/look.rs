//! `look_at_picture`: a question about a picture of the workspace or the web, put to a model that sees.

use std::sync::Arc;

use proto::transcript::CallStatus;
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::work::Work;
use super::object;
use crate::models::{Image, Model};
use crate::tools::attachment::picture;
use crate::tools::{Output, arguments};

#[derive(Deserialize)]
struct Call {
    picture: String,
    question: String,
}

pub(super) fn schema() -> (&'static str, Value) {
    let properties = json!({
        "picture": { "type": "string", "description": "a path in the workspace, or an http(s) address" },
        "question": { "type": "string", "description": "what you want to know of it" },
    });
    let about = "Looks at a picture (PNG, JPEG, GIF, WebP) and answers a question about it.";
    (about, object(&["picture", "question"], properties))
}

impl Work<'_> {
    /// Looks.
    pub(super) async fn look(&self, call: &Value) -> Output {
        let call: Call = match arguments(call) {
            Ok(call) => call,
            Err(output) => return output,
        };
        let eyes: Arc<dyn Model> = if self.model.sees() {
            Arc::clone(&self.model)
        } else {
            match self.turn.shared.eyes() {
                Some(eyes) => eyes,
                None => return Output::failed("no model here sees pictures"),
            }
        };
        let seen = async {
            let image = Arc::new(self.image(&call.picture).await?);
            let seen = self.turn.seen(image, &call.question, &*eyes).await;
            seen.map_err(|error| error.to_string())
        };
        tokio::select! {
            biased;
            () = self.cut.cancelled() => Output::new(CallStatus::Interrupted, "[interrupted]"),
            seen = seen => match seen {
                Ok(text) => Output::done(text),
                Err(why) => Output::failed(why),
            },
        }
    }

    async fn image(&self, place: &str) -> Result<Image, String> {
        let shared = &self.turn.shared;
        if place.starts_with("http://") || place.starts_with("https://") {
            let fetched = shared.attachments.picture(place, &self.tracker).await;
            return fetched.map_err(|error| error.to_string());
        }
        picture(&shared.tools.bytes(place).await?).map_err(|error| error.to_string())
    }
}
