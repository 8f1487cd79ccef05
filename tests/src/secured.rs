//! A nats-server as an installation has it: TLS both ways, a user for each service, and the permissions of the chart.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use async_nats::{ConnectOptions, Event};
use node::settings::{Nats, Secret};
use proto::permission::{User, service_name};
use proto::subject;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use talaria::nats_server::obtain;
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::sync::mpsc;

use crate::nats::TOOLS;
use crate::wait::eventually;

/// The chart's copy of the permissions, which its broker reads.
const PERMISSIONS: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/kubernetes/chart/files/nats-permissions.conf");

/// The server; dropping it kills it.
#[derive(Debug)]
pub struct SecuredNats {
    // Killed before its folder goes.
    _child: Child,
    port: u16,
    folder: TempDir,
}

impl SecuredNats {
    /// Makes certificates and starts one.
    ///
    /// # Panics
    /// When it does not start.
    pub async fn start() -> Self {
        node::process::install_tls();
        let binary = obtain(Path::new(TOOLS)).await.unwrap_or_else(|error| panic!("{error}"));
        let folder = tempfile::tempdir().expect("a temporary folder");
        write_certificates(folder.path());
        std::fs::copy(PERMISSIONS, folder.path().join("nats-permissions.conf")).expect("copied");
        let config = folder.path().join("nats.conf");
        std::fs::write(&config, configuration(folder.path())).expect("a configuration");
        let mut command = Command::new(&binary.path);
        for user in User::ALL {
            let name = format!("NATS_PASSWORD_{}", user.to_string().to_uppercase());
            command.env(name, password(user));
        }
        let child = command
            .arg("--config")
            .arg(&config)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("nats-server runs");
        let log = folder.path().join("nats.log");
        let port = eventually("a port of the secured broker", || {
            let text = std::fs::read_to_string(&log).unwrap_or_default();
            let port = text.contains("Server is ready").then(|| port_in(&text)).flatten();
            async move { port }
        })
        .await;
        Self { _child: child, port, folder }
    }

    /// How a user reaches it.
    #[must_use]
    pub fn access(&self, user: User) -> Nats {
        Nats {
            url: format!("tls://127.0.0.1:{}", self.port),
            user: user.to_string(),
            password: Secret::new(password(user)),
            ca_file: Some(self.file("ca.pem")),
            cert_file: Some(self.file("client.pem")),
            key_file: Some(self.file("client-key.pem")),
            ..Nats::default()
        }
    }

    /// A bare connection as a user, with what the broker says to it of its mistakes.
    ///
    /// # Panics
    /// When the user is not let in.
    pub async fn connect(
        &self,
        user: User,
    ) -> (async_nats::Client, mpsc::UnboundedReceiver<String>) {
        let access = self.access(user);
        let (sender, errors) = mpsc::unbounded_channel();
        let prefix = match user {
            User::Service(role) => service_name(role),
            User::Operator => "talaria-test".to_owned(),
        };
        let client = ConnectOptions::with_user_and_password(
            access.user,
            access.password.expose().to_owned(),
        )
        .add_root_certificates(self.file("ca.pem"))
        .add_client_certificate(self.file("client.pem"), self.file("client-key.pem"))
        .custom_inbox_prefix(subject::reply_prefix(&prefix))
        .request_timeout(Some(std::time::Duration::from_secs(2)))
        .event_callback(move |event| {
            if let Event::ServerError(error) = event {
                let _ = sender.send(error.to_string());
            }
            std::future::ready(())
        })
        .connect(access.url)
        .await
        .expect("the broker lets the user in");
        (client, errors)
    }

    /// What the broker has refused so far, as it logs it.
    #[must_use]
    pub fn refusals(&self) -> Vec<String> {
        let log = std::fs::read_to_string(self.file("nats.log")).unwrap_or_default();
        log.lines().filter(|line| line.contains("Violation")).map(str::to_owned).collect()
    }

    /// A file in the server's folder.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// Nobody else's, and with a beginning that the configuration does not take for a number.
fn password(user: User) -> String {
    format!("p-{user}-0123")
}

fn configuration(folder: &Path) -> String {
    let users: String = User::ALL
        .iter()
        .map(|user| {
            let name = user.to_string();
            let upper = name.to_uppercase();
            format!(
                "    {{ user: {name}, password: $NATS_PASSWORD_{upper}, permissions: ${upper} }}\n"
            )
        })
        .collect();
    let at = |name: &str| format!("{:?}", folder.join(name).to_string_lossy());
    format!(
        "listen: \"127.0.0.1:-1\"\n\
         log_file: {log}\n\
         max_payload: 8MB\n\
         jetstream {{ store_dir: {store} }}\n\
         tls {{ cert_file: {cert}, key_file: {key}, ca_file: {ca}, verify: true, timeout: 10 }}\n\
         authorization {{\n    include \"nats-permissions.conf\"\n    users: [\n{users}    ]\n}}\n",
        log = at("nats.log"),
        store = at("store"),
        cert = at("server.pem"),
        key = at("server-key.pem"),
        ca = at("ca.pem"),
    )
}

/// The port for clients in the server's log.
fn port_in(log: &str) -> Option<u16> {
    let line = log.lines().find(|line| line.contains("Listening for client connections"))?;
    line.rsplit(':').next()?.trim().parse().ok()
}

/// An authority, and certificates of it for the server and for clients.
fn write_certificates(folder: &Path) {
    let write =
        |name: &str, text: String| std::fs::write(folder.join(name), text).expect("written");
    let mut params = CertificateParams::new(Vec::<String>::new()).expect("parameters");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    let authority = CertifiedIssuer::self_signed(params, key).expect("an authority");
    write("ca.pem", authority.pem());
    for (name, host) in [("server", "127.0.0.1"), ("client", "talaria")] {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(vec![host.to_owned()]).expect("parameters");
        let certificate = params.signed_by(&key, &authority).expect("a certificate");
        write(&format!("{name}.pem"), certificate.pem());
        write(&format!("{name}-key.pem"), key.serialize_pem());
    }
}
