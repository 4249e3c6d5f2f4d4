//! read_iolog: the I/Os of a log in place of the job's own.
//!
//! A log is read to its end before the run: what it names was judged, and nothing in it
//! may come as a surprise. Then it is kept in memory, or read once more as it is replayed.

use std::io::{BufWriter, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;

use fathom_device::regular;
use fathom_jobfile::iolog::{
    IologEntry, IologFault, IologOp, IologReader, MergedTrace, device_here, device_numbers, merge,
};
use fathom_model::{Failure, FailureKind, JobSpec, units};

use super::backend::Op;
use super::clock::TickClock;
use super::files::{self, FilePlace, MemberFiles};
use super::job::{DirIndex, IoPattern, NativeJob, ReplayOptions, Sizes};
use super::replay_plan::{LoggedWrites, ReplayPlan, ReplayStep};
use super::source::NextIo;
use super::verify::{self, BlockLayout, gcd};

/// Most steps that are kept in memory, of 32 bytes each.
const MOST_STEPS: usize = 1 << 24;
/// Most bytes of the buffers of a log's I/Os: as large as the largest, as many as are
/// under way.
const MOST_BUFFERS: u64 = 1 << 30;

/// The steps of a log, as they are read.
struct StepReader {
    reader: IologReader,
    options: ReplayOptions,
    last_ns: u64,
}

impl StepReader {
    fn open(options: &ReplayOptions, path: &Path) -> Result<Self, IologFault> {
        let name = path.display().to_string();
        let file = regular::open(path).map_err(|source| IologFault::Unreadable {
            name: name.clone(),
            source,
        })?;
        let device_name = match options.redirect {
            Some(_) => device_numbers,
            None => device_here,
        };
        Ok(Self {
            reader: IologReader::new(&name, Box::new(file), device_name)?,
            options: options.clone(),
            last_ns: 0,
        })
    }

    fn next_step(&mut self) -> Result<Option<ReplayStep>, IologFault> {
        while let Some(entry) = self.reader.next_entry()? {
            let delay_us = self.delay_us(entry.at_ns);
            if !self.skips(entry.op) {
                return Ok(Some(self.step(&entry, delay_us)));
            }
        }
        Ok(None)
    }

    /// Time since the entry before; a log whose clock was set back goes on at once
    /// (blktrace.c, delay_since_ttime).
    fn delay_us(&mut self, at_ns: u64) -> u64 {
        let last_ns = std::mem::replace(&mut self.last_ns, at_ns);
        if last_ns == 0 || at_ns < last_ns || self.options.no_stall {
            return 0;
        }
        let logged_us = u128::from(at_ns - last_ns) / 1000;
        let us = logged_us * 100 / u128::from(self.options.time_percent.max(1));
        u64::try_from(us).unwrap_or(u64::MAX)
    }

    fn skips(&self, op: IologOp) -> bool {
        let of_trace = match op {
            IologOp::Sync | IologOp::DataSync => self.options.skips_syncs,
            _ => direction(op).is_some_and(|dir| self.options.skips[dir as usize]),
        };
        of_trace && self.reader.is_block_trace() || op == IologOp::Wait && self.options.no_stall
    }

    fn step(&self, entry: &IologEntry, delay_us: u64) -> ReplayStep {
        let ReplayOptions { align, scale, .. } = self.options;
        let (mut offset, mut len) = (entry.offset, entry.len);
        if direction(entry.op).is_some() {
            offset /= u64::from(scale.max(1));
            if align > 0 {
                offset &= !(u64::from(align) - 1);
            }
            if align > 0 && self.reader.is_block_trace() {
                let whole = u64::from(len).next_multiple_of(align.into());
                len = u32::try_from(whole).unwrap_or(len);
            }
        }
        ReplayStep {
            op: entry.op,
            file: match self.options.redirect {
                Some(_) => 0,
                None => entry.file,
            },
            offset,
            len,
            delay_us,
        }
    }
}

fn direction(op: IologOp) -> Option<DirIndex> {
    match op {
        IologOp::Read => Some(DirIndex::Read),
        IologOp::Write => Some(DirIndex::Write),
        IologOp::Trim => Some(DirIndex::Trim),
        _ => None,
    }
}

/// What a log comes to as a whole.
#[derive(Debug, Default)]
struct LogSummary {
    steps: Vec<ReplayStep>,
    dirs: [bool; 3],
    /// Largest I/O by direction.
    largest: [u32; 3],
    bytes: u64,
    /// Of each file: where its last I/O ends, and whether any changes it.
    files: Vec<(u64, bool)>,
    syncs: bool,
    writes: LoggedWrites,
    /// Why the first read and the first write that verify has no layout for have none.
    misfits: [Option<String>; 2],
}

impl LogSummary {
    fn count(&mut self, step: &ReplayStep, layout: Option<&BlockLayout>) {
        let place = step.file as usize;
        if self.files.len() <= place {
            self.files.resize(place + 1, (0, false));
        }
        self.syncs |= matches!(step.op, IologOp::Sync | IologOp::DataSync);
        let Some(dir) = direction(step.op) else {
            return;
        };
        let (end, changes) = &mut self.files[place];
        *end = (*end).max(step.offset.saturating_add(step.len.into()));
        *changes |= dir != DirIndex::Read;
        self.dirs[dir as usize] = true;
        let largest = &mut self.largest[dir as usize];
        *largest = step.len.max(*largest);
        self.bytes = self.bytes.saturating_add(step.len.into());
        if dir == DirIndex::Write {
            self.writes.count += 1;
            for number in [step.offset, step.len.into()] {
                self.writes.granule = gcd(self.writes.granule, number);
            }
        }
        if let (Some(none @ None), Some(layout), 1..) =
            (self.misfits.get_mut(dir as usize), layout, step.len)
        {
            let what = |why| format!("{} bytes at {}: {why}", step.len, step.offset);
            *none = layout.misfit(step.len).map(what);
        }
    }

    /// Why it cannot be replayed as a whole, if it cannot.
    fn fault(&self, job: &NativeJob) -> Option<String> {
        if !self.dirs.contains(&true) && !self.syncs {
            return Some("holds no I/O".to_owned());
        }
        if !job.replay.chunked && self.steps.len() > MOST_STEPS {
            let what = format!("has more than {MOST_STEPS} entries: add read_iolog_chunked=1");
            return Some(what);
        }
        self.unverified(job)
    }

    /// What cannot be verified as the job asks, if something cannot.
    fn unverified(&self, job: &NativeJob) -> Option<String> {
        job.verify.sum?;
        let [read, write, trim] = self.dirs;
        let marks = |&(end, _): &(u64, bool)| end / self.writes.granule.max(1) / 8;
        if write && trim {
            return Some("trims, too: what is trimmed holds nothing to verify".to_owned());
        }
        // Reads between writes are not checked.
        let misfit = match (read, write) {
            (_, true) => &self.misfits[DirIndex::Write as usize],
            _ => &self.misfits[DirIndex::Read as usize],
        };
        let memory = self.files.iter().map(marks).fold(0, u64::saturating_add);
        if misfit.is_none() && write && job.verify.read_back && memory > MOST_BUFFERS {
            return Some(format!(
                "writes parts of {} bytes over so wide a range that to note which are to be \
                 read back takes more than {} of memory",
                self.writes.granule,
                units::bytes(MOST_BUFFERS as f64)
            ));
        }
        misfit
            .clone()
            .map(|what| format!("has a block that cannot be verified, {what}"))
    }
}

/// Writes all logs of a job into one.
fn merge_into(options: &ReplayOptions, path: &Path, place: &FilePlace) -> Result<(), String> {
    let number = |list: &[u64], place: usize, unset| list.get(place).copied().unwrap_or(unset);
    let trace = |(at, log): (usize, &String)| MergedTrace {
        path: place.work_dir.join(log),
        percent: number(&options.merge_percents, at, 100),
        times: number(&options.merge_times, at, 1),
    };
    let traces: Vec<MergedTrace> = options.logs.iter().enumerate().map(trace).collect();
    // One of them would be emptied before it is read.
    if traces.iter().any(|trace| same_file(&trace.path, path)) {
        return Err("merge_blktrace_file is one of the logs".to_owned());
    }
    let shown = |error: std::io::Error| format!("{}: {error}", path.display());
    let mut out = BufWriter::new(place.checked.create(path).map_err(shown)?);
    merge(traces, &mut out).map_err(|fault| fault.to_string())?;
    out.flush().map_err(shown)
}

fn same_file(one: &Path, other: &Path) -> bool {
    let id = |path: &Path| path.metadata().ok().map(|meta| (meta.dev(), meta.ino()));
    one == other || id(one).is_some_and(|one| Some(one) == id(other))
}

/// Reads the log that clone number `clone` replays: the job as the log makes it, and its
/// files. Changes nothing but the file that logs are merged into.
pub(super) fn prepare(
    job: &NativeJob,
    spec: &JobSpec,
    clone: u32,
    place: &FilePlace,
) -> Result<(NativeJob, MemberFiles), Failure> {
    let refused = |what: String| Failure::new(FailureKind::BadOption, what);
    let logs = &job.replay.logs;
    let path = match &job.replay.merged {
        None => place.work_dir.join(&logs[clone as usize % logs.len()]),
        Some(merged) => {
            let path = place.work_dir.join(merged);
            if clone == 0 {
                merge_into(&job.replay, &path, place).map_err(&refused)?;
            }
            path
        }
    };
    let (summary, reader) = summarize(job, &path).map_err(|fault| refused(fault.to_string()))?;
    let shown = path.display().to_string();
    if let Some(what) = summary.fault(job) {
        return Err(refused(what).about(shown));
    }
    let mut job = job.clone();
    job.verify.settled_interval = Some(verify::interval(&job));
    if reader.is_block_trace() && fathom_jobfile::spec::option(spec, "iodepth").is_none() {
        job.queue.depth = reader.depth().max(1);
        job.queue.low = Some(job.queue.depth);
    }
    // What is trimmed goes through no buffer.
    let [read, write, _] = summary.largest;
    let buffers = u64::from(read.max(write)).saturating_mul(job.depth().into());
    if buffers > MOST_BUFFERS {
        let what = format!(
            "{} I/Os of {} at once are more than {} in memory",
            job.depth(),
            units::bytes(f64::from(read.max(write))),
            units::bytes(MOST_BUFFERS as f64)
        );
        return Err(refused(what).about(shown));
    }
    job.pattern = IoPattern {
        dirs: summary.dirs,
        // Buffers have at least a sector: splice and io_uring map whole ones.
        sizes: [read, write, 1].map(|size| Sizes::Fixed(size.max(512))),
        seed: job.pattern.seed,
        repeatable: job.pattern.repeatable,
        ..IoPattern::default()
    };
    let names = match &job.replay.redirect {
        Some(device) => std::slice::from_ref(device),
        None => reader.files(),
    };
    let mut planned = Vec::new();
    for (name, (end, changes)) in names.iter().zip(summary.files) {
        let changes = changes && !job.verify.only;
        planned.push(files::plan_replayed(&job, name, end, changes, place)?);
    }
    let plan = ReplayPlan {
        options: job.replay.clone(),
        path,
        steps: (!job.replay.chunked).then(|| Arc::new(summary.steps)),
        writes: summary.writes,
    };
    let files = MemberFiles {
        files: planned,
        // There is one pass: the log's.
        pass_bytes: u64::MAX,
        total_bytes: summary.bytes,
        place: place.clone(),
        replay: Some(plan),
    };
    Ok((job, files))
}

fn summarize(job: &NativeJob, path: &Path) -> Result<(LogSummary, IologReader), IologFault> {
    let options = &job.replay;
    let layout = BlockLayout::of(job);
    let mut steps = StepReader::open(options, path)?;
    let mut summary = LogSummary::default();
    while let Some(step) = steps.next_step()? {
        summary.count(&step, layout.as_ref());
        // One more than may be: it is told how many there are too many.
        if !options.chunked && summary.steps.len() <= MOST_STEPS {
            summary.steps.push(step);
        }
    }
    Ok((summary, steps.reader))
}

/// What a worker is to do next.
pub(super) enum ReplayNext {
    Io(NextIo),
    Sync(Op, u32),
    /// Nothing before this tick.
    Later(u64),
    /// The log is through.
    Over,
    /// It is no longer what it was when it was judged.
    Changed(Failure),
}

/// The steps of a member's log, one after the other, in time.
pub(super) struct ReplaySource {
    plan: ReplayPlan,
    files: usize,
    largest: u32,
    /// With verify: how its blocks are laid out, and which way those go that are.
    layout: Option<(BlockLayout, DirIndex)>,
    /// Writes that there is room to note.
    writes_left: u64,
    place: usize,
    reading: Option<StepReader>,
    over: bool,
    /// Drawn and not due yet.
    ahead: Option<ReplayStep>,
    /// Since when the next delay counts, and since when waits do.
    last: u64,
    began: Option<u64>,
}

impl ReplaySource {
    pub(super) fn new(job: &NativeJob, files: &MemberFiles) -> Option<Self> {
        let plan = files.replay.clone()?;
        let verified = match job.writes() {
            true => DirIndex::Write,
            false => DirIndex::Read,
        };
        Some(Self {
            writes_left: plan.writes.count,
            plan,
            files: files.files.len(),
            largest: job.pattern.max_block(),
            layout: BlockLayout::of(job).map(|layout| (layout, verified)),
            place: 0,
            reading: None,
            over: false,
            ahead: None,
            last: 0,
            began: None,
        })
    }

    pub(super) fn is_over(&self) -> bool {
        self.over
    }

    /// What is due now, or when something is.
    pub(super) fn next(&mut self, now: u64, clock: &TickClock) -> ReplayNext {
        let began = *self.began.get_or_insert(now);
        loop {
            let waited = self.ahead.is_some();
            let step = match self
                .ahead
                .take()
                .map_or_else(|| self.draw(), |s| Ok(Some(s)))
            {
                Ok(Some(step)) => step,
                Ok(None) => {
                    self.over = true;
                    return ReplayNext::Over;
                }
                Err(failure) => return ReplayNext::Changed(failure),
            };
            let (since, us) = match step.op {
                IologOp::Wait => (began, step.offset.saturating_mul(1000)),
                _ => (self.last, step.delay_us),
            };
            let due = since.saturating_add(clock.ticks(us.saturating_mul(1000)));
            if due > now {
                self.ahead = Some(step);
                return ReplayNext::Later(due);
            }
            // Late for its own sleep it makes up for that, late for slow I/Os it does
            // not: they delay what follows (iolog.c, iolog_delay).
            self.last = if waited { due } else { now };
            let (file, offset, len) = (step.file, step.offset, step.len);
            match step.op {
                IologOp::Sync => return ReplayNext::Sync(Op::Fsync, file),
                IologOp::DataSync => return ReplayNext::Sync(Op::Fdatasync, file),
                op => {
                    if let Some(dir) = direction(op).filter(|_| len > 0) {
                        return ReplayNext::Io(NextIo {
                            dir,
                            file,
                            offset,
                            len,
                        });
                    }
                }
            }
        }
    }

    fn draw(&mut self) -> Result<Option<ReplayStep>, Failure> {
        if let Some(steps) = &self.plan.steps {
            let step = steps.get(self.place).copied();
            self.place += 1;
            return Ok(step);
        }
        let path = &self.plan.path;
        let changed = |what: String| {
            let failure = Failure::new(FailureKind::BadOption, what);
            failure.about(path.display().to_string())
        };
        let reader = match &mut self.reading {
            Some(reader) => reader,
            none => {
                let opened = StepReader::open(&self.plan.options, path);
                none.insert(opened.map_err(|fault| changed(fault.to_string()))?)
            }
        };
        let step = reader.next_step().map_err(|e| changed(e.to_string()))?;
        if step.is_none_or(|step| self.is_known(&step)) {
            return Ok(step);
        }
        let what = "the log has changed since it was judged";
        let failure = Failure::new(FailureKind::BadOption, what);
        Err(failure.about(self.plan.path.display().to_string()))
    }

    /// Whether a step that is read again can be one of those that were judged.
    fn is_known(&mut self, step: &ReplayStep) -> bool {
        let Some(dir) = direction(step.op) else {
            return (step.file as usize) < self.files;
        };
        let fits = match &self.layout {
            Some((layout, verified)) if dir == *verified => layout.misfit(step.len).is_none(),
            _ => true,
        };
        let one_more = u64::from(dir == DirIndex::Write);
        let left = self.writes_left.checked_sub(one_more);
        self.writes_left = left.unwrap_or(0);
        let small = dir == DirIndex::Trim || step.len <= self.largest;
        (step.file as usize) < self.files && small && fits && left.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::clock::ClockAnchor;

    /// When each I/O of a log comes, in µs, looking once a µs.
    fn times(lines: &str, set: impl FnOnce(&mut NativeJob)) -> Vec<u64> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("log"), lines).unwrap();
        let mut job = NativeJob::new("j");
        job.replay.logs = vec!["log".to_owned()];
        set(&mut job);
        let spec = JobSpec {
            name: "j".to_owned(),
            options: Vec::new(),
        };
        let (job, plan) = prepare(&job, &spec, 0, &FilePlace::of(dir.path())).unwrap();
        let mut source = ReplaySource::new(&job, &plan).unwrap();
        let clock = ClockAnchor::now().clock();
        let mut found = Vec::new();
        for us in 0..100_000 {
            loop {
                match source.next(clock.ticks(us * 1000), &clock) {
                    ReplayNext::Io(_) => found.push(us),
                    ReplayNext::Later(_) => break,
                    _ => return found,
                }
            }
        }
        panic!("no end: {found:?}");
    }

    #[test]
    fn ios_come_at_the_times_of_the_log() {
        let log = "fio version 3 iolog\n10 f add\n10 f open\n110 f write 0 1\n\
            310 f write 1 1\n310 f write 2 1\n300 f write 3 1\n400 f write 4 1\n";
        let near = |found: &[u64], wanted: &[u64]| {
            let pairs = found.iter().zip(wanted);
            found.len() == wanted.len() && pairs.into_iter().all(|(a, b)| a.abs_diff(*b) <= 2)
        };
        let plain = times(log, |_| {});
        assert!(near(&plain, &[100, 300, 300, 300, 400]), "{plain:?}");
        let chunked = times(log, |job| job.replay.chunked = true);
        assert_eq!(plain, chunked);
        let faster = times(log, |job| job.replay.time_percent = 200);
        assert!(near(&faster, &[50, 150, 150, 150, 200]), "{faster:?}");
        let slower = times(log, |job| job.replay.time_percent = 50);
        assert!(near(&slower, &[200, 600, 600, 600, 800]), "{slower:?}");
        assert_eq!(times(log, |job| job.replay.no_stall = true), [0; 5]);
    }

    #[test]
    fn waits_count_from_the_start() {
        let log = "fio version 2 iolog\nf add\nf write 0 1\nf wait 3 0\nf write 0 1\n\
            f wait 2 0\nf write 0 1\n";
        let found = times(log, |_| {});
        assert_eq!(found.len(), 3);
        assert!(found[0] == 0 && found[1].abs_diff(3000) <= 2 && found[2] == found[1]);
        assert_eq!(times(log, |job| job.replay.no_stall = true), [0; 3]);
    }

    /// What was judged is what is done: a log that is changed meanwhile ends the job.
    #[test]
    fn a_log_that_has_changed_is_not_replayed_any_further() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let text = "fio version 2 iolog\nf add\nf write 0 512\n";
        std::fs::write(&log, text).unwrap();
        let mut job = NativeJob::new("j");
        (job.replay.logs, job.replay.chunked) = (vec!["log".to_owned()], true);
        let spec = JobSpec {
            name: "j".to_owned(),
            options: Vec::new(),
        };
        let (job, plan) = prepare(&job, &spec, 0, &FilePlace::of(dir.path())).unwrap();
        let clock = ClockAnchor::now().clock();
        for more in ["f write 0 513\n", "g add\ng write 0 1\n", "?\n"] {
            std::fs::write(&log, format!("{text}{more}")).unwrap();
            let mut source = ReplaySource::new(&job, &plan).unwrap();
            assert!(matches!(source.next(0, &clock), ReplayNext::Io(_)));
            assert!(matches!(source.next(0, &clock), ReplayNext::Changed(_)));
        }
    }
}
