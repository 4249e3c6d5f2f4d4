//! A newer fio than the machine's, in a folder of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The program, made by `tools/newer-fio.sh` where it is not there yet.
///
/// # Errors
/// When it cannot be had, with the reason.
pub fn newer_fio() -> Result<PathBuf, String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/newer-fio.sh");
    let made = Command::new(&script).stdin(Stdio::null()).output();
    let made = made.map_err(|e| format!("no newer fio here: {}: {e}", script.display()))?;
    let said = String::from_utf8_lossy(&made.stderr);
    if !made.status.success() {
        let last = said.trim().lines().last().unwrap_or_default();
        return Err(format!("no newer fio here: {last}"));
    }
    let folder = match std::env::var_os("FATHOM_NEWER_FIO") {
        Some(folder) => PathBuf::from(folder),
        None => {
            let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
            let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
            let cache = cache.or(home).ok_or("no newer fio here: HOME is not set")?;
            cache.join("fathom-newer-fio")
        }
    };
    Ok(folder.join("bin/fio"))
}
