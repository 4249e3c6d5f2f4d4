//! The files of a job: what they are called, how large they are, which part
//! the job uses, how they are made and opened.

use std::fs::File;
use std::io::{self, Read as _, Seek, SeekFrom};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fathom_device::command::nvme_namespace;
use fathom_jobfile::resolve::tree_files;
use fathom_model::{Failure, FailureKind};

use rustix::fs::OFlags;

use fathom_engine::checked::{CheckedPaths, PathChanged};
use fathom_engine::layout;

use super::backend::{OpenFile, file_calls};
use super::data::Filler;
use super::job::{Advise, Fallocate, FileAmount, FileOp, IoEngine, JobFiles, NativeJob, OpenSync};
use super::offsets::Distribution;
use super::replay_plan::ReplayPlan;
use super::rng::Rng;
use super::zbd::{self, ZonedDevice, ZonedDevices};

/// What must be done to a file before the job can use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileLayout {
    /// It is as it should be, or is made when it is opened.
    Nothing,
    /// Made anew with its space set aside.
    Space,
    /// Made anew and written once from start to end.
    Data,
}

/// One file of one member.
#[derive(Debug, Clone)]
pub(super) struct FilePlan {
    pub(super) path: PathBuf,
    pub(super) is_device: bool,
    /// Where the job's part begins and how long it is, in bytes.
    pub(super) start: u64,
    pub(super) len: u64,
    /// Where it ends, at the earliest behind that part.
    pub(super) end: u64,
    pub(super) layout: FileLayout,
    /// Its zones, with zonemode=zbd.
    pub(super) zones: Option<Arc<ZonedDevice>>,
    /// Not changed even where the job changes others: a log that is replayed says so.
    pub(super) read_only: bool,
    pub(super) checked: Arc<CheckedPaths>,
}

impl FilePlan {
    fn opened(&self, flags: OFlags) -> io::Result<File> {
        self.checked.open(&self.path, flags)
    }
}

/// Where the files of jobs are.
#[derive(Debug, Clone, Default)]
pub(super) struct FilePlace {
    /// The folder that relative names are meant from.
    pub(super) work_dir: PathBuf,
    pub(super) checked: Arc<CheckedPaths>,
}

/// Everything one member (one clone of a job) uses.
#[derive(Debug, Clone)]
pub(super) struct MemberFiles {
    pub(super) files: Vec<FilePlan>,
    /// Bytes of one pass: behind it the files are synced and dropped from the
    /// cache as the job asks for, and the next pass begins.
    pub(super) pass_bytes: u64,
    /// Bytes after which the member has done its work.
    pub(super) total_bytes: u64,
    /// Where its commands run, and what is kept of verify.
    pub(super) place: FilePlace,
    /// The I/Os of a log, where the job replays one.
    pub(super) replay: Option<ReplayPlan>,
}

impl MemberFiles {
    /// Whether it is known when all is done: not where a job fills what there is.
    pub(super) fn has_end(&self) -> bool {
        self.total_bytes < FILLED
    }

    /// Whether a block may be written twice before it is read back.
    pub(super) fn may_repeat(&self, job: &NativeJob) -> bool {
        self.replay.is_some() || job.pattern.may_repeat()
    }
}

fn open_failure(path: &Path, error: &io::Error, what: &str) -> Failure {
    let kind = match error.raw_os_error() {
        _ if PathChanged::is(error) => FailureKind::Refused,
        Some(libc::ENOSPC | libc::EDQUOT) => FailureKind::NoSpace,
        Some(libc::EACCES | libc::EPERM) => FailureKind::Permission,
        _ => FailureKind::Open,
    };
    let message = match error.raw_os_error() {
        Some(libc::EINVAL) if what == "open" => {
            "cannot be opened: its file system or the direct=1 flag is not for it (O_DIRECT)"
                .to_owned()
        }
        _ => format!("cannot {what}: {error}"),
    };
    let failure = Failure::new(kind, message).about(path.display().to_string());
    match error.raw_os_error() {
        Some(errno) => failure.with_errno(errno),
        None => failure,
    }
}

