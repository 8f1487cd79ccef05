//! The model provider: one cheap call with the credentials that workers use.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use node::settings::Settings;
use worker::models::{Calls, Message, Request, Words, choose, chosen};

use super::Finding;

/// How long the call may take.
const LIMIT: Duration = Duration::from_secs(30);
/// The longest answer: a word or two.
const TOKENS: u32 = 16;

/// Makes the call.
pub(super) async fn call(settings: &Settings) -> Finding {
    let name = chosen(&settings.model).unwrap_or_else(|_| settings.model.name.clone());
    let model = match choose(&settings.model) {
        Ok(model) => model,
        Err(error) => {
            return Finding::broken(
                "model",
                format!("{error:#}"),
                "see `talaria config`, section model",
            );
        }
    };
    let request = Request {
        messages: vec![Message::User("Say: ok")],
        images: BTreeMap::new(),
        tools: &[],
        calls: Calls::Forbidden,
        max_tokens: TOKENS,
    };
    let (words, _unheard) = Words::channel();
    let began = Instant::now();
    match tokio::time::timeout(LIMIT, model.call(request, words)).await {
        Ok(Ok(_)) => {
            Finding::fine("model", format!("{name} answers, in {} ms", began.elapsed().as_millis()))
        }
        Ok(Err(error)) => Finding::broken(
            "model",
            format!("{name} does not answer: {error}"),
            "check the key, the address and the model's name (`talaria config` shows where each came from)",
        ),
        Err(_) => Finding::broken(
            "model",
            format!("{name} does not answer within {} s", LIMIT.as_secs()),
            "is the provider's address reachable from here?",
        ),
    }
}
