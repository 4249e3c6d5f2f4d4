//! A job as this engine runs it: every option resolved to what it means.
//!
//! [`mod@super::options`] fills it from a [`fathom_model::JobSpec`]; nothing below
//! looks at an option's text again.

mod defaults;
mod io_engine;
mod io_logs;
mod pattern;

use std::path::PathBuf;
use std::time::Duration;

use super::numa::NumaOptions;
use super::verify::Checksum;
pub(super) use io_engine::{BurnOptions, FileOp, IoEngine, ScsiOptions, ScsiWrite, StatCall};
pub(super) use io_logs::{LogOptions, ReplayOptions};
pub(super) use pattern::{FileOrder, FileService, IoPattern, Sizes};

/// Direction of data, as an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DirIndex {
    Read = 0,
    Write = 1,
    Trim = 2,
}

impl DirIndex {
    pub(super) const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Trim];

    pub(super) fn model(self) -> fathom_model::Direction {
        match self {
            Self::Read => fathom_model::Direction::Read,
            Self::Write => fathom_model::Direction::Write,
            Self::Trim => fathom_model::Direction::Trim,
        }
    }
}

/// A size as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileAmount {
    Bytes(u64),
    Percent(u64),
    /// Zones, until it is known how large they are.
    Zones(u64),
}

/// How much, and of what.
#[derive(Debug, Clone, Default)]
pub(super) struct IoExtent {
    pub(super) size: Option<FileAmount>,
    pub(super) io_size: Option<FileAmount>,
    /// Smallest and largest size of a file.
    pub(super) file_size: Option<(u64, u64)>,
    pub(super) offset: Option<FileAmount>,
    /// What an offset in percent is rounded up to a multiple of; `None`: the smallest block.
    pub(super) offset_align: Option<u64>,
    pub(super) offset_increment: Option<FileAmount>,
    pub(super) loops: u64,
    pub(super) number_ios: Option<u64>,
    pub(super) zones: ZoneOptions,
}

/// Of `zonemode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ZoneMode {
    None,
    Strided,
    /// The zones of a zoned device.
    Zbd,
}

/// `zonemode` and its kin as written, in bytes; 0: not given.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ZoneOptions {
    /// `None`: as `zonesize` asks for it.
    pub(super) mode: Option<ZoneMode>,
    pub(super) size: u64,
    pub(super) range: u64,
    pub(super) skip: u64,
    /// zoneskip in zones.
    pub(super) skip_zones: u64,
    pub(super) capacity: u64,
    /// Zones that may be open, of all jobs and of one.
    pub(super) most_open: u32,
    pub(super) job_most_open: u32,
    pub(super) ignores_limits: bool,
    pub(super) reads_beyond: bool,
    /// zone_reset_frequency, zone_reset_threshold.
    pub(super) reset_share: f64,
    pub(super) reset_from: f64,
}

impl ZoneOptions {
    /// Whether the job asks for zones (init.c, fixup_options).
    pub(super) fn is_strided(&self) -> bool {
        match self.mode {
            Some(mode) => mode == ZoneMode::Strided,
            None => self.size > 0,
        }
    }

    pub(super) fn is_zbd(&self) -> bool {
        self.mode == Some(ZoneMode::Zbd)
    }

    /// Zones to do one after the other: one file only can have them (init.c,
    /// fixup_options).
    pub(super) fn strided(&self, files: usize) -> Option<Self> {
        let asked = self.is_strided() && self.size > 0;
        (asked && files == 1).then_some(Self {
            range: if self.range > 0 {
                self.range
            } else {
                self.size
            },
            skip: self.skip + self.skip_zones.saturating_mul(self.size),
            skip_zones: 0,
            ..*self
        })
    }
}

/// What `fallocate` does when a file is made for writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fallocate {
    None,
    Allocate,
    KeepSize,
    Truncate,
}

/// What the kernel is told of the order of the I/Os (posix_fadvise).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Advise {
    Nothing,
    /// What the job does.
    AsPattern,
    Random,
    Sequential,
}

/// O_SYNC or O_DSYNC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OpenSync {
    No,
    Sync,
    Dsync,
}

