//! Which fio is here.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fathom_fio_output::version::Version;
use fathom_model::{Failure, FailureKind};

use fathom_jobfile::variables::variable;

/// The environment's name for the fio to use; an option on the command line goes first.
pub const PROGRAM_VARIABLE: &str = "FATHOM_FIO";

/// The executable to run as fio.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Its path.
    pub path: PathBuf,
}

impl Program {
    /// Whether somebody names the fio to use: `asked`, or `$FATHOM_FIO`.
    pub fn is_named(asked: Option<&Path>) -> bool {
        asked.is_some() || variable(PROGRAM_VARIABLE).is_some_and(|name| !name.is_empty())
    }

    /// Finds fio: `asked` if given, else `$FATHOM_FIO`, else in `PATH`.
    ///
    /// # Errors
    /// A [`Failure`] when it is not there.
    pub fn find(asked: Option<&Path>) -> Result<Self, Failure> {
        let named = variable(PROGRAM_VARIABLE).filter(|name| !name.is_empty());
        let path = match asked.map(Path::to_owned).or(named.map(PathBuf::from)) {
            // A bare name is looked for as a shell would.
            Some(name) if name.components().count() == 1 => in_path(&name).unwrap_or(name),
            Some(path) => path,
            None => in_path(Path::new("fio")).ok_or_else(|| {
                let what = "fio is not installed: it is in no folder of PATH";
                Failure::new(FailureKind::FioMissing, what)
            })?,
        };
        if !path.is_file() {
            return Err(missing(&path, "there is no such program"));
        }
        Ok(Self { path })
    }

    /// Asks it for its version, which takes it about 15 ms; a run tells its
    /// version by itself.
    ///
    /// # Errors
    /// A [`Failure`] when it cannot be run or is no fio.
    pub fn version(&self) -> Result<Version, Failure> {
        let output = Command::new(&self.path)
            .arg("--version")
            .stdin(Stdio::null())
            .output()
            .map_err(|e| missing(&self.path, &format!("cannot be run: {e}")))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let first = text.lines().next().unwrap_or("").trim();
        Version::parse(first).ok_or_else(|| {
            let what = format!("is not fio: --version says \"{first}\"");
            missing(&self.path, &what)
        })
    }
}

fn missing(path: &Path, what: &str) -> Failure {
    Failure::new(FailureKind::FioMissing, what).about(path.display().to_string())
}

fn in_path(name: &Path) -> Option<PathBuf> {
    let folders = variable("PATH")?;
    std::env::split_paths(&folders)
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
}
