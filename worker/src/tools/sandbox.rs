//! What keeps the commands of the terminal in their place: they may read the system and their workspace, write only there and in
//! the folder for temporary files, and have limits. Landlock holds for a thread and all that it starts, so a command is started
//! from a thread that has just locked itself in. What the system cannot do is said, not pretended.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context;
use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetStatus, path_beneath_rules,
};
use node::exit::Exit;
use node::settings::{self, SandboxMode};

/// What may be read and run.
const READ: [&str; 15] = [
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc", "/opt", "/nix", "/proc", "/sys",
    "/dev", "/run", "/var/lib", "/snap",
];
/// Where tools of a person's own are kept, in their home. The home itself, with its keys, stays closed.
const HOME_READ: [&str; 8] =
    [".cargo", ".rustup", ".pyenv", ".nvm", ".local", ".bun", ".deno", "go"];
/// What may be written beside the workspace.
const WRITE: [&str; 7] =
    ["/tmp", "/var/tmp", "/dev/null", "/dev/zero", "/dev/tty", "/dev/pts", "/dev/shm"];
/// The newest rules that are asked for; older systems do what they can.
const RULES: ABI = ABI::V5;

/// How far commands are kept in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// By all the rules.
    Fully,
    /// By those that this system knows.
    Partly,
    /// Not at all: this system has no Landlock.
    Not,
    /// Not at all: the operator does not want it.
    Off,
}

impl Held {
    /// All of them.
    pub(crate) const ALL: [Self; 4] = [Self::Fully, Self::Partly, Self::Not, Self::Off];

    /// Its name, for counting.
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Fully => "full",
            Self::Partly => "partial",
            Self::Not => "none",
            Self::Off => "off",
        }
    }
}

/// The rules for commands.
#[derive(Clone, Debug)]
pub(crate) struct Sandbox {
    held: Held,
    read: Vec<PathBuf>,
    write: Vec<PathBuf>,
    /// What a shell runs first.
    limits: String,
}

impl Sandbox {
    /// The rules, tried out.
    ///
    /// # Errors
    /// When they are required and this system cannot keep them: exit 78.
    pub(crate) fn new(settings: &settings::Worker, workspace: &Path) -> anyhow::Result<Self> {
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let own = home.iter().flat_map(|home| HOME_READ.map(|name| home.join(name)));
        let read =
            READ.iter().map(PathBuf::from).chain(own).chain(settings.sandbox_read.iter().cloned());
        let temporary = std::env::var_os("TMPDIR").map(PathBuf::from);
        let write = WRITE.iter().map(PathBuf::from).chain(temporary).chain([workspace.to_owned()]);
        let mut limits =
            format!("ulimit -c 0; ulimit -f {}; ", settings.file_limit_mb.saturating_mul(1024));
        if settings.memory_limit_mb > 0 {
            limits += &format!("ulimit -v {}; ", settings.memory_limit_mb.saturating_mul(1024));
        }
        let mut sandbox =
            Self { held: Held::Off, read: read.collect(), write: write.collect(), limits };
        if settings.sandbox != SandboxMode::Off {
            sandbox.held = sandbox.tried();
        }
        if settings.sandbox == SandboxMode::Required && sandbox.held != Held::Fully {
            let found = sandbox.held.label();
            return Err(anyhow::anyhow!(
                "worker.sandbox is \"required\", and Landlock here is {found:?}"
            ))
            .context(Exit::Configuration);
        }
        tracing::info!(
            landlock = sandbox.held.label(),
            limits = sandbox.limits.trim(),
            "how commands are kept in"
        );
        Ok(sandbox)
    }

    /// How far commands are kept in.
    pub(crate) const fn held(&self) -> Held {
        self.held
    }

    /// The command line by which a shell sets the limits and becomes another shell, which runs `$0`.
    pub(super) fn prelude(&self, shell: &str) -> String {
        format!("{}exec {shell} -c \"$0\"", self.limits)
    }