/// The files and how they are opened and synced.
#[derive(Debug, Clone)]
pub(super) struct JobFiles {
    /// As `filename` names them; empty: made from `format`.
    pub(super) names: Vec<PathBuf>,
    /// Folders; the clones of a job take them in turn.
    pub(super) directories: Vec<PathBuf>,
    pub(super) format: String,
    pub(super) count: u32,
    pub(super) service: FileService,
    pub(super) direct: bool,
    pub(super) open_sync: OpenSync,
    /// Writes between two fsync; 0 is never.
    pub(super) fsync_every: u64,
    pub(super) fdatasync_every: u64,
    pub(super) end_fsync: bool,
    pub(super) fsync_on_close: bool,
    /// Writes between two sync_file_range; 0 is never.
    pub(super) sync_range_every: u64,
    pub(super) sync_range_flags: u32,
    /// What is written stays so long, for the device to know (linux/fcntl.h,
    /// RWH_WRITE_LIFE_NONE and its neighbours).
    pub(super) write_hint: Option<u64>,
    /// Folders of which all files are used, however deep they lie.
    pub(super) trees: Vec<PathBuf>,
    /// The job's part begins where the file ends.
    pub(super) append: bool,
    /// The job ends where there is no space left.
    pub(super) fill: bool,
    /// Files are made, and that is all.
    pub(super) create_only: bool,
    pub(super) create_on_open: bool,
    pub(super) allow_create: bool,
    pub(super) create_fsync: bool,
    pub(super) fallocate: Fallocate,
    pub(super) invalidate: bool,
    /// Read into the cache before the job.
    pub(super) pre_read: bool,
    /// Files that may be open at once.
    pub(super) open_at_once: Option<u32>,
    pub(super) advise: Advise,
    pub(super) unlink: bool,
    pub(super) overwrite: bool,
}

/// A pattern of data that recurs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct DataPattern {
    pub(super) bytes: Vec<u8>,
    /// Where the block's offset stands in it, in eight bytes.
    pub(super) offsets: Vec<usize>,
}

/// The content of written blocks.
#[derive(Debug, Clone)]
pub(super) struct Content {
    pub(super) refill: bool,
    pub(super) scramble: bool,
    pub(super) zero: bool,
    pub(super) pattern: Vec<u8>,
    /// Share of each chunk that compresses away, in percent.
    pub(super) compress_percent: u8,
    pub(super) compress_chunk: u32,
    /// Share of the buffers that hold what one before held, in percent.
    pub(super) dedupe_percent: u8,
    /// dedupe_mode=working_set: one of a set of so many percent of the size, else the
    /// last one that was new.
    pub(super) dedupe_from_set: bool,
    /// The set is one of the buffers of all jobs.
    pub(super) dedupe_global: bool,
    pub(super) dedupe_set_percent: u8,
}

/// Blocks that carry what they are verified by.
#[derive(Debug, Clone)]
pub(super) struct Verify {
    /// `None`: nothing is verified.
    pub(super) sum: Option<Checksum>,
    /// do_verify: what was written is read back.
    pub(super) read_back: bool,
    /// Bytes between two headers as asked for; 0: the smallest block.
    pub(super) interval: u32,
    /// The same where the blocks are a log's: what the job's own would have.
    pub(super) settled_interval: Option<u32>,
    /// Where a header stands in its part.
    pub(super) offset: u32,
    pub(super) pattern: Option<DataPattern>,
    /// The first mismatch ends the job, whatever errors are ignored.
    pub(super) fatal: bool,
    /// What a mismatch found, and what should be there, become files.
    pub(super) dump: bool,
    /// Writes after which some are read back before the pass is over (0: none), and how
    /// many then (0: all).
    pub(super) backlog: u64,
    pub(super) backlog_batch: u64,
    /// Nothing is written: the blocks are those of an earlier run.
    pub(super) only: bool,
    /// How far the writes came is kept; a job goes by what an earlier one kept.
    pub(super) state_save: bool,
    pub(super) state_load: bool,
}

impl Default for Verify {
    fn default() -> Self {
        Self {
            sum: None,
            read_back: true,
            interval: 0,
            settled_interval: None,
            offset: 0,
            pattern: None,
            fatal: false,
            dump: false,
            backlog: 0,
            backlog_batch: 0,
            only: false,
            state_save: false,
            state_load: false,
        }
    }
}

/// Where the memory of the I/Os comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MemoryKind {
    /// Pages of the process.
    Own,
    /// A segment that could be shared (shmget(2)).
    Segment,
}

