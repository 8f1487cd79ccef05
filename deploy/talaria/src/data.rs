//! The data folder: everything that a system on one machine keeps, and the lock that makes it one system's.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use node::settings::Secret;

/// Where a system keeps its data if nothing else is said.
pub const DEFAULT: &str = ".talaria";

/// A data folder that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// Another process uses it.
    #[error(
        "another talaria runs on the data in {}; stop it, or give this one a folder of its own with --data DIR", .0.display()
    )]
    Taken(PathBuf),
    /// It cannot be created or written.
    #[error("cannot use the data folder {}", .folder.display())]
    Unusable {
        /// Which one.
        folder: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// A data folder that is ours as long as this value lives.
#[derive(Debug)]
pub struct Data {
    folder: PathBuf,
    _lock: File,
}

impl Data {
    /// Creates the folder if need be, and takes it.
    ///
    /// # Errors
    /// When another process has it, or it cannot be written.
    pub fn open(folder: &Path) -> Result<Self, DataError> {
        let unusable = |source| DataError::Unusable { folder: folder.to_owned(), source };
        std::fs::create_dir_all(folder).map_err(unusable)?;
        let folder = folder.canonicalize().map_err(unusable)?;
        let lock = File::create(folder.join("lock")).map_err(unusable)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { folder, _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(DataError::Taken(folder)),
            Err(TryLockError::Error(source)) => Err(unusable(source)),
        }
    }

    /// Where it is.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where downloaded tools go.
    #[must_use]
    pub fn tools(&self) -> PathBuf {
        self.folder.join("tools")
    }

    /// Where the agent's terminal and file tools work.
    #[must_use]
    pub fn workspace(&self) -> PathBuf {
        self.folder.join("workspace")
    }

    /// The access token, the same at each start, so that an address that was opened once goes on working.
    ///
    /// # Errors
    /// When it can neither be read nor written.
    pub fn token(&self) -> Result<Secret, DataError> {
        kept_secret(&self.folder.join("token"))
            .map_err(|source| DataError::Unusable { folder: self.folder.clone(), source })
    }
}

/// The secret in a file that only its owner can read; 128 random bits as hex, made the first time.
///
/// # Errors
/// When the file can neither be read nor written.
pub fn kept_secret(file: &Path) -> io::Result<Secret> {
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(file)?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    if text.trim().is_empty() {
        text = hex::encode(node::process::random::<16>());
        file.write_all(text.as_bytes())?;
    }
    Ok(Secret::new(text.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_folder_belongs_to_one_process() {
        let folder = tempfile::tempdir().unwrap();
        let first = Data::open(folder.path()).unwrap();
        assert!(matches!(Data::open(folder.path()), Err(DataError::Taken(_))));
        drop(first);
        assert!(Data::open(folder.path()).is_ok());
    }

    #[test]
    fn the_token_stays_and_is_private() {
        let folder = tempfile::tempdir().unwrap();
        let data = Data::open(folder.path()).unwrap();
        let token = data.token().unwrap();
        assert_eq!(token.expose().len(), 32);
        assert_eq!(data.token().unwrap(), token);
        let mode = std::fs::metadata(folder.path().join("token")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
