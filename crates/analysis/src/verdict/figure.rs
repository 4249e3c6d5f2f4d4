//! One figure with everything that its verdict rests on.

use fathom_model::environment::{BlockDevice, Target};
use fathom_model::io_engine::{DEFAULT_IO_ENGINE, io_engine};
use fathom_model::value::{self, Base};
use fathom_model::{
    Direction, DirectionResult, EvidenceSum, JobResult, LayerKind, RunDocument, StackLayer,
    VerdictReason,
};

use super::course::TrackCourse;
use super::machine_of;
use crate::step_evidence::{MachineEvidence, StepEvidence};

/// fio reads the disks' counters every 250 ms (`DISK_UTIL_MSEC`, diskutil.h) and
/// not once more at the end, so that up to that much of a run is missing in
/// them. From this run time on that is a quarter at the most.
pub const DISK_FIGURES_MS: u64 = 1000;

/// A reason and what it is about.
#[derive(Debug, Clone, PartialEq)]
pub struct FigureReason {
    /// Place of the job in the document.
    pub job: usize,
    /// The direction.
    pub dir: Direction,
    /// The reason.
    pub reason: VerdictReason,
}

/// A direction of a job, its run, and what was read of its machine meanwhile.
#[derive(Debug, Clone, Copy)]
pub struct JudgedFigure<'d> {
    /// The run.
    pub doc: &'d RunDocument,
    /// The job.
    pub job: &'d JobResult,
    /// The direction.
    pub dir: Direction,
    /// What it came to.
    pub result: &'d DirectionResult,
    /// What its machine did; `None` where nothing was read.
    pub machine: Option<&'d MachineEvidence>,
    /// How it went over time; `None` where there are no samples.
    pub course: Option<&'d TrackCourse>,
}

/// I/Os and bytes of reads and of writes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReadsAndWrites {
    /// Reads.
    pub read_ios: u64,
    /// Writes.
    pub write_ios: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
}

impl<'d> JudgedFigure<'d> {
    /// The direction of the job at this place; `None` where it has no figure.
    pub fn of(
        doc: &'d RunDocument,
        place: usize,
        dir: Direction,
        step: Option<&'d StepEvidence>,
    ) -> Option<Self> {
        let job = doc.jobs.get(place)?;
        let result = job.directions().find(|(of, _)| *of == dir)?.1;
        let label = machine_of(job);
        let is_twin = |other: &&JobResult| {
            other.name == job.name && other.step == job.step && machine_of(other) == label
        };
        let before = doc.jobs[..place].iter().filter(is_twin).count();
        // Sums over machines have what their parts have.
        let step = step.filter(|_| !job.is_sum_of_clients());
        Some(Self {
            doc,
            job,
            dir,
            result,
            machine: step.and_then(|step| step.machine(label.as_deref())),
            course: step.and_then(|step| step.course(&job.name, label.as_deref(), before, dir)),
        })
    }