/// The memory of a job.
#[derive(Debug, Clone, Copy)]
pub(super) struct MemoryOptions {
    pub(super) kind: MemoryKind,
    /// Of huge pages, of this size.
    pub(super) huge: bool,
    pub(super) huge_bytes: u64,
    /// How far behind the start of a page each buffer begins (iomem_align).
    pub(super) offset: u32,
    /// Bytes that are taken and locked besides, so that others have less (lockmem).
    pub(super) locked: u64,
}

impl Default for MemoryOptions {
    fn default() -> Self {
        Self {
            kind: MemoryKind::Own,
            huge: false,
            // fio.h, FIO_HUGE_PAGE.
            huge_bytes: 4 << 20,
            offset: 0,
            locked: 0,
        }
    }
}

/// How many at once, and in what batches.
#[derive(Debug, Clone)]
pub(super) struct Queue {
    pub(super) depth: u32,
    /// Most I/Os handed over at once; `None`: as many as there is room for.
    pub(super) submit: Option<u32>,
    /// Fewest completions waited for when the queue is full.
    pub(super) complete_min: u32,
    /// Most completions taken at once.
    pub(super) complete_max: Option<u32>,
    /// The queue is filled again when it has run down to this.
    pub(super) low: Option<u32>,
    pub(super) hipri: bool,
    pub(super) sq_poll: bool,
    pub(super) sq_poll_cpu: Option<u32>,
    pub(super) fixed_buffers: bool,
    /// Share of pvsync2's I/Os that poll, in percent.
    pub(super) poll_percent: u8,
    /// An I/O that would wait in the kernel fails with EAGAIN.
    pub(super) nowait: bool,
    /// Pages leave the cache behind the I/O; without effect with `direct`.
    pub(super) uncached: bool,
    /// io_uring: every so many-th I/O goes to a thread of the kernel at once; 0: none.
    pub(super) async_every: u32,
    /// io_submit_mode=offload: each I/O by a thread that does nothing else meanwhile.
    pub(super) offload: bool,
    /// An I/O waits while another is under way in its range.
    pub(super) no_overlap: bool,
}

impl Queue {
    /// What a read or write asks the kernel beside its data (preadv2(2)).
    pub(super) fn rw_flags(&self) -> i32 {
        /// include/uapi/linux/fs.h, since 6.14: RWF_DONTCACHE.
        const DONT_CACHE: i32 = 0x80;
        let nowait = if self.nowait { libc::RWF_NOWAIT } else { 0 };
        nowait | if self.uncached { DONT_CACHE } else { 0 }
    }
}

/// When it begins and ends.
#[derive(Debug, Clone, Default)]
pub(super) struct Times {
    pub(super) runtime: Option<Duration>,
    pub(super) time_based: bool,
    pub(super) ramp: Duration,
    /// Shortest and longest; each clone waits for a time in between.
    pub(super) start_delay: (Duration, Duration),
}

/// A latency that the depth is fitted to.
#[derive(Debug, Clone)]
pub(super) struct LatencyOptions {
    pub(super) target: Option<Duration>,
    /// How long a depth is tried.
    pub(super) window: Duration,
    /// Share of the I/Os that must keep the target.
    pub(super) percent: f64,
    /// latency_run: the depth is fitted until the job's end.
    pub(super) goes_on: bool,
}

impl Default for LatencyOptions {
    fn default() -> Self {
        Self {
            target: None,
            window: Duration::ZERO,
            percent: 100.0,
            goes_on: false,
        }
    }
}

/// How fast, by direction.
#[derive(Debug, Clone, Default)]
pub(super) struct RateOptions {
    pub(super) bytes_per_second: [Option<u64>; 3],
    pub(super) ios_per_second: [Option<u64>; 3],
    pub(super) poisson: bool,
    pub(super) think: Duration,
    /// I/Os between two such times; `None`: one, or with `think_every` any number.
    pub(super) think_blocks: Option<u64>,
    /// They count when they are handed over, else when they are over.
    pub(super) think_by_issue: bool,
    /// A rate does not make up for the pauses.
    pub(super) forgets_think: bool,
    /// Time of I/O between two such times, too.
    pub(super) think_every: Duration,
    /// How much of each such time passes in spinning.
    pub(super) think_spin: Duration,
    /// Below this for a cycle the job fails.
    pub(super) least_bytes_per_second: [Option<u64>; 3],
    pub(super) least_ios_per_second: [Option<u64>; 3],
    pub(super) cycle: Duration,
    /// An I/O that takes longer fails the job.
    pub(super) max_latency: [Option<Duration>; 3],
    /// Weight among the jobs of its flow, and how long it sleeps when it is ahead.
    pub(super) flow: u32,
    pub(super) flow_id: u64,
    pub(super) flow_sleep: Duration,
}

