//! Python for tests of other people's clients: a virtual environment with a package in it, made once and kept in the target
//! folder.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A Python with the packages installed; else the reason why there is none.
///
/// # Errors
/// When there is no Python, or a package cannot be installed.
pub fn with_packages(folder: &Path, packages: &[&str]) -> Result<PathBuf, String> {
    std::fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    let lock = File::create(folder.join("lock")).map_err(|error| error.to_string())?;
    // Other tests may be making the same one.
    lock.lock().map_err(|error| error.to_string())?;
    let python = folder.join("venv/bin/python");
    let done = folder.join("installed");
    let wanted = packages.join("\n");
    if std::fs::read_to_string(&done).is_ok_and(|have| have == wanted) {
        return Ok(python);
    }
    run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(folder.join("venv")))?;
    let pip = ["-m", "pip", "--disable-pip-version-check", "--no-input", "install", "--quiet"];
    run(Command::new(&python).args(pip).args(packages))?;
    std::fs::write(done, wanted).map_err(|error| error.to_string())?;
    Ok(python)
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    Err(text.lines().last().unwrap_or("no reason given").to_owned())
}
