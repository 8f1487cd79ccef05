//! Which model answers: what the settings name, else what the keys that are there suggest.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use node::exit::Exit;
use node::settings::{self, Secret};

use super::anthropic::Messages;
use super::chain::Link;
use super::client::Client;
use super::openai::ChatCompletions;
use super::scripted::Scripted;
use super::{Model, known};

/// The model of the OpenAI API that is used when none is named.
const OPENAI_DEFAULT: &str = "gpt-5-mini";
/// The model of the Anthropic API that is used when none is named.
const ANTHROPIC_DEFAULT: &str = "claude-sonnet-4-5";

/// How a provider is reached.
pub(super) struct Access {
    pub(super) http: reqwest::Client,
    pub(super) base_url: String,
    pub(super) key: Secret,
    pub(super) model: String,
    pub(super) stall: Option<Duration>,
}

/// Chooses by the settings and, where they say nothing, by the environment (`OPENAI_API_KEY`, `OPENAI_BASE_URL`,
/// `ANTHROPIC_API_KEY`, `ANTHROPIC_BASE_URL`).
///
/// # Errors
/// When the name is not of a known form, or its provider has no key: exit 78.
pub fn choose(settings: &settings::Model) -> anyhow::Result<Arc<dyn Model>> {
    Chooser { settings, environment: &|name| std::env::var(name).ok() }
        .choose()
        .context(Exit::Configuration)
}

/// The name of the model that [`choose`] chooses, in the form in which the settings would name it.
///
/// # Errors
/// As [`choose`].
pub fn chosen(settings: &settings::Model) -> anyhow::Result<String> {
    let chooser = Chooser { settings, environment: &|name| std::env::var(name).ok() };
    Ok(chooser.choice().context(Exit::Configuration)?.to_string())
}

struct Chooser<'a> {
    settings: &'a settings::Model,
    environment: &'a dyn Fn(&str) -> Option<String>,
}

#[derive(Debug, PartialEq, Eq)]
enum Choice {
    Scripted,
    OpenAi(String),
    Anthropic(String),
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scripted => f.write_str("scripted"),
            Self::OpenAi(model) => write!(f, "openai:{model}"),
            Self::Anthropic(model) => write!(f, "anthropic:{model}"),
        }
    }
}

