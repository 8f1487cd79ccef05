//! A folder of secrets: a file for each, named as the setting that it is, as Kubernetes and Compose mount them.

use std::io;
use std::path::Path;

use config::{ConfigError, Map, Source, Value, ValueKind};

/// What the folder held when it was read.
#[derive(Clone, Debug)]
pub(super) struct Secrets(Vec<(String, Value)>);

/// Reads all files of the folder; the newline that editors leave at the end is not part of a secret. Hidden names are not ours:
/// Kubernetes keeps its versions under them.
pub(super) fn read(folder: &Path) -> io::Result<Secrets> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        if name.starts_with('.') || !path.is_file() {
            continue;
        }
        let text = std::fs::read_to_string(&path)?;
        let secret = text.strip_suffix('\n').unwrap_or(&text).to_owned();
        let origin = path.display().to_string();
        found.push((name.to_owned(), Value::new(Some(&origin), ValueKind::String(secret))));
    }
    Ok(Secrets(found))
}

impl Source for Secrets {
    fn clone_into_box(&self) -> Box<dyn Source + Send + Sync> {
        Box::new(self.clone())
    }

    fn collect(&self) -> Result<Map<String, Value>, ConfigError> {
        Ok(self.0.iter().cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use config::Environment;

    use super::super::{Flags, load_from};
    use super::*;

    #[test]
    fn a_mounted_secret_is_the_setting_of_its_name() {
        let folder = std::env::temp_dir().join(format!("talaria-secrets-{}", std::process::id()));
        // The way Kubernetes mounts it: links into a hidden folder.
        let hidden = folder.join("..2026_11_30");
        std::fs::create_dir_all(&hidden).unwrap();
        for (name, secret) in [
            ("nats.password", "00123e4\n"),
            ("ingress.token", "hush"),
            ("ingress.webhook.my-hook.secret", "s"),
        ] {
            std::fs::write(hidden.join(name), secret).unwrap();
            symlink(hidden.join(name), folder.join(name)).unwrap();
        }
        let environment = Environment::with_prefix("TALARIA").source(Some(Map::new()));
        let none = folder.with_extension("toml");
        std::fs::write(&none, "[ingress]\ntoken = \"from the file\"\n").unwrap();

        let loaded =
            load_from(Some(&none), Some(&folder), environment.clone(), Flags::default()).unwrap();
        std::fs::remove_file(&none).unwrap();
        let empty = load_from(None, Some(&none), environment, Flags::default());
        std::fs::remove_dir_all(&folder).unwrap();

        let settings = &loaded.settings;
        assert_eq!(settings.nats.password.expose(), "00123e4");
        assert_eq!(settings.ingress.token.expose(), "hush");
        assert_eq!(settings.ingress.webhook["my-hook"].secret.expose(), "s");
        let shown = &loaded.effective["ingress.token"];
        assert!(shown.origin.ends_with("ingress.token") && !shown.value.contains("hush"));
        assert!(empty.unwrap_err().to_string().contains("TALARIA_SECRETS"));
    }
}
