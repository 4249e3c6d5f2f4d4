//! Small C programs of the test support, built with the system's compiler.

use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;

use crate::{run, text};

/// Compiles a program with the compiler's `flags`; it lives as long as the folder.
pub(crate) fn compile(name: &str, source: &str, flags: &str) -> Result<(PathBuf, TempDir), String> {
    let dir = TempDir::with_prefix("fathom-build-").map_err(|e| e.to_string())?;
    let file = dir.path().join(format!("{name}.c"));
    let binary = dir.path().join(name);
    fs::write(&file, source).map_err(|e| e.to_string())?;
    let mut args = vec!["-O1", "-Wall", "-Werror", "-o", text(&binary), text(&file)];
    args.extend(flags.split_whitespace());
    run("cc", &args)?;
    Ok((binary, dir))
}