impl Chooser<'_> {
    fn choose(&self) -> anyhow::Result<Arc<dyn Model>> {
        let mut chain = self.link(self.choice()?)?;
        let behind = self.settings.fallbacks.iter().map(|name| self.named(name));
        let behind = behind.collect::<anyhow::Result<Vec<_>>>()?;
        let mut next: Option<Arc<dyn Model>> = None;
        for choice in behind.into_iter().rev() {
            next = Some(Arc::new(Link { next, ..self.link(choice)? }));
        }
        chain.next = next;
        Ok(Arc::new(chain))
    }

    fn link(&self, choice: Choice) -> anyhow::Result<Link> {
        tracing::info!(model = %choice, "a model");
        let name = match &choice {
            Choice::Scripted => "",
            Choice::OpenAi(model) | Choice::Anthropic(model) => model,
        };
        let context = match self.settings.context_tokens {
            0 => known::context(name),
            tokens => tokens,
        };
        let sees = known::sees(name);
        let model: Arc<dyn Model> = match choice {
            Choice::Scripted => Arc::new(Scripted::new(self.settings.scripted_pace.get())),
            Choice::OpenAi(model) => {
                let base_url = self.openai_base_url();
                let access = self.access(model, base_url, self.openai_key())?;
                Arc::new(Client::<ChatCompletions>::new(access))
            }
            Choice::Anthropic(model) => {
                let base_url = self.anthropic_base_url();
                let access = self.access(model, base_url, self.anthropic_key())?;
                Arc::new(Client::<Messages>::new(access))
            }
        };
        Ok(Link { model, context, sees, next: None })
    }

    fn choice(&self) -> anyhow::Result<Choice> {
        self.named(&self.settings.name)
    }

    /// What a name chooses; an empty one leaves it to the keys.
    fn named(&self, name: &str) -> anyhow::Result<Choice> {
        let own_server = self.openai_base_url() != settings::Model::default().openai_base_url;
        match name.trim() {
            "" if !self.anthropic_key().is_empty() => {
                Ok(Choice::Anthropic(ANTHROPIC_DEFAULT.into()))
            }
            "" if !self.openai_key().is_empty() || own_server => {
                Ok(Choice::OpenAi(OPENAI_DEFAULT.into()))
            }
            "" | "scripted" => Ok(Choice::Scripted),
            name => match name.split_once(':') {
                Some(("openai", model)) if !model.is_empty() => {
                    if self.openai_key().is_empty() && !own_server {
                        bail!(
                            "the model is {name:?}, but there is no key; set OPENAI_API_KEY, or OPENAI_BASE_URL for a \
                             server without keys"
                        );
                    }
                    Ok(Choice::OpenAi(model.into()))
                }
                Some(("anthropic", model)) if !model.is_empty() => {
                    if self.anthropic_key().is_empty() {
                        bail!("the model is {name:?}, but there is no key; set ANTHROPIC_API_KEY");
                    }
                    Ok(Choice::Anthropic(model.into()))
                }
                _ => bail!(
                    "unknown model {name:?}; write \"scripted\", \"openai:NAME\" or \"anthropic:NAME\""
                ),
            },
        }
    }

    fn access(&self, model: String, base_url: String, key: String) -> anyhow::Result<Access> {
        let url: reqwest::Url =
            base_url.parse().with_context(|| format!("not an address: {base_url:?}"))?;
        if !matches!(url.scheme(), "http" | "https") {
            bail!("not an http or https address: {base_url:?}");
        }
        Ok(Access {
            http: crate::http::client()?,
            base_url: base_url.trim_end_matches('/').to_owned(),
            key: Secret::new(key),
            model,
            stall: self.settings.stall.limit(),
        })
    }

    fn openai_key(&self) -> String {
        self.key(&self.settings.openai_api_key, "OPENAI_API_KEY")
    }

    fn anthropic_key(&self) -> String {
        self.key(&self.settings.anthropic_api_key, "ANTHROPIC_API_KEY")
    }

    fn openai_base_url(&self) -> String {
        let default = settings::Model::default().openai_base_url;
        self.address(&self.settings.openai_base_url, &default, "OPENAI_BASE_URL")
    }

    fn anthropic_base_url(&self) -> String {
        let default = settings::Model::default().anthropic_base_url;
        self.address(&self.settings.anthropic_base_url, &default, "ANTHROPIC_BASE_URL")
    }

    fn key(&self, setting: &Secret, name: &str) -> String {
        setting.given().map_or_else(|| self.variable(name), str::to_owned)
    }

    fn address(&self, setting: &str, default: &str, name: &str) -> String {
        if setting.trim_end_matches('/') != default {
            return setting.to_owned();
        }
        Some(self.variable(name)).filter(|url| !url.is_empty()).unwrap_or_else(|| default.into())
    }

    fn variable(&self, name: &str) -> String {
        (self.environment)(name).unwrap_or_default().trim().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(name: &str, environment: &[(&str, &str)]) -> Result<Choice, String> {
        let settings = settings::Model { name: name.into(), ..settings::Model::default() };
        let environment = |wanted: &str| {
            let found = environment.iter().find(|(name, _)| *name == wanted);
            found.map(|(_, value)| (*value).to_owned())
        };
        Chooser { settings: &settings, environment: &environment }
            .choice()
            .map_err(|error| error.to_string())
    }

    #[test]
    fn keys_choose_when_no_name_is_set() {
        assert_eq!(choice("", &[]), Ok(Choice::Scripted));
        let openai = Choice::OpenAi(OPENAI_DEFAULT.into());
        assert_eq!(choice("", &[("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")]), Ok(openai));
        let anthropic = Choice::Anthropic(ANTHROPIC_DEFAULT.into());
        let both = [("OPENAI_API_KEY", "a"), ("ANTHROPIC_API_KEY", "b")];
        assert_eq!(choice("", &both), Ok(anthropic));
        assert_eq!(choice("scripted", &both), Ok(Choice::Scripted));
        assert_eq!(choice("openai:local", &both), Ok(Choice::OpenAi("local".into())));
    }

    #[test]
    fn a_wrong_name_says_what_to_write() {
        for name in ["gpt", "openai:", "mistral:x", "anthropic:claude", "openai:gpt"] {
            let error = choice(name, &[]).unwrap_err();
            assert!(error.contains("write") || error.contains("set "), "{error}");
        }
        let settings = settings::Model { name: "x".into(), ..settings::Model::default() };
        let error = choose(&settings).err().unwrap();
        assert_eq!(Exit::of(&error), Exit::Configuration);
    }

    #[test]
    fn fallbacks_stand_behind_in_order_and_are_checked_at_the_start() {
        let with = |fallbacks: &[&str]| settings::Model {
            name: "openai:gpt-5".into(),
            openai_api_key: Secret::new("k".into()),
            fallbacks: fallbacks.iter().map(|name| (*name).to_owned()).collect(),
            ..settings::Model::default()
        };
        let choose =
            |settings: &settings::Model| Chooser { settings, environment: &|_| None }.choose();
        let first = choose(&with(&["openai:gpt-3.5-turbo", "scripted"])).unwrap();
        let second = first.fallback().unwrap();
        assert_eq!((first.context_tokens(), second.context_tokens()), (272_000, 16_385));
        assert!(first.sees() && !second.sees());
        assert!(second.fallback().unwrap().fallback().is_none());
        assert!(choose(&with(&["anthropic:claude"])).is_err(), "no key");
    }

    #[test]
    fn an_explicit_setting_wins_over_the_environment() {
        let settings = settings::Model {
            openai_api_key: Secret::new("setting".into()),
            openai_base_url: "http://setting/v1".into(),
            ..settings::Model::default()
        };
        let chooser = Chooser { settings: &settings, environment: &|_| Some("variable".into()) };
        assert_eq!(chooser.openai_key(), "setting");
        assert_eq!(chooser.openai_base_url(), "http://setting/v1");
        assert_eq!(chooser.anthropic_key(), "variable");
    }
}
