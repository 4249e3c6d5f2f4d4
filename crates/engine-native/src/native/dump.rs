//! verify_dump: what a mismatch found and what should be there, as files.

use std::io::Write as _;
use std::path::Path;

use super::files::FilePlace;

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
    pub(super) fn keep(&self, place: &FilePlace) -> String {
        let name = self.file.file_name().unwrap_or_default().to_string_lossy();
        let mut said = Vec::new();
        let mut one = |kind: &str, data: &[u8]| {
            let path = place
                .work_dir
                .join(format!("{name}.{}.{kind}", self.offset));
            match place
                .checked
                .replace(&path)
                .and_then(|mut file| file.write_all(data))
            {
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