/// A share of a size; exact, and without overflow.
fn percent_of(bytes: u64, percent: u64) -> u64 {
    u64::try_from(u128::from(bytes) * u128::from(percent) / 100).unwrap_or(u64::MAX)
}

/// Names of the files of clone number `clone`: those of the job, and what lies in its
/// folders, of which files that are smaller than a block are left out.
fn names(job: &NativeJob, clone: u32, work_dir: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut trees = Vec::new();
    for folder in &job.files.trees {
        tree_files(work_dir, folder, 0, &mut trees)
            .map_err(|error| open_failure(&work_dir.join(folder), &error, "find the files of"))?;
    }
    let names = trees.into_iter().map(|name| work_dir.join(name));
    let block = u64::from(job.pattern.min_block());
    let has_room = |path: &PathBuf| std::fs::metadata(path).is_ok_and(|meta| meta.len() >= block);
    let mut names: Vec<_> = names
        .filter(|path| job.extent.size.is_some() || has_room(path))
        .collect();
    if let (Some(folder), true) = (job.files.trees.first(), names.is_empty()) {
        let message = format!("has no file of at least a block of {block}");
        let folder = work_dir.join(folder).display().to_string();
        return Err(Failure::new(FailureKind::NoSize, message).about(folder));
    }
    if job.files.trees.is_empty() || !job.files.names.is_empty() {
        names.extend(named(job, clone, work_dir));
    }
    Ok(names)
}

/// Names that the job gives or makes.
fn named(job: &NativeJob, clone: u32, work_dir: &Path) -> Vec<PathBuf> {
    let JobFiles {
        names,
        directories,
        format,
        count,
        ..
    } = &job.files;
    let relative: Vec<PathBuf> = if names.is_empty() {
        (0..*count)
            .map(|file| {
                let name = format
                    .replace("$jobname", &job.name)
                    .replace("$jobnum", &clone.to_string())
                    .replace("$filenum", &file.to_string())
                    .replace("$clientuid", "");
                PathBuf::from(name)
            })
            .collect()
    } else {
        names.clone()
    };
    let folder = directories.get(clone as usize % directories.len().max(1));
    relative
        .into_iter()
        .map(|name| match folder {
            Some(folder) => work_dir
                .join(folder)
                .join(name.strip_prefix("/").unwrap_or(&name)),
            None => work_dir.join(name),
        })
        .collect()
}

/// Bytes of a device that never ends: no offset beyond is one (off_t).
const ENDLESS: u64 = i64::MAX as u64;

fn beyond() -> Failure {
    let what =
        "offset, offset_increment and size together lead beyond byte 2^63 - 1, where no file goes";
    Failure::new(FailureKind::BadOption, what)
}

/// The end of the largest file that Linux has (loff_t).
const LARGEST_OFFSET: u64 = i64::MAX as u64;

/// Bytes of a file that is written until there is no space left: more than there is.
const FILLED: u64 = 1 << 60;

/// Whether the job goes on until there is no space left, and says no size.
fn fills(job: &NativeJob) -> bool {
    job.files.fill && job.extent.size.is_none()
}

/// Whether it is /dev/null, /dev/zero or /dev/full (Documentation/admin-guide/devices.txt:
/// major 1, minors 3, 5 and 7), which take and give bytes without an end and keep none.
fn is_endless(meta: &std::fs::Metadata) -> bool {
    let (major, minor) = (libc::major(meta.rdev()), libc::minor(meta.rdev()));
    meta.file_type().is_char_device() && major == 1 && matches!(minor, 3 | 5 | 7)
}

/// Bytes of the namespace that a generic NVMe device is the way to.
fn present_generic(path: &Path, checked: &CheckedPaths) -> Result<u64, Failure> {
    let real = checked.real(path);
    let is_char = std::fs::metadata(&real).is_ok_and(|meta| meta.file_type().is_char_device());
    if !is_char || fathom_device::Sys::live().by_path(&real).is_none() {
        let what = "is no generic NVMe device such as /dev/ng0n1, which io_uring_cmd is for";
        return Err(Failure::new(FailureKind::Open, what).about(path.display().to_string()));
    }
    let namespace = checked.open(path, OFlags::RDONLY);
    let namespace = namespace.and_then(|file| nvme_namespace(file.as_raw_fd()));
    let namespace = namespace.map_err(|error| open_failure(path, &error, "be asked"))?;
    Ok(namespace.bytes())
}