impl RateOptions {
    pub(super) fn has_floor(&self) -> bool {
        self.least_bytes_per_second
            .iter()
            .chain(&self.least_ios_per_second)
            .any(Option::is_some)
    }

    pub(super) fn is_rated(&self) -> bool {
        self.bytes_per_second
            .iter()
            .chain(&self.ios_per_second)
            .any(Option::is_some)
    }
}

/// Its place among the jobs.
#[derive(Debug, Clone)]
pub(super) struct StartOrder {
    pub(super) clones: u32,
    pub(super) stonewall: bool,
    pub(super) wait_for: Option<String>,
    pub(super) new_group: bool,
    pub(super) exit_all: bool,
    pub(super) exit_all_on_error: bool,
    pub(super) exit_what: ExitWhat,
    /// What the shell does before it and after it.
    pub(super) before: Option<String>,
    pub(super) after: Option<String>,
}

/// Which jobs end with one that ends all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExitWhat {
    Group,
    /// Those that run; what waits for a wall follows.
    Stonewall,
    All,
}

/// Which errors a job goes past.
#[derive(Debug, Clone, Default)]
pub(super) struct OnError {
    /// By direction: read, write (trims with it), and syncs, which are writes.
    pub(super) go_on: [bool; 3],
    /// Blocks that were read back and are not what was written.
    pub(super) go_on_verify: bool,
    /// By direction, then blocks read back: the errors that are gone past, where
    /// it is not the usual ones ([`OnError::USUAL`]).
    pub(super) ignore: [Vec<i32>; 4],
}

impl OnError {
    /// Errors that `continue_on_error` goes past (`td_error.c`).
    const USUAL: [i32; 2] = [libc::EIO, libc::EILSEQ];

    /// Whether the job goes past this error; `kind` is its direction's place, or that
    /// of blocks read back.
    pub(super) fn tolerates(&self, kind: usize, errno: i32) -> bool {
        match &self.ignore[kind][..] {
            [] => {
                let on = self.go_on.get(kind).copied().unwrap_or(self.go_on_verify);
                on && Self::USUAL.contains(&errno)
            }
            wanted => wanted.contains(&errno),
        }
    }

    /// Whether the job goes on after any error.
    pub(super) fn any(&self) -> bool {
        self.go_on_verify
            || self.go_on.contains(&true)
            || self.ignore.iter().any(|list| !list.is_empty())
    }
}

/// I/O priorities: class << 13 | hint << 3 | level (include/uapi/linux/ioprio.h).
#[derive(Debug, Clone, Default)]
pub(super) struct PriorityOptions {
    /// Of the thread.
    pub(super) thread: Option<u16>,
    /// Share of the I/Os with a priority of their own, in percent, by direction.
    pub(super) percent: [u8; 3],
    pub(super) class: [u8; 3],
    pub(super) level: [u8; 3],
    pub(super) hint: [u16; 3],
    /// By direction: (block size, percent, priority).
    pub(super) split: [Vec<(u32, u8, u16)>; 3],
}

/// What a rule for a steady state watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SteadyMetric {
    Iops,
    Bw,
    /// Mean completion latency of the second.
    Lat,
}

/// The rule as a job asks for it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SteadyRule {
    pub(super) metric: SteadyMetric,
    /// By the least-squares slope of the window, else by the largest deviation
    /// from its mean.
    pub(super) slope: bool,
    pub(super) limit: f64,
    /// The limit is in percent of the mean.
    pub(super) percent: bool,
}

/// What the results show.
#[derive(Debug, Clone)]
pub(super) struct Show {
    pub(super) group: bool,
    pub(super) lat: bool,
    pub(super) clat: bool,
    pub(super) slat: bool,
    pub(super) clat_percentiles: bool,
    pub(super) lat_percentiles: bool,
    pub(super) slat_percentiles: bool,
    pub(super) percentiles: Vec<f64>,
    pub(super) unified: Unified,
    pub(super) description: Option<String>,
}

/// The latencies that somebody wants to know: others cost nothing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Measures {
    pub(super) slat: bool,
    pub(super) clat: bool,
    pub(super) lat: bool,
}

