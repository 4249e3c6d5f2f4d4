//! Where a user's own groups, baselines and what is to be put back lie (XDG Base Directory
//! Specification 0.8; relative paths in its variables do not count).

use std::path::PathBuf;

/// Folder of the user's group files.
pub fn groups_dir() -> Option<PathBuf> {
    Some(base("XDG_CONFIG_HOME", ".config")?.join("fathom/quick"))
}

/// Folder of the user's baselines.
pub fn baselines_dir() -> Option<PathBuf> {
    Some(base("XDG_DATA_HOME", ".local/share")?.join("fathom/baselines"))
}

/// Folder of what is to be put back on devices.
pub fn switches_dir() -> Option<PathBuf> {
    Some(base("XDG_STATE_HOME", ".local/state")?.join("fathom/switches"))
}

fn base(variable: &str, under_home: &str) -> Option<PathBuf> {
    let named = std::env::var_os(variable).map(PathBuf::from);
    named
        .filter(|path| path.is_absolute())
        .or_else(|| Some(std::env::home_dir()?.join(under_home)))
}
