//! A headless browser, driven over WebDriver by plain HTTP: Debian's Chromium, or whatever Chrome is there.

use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::{Child, Command};

use crate::http;
use crate::wait::eventually;

/// The key under which WebDriver names an element.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// The browser; dropping it ends it.
#[derive(Debug)]
pub struct Browser {
    client: reqwest::Client,
    session: String,
    _driver: Child,
    _profile: TempDir,
}

impl Browser {
    /// Starts one; none if there is no browser or no driver, with the reason.
    ///
    /// # Errors
    /// When `chromedriver` or a browser is missing.
    ///
    /// # Panics
    /// When both are there and do not work.
    pub async fn start() -> Result<Self, String> {
        let driver = on_path(&["chromedriver"]).ok_or("there is no chromedriver on PATH")?;
        let chrome = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
        let chrome = on_path(&chrome).ok_or("there is no Chromium on PATH")?;
        let profile = tempfile::tempdir().map_err(|error| error.to_string())?;
        let port = free_port();
        let child = Command::new(driver)
            .arg(format!("--port={port}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| error.to_string())?;
        let (client, base) = (http::client(), format!("http://127.0.0.1:{port}"));
        eventually("the driver answers", || {
            let status = client.get(format!("{base}/status")).send();
            async { status.await.ok().map(|_| ()) }
        })
        .await;
        let options = json!({
            "binary": chrome,
            "args": [
                "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                "--no-proxy-server", format!("--user-data-dir={}", profile.path().display()),
            ],
        });
        let wanted =
            json!({ "capabilities": { "alwaysMatch": { "goog:chromeOptions": options } } });
        let made = call(&client, &format!("{base}/session"), &wanted).await?;
        let id = made["sessionId"].as_str().ok_or("the driver made no session")?;
        let session = format!("{base}/session/{id}");
        Ok(Self { client, session, _driver: child, _profile: profile })
    }

    /// Opens an address.
    pub async fn open(&self, url: &str) {
        self.post("url", &json!({ "url": url })).await;
    }

    /// Types into the element that a CSS selector names.
    pub async fn write(&self, selector: &str, text: &str) {
        let element = self.element(selector).await;
        self.post(&format!("element/{element}/value"), &json!({ "text": text })).await;
    }

    /// Clicks the element that a CSS selector names.
    pub async fn click(&self, selector: &str) {
        let element = self.element(selector).await;
        self.post(&format!("element/{element}/click"), &json!({})).await;
    }

    /// What a script returns.
    pub async fn script(&self, script: &str) -> Value {
        self.post("execute/sync", &json!({ "script": script, "args": [] })).await
    }

    /// The texts of all elements that a CSS selector names.
    pub async fn texts(&self, selector: &str) -> Vec<String> {
        let script =
            format!("return [...document.querySelectorAll({selector:?})].map(e => e.textContent)");
        let texts = self.script(&script).await;
        let texts = texts.as_array().into_iter().flatten();
        texts.filter_map(|text| text.as_str().map(str::to_owned)).collect()
    }

    /// Waits until the texts of the elements have an answer.
    pub async fn wait_for<T>(
        &self,
        what: &str,
        selector: &str,
        look: impl Fn(&[String]) -> Option<T>,
    ) -> T {
        eventually(what, async || look(&self.texts(selector).await)).await
    }

    async fn element(&self, selector: &str) -> String {
        let query = json!({ "using": "css selector", "value": selector });
        let found = self.post("element", &query).await;
        found[ELEMENT].as_str().unwrap_or_else(|| panic!("no element {selector:?}")).to_owned()
    }

    async fn post(&self, path: &str, body: &Value) -> Value {
        let url = format!("{}/{path}", self.session);
        call(&self.client, &url, body).await.unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// Ends the session, and with it the browser.
    pub async fn close(self) {
        // The driver's end would leave the browser behind.
        let _ = self.client.delete(&self.session).timeout(Duration::from_secs(10)).send().await;
    }
}

async fn call(client: &reqwest::Client, url: &str, body: &Value) -> Result<Value, String> {
    let answer = client.post(url).json(body).send().await.map_err(|error| error.to_string())?;
    let fine = answer.status().is_success();
    let value: Value = answer.json().await.map_err(|error| error.to_string())?;
    if fine { Ok(value["value"].clone()) } else { Err(value["value"]["message"].to_string()) }
}

fn on_path(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let folders: Vec<_> = std::env::split_paths(&path).collect();
    let mut files =
        names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    files.find(|file| file.is_file())
}

fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    listener.local_addr().expect("a bound socket has an address").port()
}
