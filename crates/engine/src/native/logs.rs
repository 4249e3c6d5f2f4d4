//! fio's log files (`write_lat_log` and its kin), in its format and by its
//! names: `time ms, value, direction, block size[, offset], priority`.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fathom_model::Histogram;

use super::clock::TickClock;
use super::iolog_file::IologFile;
use super::job::{DirIndex, LogOptions};
use super::log_file::{LogFile, LogSample};
use super::members::Member;
use super::results::measured_ns;
use super::ring::{Logged, Ring};

/// Buckets of fio's histogram (stat.h, FIO_IO_U_PLAT_NR).
const FIO_BUCKETS: usize = 1856;

/// What a log's values are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum LogValues {
    Slat,
    Clat,
    Lat,
    Bw,
    Iops,
}

impl LogValues {
    const fn name(self) -> &'static str {
        match self {
            Self::Slat => "slat",
            Self::Clat => "clat",
            Self::Lat => "lat",
            Self::Bw => "bw",
            Self::Iops => "iops",
        }
    }

    /// The value of one I/O: ns, KiB/s over its own time, or 1.
    fn value(self, io: &Logged) -> u64 {
        match self {
            Self::Slat => io.slat_ns,
            Self::Clat => io.clat_ns,
            Self::Lat => io.lat_ns,
            Self::Bw => (f64::from(io.len) * 1e9 / 1024.0 / io.clat_ns.max(1) as f64) as u64,
            Self::Iops => 1,
        }
    }
}

/// One averaging window of one log and direction.
#[derive(Debug, Default, Clone, Copy)]
struct LogWindow {
    sum: u128,
    ios: u64,
    bytes: u64,
}

/// One log of one member.
struct MemberLog {
    kind: LogValues,
    path: PathBuf,
    windows: [LogWindow; 3],
}

/// All logs of one member.
struct MemberLogs {
    member: usize,
    /// Each entry is about a file as a whole.
    whole_files: bool,
    options: LogOptions,
    ring: Arc<Ring<Logged>>,
    logs: Vec<MemberLog>,
    /// Begin of the current averaging window.
    window_ns: u64,
    histogram: Option<(PathBuf, [Histogram; 3], u64)>,
}

/// The logs of a run.
#[derive(Default)]
pub(super) struct LogWriter {
    files: Files,
    members: Vec<MemberLogs>,
    iologs: Vec<IologFile>,
}

impl LogWriter {
    /// Makes the files that the members' jobs ask for.
    pub(super) fn new(members: &[Member], work_dir: &Path) -> Result<Self, (PathBuf, io::Error)> {
        let mut writer = Self::default();
        for (place, member) in members.iter().enumerate() {
            if let (Some(ring), Some(name), Ok(plan)) =
                (&member.iolog, &member.job.logs.iolog, &member.plan)
            {
                let path = work_dir.join(name);
                let file = IologFile::create(&path, ring, plan, work_dir);
                writer.iologs.push(file.map_err(|error| (path, error))?);
            }
            let Some(ring) = &member.ring else { continue };
            let options = member.job.logs.clone();
            let path = |prefix: &str, kind: &str| {
                let number = if options.per_job {
                    format!(".{}", place + 1)
                } else {
                    String::new()
                };
                work_dir.join(format!("{prefix}_{kind}{number}.log"))
            };
            let wanted = [
                (&options.lat, LogValues::Slat),
                (&options.lat, LogValues::Clat),
                (&options.lat, LogValues::Lat),
                (&options.bw, LogValues::Bw),
                (&options.iops, LogValues::Iops),
            ];
            let mut logs: Vec<MemberLog> = wanted
                .into_iter()
                .filter_map(|(prefix, kind)| {
                    let path = LogFile::path(path(prefix.as_ref()?, kind.name()), &options);
                    Some(MemberLog {
                        kind,
                        path,
                        windows: Default::default(),
                    })
                })
                .collect();
            let histogram = options
                .hist
                .as_ref()
                .map(|prefix| path(prefix, "clat_hist"));
            for path in logs.iter().map(|log| &log.path).chain(&histogram) {
                if !writer.files.contains_key(path) {
                    let file = LogFile::create(path).map_err(|error| (path.clone(), error))?;
                    writer.files.insert(path.clone(), file);
                }
            }
            // What is done to files as a whole has clat only, and no bytes (engines/fileoperations.c).
            let whole_files = member.job.engine.file_op().is_some();
            logs.retain(|log| !whole_files || log.kind == LogValues::Clat);
            writer.members.push(MemberLogs {
                member: place,
                whole_files,
                options,
                ring: Arc::clone(ring),
                logs,
                window_ns: 0,
                histogram: histogram.map(|path| (path, Default::default(), 0)),
            });
        }
        Ok(writer)
    }

