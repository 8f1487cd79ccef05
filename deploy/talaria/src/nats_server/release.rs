//! nats-server from the official release archive: downloaded, checked, and the one binary unpacked by the system's `tar`.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use super::pins::{self, RELEASE_VERSION};

/// How long the download may take.
const DOWNLOAD: Duration = Duration::from_secs(300);
/// How long the server may take to answer at all.
const CONNECT: Duration = Duration::from_secs(15);

/// No binary from the release archive.
#[derive(Debug, thiserror::Error)]
pub enum ReleaseError {
    /// There is no archive for this system.
    #[error("no archive is pinned for {} on {}", std::env::consts::OS, std::env::consts::ARCH)]
    Platform,
    /// It cannot be downloaded.
    #[error("{0}")]
    Download(String),
    /// Something else than expected was downloaded.
    #[error("{url} is not the expected archive: its SHA-256 is {found}")]
    Hash {
        /// Where it came from.
        url: String,
        /// What it has.
        found: String,
    },
    /// It cannot be stored or unpacked.
    #[error("the archive cannot be unpacked: {0}")]
    Unpack(#[from] io::Error),
}

impl From<reqwest::Error> for ReleaseError {
    fn from(error: reqwest::Error) -> Self {
        Self::Download(format!("{:#}", anyhow::Error::new(error)))
    }
}

/// Downloads the archive into `folder` and leaves the binary there. Returns its path.
///
/// # Errors
/// When it cannot be downloaded, or is not the pinned one.
pub(super) async fn get(folder: &Path) -> Result<PathBuf, ReleaseError> {
    let release = pins::release().ok_or(ReleaseError::Platform)?;
    let name = format!("nats-server-v{RELEASE_VERSION}-{}", release.platform);
    let url = format!(
        "https://github.com/nats-io/nats-server/releases/download/v{RELEASE_VERSION}/{name}.tar.gz"
    );
    let archive = folder.join("release.tar.gz");
    download(&url, &archive).await?;
    let file = archive.clone();
    let found = tokio::task::spawn_blocking(move || super::obtain::sha256(&file));
    let found = found.await.map_err(io::Error::other)??;
    if found != release.sha256 {
        return Err(ReleaseError::Hash { url, found });
    }
    let status = Command::new("tar")
        .arg("-xzf")
        .arg(&archive)
        .arg("-C")
        .arg(folder)
        .args(["--strip-components=1", &format!("{name}/nats-server")])
        .stdin(Stdio::null())
        .status()
        .await?;
    if !status.success() {
        return Err(io::Error::other(format!("tar ended with {status}")).into());
    }
    Ok(folder.join("nats-server"))
}

async fn download(url: &str, file: &Path) -> Result<(), ReleaseError> {
    node::process::install_tls();
    let client = reqwest::Client::builder().connect_timeout(CONNECT).timeout(DOWNLOAD).build()?;
    let mut response = client.get(url).send().await?.error_for_status()?;
    let mut out = tokio::fs::File::create(file).await?;
    while let Some(chunk) = response.chunk().await? {
        out.write_all(&chunk).await?;
    }
    out.flush().await?;
    Ok(())
}
