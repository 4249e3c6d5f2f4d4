//! What a script fetches and keeps in a folder of its own, for tests of what this machine
//! does not have.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A newer fio than the machine's, made by `tools/newer-fio.sh` where it is not there yet.
///
/// # Errors
/// When it cannot be had, with the reason.
pub fn newer_fio() -> Result<PathBuf, String> {
    let folder = folder_of("newer-fio.sh", "FATHOM_NEWER_FIO", "fathom-newer-fio");
    let folder = folder.map_err(|why| format!("no newer fio here: {why}"))?;
    Ok(folder.join("bin/fio"))
}

/// The script of axe-core, fetched by `tools/axe.sh` where it is not there yet.
///
/// # Errors
/// When it cannot be had, with the reason.
pub fn axe_core() -> Result<PathBuf, String> {
    let folder = folder_of("axe.sh", "FATHOM_AXE", "fathom-axe");
    let folder = folder.map_err(|why| format!("no axe-core here: {why}"))?;
    Ok(folder.join("axe.min.js"))
}

/// Debian's Prometheus and its promtool, unpacked by `tools/prometheus.sh` where they are
/// not there yet: the folder with both.
///
/// # Errors
/// When it cannot be had, with the reason.
pub fn prometheus() -> Result<PathBuf, String> {
    let folder = folder_of("prometheus.sh", "FATHOM_PROMETHEUS", "fathom-prometheus");
    folder.map_err(|why| format!("no Prometheus here: {why}"))
}

/// A Python with pandas, polars and DuckDB, fetched by `tools/readers.sh` where it is not
/// there yet.
///
/// # Errors
/// When it cannot be had, with the reason.
pub fn readers() -> Result<PathBuf, String> {
    let folder = folder_of("readers.sh", "FATHOM_READERS", "fathom-readers");
    let folder = folder.map_err(|why| format!("no readers of exports here: {why}"))?;
    Ok(folder.join("venv/bin/python"))
}

/// The folder of a script in `tools`, which has run: what this variable names, or this one
/// of the cache.
fn folder_of(script: &str, variable: &str, name: &str) -> Result<PathBuf, String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tools")
        .join(script);
    let made = Command::new(&script).stdin(Stdio::null()).output();
    let made = made.map_err(|e| format!("{}: {e}", script.display()))?;
    let said = String::from_utf8_lossy(&made.stderr);
    if !made.status.success() {
        return Err(said.trim().lines().last().unwrap_or_default().to_owned());
    }
    if let Some(folder) = std::env::var_os(variable) {
        return Ok(PathBuf::from(folder));
    }
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let cache = cache.or(home).ok_or("HOME is not set")?;
    Ok(cache.join(name))
}
