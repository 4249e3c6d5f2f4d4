//! Programs for which system calls fail, as under a container's seccomp profile.

use std::path::PathBuf;
use std::sync::OnceLock;

use crate::compile::compile;

/// A command, to be followed by a program and its arguments, under which the
/// system calls of these numbers fail with `errno`.
///
/// # Errors
/// When this machine has no C compiler.
pub fn deny(errno: i32, calls: &[i64]) -> Result<Vec<String>, String> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = BUILT.get_or_init(|| compile("deny", include_str!("../deny/deny.c"), ""));
    let binary = built.as_ref().map_err(Clone::clone)?;
    let calls: Vec<String> = calls.iter().map(ToString::to_string).collect();
    Ok(vec![
        binary.display().to_string(),
        errno.to_string(),
        calls.join(","),
    ])
}
