//! `fathom lat --save-priolat`: the latencies of each priority, beside their log.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry as Slot;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use anyhow::Context;
use fathom_fio_output::log::{self, Collect, Options, TimeOrigin};
use fathom_model::{LogEntry, PrioColumn, units};

use super::Args;
use super::read::{failed, options};
use crate::cmd::Global;
use crate::out;

/// What writes the latencies of each priority; the first error ends it.
#[derive(Default)]
struct LatencyFiles {
    open: BTreeMap<u16, BufWriter<File>>,
    failed: Option<(PathBuf, io::Error)>,
}

/// The lines of a log that are to be written, by one thread in their order.
struct Saving<'f> {
    log: &'f Path,
    prio: PrioColumn,
    files: Arc<Mutex<LatencyFiles>>,
}

impl Saving<'_> {
    fn path(&self, prio: u16) -> PathBuf {
        let prio = match self.prio {
            PrioColumn::Value => format!("0x{prio:04x}"),
            PrioColumn::RealTime | PrioColumn::Absent => prio.to_string(),
        };
        let mut name = self.log.as_os_str().to_owned();
        name.push(format!(".{prio}.lat"));
        name.into()
    }

    fn write(
        &self,
        files: &mut LatencyFiles,
        entry: &LogEntry,
    ) -> Result<(), (PathBuf, io::Error)> {
        let path = || self.path(entry.prio);
        let named = |error| (path(), error);
        let file = match files.open.entry(entry.prio) {
            Slot::Occupied(open) => open.into_mut(),
            Slot::Vacant(new) => {
                crate::cmd::may_write(&path()).map_err(|error| named(io::Error::other(error)))?;
                let to = fathom_record::destination(&path()).map_err(named)?;
                let file = File::create(to).map_err(named)?;
                new.insert(BufWriter::new(file))
            }
        };
        writeln!(file, "{}", entry.value).map_err(named)
    }
}

impl Collect for Saving<'_> {
    fn add(&mut self, entry: &LogEntry) {
        let Ok(mut files) = self.files.lock() else {
            return;
        };
        if files.failed.is_none() {
            files.failed = self.write(&mut files, entry).err();
        }
    }
}

/// Writes the latencies of each priority beside the log, in the log's order.
pub(super) fn save(global: &Global, log: &Path, args: &Args) -> anyhow::Result<()> {
    let files = Arc::new(Mutex::new(LatencyFiles::default()));
    let options = Options {
        threads: 1,
        // The times do not matter, and each line is to be written once.
        origin: TimeOrigin::Zero,
        ..options(args)
    };
    log::read(log, options, |form| Saving {
        log,
        prio: form.prio,
        files: Arc::clone(&files),
    })
    .map_err(|error| failed(error, args))?;
    let mut files = files
        .lock()
        .map_err(|_| anyhow::anyhow!("writing the latencies has failed"))?;
    if let Some((path, error)) = files.failed.take() {
        return Err(error).with_context(|| format!("cannot write {}", path.display()));
    }
    let written = files.open.len();
    for (_, file) in std::mem::take(&mut files.open) {
        file.into_inner()
            .map_err(io::IntoInnerError::into_error)
            .with_context(|| format!("cannot write the latencies of {}", log.display()))?;
    }
    if !global.quiet {
        let (files, log) = (units::counted(written, "file"), log.display());
        out::note(format_args!("{files} written: {log}.*.lat"));
    }
    Ok(())
}