    /// What was read of the machine.
    pub fn evidence(&self) -> Option<&'d EvidenceSum> {
        Some(&self.machine?.sum)
    }

    /// The jobs that ran beside it on the same machine, and itself.
    pub fn siblings(&self) -> impl Iterator<Item = &'d JobResult> {
        let job = self.job;
        self.doc.jobs.iter().filter(move |other| {
            other.step == job.step
                && other.hostname == job.hostname
                && other.port == job.port
                && !other.is_sum_of_clients()
        })
    }

    /// What these jobs moved in the time that evidence is of; `None` where they went
    /// through a cache or moved nothing of a file, so that no device has counted the same.
    pub fn own(&self) -> Option<ReadsAndWrites> {
        if !self.is_passed_on() {
            return None;
        }
        let mut own = ReadsAndWrites::default();
        for job in self.siblings() {
            if !self.is_direct(job) || !is_file_engine(job) || job.mixed.is_some() {
                return None;
            }
            for (dir, result) in job.directions() {
                let (ios, bytes) = match dir {
                    Direction::Read => (&mut own.read_ios, &mut own.read_bytes),
                    Direction::Write => (&mut own.write_ios, &mut own.write_bytes),
                    _ if result.total_ios > 0 => return None,
                    _ => continue,
                };
                *ios = ios.saturating_add(result.total_ios);
                *bytes = bytes.saturating_add(result.io_bytes);
            }
        }
        // What was told before the evidence begins is taken off in proportion.
        let (told_ios, told_bytes) = self.machine?.told_before;
        let left = |part: u64, whole: u64, told: u64| {
            let share = told as f64 / whole.max(1) as f64;
            (part as f64 * (1.0 - share).max(0.0)).round() as u64
        };
        let (ios, bytes) = (
            own.read_ios + own.write_ios,
            own.read_bytes + own.write_bytes,
        );
        Some(ReadsAndWrites {
            read_ios: left(own.read_ios, ios, told_ios),
            write_ios: left(own.write_ios, ios, told_ios),
            read_bytes: left(own.read_bytes, bytes, told_bytes),
            write_bytes: left(own.write_bytes, bytes, told_bytes),
        })
    }

    /// What the targets counted; `None` where they count nothing.
    pub fn counted(&self) -> Option<ReadsAndWrites> {
        let counted = ReadsAndWrites {
            read_ios: self.sum_of_targets("read_ios")?,
            write_ios: self.sum_of_targets("write_ios")?,
            read_bytes: self.sum_of_targets("read_bytes")?,
            write_bytes: self.sum_of_targets("write_bytes")?,
        };
        // A device whose counters are switched off (iostats) counts nothing at all.
        (counted != ReadsAndWrites::default()).then_some(counted)
    }

    /// A counter of all targets in sum; `None` where there is no target, or one has none.
    fn sum_of_targets(&self, counter: &str) -> Option<u64> {
        let evidence = self.evidence()?;
        let mut targets = evidence.devices("target").peekable();
        targets.peek()?;
        targets
            .map(|device| evidence.count(&format!("{device}.{counter}")))
            .sum()
    }

    /// These counters of all targets in sum, which may be 0; `None` where a target does not
    /// count.
    pub(super) fn reached(&self, counters: &[&str]) -> Option<u64> {
        let evidence = self.evidence()?;
        // Counters that are switched off stay at 0. zram counts even then
        // (bio_start_io_acct, drivers/block/zram/zram_drv.c).
        let is_off = |device: &str| {
            evidence.set_to(&format!("{device}.iostats")) == Some("0")
                && !device.starts_with("zram")
        };
        if evidence.devices("target").any(is_off) {
            return None;
        }
        let each = counters.iter();
        let all: Option<u64> = each.map(|name| self.sum_of_targets(name)).sum();
        // Those of brd count nothing (drivers/block/brd.c).
        let is_brd =
            |it: &StackLayer| it.kind == LayerKind::MemoryDevice && it.name.starts_with("ram");
        all.filter(|&counted| counted > 0 || !self.stacks().any(|it| it.leaves().any(is_brd)))
    }

    /// The value of an option of the job.
    pub fn option(&self, name: &str) -> Option<&'d str> {
        self.job.options.get(name).map(String::as_str)
    }

    /// Whether an option is there and not turned off.
    pub fn is_set(&self, name: &str) -> bool {
        is_set(self.job, name)
    }

    /// What an option is, as fio reads its number: `0x20`, `1k`. `None`: it is not given, or is
    /// none.
    pub fn number(&self, name: &str) -> Option<f64> {
        let number = value::size(self.option(name)?, self.base());
        number.ok().map(|number| number as f64)
    }

    /// The same; `default` where it is not given.
    pub fn number_or(&self, name: &str, default: f64) -> Option<f64> {
        match self.option(name) {
            Some(_) => self.number(name),
            None => Some(default),
        }
    }

    /// The same of an option that may have a value for each direction.
    pub fn number_of_dir(&self, name: &str) -> Option<f64> {
        let size = |part: &str| value::size(part, self.base());
        let of_dirs = value::triple(self.option(name)?, size).ok()?;
        let of_dir = match self.dir {
            Direction::Read => of_dirs[0],
            Direction::Write => of_dirs[1],
            _ => of_dirs[2],
        };
        of_dir.map(|number| number as f64)
    }

    /// What `k` means in the job.
    fn base(&self) -> Base {
        match self.option("kb_base") {
            Some("1000") => Base::Decimal,
            _ => Base::Binary,
        }
    }

    /// The job's `rw`; `None` when its options are not known.
    pub fn pattern(&self) -> Option<&'d str> {
        self.option("rw").or_else(|| self.option("readwrite"))
    }

    /// Its block size, where it has one.
    pub fn block_bytes(&self) -> Option<u64> {
        if ["bsrange", "bssplit", "blocksize_range"]
            .iter()
            .any(|name| self.is_set(name))
        {
            return None;
        }
        let names = ["bs", "blocksize"];
        match names.into_iter().find(|name| self.option(name).is_some()) {
            Some(name) => self.number_of_dir(name).map(|bytes| bytes as u64),
            None => Some(4096),
        }
    }

    /// Jobs that are reported as this one.
    pub fn clones(&self) -> f64 {
        let numjobs = self.number("numjobs");
        match self.is_set("group_reporting") {
            true => numjobs.unwrap_or(1.0),
            false => 1.0,
        }
    }

    /// Whether something may have moved the rate by more than its own interval, of which it
    /// took this share of the time or of the I/O at the most. Without an interval it may.
    pub(super) fn may_exceed_interval(&self, share: f64) -> bool {
        let certainty = self.result.certainty.as_ref();
        let half = certainty.and_then(|it| it.iops.half_width());
        half.is_none_or(|half| share * self.result.iops > half)
    }

    /// How long the job's I/O took within what was read of its machine, in ms: engines take a
    /// moment to start and to end.
    pub(super) fn io_ms(&self, evidence: &EvidenceSum) -> f64 {
        self.result.runtime_ms.min(evidence.span_ms).max(1) as f64
    }

    /// The first target that is a drive itself, not made of files or other devices.
    pub(super) fn hardware(&self) -> Option<&'d str> {
        const MADE: [&str; 6] = ["loop", "zram", "ram", "dm-", "md", "nullb"];
        let mut targets = self.evidence()?.devices("target");
        targets.find(|name| !MADE.iter().any(|made| name.starts_with(made)))
    }

    /// I/Os that the job is to keep in flight; fio's default is one.
    pub fn wanted_depth(&self) -> Option<f64> {
        let of_each = self.number_or("iodepth", 1.0)?;
        self.pattern().map(|_| of_each * self.clones())
    }

    /// Whether a job is direct; false when its options are not known.
    fn is_direct(&self, job: &JobResult) -> bool {
        is_direct(job)
    }

    /// What the job may have worked on: the targets of the machine that ran it.
    pub fn targets(&self) -> &'d [Target] {
        targets_of(self.job, self.doc)
    }

    /// What lies under them, where that is known.
    pub(super) fn stacks(&self) -> impl Iterator<Item = &'d StackLayer> {
        let targets = self.targets().iter();
        targets.filter_map(|target| target.stack.as_ref())
    }

    /// Whether all targets are files on stacks that are known. I/O of a device is always direct
    /// where it is asked to be; of files it is what their file system makes of it.
    pub(super) fn is_on_files(&self) -> bool {
        let mut stacks = self.stacks().peekable();
        stacks.peek().is_some() && !stacks.any(StackLayer::is_device)
    }

    /// Whether the file systems on the way pass each I/O on to one device, as it is. Those of
    /// several devices may keep data twice, and a server in FUSE reads and writes as it likes.
    fn is_passed_on(&self) -> bool {
        let passes = |layer: &StackLayer| {
            layer.is_device() || (layer.kind != LayerKind::Fuse && layer.under.len() <= 1)
        };
        let mut stacks = self.stacks();
        stacks.all(|stack| stack.layers().take_while(|it| !it.is_device()).all(passes))
    }

    /// Whether the job worked on this device itself, not on files on it. Where the targets
    /// are not known it did.
    pub(super) fn is_named(&self, device: &str) -> bool {
        let targets = self.targets();
        let is_it = |it: &BlockDevice| it.name == device && it.partition.is_none();
        targets.is_empty() || self.devices().any(is_it)
    }

    /// Where the job's I/O goes, of a target of so many bytes: begin and end. `None`: its
    /// options say it in another way, as in zones or with an increment for each clone.
    pub(super) fn range(&self, of_bytes: f64) -> Option<(f64, f64)> {
        let moved = [
            "offset_increment",
            "zonemode",
            "zonerange",
            "zonesize",
            "filesize",
        ];
        if moved.iter().any(|name| self.is_set(name)) {
            return None;
        }
        let bytes = |text: &str| match text.trim().strip_suffix('%') {
            Some(percent) => Some(of_bytes * percent.parse::<f64>().ok()? / 100.0),
            None => Some(value::size(text, self.base()).ok()? as f64),
        };
        let begin = self.option("offset").map_or(Some(0.0), bytes)?;
        let rest = (of_bytes - begin).max(0.0);
        let length = match self.option("size").map_or(Some(rest), bytes)? {
            0.0 => rest,
            length => length.min(rest),
        };
        (length > 0.0).then_some((begin, begin + length))
    }

    /// The devices among these.
    pub fn devices(&self) -> impl Iterator<Item = &'d BlockDevice> {
        self.targets()
            .iter()
            .filter_map(|target| target.device.as_ref())
    }
}

