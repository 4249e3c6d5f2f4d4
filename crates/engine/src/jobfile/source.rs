//! Where variables and included files come from.

use std::io;
use std::path::Path;

/// What a job file needs from outside itself.
pub trait Sources {
    /// An environment variable.
    fn variable(&self, name: &str) -> Option<String>;

    /// The bytes of an included file.
    ///
    /// # Errors
    /// When it cannot be read.
    fn file(&self, path: &Path) -> io::Result<Vec<u8>>;
}

/// Included files from the disk, variables from a function.
pub(super) struct Disk<'a> {
    pub(super) env: &'a dyn Fn(&str) -> Option<String>,
}

impl Sources for Disk<'_> {
    fn variable(&self, name: &str) -> Option<String> {
        (self.env)(name)
    }

    fn file(&self, path: &Path) -> io::Result<Vec<u8>> {
        std::fs::read(path)
    }
}