/// Bytes of the disk that a generic SCSI device is the way to; `None`: it is none.
fn present_scsi(
    job: &NativeJob,
    path: &Path,
    checked: &CheckedPaths,
) -> Result<Option<u64>, Failure> {
    let real = checked.real(path);
    let is_char = std::fs::metadata(&real).is_ok_and(|meta| meta.file_type().is_char_device());
    let disk = is_char.then(|| fathom_device::Sys::live().by_path(&real));
    let Some(disk) = disk.flatten() else {
        return Ok(None);
    };
    if job.trims() {
        let what = format!(
            "takes no trims, which the block layer makes: name {}",
            disk.dev_path().display()
        );
        let failure = Failure::new(FailureKind::BadOption, what);
        return Err(failure.about(path.display().to_string()));
    }
    Ok(Some(disk.size_bytes()))
}

/// What stands at a path now: its size and whether it is a device; `None`: nothing.
fn present(path: &Path, checked: &CheckedPaths) -> Result<Option<(u64, bool)>, Failure> {
    let meta = match std::fs::metadata(checked.real(path)) {
        Ok(meta) => meta,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(open_failure(path, &error, "look at it")),
    };
    if meta.file_type().is_block_device() {
        let opened = checked.open(path, OFlags::RDONLY);
        let size = opened.and_then(|mut file| file.seek(SeekFrom::End(0)));
        return Ok(Some((
            size.map_err(|error| open_failure(path, &error, "open"))?,
            true,
        )));
    }
    if meta.is_dir() {
        return Err(Failure::new(FailureKind::Open, "is a folder, not a file")
            .about(path.display().to_string()));
    }
    if is_endless(&meta) {
        return Ok(Some((ENDLESS, false)));
    }
    if !meta.is_file() {
        return Err(Failure::new(
            FailureKind::Open,
            "is neither a file nor a block device (generic devices are for io_uring_cmd and sg)",
        )
        .about(path.display().to_string()));
    }
    Ok(Some((meta.len(), false)))
}

/// The same, where nothing that is missing is something that may be made.
fn present_or_made(
    job: &NativeJob,
    path: &Path,
    checked: &CheckedPaths,
) -> Result<Option<(u64, bool)>, Failure> {
    let there = match job.engine {
        IoEngine::IoUringCmd => Some((present_generic(path, checked)?, true)),
        IoEngine::Sg => match present_scsi(job, path, checked)? {
            Some(bytes) => Some((bytes, true)),
            None => present(path, checked)?,
        },
        _ => present(path, checked)?,
    };
    if there.is_none() {
        if path.starts_with("/dev") && !path.starts_with("/dev/shm") {
            let message = "is not there; it would be made as an ordinary file in memory";
            return Err(
                Failure::new(FailureKind::NoDevice, message).about(path.display().to_string())
            );
        }
        if !job.files.allow_create {
            let message = "is not there and allow_file_create=0 forbids to make it";
            return Err(Failure::new(FailureKind::Open, message).about(path.display().to_string()));
        }
    }
    Ok(there)
}

/// A file of a log that is replayed, whose I/Os end at `end` at the latest: nothing is
/// laid out (filesetup.c, setup_files).
pub(super) fn plan_replayed(
    job: &NativeJob,
    name: &str,
    end: u64,
    changes: bool,
    place: &FilePlace,
) -> Result<FilePlan, Failure> {
    let (path, checked) = (place.work_dir.join(name), &place.checked);
    let there = match job.engine.opens_files() {
        true => present_or_made(job, &path, checked)?,
        false => Some((end, false)),
    };
    let subject = || path.display().to_string();
    let (real, is_device) = match there {
        Some(there) => there,
        None if changes => (0, false),
        None => {
            let message = "is not there, and the log that is replayed only reads it";
            return Err(Failure::new(FailureKind::Open, message).about(subject()));
        }
    };
    if end > real && (is_device || !changes) {
        let message = format!("holds {real} bytes; the log that is replayed goes up to {end}");
        return Err(Failure::new(FailureKind::NoSize, message).about(subject()));
    }
    Ok(FilePlan {
        path,
        is_device,
        start: 0,
        len: end,
        end: real.max(end),
        layout: FileLayout::Nothing,
        zones: None,
        read_only: !changes,
        checked: Arc::clone(checked),
    })
}

