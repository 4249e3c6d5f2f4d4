//! The table of options as others may see it.

use super::GROUPS;
use crate::native::job::IoEngine;

/// An option of the native engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listed {
    /// What it is about, a headline.
    pub group: &'static str,
    /// Its name, then fio's other names of it.
    pub names: &'static [&'static str],
    /// What differs from fio; empty: nothing.
    pub differs: &'static str,
    /// Its value is checked and changes nothing: `differs` says why.
    pub idle: bool,
}

/// Every option of the native engine, by group.
pub fn options() -> impl Iterator<Item = Listed> {
    let listed = |group| {
        move |row: &super::OptionRow| Listed {
            group,
            names: row.names,
            differs: row.differs,
            idle: row.idle,
        }
    };
    GROUPS
        .iter()
        .flat_map(move |(group, rows)| rows.iter().map(listed(*group)))
}

/// Names of the I/O engines that the native engine has, as `ioengine=` has them.
pub fn io_engines() -> impl Iterator<Item = &'static str> {
    IoEngine::NAMES.iter().map(|&(name, _)| name)
}
