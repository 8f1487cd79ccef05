//! Turns as a whole, on a real broker and against a strict provider.

mod attend;
mod children;
mod compression;
mod desk;
mod events;
mod external;
mod interrupts;
mod latency;
mod models_fail;
mod provider;
mod rig;
mod strict;
mod tool;

use std::sync::Arc;

use node::settings;

use self::provider::{Form, Provider};
use crate::models::{self, Model};

/// The worker's own client of the provider.
fn client(provider: &Provider, form: Form) -> Arc<dyn Model> {
    client_of(provider, form, 0)
}

/// The same, reading so many tokens at most.
fn client_of(provider: &Provider, form: Form, context_tokens: u64) -> Arc<dyn Model> {
    let mut settings = settings::Model { context_tokens, ..settings::Model::default() };
    match form {
        Form::OpenAi => {
            settings.name = "openai:gpt-5".into();
            settings.openai_base_url.clone_from(&provider.base_url);
        }
        Form::Anthropic => {
            settings.name = "anthropic:claude".into();
            settings.anthropic_base_url.clone_from(&provider.base_url);
            settings.anthropic_api_key = settings::Secret::new("key".into());
        }
    }
    models::choose(&settings).unwrap()
}
