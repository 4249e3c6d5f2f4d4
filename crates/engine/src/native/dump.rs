//! verify_dump: what a mismatch found and what should be there, as files.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::Path;

/// A part of a block that is not what was written.
pub(super) struct Mismatch<'a> {
    pub(super) file: &'a Path,
    pub(super) offset: u64,
    pub(super) received: &'a [u8],
    pub(super) expected: Option<&'a [u8]>,
    pub(super) of_header: bool,
}

impl Mismatch<'_> {
    /// Keeps it in a folder; what is to be said of that.
    pub(super) fn keep(&self, folder: &Path) -> String {
        let name = self.file.file_name().unwrap_or_default().to_string_lossy();
        let mut said = Vec::new();
        let mut one = |kind: &str, data: &[u8]| {
            let path = folder.join(format!("{name}.{}.{kind}", self.offset));
            match write(&path, data) {
                Ok(()) => said.push(format!("{} holds it", path.display())),
                Err(error) => said.push(format!("{} cannot be written: {error}", path.display())),
            }
        };
        if self.of_header {
            one("hdr_fail", self.received);
        } else {
            one("received", self.received);
        }
        if let Some(expected) = self.expected {
            one("expected", expected);
        }
        format!("; {}", said.join(", "))
    }
}

/// As a new file: a link or device of that name is replaced, not written to.
fn write(path: &Path, data: &[u8]) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(data)
}
