//! The folder in which the terminal and file tools work, and the check that a path stays inside it.

use std::io;
use std::path::{Component, Path, PathBuf};

/// A path that the file tools do not touch.
#[derive(Debug, thiserror::Error)]
pub(super) enum PathError {
    /// It leads out of the workspace.
    #[error("{0:?} is outside the workspace")]
    Outside(String),
    /// It cannot be looked up.
    #[error("{path:?}: {source}")]
    Io {
        /// The path.
        path: String,
        /// What went wrong.
        #[source]
        source: io::Error,
    },
}

/// The folder.
#[derive(Clone, Debug)]
pub(super) struct Workspace {
    root: PathBuf,
}

impl Workspace {
    /// Makes the folder if it is not there.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(path)?;
        Ok(Self { root: path.canonicalize()? })
    }

    /// The folder itself, without links.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// The real place of a path that is relative to the workspace (or lies in it); what is not there yet is allowed, links
    /// that lead out are not.
    pub(super) fn resolve(&self, path: &str) -> Result<PathBuf, PathError> {
        let outside = || PathError::Outside(path.to_owned());
        let wanted = self.root.join(path);
        let mut real = PathBuf::new();
        for part in wanted.components() {
            match part {
                Component::ParentDir => return Err(outside()),
                Component::CurDir => {}
                Component::Prefix(_) | Component::RootDir | Component::Normal(_) => real.push(part),
            }
            // A link is followed before the next part is added, wherever it stands. What is not there cannot be one.
            match real.canonicalize() {
                Ok(found) => real = found,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    if real.symlink_metadata().is_ok() {
                        return Err(outside());
                    }
                }
                Err(source) => return Err(PathError::Io { path: path.to_owned(), source }),
            }
        }
        if real.starts_with(&self.root) { Ok(real) } else { Err(outside()) }
    }

    /// A real place as the model should see it.
    pub(super) fn shown<'a>(&self, path: &'a Path) -> &'a Path {
        path.strip_prefix(&self.root).unwrap_or(path)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_path_stays_inside() {
        let folder = tempfile::tempdir().unwrap();
        let outside = folder.path().join("outside");
        std::fs::create_dir(&outside).unwrap();
        let workspace = Workspace::open(&folder.path().join("work")).unwrap();
        let root = workspace.root().to_owned();
        std::fs::create_dir(root.join("sub")).unwrap();
        std::fs::write(root.join("sub/file"), "x").unwrap();
        symlink(&outside, root.join("out")).unwrap();
        symlink(folder.path().join("nowhere"), root.join("dangling")).unwrap();
        symlink(root.join("sub"), root.join("in")).unwrap();

        for (path, real) in
            [("sub/file", "sub/file"), ("./sub/new", "sub/new"), ("new/deep/file", "new/deep/file")]
        {
            assert_eq!(workspace.resolve(path).unwrap(), root.join(real), "{path}");
        }
        assert_eq!(workspace.resolve("in/file").unwrap(), root.join("sub/file"));
        assert_eq!(workspace.resolve(".").unwrap(), root);
        assert_eq!(
            workspace.resolve(root.join("sub").to_str().unwrap()).unwrap(),
            root.join("sub")
        );
        for path in
            ["..", "../outside", "sub/../../outside", "/etc/passwd", "out/file", "out", "dangling"]
        {
            let refused = matches!(workspace.resolve(path), Err(PathError::Outside(_)));
            assert!(refused, "{path}");
        }
    }
}
