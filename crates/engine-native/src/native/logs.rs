//! fio's log files (`write_lat_log` and its kin), in its format and by its
//! names: `time ms, value, direction, block size[, offset], priority`.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use fathom_model::Histogram;

use super::clock::TickClock;
use super::files::FilePlace;
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

    /// The window that its entries are of (init.c, add_job).
    fn window_ms(self, options: &LogOptions) -> u64 {
        let own = match self {
            Self::Bw => options.bw_avg_ms,
            Self::Iops => options.iops_avg_ms,
            _ => None,
        };
        own.map_or(options.avg_ms, |own| own.min(options.avg_ms))
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
    max: u64,
    ios: u64,
    bytes: u64,
}

/// One log of one member.
struct MemberLog {
    kind: LogValues,
    path: PathBuf,
    /// Averaging window in ms (0: none), and where the current one begins.
    avg_ms: u64,
    window_ns: u64,
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
    /// When its times began, in ticks, and what its clock said then.
    epoch: (u64, u64),
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
    pub(super) fn new(members: &[Member], place: &FilePlace) -> Result<Self, (PathBuf, io::Error)> {
        let (work_dir, checked) = (&place.work_dir, &place.checked);
        let mut writer = Self::default();
        for (place, member) in members.iter().enumerate() {
            if let (Some(ring), Some(name), Ok(plan)) =
                (&member.iolog, &member.job.logs.iolog, &member.plan)
            {
                let path = work_dir.join(name);
                let file = IologFile::create(&path, ring, plan);
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
                        avg_ms: kind.window_ms(&options),
                        window_ns: 0,
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
                    let file =
                        LogFile::create(path, checked).map_err(|error| (path.clone(), error))?;
                    writer.files.insert(path.clone(), file);
                }
            }
            // What is done to files as a whole has clat only, and no bytes (engines/fileoperations.c).
            let whole_files = member.job.engine.file_op().is_some();
            logs.retain(|log| !whole_files || log.kind == LogValues::Clat);
            let unmeasured =
                |log: &MemberLog| options.no_bw && log.kind == LogValues::Bw && log.avg_ms == 0;
            logs.retain(|log| !unmeasured(log));
            writer.members.push(MemberLogs {
                member: place,
                whole_files,
                options,
                ring: Arc::clone(ring),
                logs,
                epoch: (0, 0),
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
            let began = members[of.member].stats.began.load(Relaxed);
            if began != of.epoch.0 {
                let since_ms = clock.ns(clock.now().saturating_sub(began)) / 1_000_000;
                of.epoch = (began, of.options.epoch_ms(since_ms));
            }
            ring.drain(|io| {
                if result.is_ok() {
                    result = of.take(files, &io);
                }
            });
            result?;
            of.histograms(files, &members[of.member], clock, end)?;
            if end {
                of.end(files)?;
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
        let waits = self.members.iter().map(|of| of.ring.waits.load(Relaxed));
        waits.sum::<u64>() + self.iologs.iter().map(IologFile::waits).sum::<u64>()
    }
}

type Files = BTreeMap<PathBuf, LogFile>;

fn file<'f>(files: &'f mut Files, path: &Path) -> io::Result<&'f mut LogFile> {
    files
        .get_mut(path)
        .ok_or_else(|| io::Error::other("a log that was not made"))
}

impl MemberLog {
    /// Adds an I/O to the window it belongs to; those before are closed.
    fn add(
        &mut self,
        files: &mut Files,
        options: &LogOptions,
        epoch_ms: u64,
        io: &Logged,
    ) -> io::Result<()> {
        let length = self.avg_ms * 1_000_000;
        while io.at_ns >= self.window_ns + length {
            self.window_ns += length;
            self.close_window(files, options, epoch_ms)?;
        }
        let value = self.kind.value(io);
        let window = &mut self.windows[io.dir as usize];
        window.sum += u128::from(value);
        window.max = window.max.max(value);
        window.ios += 1;
        window.bytes += u64::from(io.len);
        Ok(())
    }

    /// Writes what the window that ends now holds.
    fn close_window(
        &mut self,
        files: &mut Files,
        options: &LogOptions,
        epoch_ms: u64,
    ) -> io::Result<()> {
        let seconds = self.avg_ms as f64 / 1000.0;
        for dir in DirIndex::ALL {
            let window = std::mem::take(&mut self.windows[dir as usize]);
            if window.ios == 0 {
                continue;
            }
            let value = match self.kind {
                // Rates are of the whole window, whatever is asked for.
                LogValues::Bw => (window.bytes as f64 / 1024.0 / seconds) as u64,
                LogValues::Iops => (window.ios as f64 / seconds) as u64,
                _ if options.maxima => window.max,
                _ => (window.sum / u128::from(window.ios)) as u64,
            };
            let sample = LogSample {
                at_ms: epoch_ms + self.window_ns / 1_000_000,
                value,
                dir: dir as u8,
                len: 0,
                offset: 0,
                priority: 0,
            };
            file(files, &self.path)?.sample(options, &sample)?;
        }
        Ok(())
    }
}

impl MemberLogs {
    fn take(&mut self, files: &mut Files, io: &Logged) -> io::Result<()> {
        let epoch_ms = self.epoch.1;
        for log in &mut self.logs {
            if log.avg_ms > 0 {
                log.add(files, &self.options, epoch_ms, io)?;
                continue;
            }
            let sample = LogSample {
                at_ms: epoch_ms + io.at_ns / 1_000_000,
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

    /// What is left in windows that are not over.
    fn end(&mut self, files: &mut Files) -> io::Result<()> {
        let epoch_ms = self.epoch.1;
        for log in &mut self.logs {
            log.window_ns += log.avg_ms * 1_000_000;
            log.close_window(files, &self.options, epoch_ms)?;
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
        let epoch_ms = self.epoch.1;
        let stride = 1 << self.options.hist_coarseness;
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
                "{}, {}, {}",
                epoch_ms + now_ms,
                dir as u8,
                member.job.pattern.sizes[dir as usize].min()
            )?;
            for counts in counts.chunks(stride) {
                write!(out, ", {}", counts.iter().sum::<u64>())?;
            }
            writeln!(out)?;
        }
        Ok(())
    }
}
