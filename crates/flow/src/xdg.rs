//! Where a user's own files lie (XDG Base Directory Specification 0.8).

use std::path::PathBuf;

use fathom_jobfile::variables;

/// The folder that a variable names, else the one under the user's home. A
/// relative path in the variable does not count. `None`: there is no home.
pub fn base(variable: &str, under_home: &str) -> Option<PathBuf> {
    let named = |name| variables::variable(name).map(PathBuf::from);
    let folder = named(variable).filter(|path| path.is_absolute());
    let home = || named("HOME").filter(|path| !path.as_os_str().is_empty());
    folder.or_else(|| Some(home().or_else(std::env::home_dir)?.join(under_home)))
}

/// Folder of the user's groups of quick tests.
pub fn groups_dir() -> Option<PathBuf> {
    Some(base("XDG_CONFIG_HOME", ".config")?.join("fathom/quick"))
}
