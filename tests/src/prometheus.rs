//! A real Prometheus for one test: scrapes what it is told to, evaluates our rules every second, and answers queries.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use reqwest::Url;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::{Child, Command};

use crate::wait::eventually;

/// The environment name of the folder of prometheus and promtool (`deploy/prometheus/tools.sh` prints one).
pub const TOOLS: &str = "TALARIA_PROMETHEUS";

const CONFIG: &str = "\
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: ['rules/*.yaml']
scrape_configs:
  - job_name: talaria
    file_sd_configs: [{files: [targets.json], refresh_interval: 1s}]
";

/// The server; dropping it ends it.
#[derive(Debug)]
pub struct Prometheus {
    folder: TempDir,
    address: SocketAddr,
    client: reqwest::Client,
    _child: Child,
}

impl Prometheus {
    /// Starts one; none where [`TOOLS`] is not set.
    ///
    /// # Panics
    /// When it does not start.
    pub async fn start() -> Option<Self> {
        let tools = PathBuf::from(std::env::var_os(TOOLS)?);
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::write(folder.path().join("prometheus.yaml"), CONFIG).expect("a configuration");
        hasty_rules(&folder.path().join("rules"));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        drop(listener);
        let log = std::fs::File::create(folder.path().join("log")).expect("a log file");
        let child = Command::new(tools.join("prometheus"))
            .current_dir(folder.path())
            .arg("--config.file=prometheus.yaml")
            .arg("--storage.tsdb.path=data")
            .arg(format!("--web.listen-address={address}"))
            .stdout(Stdio::null())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .expect("prometheus runs");
        let started = Self { folder, address, client: crate::http::client(), _child: child };
        eventually("prometheus is ready", || async {
            let ready = started.client.get(format!("http://{address}/-/ready")).send().await;
            ready.is_ok_and(|ready| ready.status().is_success()).then_some(())
        })
        .await;
        Some(started)
    }

    /// Chooses what is scraped from now on.
    ///
    /// # Panics
    /// When the file cannot be written.
    pub fn scrape(&self, addresses: &[SocketAddr]) {
        let targets: Vec<_> = addresses.iter().map(ToString::to_string).collect();
        let text = json!([{ "targets": targets }]).to_string();
        // Written beside and moved, so that half a file is never read.
        let (half, whole) =
            (self.folder.path().join("half"), self.folder.path().join("targets.json"));
        std::fs::write(&half, text).expect("the targets");
        std::fs::rename(half, whole).expect("the targets");
    }

    /// What a query returns now.
    ///
    /// # Errors
    /// When the query is wrong.
    ///
    /// # Panics
    /// When Prometheus does not answer.
    pub async fn query(&self, expression: &str) -> Result<Vec<Value>, String> {
        let base = format!("http://{}/api/v1/query", self.address);
        let url = Url::parse_with_params(&base, [("query", expression)]).expect("a URL");
        let answer = self.client.get(url).send().await.expect("prometheus answers");
        let answer: Value = answer.json().await.expect("prometheus answers with JSON");
        match answer["data"]["result"].as_array() {
            Some(result) => Ok(result.clone()),
            None => Err(answer["error"].as_str().unwrap_or("no result").to_owned()),
        }
    }

    /// Waits until a query returns something.
    ///
    /// # Panics
    /// When it is wrong, or returns nothing in time.
    pub async fn sees(&self, expression: &str) {
        eventually(&format!("prometheus sees {expression}"), || async {
            let found = self.query(expression).await;
            let found = found.unwrap_or_else(|error| panic!("{expression}: {error}"));
            (!found.is_empty()).then_some(())
        })
        .await;
    }

    /// Waits until an alert fires.
    pub async fn fires(&self, alert: &str) {
        self.sees(&format!("ALERTS{{alertname=\"{alert}\",alertstate=\"firing\"}}")).await;
    }
}

/// Our rules, but evaluated each second and without patience: a test must not take minutes.
fn hasty_rules(folder: &Path) {
    std::fs::create_dir_all(folder).expect("a folder");
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/prometheus/rules");
    for file in std::fs::read_dir(ours).expect("the rules") {
        let path = file.expect("a file").path();
        let text = std::fs::read_to_string(&path).expect("a rule file");
        let hasty: Vec<_> = text
            .lines()
            .map(|line| match line.trim_start() {
                rest if rest.starts_with("for: ") => "        for: 1s",
                rest if rest.starts_with("interval: ") => "    interval: 1s",
                _ => line,
            })
            .collect();
        let name = path.file_name().expect("a file name");
        std::fs::write(folder.join(name), hasty.join("\n") + "\n").expect("a rule file");
    }
}