    /// Writes what has come since the last call; at the `end` also what is left
    /// in unfinished windows.
    pub(super) fn drain(
        &mut self,
        members: &[Member],
        clock: &TickClock,
        end: bool,
    ) -> io::Result<()> {
        for of in &mut self.members {
            let (files, mut result) = (&mut self.files, Ok(()));
            let ring = Arc::clone(&of.ring);
            ring.drain(|io| {
                if result.is_ok() {
                    result = of.take(files, &io);
                }
            });
            result?;
            of.histograms(files, &members[of.member], clock, end)?;
            if end {
                of.close_window(files, of.window_ns / 1_000_000 + of.options.avg_ms)?;
            }
        }
        for iolog in &mut self.iologs {
            iolog.drain(end)?;
        }
        if end {
            self.files.values_mut().try_for_each(LogFile::end)?;
        }
        Ok(())
    }

    /// How often workers had to wait for this writer.
    pub(super) fn waits(&self) -> u64 {
        let waits = self
            .members
            .iter()
            .map(|of| of.ring.waits.load(std::sync::atomic::Ordering::Relaxed));
        waits.sum::<u64>() + self.iologs.iter().map(IologFile::waits).sum::<u64>()
    }
}

type Files = BTreeMap<PathBuf, LogFile>;

fn file<'f>(files: &'f mut Files, path: &Path) -> io::Result<&'f mut LogFile> {
    files
        .get_mut(path)
        .ok_or_else(|| io::Error::other("a log that was not made"))
}

impl MemberLogs {
    fn take(&mut self, files: &mut Files, io: &Logged) -> io::Result<()> {
        if self.options.avg_ms > 0 {
            let length = self.options.avg_ms * 1_000_000;
            while io.at_ns >= self.window_ns + length {
                self.window_ns += length;
                self.close_window(files, self.window_ns / 1_000_000)?;
            }
            for log in &mut self.logs {
                let window = &mut log.windows[io.dir as usize];
                window.sum += u128::from(log.kind.value(io));
                window.ios += 1;
                window.bytes += u64::from(io.len);
            }
            return Ok(());
        }
        for log in &self.logs {
            let sample = LogSample {
                at_ms: io.at_ns / 1_000_000,
                value: log.kind.value(io),
                dir: io.dir as u8,
                len: if self.whole_files { 0 } else { io.len },
                offset: io.offset,
                priority: io.priority,
            };
            file(files, &log.path)?.sample(&self.options, &sample)?;
        }
        Ok(())
    }

    fn close_window(&mut self, files: &mut Files, at_ms: u64) -> io::Result<()> {
        let seconds = self.options.avg_ms as f64 / 1000.0;
        for log in &mut self.logs {
            for dir in DirIndex::ALL {
                let window = std::mem::take(&mut log.windows[dir as usize]);
                if window.ios == 0 {
                    continue;
                }
                let value = match log.kind {
                    LogValues::Bw => (window.bytes as f64 / 1024.0 / seconds) as u64,
                    LogValues::Iops => (window.ios as f64 / seconds) as u64,
                    _ => (window.sum / u128::from(window.ios)) as u64,
                };
                let sample = LogSample {
                    at_ms,
                    value,
                    dir: dir as u8,
                    len: 0,
                    offset: 0,
                    priority: 0,
                };
                file(files, &log.path)?.sample(&self.options, &sample)?;
            }
        }
        Ok(())
    }

    /// `time, direction, block size`, then the counts since the last line.
    fn histograms(
        &mut self,
        files: &mut Files,
        member: &Member,
        clock: &TickClock,
        end: bool,
    ) -> io::Result<()> {
        let Some((path, last, next_ms)) = &mut self.histogram else {
            return Ok(());
        };
        let now_ms = measured_ns(member, clock) / 1_000_000;
        if now_ms < *next_ms + self.options.hist_ms && !end {
            return Ok(());
        }
        *next_ms = now_ms;
        for dir in DirIndex::ALL {
            let Some(stats) = &member.stats.dirs[dir as usize] else {
                continue;
            };
            let now = stats.clat().histogram;
            let delta = now.since(&last[dir as usize]);
            last[dir as usize] = now;
            if delta.is_empty() {
                continue;
            }
            let mut counts = vec![0u64; FIO_BUCKETS];
            for (bucket, count) in delta.buckets() {
                counts[bucket.min(FIO_BUCKETS - 1)] += count;
            }
            let out = file(files, path)?.lines();
            write!(
                out,
                "{now_ms}, {}, {}",
                dir as u8,
                member.job.pattern.sizes[dir as usize].min()
            )?;
            for count in counts {
                write!(out, ", {count}")?;
            }
            writeln!(out)?;
        }
        Ok(())
    }
}
