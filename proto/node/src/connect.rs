//! Connecting to the broker: who we are, how it proves what it is, and what to do when it does not let us in.

use async_nats::{Client, ConnectErrorKind, ConnectOptions};

use crate::settings;

/// The broker cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// It does not answer.
    #[error("no NATS server answers at {url}; start one, or set --nats or TALARIA__NATS__URL")]
    Unreachable {
        /// Where it was looked for.
        url: String,
        /// What went wrong.
        #[source]
        source: async_nats::ConnectError,
    },
    /// It does not let this user in.
    #[error(
        "the NATS server at {url} does not let us in; check nats.user and nats.password, nats.credentials, or nats.cert_file"
    )]
    Refused {
        /// Where it is.
        url: String,
        /// What it said.
        #[source]
        source: async_nats::ConnectError,
    },
    /// One side does not believe the other's certificate.
    #[error(
        "no TLS with the NATS server at {url}; check nats.ca_file, and nats.cert_file with nats.key_file where it asks for a \
         certificate"
    )]
    Tls {
        /// Where it is.
        url: String,
        /// What went wrong.
        #[source]
        source: async_nats::ConnectError,
    },
    /// The credentials file cannot be read.
    #[error("unreadable credentials file (nats.credentials)")]
    Credentials(#[source] std::io::Error),
    /// A certificate without its key, or the other way round.
    #[error("nats.cert_file and nats.key_file belong together; set both or neither")]
    HalfACertificate,
    /// It is too old: it would silently ignore settings that we depend on.
    #[error("the NATS server at {url} has version {found}; 2.11 or newer is needed")]
    TooOld {
        /// Where it is.
        url: String,
        /// Its version.
        found: String,
    },
}

/// Who we are, and whom we believe.
pub(crate) async fn options(settings: &settings::Nats) -> Result<ConnectOptions, ConnectError> {
    let mut options = ConnectOptions::new();
    if !settings.user.is_empty() {
        let password = settings.password.expose().to_owned();
        options = options.user_and_password(settings.user.clone(), password);
    }
    if let Some(file) = &settings.ca_file {
        options = options.add_root_certificates(file.clone());
    }
    match (&settings.cert_file, &settings.key_file) {
        (Some(cert), Some(key)) => {
            options = options.add_client_certificate(cert.clone(), key.clone())
        }
        (None, None) => {}
        (Some(_), None) | (None, Some(_)) => return Err(ConnectError::HalfACertificate),
    }
    if let Some(file) = &settings.credentials {
        options = options.credentials_file(file).await.map_err(ConnectError::Credentials)?;
    }
    Ok(options)
}

/// Connects to one of the addresses and checks the server's version.
pub(crate) async fn connect(options: ConnectOptions, url: &str) -> Result<Client, ConnectError> {
    let servers: Vec<&str> = url.split(',').map(str::trim).collect();
    let client =
        options.connect(servers).await.map_err(|source| failure(url.to_owned(), source))?;
    if client.is_server_compatible(2, 11, 0) {
        return Ok(client);
    }
    Err(ConnectError::TooOld { url: url.to_owned(), found: client.server_info().version })
}

fn failure(url: String, source: async_nats::ConnectError) -> ConnectError {
    match source.kind() {
        ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => {
            ConnectError::Refused { url, source }
        }
        ConnectErrorKind::Tls => ConnectError::Tls { url, source },
        ConnectErrorKind::Io if is_tls(&source) => ConnectError::Tls { url, source },
        ConnectErrorKind::ServerParse
        | ConnectErrorKind::Dns
        | ConnectErrorKind::TimedOut
        | ConnectErrorKind::Io
        | ConnectErrorKind::MaxReconnects => ConnectError::Unreachable { url, source },
    }
}

/// Whether what looks like a failure of the connection is one of TLS, which the client passes on as unusable data.
fn is_tls(error: &async_nats::ConnectError) -> bool {
    let cause = std::error::Error::source(error);
    cause
        .and_then(|cause| cause.downcast_ref::<std::io::Error>())
        .is_some_and(|cause| cause.kind() == std::io::ErrorKind::InvalidData)
}
