//! write_iolog: what a job does, as fio logs it (version 3), to be replayed.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fathom_jobfile::iolog::{MOST_NAME, TIMED_HEADLINE};
use rustix::fs::OFlags;

use super::backend::Op;
use super::files::MemberFiles;
use super::ring::{Ring, RingEntry};

/// An I/O as it was handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct IssuedIo {
    /// Since the worker's start.
    pub(super) at_ns: u64,
    pub(super) op: u8,
    pub(super) file: u32,
    pub(super) offset: u64,
    pub(super) len: u32,
}

impl RingEntry for IssuedIo {
    fn cells(&self) -> [u64; 6] {
        let op = u64::from(self.op);
        [
            self.at_ns,
            op,
            self.file.into(),
            self.offset,
            self.len.into(),
            0,
        ]
    }

    fn of([at_ns, op, file, offset, len, _]: [u64; 6]) -> Self {
        Self {
            at_ns,
            op: op as u8,
            file: file as u32,
            offset,
            len: len as u32,
        }
    }
}

/// The log of one member.
pub(super) struct IologFile {
    ring: Arc<Ring<IssuedIo>>,
    out: BufWriter<File>,
    /// Its files as the job names them.
    names: Vec<String>,
    last_us: u64,
}

impl IologFile {
    /// Begins a log, behind what the file holds, as fio does.
    pub(super) fn create(
        path: &Path,
        ring: &Arc<Ring<IssuedIo>>,
        plan: &MemberFiles,
    ) -> io::Result<Self> {
        let place = &plan.place;
        let named = plan
            .files
            .iter()
            .map(|file| name(&file.path, &place.work_dir));
        let names = named.collect::<io::Result<Vec<String>>>()?;
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE;
        let file = place.checked.open(path, flags)?;
        let mut out = BufWriter::new(file);
        writeln!(out, "{TIMED_HEADLINE}")?;
        for act in ["add", "open"] {
            for name in &names {
                writeln!(out, "0 {name} {act}")?;
            }
        }
        Ok(Self {
            ring: Arc::clone(ring),
            out,
            names,
            last_us: 0,
        })
    }

    /// Writes what has come since the last call.
    pub(super) fn drain(&mut self, end: bool) -> io::Result<()> {
        let mut result = Ok(());
        self.ring.drain(|io| {
            self.last_us = io.at_ns / 1000;
            if let (Ok(()), Some(name)) = (&result, self.names.get(io.file as usize)) {
                let (at, act) = (self.last_us, action(io.op));
                result = writeln!(self.out, "{at} {name} {act} {} {}", io.offset, io.len);
            }
        });
        result?;
        if end {
            for name in &self.names {
                writeln!(self.out, "{} {name} close", self.last_us)?;
            }
            self.out.flush()?;
        }
        Ok(())
    }

    /// How often the worker had to wait for this writer.
    pub(super) fn waits(&self) -> u64 {
        self.ring.waits.load(std::sync::atomic::Ordering::Relaxed)
    }
}

/// fio's names (io_ddir.h): those of the two syncs are other than ours.
fn action(op: u8) -> &'static str {
    match Op::of(op) {
        Some(Op::Fsync) => "sync",
        Some(Op::Fdatasync) => "datasync",
        Some(other) => other.name(),
        None => "none",
    }
}

/// The name of a file as the log has it: words of a line are apart by blanks.
fn name(path: &Path, work_dir: &Path) -> io::Result<String> {
    let short = path.strip_prefix(work_dir).unwrap_or(path);
    let name = PathBuf::from(short).into_os_string().into_string();
    let fits = |name: &String| {
        let splits = |c: char| c.is_whitespace() || c.is_control();
        name.len() <= MOST_NAME && !name.is_empty() && !name.contains(splits)
    };
    name.ok().filter(fits).ok_or_else(|| {
        let what = format!("no log can hold the name '{}'", short.display());
        io::Error::new(io::ErrorKind::InvalidInput, what)
    })
}
