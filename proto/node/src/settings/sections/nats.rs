//! `[nats]`: how to reach the broker.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::settings::values::Secret;

/// `[nats]`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Nats {
    /// Where the broker is (`nats://`, or `tls://` to insist on TLS); several addresses of one cluster are separated by commas.
    pub url: String,
    /// A credentials file (`.creds`), if the broker asks for one.
    pub credentials: Option<PathBuf>,
    /// A user name, if the broker asks for one.
    pub user: String,
    /// Its password.
    pub password: Secret,
    /// A file with the certificates of the authorities to trust, for TLS with a private authority.
    pub ca_file: Option<PathBuf>,
    /// A file with our own certificate, if the broker asks for one (mTLS).
    pub cert_file: Option<PathBuf>,
    /// A file with its private key.
    pub key_file: Option<PathBuf>,
}

impl Default for Nats {
    fn default() -> Self {
        Self {
            url: "nats://127.0.0.1:4222".into(),
            credentials: None,
            user: String::new(),
            password: Secret::default(),
            ca_file: None,
            cert_file: None,
            key_file: None,
        }
    }
}
