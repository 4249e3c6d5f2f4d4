//! PyPI's kconfiglib, the oracle of the Kconfig tests.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The version that the tests were written against.
const VERSION: &str = "14.1.0";

/// A virtual environment below `dir` with kconfiglib and its commands in `bin/`;
/// made by whoever asks first.
///
/// # Errors
/// When Python or the package cannot be had.
pub fn kconfiglib(dir: &Path) -> Result<PathBuf, String> {
    make(dir).map_err(|reason| format!("kconfiglib cannot be had: {reason}"))
}

fn make(dir: &Path) -> Result<PathBuf, String> {
    let folder = dir.join(format!("kconfiglib-{VERSION}"));
    let python = folder.join("bin/python");
    // Several test programs may want it at once.
    let lock = File::create(dir.join("kconfiglib.lock")).map_err(|error| error.to_string())?;
    lock.lock().map_err(|error| error.to_string())?;
    if run(Command::new(&python).args(["-c", "import kconfiglib"])).is_ok() {
        return Ok(folder);
    }
    let mut venv = Command::new(crate::program("python3")?);
    run(venv.args(["-m", "venv", "--clear"]).arg(&folder))
        .map_err(|error| format!("python3 -m venv: {error}"))?;
    let mut pip = Command::new(&python);
    pip.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ]);
    pip.args(["--retries", "1", "--timeout", "20"]);
    run(pip.arg(format!("kconfiglib=={VERSION}")))
        .map_err(|error| format!("pip install kconfiglib: {error}"))?;
    Ok(folder)
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}