/// Sizes and extents of clone number `clone`; looks, changes nothing.
pub(super) fn plan(
    job: &NativeJob,
    clone: u32,
    place: &FilePlace,
    seed: u64,
    zoned: &mut ZonedDevices,
) -> Result<MemberFiles, Failure> {
    let names = names(job, clone, &place.work_dir)?;
    let sized;
    let job = if job.extent.zones.is_zbd() || job.extent.zones.size > 0 {
        sized = zbd::in_bytes(job, zone_size(job, &names, zoned, &place.checked)?)?;
        &sized
    } else {
        job
    };
    let count = names.len() as u64;
    let block = u64::from(job.pattern.min_block()).max(1);
    // filesetup.c, setup_files: what does not divide evenly makes the first files
    // longer, by whole blocks.
    let (share, mut extra) = match job.extent.size {
        Some(FileAmount::Bytes(size)) => (size / count, size % count / block),
        _ => (0, 0),
    };
    let mut files = Vec::new();
    let mut rng = Rng::new(seed);
    for path in names {
        let one = if extra > 0 { share + block } else { share };
        extra = extra.saturating_sub(1);
        files.push(plan_file(
            job,
            clone,
            path,
            one,
            &mut rng,
            zoned,
            &place.checked,
        )?);
    }
    // Only whole blocks are done: of 10k with bs=4k, two.
    let each = files.iter().map(|file| bytes_of_pass(job, file));
    let all = each.fold(0, u64::saturating_add);
    let size = match job.extent.size {
        Some(FileAmount::Bytes(size)) if job.extent.file_size.is_some() => size.min(all),
        _ => all,
    };
    let total_bytes = match job.extent.io_size {
        Some(FileAmount::Bytes(bytes)) => bytes,
        Some(FileAmount::Percent(percent)) => percent_of(size, percent),
        Some(FileAmount::Zones(_)) | None => size,
    };
    // backend.c, do_io: only random writes with repetition go on to io_size in one pass.
    let one_pass =
        job.writes() && job.pattern.random && job.pattern.repetition && !job.pattern.full_cycle;
    let pass_bytes = if one_pass {
        size.max(total_bytes)
    } else {
        size
    };
    let touches = job.pattern.touches();
    Ok(MemberFiles {
        files,
        place: place.clone(),
        replay: None,
        pass_bytes: pass_bytes.saturating_mul(touches),
        total_bytes: total_bytes
            .saturating_mul(job.extent.loops)
            .saturating_mul(touches),
    })
}

/// Bytes of the zones of a job: those of its first file, or as it says.
fn zone_size(
    job: &NativeJob,
    names: &[PathBuf],
    zoned: &mut ZonedDevices,
    checked: &CheckedPaths,
) -> Result<u64, Failure> {
    let known = job.extent.zones.size;
    let Some(path) = names.first().filter(|_| known == 0) else {
        return Ok(known);
    };
    let there = match job.engine.opens_files() {
        true => present_or_made(job, path, checked)?,
        false => None,
    };
    let device = zoned.of(
        job,
        &checked.real(path),
        there.map_or(0, |(bytes, _)| bytes),
    )?;
    Ok(device.map_or(known, |device| device.zone_size()))
}

