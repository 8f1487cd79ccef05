//! Settings: defaults, then `talaria.toml`, then the files of a folder of secrets, then `TALARIA__SECTION__KEY`, then flags. A
//! wrong value is an error; an unknown key is a warning that names the nearest known one.

mod secrets;
mod sections;
mod values;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use config::{ConfigError, Environment, File, FileFormat, Map, Source, Value, ValueKind};

pub use self::sections::{
    Access, Acp, Agent, Bots, ChannelAccess, Cron, CronAccess, Discord, Duplicates, Edits, Hook,
    Ingress, Limits, LogFormat, Mcp, Model, Nats, Network, OnError, PlatformAccess, SandboxMode,
    Scheduler, SearchKind, Settings, Slack, SlackMode, Speech, Streams, Telegram, TelegramMode,
    Telemetry, UnauthorizedDm, WebSearch, Webhook, Worker,
};
pub use self::values::{Secret, Span};

/// The file that is read when `--config` names none and it exists.
pub const DEFAULT_FILE: &str = "talaria.toml";
/// The variable that names a folder with a file for each secret, named as the setting: `nats.password`, `ingress.token`.
pub const SECRETS: &str = "TALARIA_SECRETS";

/// Settings that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The file named by `--config` is not there.
    #[error("no settings file at {}; create it or drop --config", .0.display())]
    Missing(PathBuf),
    /// The folder of secrets cannot be read.
    #[error("cannot read the secrets in {} ({SECRETS})", .folder.display())]
    Secrets {
        /// What cannot be read.
        folder: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The file is not TOML, or a source cannot be read.
    #[error("unreadable settings")]
    Source(#[source] ConfigError),
    /// A value is not of the expected form.
    #[error("bad setting {key}")]
    Value {
        /// Its full name.
        key: String,
        /// What is wrong with it.
        #[source]
        source: ConfigError,
    },
}

/// Where a setting came from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Effective {
    /// Its value as text, secrets masked.
    pub value: String,
    /// `default`, the file's path, `environment` or `flag`.
    pub origin: String,
}

/// What was read.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The settings.
    pub settings: Settings,
    /// Keys that no setting has, each with the nearest known one.
    pub warnings: Vec<String>,
    /// All settings by name, for `talaria config`.
    pub effective: BTreeMap<String, Effective>,
}