/// The targets of the machine that ran a job.
fn targets_of<'d>(job: &JobResult, doc: &'d RunDocument) -> &'d [Target] {
    let environment = match &job.hostname {
        None => doc.environment.as_ref(),
        Some(name) => {
            let host = doc.hosts.iter().find(|host| host.name == *name);
            host.and_then(|host| host.environment.as_deref())
        }
    };
    environment.map_or(&[][..], |environment| &environment.targets)
}

/// Whether an option is there and not turned off.
pub(super) fn is_set(job: &JobResult, name: &str) -> bool {
    job.options.get(name).is_some_and(|value| value != "0")
}

fn pattern_of(job: &JobResult) -> Option<&String> {
    job.options
        .get("rw")
        .or_else(|| job.options.get("readwrite"))
}

/// Whether the job goes past the page cache; false when its options are not known.
pub(super) fn is_direct(job: &JobResult) -> bool {
    let direct = is_set(job, "direct") || job.options.get("buffered").is_some_and(|v| v == "0");
    direct && pattern_of(job).is_some()
}

/// Whether the job goes through the page cache; false when its options are not known.
pub(super) fn is_buffered(job: &JobResult) -> bool {
    pattern_of(job).is_some() && !is_direct(job)
}

/// Whether the job's engine goes to files; fio's default does.
pub(super) fn is_file_engine(job: &JobResult) -> bool {
    let engine = job.options.get("ioengine");
    let engine = engine.map_or(DEFAULT_IO_ENGINE, String::as_str);
    io_engine(engine).is_some_and(|row| row.has_page_cache)
}