/// Bytes of the I/Os that go over a file once.
fn bytes_of_pass(job: &NativeJob, file: &FilePlan) -> u64 {
    let pattern = &job.pattern;
    let block = u64::from(pattern.min_block()).max(1);
    let whole = file.len / block * block;
    let one_direction = pattern.dirs.iter().filter(|used| **used).count() == 1;
    let one_size = pattern.max_block() == pattern.min_block();
    let skip = u64::try_from(pattern.skip).unwrap_or(0);
    if pattern.random || skip == 0 || !one_direction || !one_size || file.len < block {
        return whole;
    }
    // With holes it ends where no block fits any more, but begins again where the last
    // hole reaches over the end of the file itself (io_u.c, get_next_seq_offset).
    let ios = (file.len - block) / (block + skip) + 1;
    let next = ios * (block + skip);
    let over_end = next - skip < file.end && next >= file.end;
    match over_end && file.start == 0 {
        true => whole,
        false => ios * block,
    }
}

fn plan_file(
    job: &NativeJob,
    clone: u32,
    path: PathBuf,
    share: u64,
    rng: &mut Rng,
    zoned: &mut ZonedDevices,
    checked: &Arc<CheckedPaths>,
) -> Result<FilePlan, Failure> {
    let subject = || path.display().to_string();
    let file_op = job.engine.file_op();
    let nothing = matches!(job.engine, IoEngine::Null | IoEngine::Cpuio);
    let diskless = nothing || file_op == Some(FileOp::Create);
    let beyond = || beyond().about(subject());
    let there = if diskless {
        None
    } else {
        present_or_made(job, &path, checked)?
    };
    let (real, is_device) = there.unwrap_or((0, false));
    let block = u64::from(job.pattern.min_block()).max(1);
    let base = if real > 0 { real } else { share };
    let start = match job.files.append && !is_device {
        true => real,
        false => start(job, clone, base).ok_or_else(beyond)?,
    };
    let rest = |end: u64| end.saturating_sub(start);
    let whole = match (job.extent.file_size, job.extent.size) {
        (Some(range), _) => rest(file_size(range, real, block, rng)),
        (None, Some(FileAmount::Bytes(_))) => share,
        (None, None) if fills(job) && !is_device => FILLED.next_multiple_of(block),
        (None, _) => rest(real),
    };
    let len = match job.extent.size {
        Some(FileAmount::Percent(percent)) => {
            percent_of(whole.saturating_add(start), percent).min(whole) / block * block
        }
        _ => whole,
    };
    let end = start.checked_add(len).filter(|&end| end <= LARGEST_OFFSET);
    let end = end.ok_or_else(beyond)?;
    let given =
        job.extent.file_size.is_some() || matches!(job.extent.size, Some(FileAmount::Bytes(_)));
    if len < block || (real == ENDLESS && !given) {
        let message = match job.extent.size {
            None if real == 0 => "has no size, and the job gives none".to_owned(),
            _ if real == ENDLESS => "has no end, and the job gives no size in bytes".to_owned(),
            _ => format!("{len} bytes from offset {start} on are less than one block of {block}"),
        };
        return Err(Failure::new(FailureKind::NoSize, message).about(subject()));
    }
    if is_device && end > real {
        let message = format!("holds {real} bytes; the job asks for {len} from offset {start} on");
        return Err(Failure::new(FailureKind::NoSize, message).about(subject()));
    }
    let zones = zoned.of(job, &checked.real(&path), if diskless { end } else { real })?;
    let (start, len) = match &zones {
        Some(zones) => {
            let fitted = zones.fit(job, start, len);
            fitted.map_err(|failure| failure.about(subject()))?
        }
        None => (start, len),
    };
    distribution_fits(job, len).map_err(|failure| failure.about(subject()))?;
    let short = !is_device && !diskless && start + len > real;
    Ok(FilePlan {
        path,
        is_device,
        start,
        // What is done to a file as a whole is one I/O of one block.
        len: if file_op.is_some() { block } else { len },
        end: real.max(start + len),
        layout: match short {
            true => file_layout(job),
            false => FileLayout::Nothing,
        },
        zones,
        read_only: false,
        checked: Arc::clone(checked),
    })
}