/// Flags as a source: the strongest one.
#[derive(Clone, Debug, Default)]
pub struct Flags(Vec<(&'static str, String)>);

impl Flags {
    /// Sets a key if the flag was given.
    #[must_use]
    pub fn set(mut self, key: &'static str, value: Option<impl ToString>) -> Self {
        self.0.extend(value.map(|value| (key, value.to_string())));
        self
    }
}

impl Source for Flags {
    fn clone_into_box(&self) -> Box<dyn Source + Send + Sync> {
        Box::new(self.clone())
    }

    fn collect(&self) -> Result<Map<String, Value>, ConfigError> {
        let origin = "flag".to_owned();
        let value = |text: &str| Value::new(Some(&origin), ValueKind::String(text.to_owned()));
        Ok(self.0.iter().map(|(key, text)| ((*key).to_owned(), value(text))).collect())
    }
}

/// Reads all sources.
///
/// # Errors
/// When a source cannot be read or a value is not of the expected form.
pub fn load(file: Option<&Path>, flags: Flags) -> Result<Loaded, SettingsError> {
    let environment = Environment::with_prefix("TALARIA").prefix_separator("__").separator("__");
    let secrets = std::env::var_os(SECRETS).map(PathBuf::from);
    load_from(file, secrets.as_deref(), environment, flags)
}

fn load_from(
    file: Option<&Path>,
    secrets: Option<&Path>,
    environment: Environment,
    flags: Flags,
) -> Result<Loaded, SettingsError> {
    let mut sources = config::Config::builder();
    match file {
        Some(path) if !path.exists() => return Err(SettingsError::Missing(path.to_owned())),
        Some(path) => sources = sources.add_source(File::from(path).format(FileFormat::Toml)),
        None => {
            sources = sources.add_source(File::new(DEFAULT_FILE, FileFormat::Toml).required(false))
        }
    }
    if let Some(folder) = secrets {
        let read = secrets::read(folder);
        let failed = |source| SettingsError::Secrets { folder: folder.to_owned(), source };
        sources = sources.add_source(read.map_err(failed)?);
    }
    let given =
        sources.add_source(environment).add_source(flags).build().map_err(SettingsError::Source)?;
    let origins = flatten(given.collect().map_err(SettingsError::Source)?);

    let mut unknown = Vec::new();
    let mut note = |path: serde_ignored::Path<'_>| unknown.push(path.to_string());
    let settings: Settings =
        serde_path_to_error::deserialize(serde_ignored::Deserializer::new(given, &mut note))
            .map_err(|error| SettingsError::Value {
                key: error.path().to_string(),
                source: error.into_inner(),
            })?;

    let effective = effective(&settings, &origins);
    let warnings = unknown.iter().map(|key| unknown_key(key, effective.keys())).collect();
    Ok(Loaded { settings, warnings, effective })
}

/// All leaf values of what was given, by full name, with their origins.
fn flatten(values: Map<String, Value>) -> BTreeMap<String, String> {
    fn visit(prefix: &str, value: Value, into: &mut BTreeMap<String, String>) {
        let origin = match value.origin() {
            None => "default".to_owned(),
            Some("the environment") => "environment".to_owned(),
            Some(origin) => origin.to_owned(),
        };
        if let ValueKind::Table(table) = value.kind {
            for (key, value) in table {
                visit(&format!("{prefix}.{key}"), value, into);
            }
        } else {
            into.insert(prefix.to_owned(), origin);
        }
    }
    let mut flat = BTreeMap::new();
    for (key, value) in values {
        visit(&key, value, &mut flat);
    }
    flat
}

/// The settings as they apply, by full name.
fn effective(
    settings: &Settings,
    origins: &BTreeMap<String, String>,
) -> BTreeMap<String, Effective> {
    fn visit(
        prefix: &str,
        value: &serde_json::Value,
        origins: &BTreeMap<String, String>,
        into: &mut BTreeMap<String, Effective>,
    ) {
        if let serde_json::Value::Object(table) = value {
            for (key, value) in table {
                let name = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
                visit(&name, value, origins, into);
            }
            return;
        }
        let text = value.as_str().map_or_else(|| value.to_string(), |text| format!("{text:?}"));
        let origin = origins.get(prefix).map_or("default", String::as_str).to_owned();
        into.insert(prefix.to_owned(), Effective { value: text, origin });
    }
    let mut all = BTreeMap::new();
    let value = serde_json::to_value(settings).expect("settings have string keys");
    visit("", &value, origins, &mut all);
    all
}

fn unknown_key<'a>(key: &str, known: impl Iterator<Item = &'a String>) -> String {
    let near = known
        .map(|name| (strsim::damerau_levenshtein(key, name), name))
        .min()
        .filter(|(distance, name)| *distance <= 3.max(name.len() / 3));
    match near {
        Some((_, name)) => format!("unknown setting {key}; did you mean {name}?"),
        None => format!("unknown setting {key}; `talaria config` lists the known ones"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(toml: &str, vars: &[(&str, &str)], flags: Flags) -> Result<Loaded, SettingsError> {
        let folder = std::env::temp_dir().join(format!(
            "talaria-settings-{}-{:?}",
            std::process::id(),
            std::thread::current().id()
        ));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("t.toml");
        std::fs::write(&file, toml).unwrap();
        let vars = vars.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let environment = Environment::with_prefix("TALARIA")
            .prefix_separator("__")
            .separator("__")
            .source(Some(vars));
        let loaded = load_from(Some(&file), None, environment, flags);
        std::fs::remove_dir_all(folder).unwrap();
        loaded
    }

    #[test]
    fn flags_beat_environment_beats_file_beats_default() {
        let toml = "[agent]\ntimeout = \"30m\"\nmax_iterations = 5\ntimeout_warning = \"0\"\n";
        let vars = [("TALARIA__AGENT__MAX_ITERATIONS", "7"), ("TALARIA__NATS__URL", "nats://b:1")];
        let loaded =
            read(toml, &vars, Flags::default().set("nats.url", Some("nats://c:1"))).unwrap();
        let Settings { agent, nats, .. } = &loaded.settings;
        assert_eq!((agent.timeout, agent.max_iterations), (Span::seconds(1800), 7));
        assert_eq!((agent.timeout_warning.limit(), nats.url.as_str()), (None, "nats://c:1"));
        let origin = |key: &str| loaded.effective[key].origin.clone();
        assert!(origin("agent.timeout").ends_with("t.toml"));
        assert_eq!(origin("agent.max_iterations"), "environment");
        assert_eq!(origin("nats.url"), "flag");
        assert_eq!(origin("agent.busy_mode"), "default");
        assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
    }

    #[test]
    fn an_unknown_key_is_named_with_its_neighbour() {
        let loaded =
            read("[agent]\ntimout = \"1s\"\n", &[("TALARIA__NATS__URLL", "x")], Flags::default())
                .unwrap();
        let mut warnings = loaded.warnings;
        warnings.sort();
        assert_eq!(
            warnings,
            [
                "unknown setting agent.timout; did you mean agent.timeout?",
                "unknown setting nats.urll; did you mean nats.url?"
            ]
        );
    }

    #[test]
    fn a_wrong_value_is_an_error_that_names_it() {
        let error = read("[agent]\ntimeout = \"soon\"\n", &[], Flags::default()).unwrap_err();
        let SettingsError::Value { key, source } = error else { panic!("a value error") };
        assert_eq!(key, "agent.timeout");
        assert!(source.to_string().contains("write for example"), "{source}");
    }

    #[test]
    fn access_is_read_by_platform_and_channel_with_ids_as_they_are() {
        let toml = r#"
            [access.platform.telegram]
            allowed_users = [12345, "678"]
            [access.platform.telegram.channel."-100123"]
            prompt = "Be brief."
            [access.platform."slack/main".channel.C0AB]
            model = "openai:small"
            [access.platform.matrix.channel."!room:server.org"]
            busy_mode = "queue"
        "#;
        let vars = [("TALARIA__ACCESS__ALLOWED_USERS", "7, @ann:server.org")];
        let loaded = read(toml, &vars, Flags::default()).unwrap();
        assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
        let access = loaded.settings.access;
        assert_eq!(access.allowed_users, ["7", "@ann:server.org"]);
        let telegram = access.of("telegram", "any");
        assert_eq!(telegram.allowed_users, ["12345", "678"]);
        assert_eq!(telegram.channel["-100123"].prompt.as_deref(), Some("Be brief."));
        assert!(access.of("slack", "main").channel.contains_key("C0AB"));
        assert_eq!(access.of("slack", "other"), PlatformAccess::default());
        let matrix = access.of("matrix", "x");
        assert_eq!(
            matrix.channel["!room:server.org"].busy_mode,
            Some(proto::event::BusyMode::Queue)
        );
    }

    #[test]
    fn secrets_are_never_shown() {
        let loaded =
            read("[ingress.webhook.w]\nsecret = \"hush\"\n", &[], Flags::default()).unwrap();
        assert_eq!(loaded.effective["ingress.webhook.w.secret"].value, "\"********\"");
        assert!(!format!("{:?}", loaded.settings).contains("hush"));
        assert_eq!(loaded.settings.ingress.webhook["w"].secret.expose(), "hush");
    }
}