    /// Starts something from a thread that is locked in.
    pub(super) fn start<T: Send>(
        &self,
        start: impl FnOnce() -> io::Result<T> + Send,
    ) -> io::Result<T> {
        if matches!(self.held, Held::Not | Held::Off) {
            return start();
        }
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                self.lock_in().map_err(io::Error::other)?;
                start()
            });
            thread.join().unwrap_or_else(|_| {
                Err(io::Error::other("the thread that starts commands broke down"))
            })
        })
    }

    /// What this system makes of the rules.
    fn tried(&self) -> Held {
        let status = std::thread::scope(|scope| scope.spawn(|| self.lock_in()).join());
        match status {
            Ok(Ok(RulesetStatus::FullyEnforced)) => Held::Fully,
            Ok(Ok(RulesetStatus::PartiallyEnforced)) => Held::Partly,
            Ok(Ok(RulesetStatus::NotEnforced)) | Err(_) => Held::Not,
            Ok(Err(error)) => {
                tracing::warn!(%error, "Landlock cannot be used");
                Held::Not
            }
        }
    }

    /// Locks the thread in, for good.
    fn lock_in(&self) -> Result<RulesetStatus, landlock::RulesetError> {
        let status = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(RULES))?
            .create()?
            .add_rules(path_beneath_rules(&self.read, AccessFs::from_read(RULES)))?
            .add_rules(path_beneath_rules(&self.write, AccessFs::from_all(RULES)))?
            .restrict_self()?;
        Ok(status.ruleset)
    }
}

#[cfg(test)]
mod tests {
    use super::super::process::Group;
    use super::super::workspace::Workspace;
    use super::*;

    async fn run(sandbox: &Sandbox, workspace: &Workspace, command: &str) -> (Option<i32>, String) {
        let mut group = Group::start(workspace, sandbox, command).unwrap();
        let mut text = Vec::new();
        let status = group.wait(|bytes| text.extend_from_slice(bytes)).await.unwrap();
        (status.code(), String::from_utf8_lossy(&text).into_owned())
    }

    #[tokio::test]
    async fn commands_write_only_where_they_may_and_have_limits() {
        // Not under the folder for temporary files, which is open.
        let home = PathBuf::from(std::env::var_os("HOME").unwrap());
        let folder = tempfile::Builder::new().prefix(".talaria-test-").tempdir_in(home).unwrap();
        let workspace = Workspace::open(&folder.path().join("workspace")).unwrap();
        let secret = folder.path().join("secret");
        std::fs::write(&secret, "s3cret").unwrap();
        let settings = settings::Worker { file_limit_mb: 1, ..settings::Worker::default() };
        let sandbox = Sandbox::new(&settings, workspace.root()).unwrap();
        let (code, text) =
            run(&sandbox, &workspace, "echo in > a && cat a && ulimit -c && echo \"$0\"").await;
        assert_eq!((code, text.starts_with("in\n0\n")), (Some(0), true), "{text}");
        let (_, text) =
            run(&sandbox, &workspace, "head -c 2000000 /dev/zero > big; wc -c < big").await;
        assert!(text.contains("1048576"), "{text}");
        if sandbox.held() != Held::Fully {
            return;
        }
        let outside = folder.path().join("out").display().to_string();
        let (code, text) = run(&sandbox, &workspace, &format!("echo x > {outside}")).await;
        assert!(code != Some(0) && !folder.path().join("out").exists(), "{text}");
        let (code, text) = run(&sandbox, &workspace, &format!("cat {}", secret.display())).await;
        assert!(code != Some(0) && !text.contains("s3cret"), "{text}");
        // The test itself is free.
        assert!(std::fs::read_to_string(&secret).is_ok());
    }

    #[test]
    fn what_is_off_is_called_off() {
        let folder = tempfile::tempdir().unwrap();
        let settings =
            settings::Worker { sandbox: SandboxMode::Off, ..settings::Worker::default() };
        assert_eq!(Sandbox::new(&settings, folder.path()).unwrap().held(), Held::Off);
    }
}