/// Where a clone's part of a file begins, of which shares are taken (filesetup.c,
/// get_start_offset); `None` beyond all numbers.
fn start(job: &NativeJob, clone: u32, base: u64) -> Option<u64> {
    let extent = &job.extent;
    let offset_of = |amount: Option<FileAmount>| match amount {
        Some(FileAmount::Bytes(bytes)) => bytes,
        Some(FileAmount::Percent(percent)) => percent_of(base, percent),
        Some(FileAmount::Zones(_)) | None => 0,
    };
    let further = u64::from(clone).checked_mul(offset_of(extent.offset_increment))?;
    let start = offset_of(extent.offset).checked_add(further)?;
    let is_share = |amount| matches!(amount, Some(FileAmount::Percent(_)));
    if is_share(extent.offset) || is_share(extent.offset_increment) {
        let block = u64::from(job.pattern.min_block()).max(1);
        start.checked_next_multiple_of(extent.offset_align.unwrap_or(block))
    } else {
        Some(start)
    }
}

/// Whether the zones of zoned_abs have room.
fn distribution_fits(job: &NativeJob, len: u64) -> Result<(), Failure> {
    let zones = job.pattern.distribution.iter().map(Distribution::bytes);
    match zones
        .max()
        .filter(|&bytes| job.pattern.random && bytes > len)
    {
        None => Ok(()),
        Some(bytes) => {
            let message = format!("the zones of zoned_abs are {bytes} bytes, its extent is {len}");
            Err(Failure::new(FailureKind::BadOption, message))
        }
    }
}

/// What is to be done to a file that is too short.
fn file_layout(job: &NativeJob) -> FileLayout {
    let needs_data = job.pattern.dirs[0]
        || job.files.overwrite
        || job.verify.only
        || job.engine == IoEngine::Mmap;
    match (job.files.create_on_open, needs_data) {
        (true, _) => FileLayout::Nothing,
        (false, true) => FileLayout::Data,
        (false, false) => FileLayout::Space,
    }
}

/// A size within `filesize`: the file's own when that is one, else, of a range,
/// a random one in whole blocks (filesetup.c, get_rand_file_size).
fn file_size((low, high): (u64, u64), real: u64, block: u64, rng: &mut Rng) -> u64 {
    if low == high {
        low
    } else if (low..=high).contains(&real) {
        real
    } else {
        (low + rng.below(high - low)) / block * block
    }
}

/// Makes a file as its plan says. `stop` is asked now and then.
pub(super) fn lay_out(
    job: &NativeJob,
    file: &FilePlan,
    stop: &dyn Fn() -> bool,
) -> Result<(), Failure> {
    if file.layout == FileLayout::Nothing {
        return Ok(());
    }
    let bytes = file.start + file.len;
    let fail = |what: &'static str| move |error: io::Error| open_failure(&file.path, &error, what);
    let mut filler = Filler::new(&job.content, 1);
    let there = match job.changes_files() && !job.files.append {
        true => None,
        false => present(&file.path, &file.checked)?,
    };
    if let (Some((real, _)), FileLayout::Data) = (there, file.layout) {
        // fio would delete it first: what is only to be read stays.
        let mut fill = |block: &mut [u8]| filler.random(block);
        let laid_out = file.opened(OFlags::WRONLY).and_then(|mut file| {
            layout::extend_with(&mut file, real, bytes.max(real), stop, &mut fill)
        });
        return laid_out.map(drop).map_err(fail("lay out"));
    }
    if there.is_none()
        && let Err(error) = file.checked.remove(&file.path)
        && error.kind() != io::ErrorKind::NotFound
    {
        return Err(fail("replace")(error));
    }
    let mut flags = OFlags::WRONLY | OFlags::CREATE;
    flags.set(OFlags::TRUNC, there.is_none());
    let mut out = file.opened(flags).map_err(fail("make"))?;
    if !job.files.fill {
        allocate(job.files.fallocate, &out, bytes).map_err(fail("set aside the space of"))?;
    }
    if file.layout == FileLayout::Space {
        return Ok(());
    }
    layout::append(&mut out, bytes, stop, &mut |block| filler.random(block))
        .and_then(|whole| match whole && job.files.create_fsync {
            true => out.sync_all(),
            false => Ok(()),
        })
        .map_err(fail("lay out"))
}

