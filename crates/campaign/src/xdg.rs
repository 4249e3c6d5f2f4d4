//! Where a user's own files lie (XDG Base Directory Specification 0.8).

use std::path::PathBuf;

/// The folder that a variable names, else the one under the user's home. A
/// relative path in the variable does not count. `None`: there is no home.
#[must_use]
pub fn base(variable: &str, under_home: &str) -> Option<PathBuf> {
    let named = std::env::var_os(variable).map(PathBuf::from);
    named
        .filter(|path| path.is_absolute())
        .or_else(|| Some(std::env::home_dir()?.join(under_home)))
}

/// Folder of the user's groups of quick tests.
#[must_use]
pub fn groups_dir() -> Option<PathBuf> {
    Some(base("XDG_CONFIG_HOME", ".config")?.join("fathom/quick"))
}
