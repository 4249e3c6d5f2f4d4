//! Where a user's own groups and baselines lie.

use std::path::PathBuf;

use fathom_flow::xdg::base;

/// Folder of the user's group files.
pub fn groups_dir() -> Option<PathBuf> {
    Some(base("XDG_CONFIG_HOME", ".config")?.join("fathom/quick"))
}

/// Folder of the user's baselines.
pub fn baselines_dir() -> Option<PathBuf> {
    Some(base("XDG_DATA_HOME", ".local/share")?.join("fathom/baselines"))
}