/// Sets space aside. A file system that cannot is no error, as with fio.
fn allocate(how: Fallocate, file: &File, bytes: u64) -> io::Result<()> {
    let flags = match how {
        Fallocate::None => return Ok(()),
        Fallocate::Truncate => return file.set_len(bytes),
        Fallocate::Allocate => rustix::fs::FallocateFlags::empty(),
        Fallocate::KeepSize => rustix::fs::FallocateFlags::KEEP_SIZE,
    };
    match rustix::fs::fallocate(file, flags, 0, bytes) {
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => Ok(()),
        other => other.map_err(Into::into),
    }
}

/// Opens a file as the job wants it and drops its pages from the cache.
pub(super) fn open(job: &NativeJob, plan: &FilePlan) -> Result<File, Failure> {
    let writes = job.changes_files() && !plan.read_only;
    let mut flags = match writes {
        true => OFlags::RDWR,
        false => OFlags::RDONLY,
    };
    if job.files.direct && job.engine != IoEngine::Mmap {
        flags |= OFlags::DIRECT;
    }
    flags |= match job.files.open_sync {
        OpenSync::No => OFlags::empty(),
        OpenSync::Sync => OFlags::SYNC,
        // rustix takes DSYNC for SYNC.
        OpenSync::Dsync => OFlags::from_bits_retain(libc::O_DSYNC.cast_unsigned()),
    };
    if writes && !plan.is_device && job.files.allow_create {
        flags |= OFlags::CREATE;
    }
    let file = plan
        .opened(flags)
        .map_err(|error| open_failure(&plan.path, &error, "open"))?;
    if let Some(hint) = job.files.write_hint {
        file_calls::set_write_hint(file.as_raw_fd(), hint, job.files.direct)
            .map_err(|error| open_failure(&plan.path, &error, "set the write_hint of"))?;
    }
    if job.files.invalidate {
        file_calls::drop_cache(&target(&file, plan), plan.start, plan.len);
    }
    let advice = match (job.files.advise, job.pattern.random) {
        (Advise::Nothing, _) => None,
        (Advise::Random, _) | (Advise::AsPattern, true) => Some(rustix::fs::Advice::Random),
        (Advise::Sequential | Advise::AsPattern, _) => Some(rustix::fs::Advice::Sequential),
    };
    if let Some(advice) = advice {
        // A hint: a file system that does not take it is no error.
        let _ = rustix::fs::fadvise(&file, plan.start, None, advice);
    }
    Ok(file)
}

/// pre_read: the job's part of a file, through the cache. `stop` is asked now and then.
pub(super) fn pre_read(plan: &FilePlan, stop: &dyn Fn() -> bool) -> Result<(), Failure> {
    let fail = |error: io::Error| open_failure(&plan.path, &error, "read it beforehand");
    let mut file = plan.opened(OFlags::RDONLY).map_err(fail)?;
    file.seek(SeekFrom::Start(plan.start)).map_err(fail)?;
    let mut left = plan.len;
    let mut buffer = vec![0u8; 1 << 20];
    while left > 0 && !stop() {
        let part = left.min(buffer.len() as u64) as usize;
        match file.read(&mut buffer[..part]).map_err(fail)? {
            0 => break,
            read => left -= read as u64,
        }
    }
    Ok(())
}

/// The file as backends see it.
pub(super) fn target(file: &File, plan: &FilePlan) -> OpenFile {
    OpenFile {
        fd: file.as_raw_fd(),
        is_device: plan.is_device,
        bytes: plan.start + plan.len,
    }
}

#[cfg(test)]
impl FilePlace {
    /// A folder with all that is in it now.
    pub(super) fn of(folder: &Path) -> Self {
        let entries = std::fs::read_dir(folder).into_iter().flatten();
        let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.push(folder.to_owned());
        Self {
            work_dir: folder.to_owned(),
            checked: Arc::new(CheckedPaths::of(paths.iter().map(PathBuf::as_path))),
        }
    }
}
