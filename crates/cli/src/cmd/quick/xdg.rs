//! Where a user's own groups, baselines and what is to be put back lie.

use std::path::PathBuf;

use fathom_campaign::xdg::base;

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
