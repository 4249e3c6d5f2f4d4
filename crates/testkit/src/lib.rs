//! Real parts for tests: temporary folders, loop devices, small mounted file
//! systems and a file system with faults on demand.
//!
//! Only tests use this crate (a dev-dependency of any other); it knows no other
//! crate. Every part is a guard that takes itself down when it is dropped, also
//! when the test panics. What a machine cannot do is an `Err` with the reason,
//! which the test hands to [`skip`].

use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

mod disk;
mod faultfs;

pub use disk::{Loop, Mounted};
pub use faultfs::FaultFs;
pub use tempfile::TempDir;

/// A fresh temporary folder, removed with the guard.
///
/// # Panics
/// When it cannot be made.
#[must_use]
pub fn temp_dir() -> TempDir {
    tempfile::Builder::new()
        .prefix("fathom-test-")
        .tempdir()
        .expect("a temporary folder")
}

/// Says that a test cannot run here: a line `SKIP <test>: <reason>` on stderr
/// and, when the environment names a file in `FATHOM_SKIP_LOG`, in that file.
#[allow(clippy::print_stderr)]
pub fn skip(test: &str, reason: &str) {
    let line = format!("SKIP {test}: {reason}");
    eprintln!("{line}");
    if let Some(path) = std::env::var_os("FATHOM_SKIP_LOG")
        && let Ok(mut log) = OpenOptions::new().append(true).create(true).open(path)
    {
        let _ = writeln!(log, "{line}");
    }
}

/// Whether every one of these programs is here; else which one is not.
///
/// # Errors
/// The reason to skip.
pub fn requires(programs: &[&str]) -> Result<(), String> {
    match programs.iter().find(|program| which(program).is_none()) {
        Some(missing) => Err(format!("{missing} is not installed")),
        None => Ok(()),
    }
}

/// Whether the test runs as root.
///
/// # Errors
/// The reason to skip.
pub fn requires_root() -> Result<(), String> {
    let id = output(Command::new("id").arg("-u"))?;
    if id.trim() == "0" {
        Ok(())
    } else {
        Err("needs root".into())
    }
}

/// Where a program lies in PATH.
#[must_use]
pub fn which(program: &str) -> Option<PathBuf> {
    let places = std::env::var_os("PATH")?;
    std::env::split_paths(&places)
        .map(|place| place.join(program))
        .find(|path| path.is_file())
}

/// Runs a command to its end and gives its stdout, or a reason that names the command.
fn output(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let done = command.output().map_err(|e| format!("{name}: {e}"))?;
    if done.status.success() {
        Ok(String::from_utf8_lossy(&done.stdout).into_owned())
    } else {
        let words = String::from_utf8_lossy(&done.stderr);
        Err(format!("{name}: {}: {}", done.status, words.trim()))
    }
}

fn run<S: AsRef<OsStr>>(program: &str, args: &[S]) -> Result<String, String> {
    output(Command::new(program).args(args))
}

fn unmount(at: &Path) {
    // Lazily: a test that failed may have left a process with its folder in there.
    if run("umount", &[at]).is_err() {
        let _ = run("umount", &[OsStr::new("-l"), at.as_os_str()]);
    }
}
