//! The folder of results, laid out as cdl_bench has it.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use fathom_device::health::LIMIT_FIGURES;
use fathom_fio_output::raw;
use fathom_fio_output::stream::{OutputFormat, select};
use fathom_model::{Event, EvidenceSum};

use super::log_name;

/// Puts fio's output and the log of each measurement into the folder of results, as
/// soon as it has ended.
#[derive(Debug)]
pub struct ResultFolder {
    outdir: PathBuf,
    log: String,
    record: PathBuf,
    step: Option<String>,
    evidence: EvidenceSum,
}

/// What the disk counted of its limits in a measurement, where it does: a line each,
/// `cdl_t2a_1_duration 12`.
pub const STATISTICS: &str = "cdl_statistics";

impl ResultFolder {
    /// Makes the folder, of a new run with I/Os of this kind into the record `dir`.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn make(outdir: &Path, rw: super::Rw, record: &Path) -> io::Result<Self> {
        fs::create_dir_all(outdir)?;
        Ok(Self {
            outdir: outdir.to_owned(),
            log: log_name(rw.name()),
            record: record.to_owned(),
            step: None,
            evidence: EvidenceSum::default(),
        })
    }

    /// Takes the next event of the run.
    ///
    /// # Errors
    /// What cannot be written.
    pub fn take(&mut self, event: &Event) -> io::Result<()> {
        match event {
            Event::Step { name, .. } => {
                self.step = Some(name.clone());
                self.evidence = EvidenceSum::default();
            }
            Event::Evidence(interval) => self.evidence.add(interval),
            Event::StepEnded { .. } => {
                if let Some(name) = self.step.take() {
                    return self.keep(&name);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn keep(&self, name: &str) -> io::Result<()> {
        let Some(raw_dir) = raw_dir(&self.record, name) else {
            return Ok(());
        };
        let to = self.outdir.join(name);
        fs::create_dir_all(&to)?;
        let kept = fs::read(raw_dir.join(raw::OUT)).unwrap_or_default();
        write(&to.join("fio.log"), &select(&kept, &[OutputFormat::Normal]))?;
        let counts = self.counts();
        if !counts.is_empty() {
            write(&to.join(STATISTICS), counts.as_ref())?;
        }
        let (from, to) = (raw_dir.join(&self.log), to.join(&self.log));
        if !from.exists() {
            return Ok(());
        }
        may_write(&to)?;
        match fs::remove_file(&to) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        // A log may be large: one file under both names where that can be.
        fs::hard_link(&from, &to).or_else(|_| {
            fathom_record::replace(&to, |to| {
                io::copy(&mut fs::File::open(&from)?, to).map(drop)
            })
        })
    }
}

/// The folder is the user's: a link or a device in it stays what it is.
fn may_write(path: &Path) -> io::Result<()> {
    fathom_fleet::named_file::may_write(path).map_err(io::Error::other)
}

pub(super) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    may_write(path)?;
    fathom_record::replace(path, |file| file.write_all(bytes))
}

impl ResultFolder {
    /// The counts of the disk, as [`STATISTICS`] has them.
    fn counts(&self) -> String {
        let Some(disk) = self.evidence.devices("target").next() else {
            return String::new();
        };
        let of_disk = |(name, n): (&String, &u64)| {
            let figure = name.strip_prefix(disk)?.strip_prefix('.')?;
            let is_limit = figure.starts_with(LIMIT_FIGURES);
            is_limit.then(|| format!("{figure} {n}\n"))
        };
        self.evidence.counts.iter().filter_map(of_disk).collect()
    }
}

/// The folder of the outputs of a measurement: that of its last try.
pub fn raw_dir(record: &Path, name: &str) -> Option<PathBuf> {
    fathom_flow::last_try(&record.join("raw").join(name))
}
