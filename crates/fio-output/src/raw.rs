//! fio's own words, kept in the record: `fio.out` and `fio.err`.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::stream::OutputCutter;

/// Name of the file with fio's standard output: what it would have written
/// without interval statuses, in all formats.
pub const OUT: &str = "fio.out";
/// Name of the file with fio's standard error.
pub const ERR: &str = "fio.err";
/// Most bytes of `fio.err`; a job that goes on after errors writes a line for each.
const ERR_MAX: usize = 1 << 20;

/// Writes the two files.
#[derive(Debug)]
pub struct RawOutputs {
    dir: PathBuf,
    err: Option<File>,
    err_bytes: usize,
    /// What could not be written, told at the end.
    broken: Option<io::Error>,
    line: Vec<u8>,
}

impl RawOutputs {
    /// Writes below `dir`, which is made when something is to be kept.
    pub fn new(dir: &Path) -> Self {
        Self {
            dir: dir.to_owned(),
            err: None,
            err_bytes: 0,
            broken: None,
            line: Vec::new(),
        }
    }

    /// Keeps a piece of standard error at once, and gives the lines it completes.
    pub fn stderr(&mut self, bytes: &[u8]) -> Vec<String> {
        let kept = &bytes[..bytes.len().min(ERR_MAX - self.err_bytes)];
        self.err_bytes += kept.len();
        if let Err(error) = self.keep(kept) {
            self.broken.get_or_insert(error);
        }
        let mut lines = Vec::new();
        for part in bytes.split_inclusive(|&byte| byte == b'\n') {
            // No message of fio is that long: bounded whatever comes.
            if self.line.len() + part.len() <= ERR_MAX {
                self.line.extend_from_slice(part);
            }
            if part.ends_with(b"\n") {
                lines.extend(self.whole_line());
            }
        }
        lines
    }

    fn whole_line(&mut self) -> Option<String> {
        let line = String::from_utf8_lossy(&self.line).trim_end().to_owned();
        self.line.clear();
        (!line.is_empty()).then_some(line)
    }

    fn keep(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        if self.err.is_none() {
            fs::create_dir_all(&self.dir)?;
            self.err = Some(File::create(self.dir.join(ERR))?);
        }
        match &mut self.err {
            Some(file) => file.write_all(bytes),
            None => Ok(()),
        }
    }

    /// Writes `fio.out`: the text and the last status.
    ///
    /// # Errors
    /// When either file could not be written.
    pub fn finish(&mut self, stream: &OutputCutter) -> io::Result<()> {
        if let Some(error) = self.broken.take() {
            return Err(error);
        }
        let set = stream.last_set();
        let parts = [stream.text(), &set.terse, &set.json, &set.normal];
        if parts.iter().all(|part| part.is_empty()) {
            return Ok(());
        }
        fs::create_dir_all(&self.dir)?;
        let mut file = File::create(self.dir.join(OUT))?;
        parts.iter().try_for_each(|part| file.write_all(part))
    }
}
