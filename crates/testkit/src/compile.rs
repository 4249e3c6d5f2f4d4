//! Small C programs of the test support, built with the system's compiler.

use std::fs;
use std::path::PathBuf;

use crate::{run, text};

/// Compiles a program with the compiler's `flags`; it lies with what cargo has built.
pub(crate) fn compile(name: &str, source: &str, flags: &str) -> Result<PathBuf, String> {
    let error = |e: std::io::Error| e.to_string();
    let tests = std::env::current_exe().map_err(error)?;
    let dir = tests.with_file_name("testkit");
    fs::create_dir_all(&dir).map_err(error)?;
    // Other tests may be making it, or running it: each puts a whole one in its place.
    let own = dir.join(format!("{name}-{}", std::process::id()));
    let file = own.with_extension("c");
    fs::write(&file, source).map_err(error)?;
    let mut args = vec!["-O1", "-Wall", "-Werror", "-o", text(&own), text(&file)];
    args.extend(flags.split_whitespace());
    let built = run("cc", &args);
    let _ = fs::remove_file(&file);
    built?;
    let binary = dir.join(name);
    fs::rename(&own, &binary).map_err(error)?;
    Ok(binary)
}
