//! What a script fetches and keeps in a folder of its own, for tests of what this machine
//! does not have.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What these scripts end with where it cannot be had.
const CANNOT: i32 = 3;

/// A newer fio than the machine's, made by `tools/newer-fio.sh` where it is not there yet.
///
/// # Errors
/// When it cannot be had, with the reason.
pub fn newer_fio() -> Result<PathBuf, String> {
    let folder = fetch("newer-fio.sh", &[]);
    let folder = folder.map_err(|why| format!("no newer fio here: {why}"))?;
    Ok(folder.join("bin/fio"))
}

/// The sources of Debian's fio, fetched by `tools/conformance/source.sh` where they are not
/// there yet.
///
/// # Errors
/// When they cannot be had, with the reason.
pub fn fio_sources() -> Result<PathBuf, String> {
    let folder = fetch("conformance/source.sh", &[]);
    folder.map_err(|why| format!("fio's sources are not here: {why}"))
}

/// The script of axe-core, fetched by `tools/axe.sh` where it is not there yet.
///
/// # Errors
/// When it cannot be had, with the reason.
pub fn axe_core() -> Result<PathBuf, String> {
    let folder = fetch("axe.sh", &[]);
    let folder = folder.map_err(|why| format!("no axe-core here: {why}"))?;
    Ok(folder.join("axe.min.js"))
}

/// Debian's Prometheus and its promtool, unpacked by `tools/prometheus.sh` where they are
/// not there yet: the folder with both.
///
/// # Errors
/// When it cannot be had, with the reason.
pub fn prometheus() -> Result<PathBuf, String> {
    let folder = fetch("prometheus.sh", &[]);
    folder.map_err(|why| format!("no Prometheus here: {why}"))
}

/// A Python with pandas, polars and DuckDB, fetched by `tools/readers.sh` where it is not
/// there yet.
///
/// # Errors
/// When it cannot be had, with the reason.
pub fn readers() -> Result<PathBuf, String> {
    let folder = fetch("readers.sh", &[]);
    let folder = folder.map_err(|why| format!("no readers of exports here: {why}"))?;
    Ok(folder.join("venv/bin/python"))
}

/// The folder that a script in `tools` keeps what it fetches in; why it cannot be had.
pub(crate) fn fetch(script: &str, arguments: &[&str]) -> Result<PathBuf, String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tools")
        .join(script);
    let mut command = Command::new(&script);
    let made = command.args(arguments).stdin(Stdio::null()).output();
    let made = made.map_err(|e| format!("{}: {e}", script.display()))?;
    let [said, complaint] = [&made.stdout, &made.stderr].map(|it| String::from_utf8_lossy(it));
    let last = |text: &str| text.trim().lines().last().unwrap_or_default().to_owned();
    match made.status.code() {
        Some(0) => Ok(last(&said).into()),
        Some(CANNOT) => Err(last(&complaint)),
        _ => panic!("{}: {complaint}", script.display()),
    }
}