/// `unified_rw_reporting`: whether the directions of a job are shown as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unified {
    No,
    /// In place of the directions.
    Mixed,
    /// Besides them.
    Both,
}

/// A job, whole.
#[derive(Debug, Clone)]
pub(super) struct NativeJob {
    pub(super) name: String,
    pub(super) engine: IoEngine,
    pub(super) pattern: IoPattern,
    pub(super) extent: IoExtent,
    pub(super) files: JobFiles,
    pub(super) content: Content,
    pub(super) memory: MemoryOptions,
    pub(super) scsi: ScsiOptions,
    pub(super) stat: StatCall,
    pub(super) burn: BurnOptions,
    pub(super) verify: Verify,
    pub(super) queue: Queue,
    pub(super) times: Times,
    pub(super) pace: RateOptions,
    pub(super) replay: ReplayOptions,
    pub(super) latency: LatencyOptions,
    pub(super) order: StartOrder,
    pub(super) errors: OnError,
    pub(super) priority: PriorityOptions,
    pub(super) cpus: Option<Vec<usize>>,
    pub(super) cpus_split: bool,
    pub(super) nice: Option<i32>,
    pub(super) numa: NumaOptions,
    pub(super) logs: LogOptions,
    /// fio's steady-state rule: the rule, its window in s, the time before it.
    pub(super) steady: Option<SteadyRule>,
    pub(super) steady_seconds: u64,
    pub(super) steady_ramp: Duration,
    /// I/O scheduler that the devices get for the run.
    pub(super) scheduler: Option<String>,
    pub(super) show: Show,
}

impl NativeJob {
    /// fio's defaults (options.c).
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            engine: IoEngine::Psync,
            pattern: IoPattern::default(),
            extent: IoExtent {
                loops: 1,
                ..IoExtent::default()
            },
            files: JobFiles::default(),
            content: Content::default(),
            memory: MemoryOptions::default(),
            scsi: ScsiOptions::default(),
            stat: StatCall::default(),
            burn: BurnOptions::default(),
            verify: Verify::default(),
            queue: Queue::default(),
            times: Times::default(),
            pace: RateOptions {
                cycle: Duration::from_secs(1),
                ..RateOptions::default()
            },
            replay: ReplayOptions::default(),
            latency: LatencyOptions::default(),
            order: StartOrder::default(),
            errors: OnError::default(),
            priority: PriorityOptions::default(),
            cpus: None,
            cpus_split: false,
            nice: None,
            numa: NumaOptions::default(),
            logs: LogOptions::default(),
            steady: None,
            steady_seconds: 0,
            steady_ramp: Duration::ZERO,
            scheduler: None,
            show: Show::default(),
        }
    }

    /// Whether an I/O is over when it has been handed over.
    pub(super) fn completes_at_once(&self) -> bool {
        let at_once = self.engine == IoEngine::Null && self.depth() == 1;
        (self.engine.is_synchronous() || at_once) && !self.queue.offload
    }

    /// The depth the engine can keep.
    pub(super) fn depth(&self) -> u32 {
        if self.engine.is_synchronous() && !self.queue.offload {
            1
        } else {
            self.queue.depth.max(1)
        }
    }

    pub(super) fn writes(&self) -> bool {
        self.pattern.uses(DirIndex::Write)
    }

    /// Samples of a rated job have lat, histogram logs and rules for a steady state clat.
    pub(super) fn measures(&self) -> Measures {
        Measures {
            slat: self.show.slat,
            clat: self.show.clat || self.logs.hist.is_some() || self.steady.is_some(),
            lat: self.show.lat || self.pace.is_rated(),
        }
    }

    /// Whether its files change: it writes or trims, and not only for show.
    pub(super) fn changes_files(&self) -> bool {
        // falloc sets space aside whatever the direction is.
        (self.writes() && !self.verify.only) || self.trims() || self.engine == IoEngine::Falloc
    }

    /// Whether each pass ends with reading back what it wrote.
    pub(super) fn reads_back(&self) -> bool {
        self.verify.sum.is_some() && self.verify.read_back && self.writes()
    }

    /// Directions that have figures.
    pub(super) fn counted(&self) -> [bool; 3] {
        let [read, write, trim] = self.pattern.dirs;
        [read || self.reads_back(), write, trim]
    }

    pub(super) fn trims(&self) -> bool {
        self.pattern.uses(DirIndex::Trim)
    }
}
