//! npm packages for tests of other people's programs: installed once, and kept in the target folder.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A folder with the packages in its `node_modules`; else the reason why there is none.
///
/// # Errors
/// When there is no npm, or a package cannot be installed.
pub fn with_packages(folder: &Path, packages: &[&str]) -> Result<PathBuf, String> {
    std::fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    let lock = File::create(folder.join("lock")).map_err(|error| error.to_string())?;
    // Other tests may be making the same one.
    lock.lock().map_err(|error| error.to_string())?;
    let done = folder.join("installed");
    let wanted = packages.join("\n");
    if std::fs::read_to_string(&done).is_ok_and(|have| have == wanted) {
        return Ok(folder.to_owned());
    }
    let mut npm = Command::new("npm");
    npm.args([
        "install",
        "--no-audit",
        "--no-fund",
        "--ignore-scripts",
        "--save-exact",
        "--prefix",
    ]);
    let output = npm.arg(folder).args(packages).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("npm: {error}"))?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(text.lines().last().unwrap_or("npm gave no reason").to_owned());
    }
    std::fs::write(done, wanted).map_err(|error| error.to_string())?;
    Ok(folder.to_owned())
}
