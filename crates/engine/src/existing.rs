//! What stands against what a job does to files that are there already: files that are not
//! the job's own.

use std::fs::{self, File, Metadata};
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::SystemTime;

use fathom_fio_output::log::LogName;
use fathom_jobfile::resolve::{self, JobPathUse, PathUse};
use fathom_jobfile::spec;
use fathom_model::{JobSpec, LogKind};

use crate::checked::CheckedPaths;

/// Bytes of a log that are looked at: a line is shorter.
const START: u64 = 4096;
/// File systems that the kernel makes (linux/magic.h): writing to their files changes the
/// machine, and reading them measures no storage.
#[cfg(target_os = "linux")]
const OF_THE_KERNEL: [(rustix::fs::FsWord, &str); 11] = [
    (0x9fa0, "proc"),
    (0x6265_6572, "sysfs"),
    (0x6462_6720, "debugfs"),
    (0x7472_6163, "tracefs"),
    (0x0027_e0eb, "cgroup"),
    (0x6367_7270, "cgroup2"),
    (0x7363_6673, "securityfs"),
    (0x6265_6570, "configfs"),
    (0xde5e_81e4, "efivarfs"),
    (0xcafe_4a11, "bpf"),
    (0xf97c_ff8c, "selinuxfs"),
];

/// Whose files they are.
#[derive(Debug, Clone, Copy)]
pub struct Owner<'o> {
    /// Words by which the user gives files up.
    pub destroy: &'o [String],
    /// When the run began: what was made since is its own.
    pub began: SystemTime,
}

impl Owner<'static> {
    /// Of a run that has not begun and to which nothing was given up.
    pub fn of_nothing() -> Self {
        Self {
            destroy: &[],
            began: SystemTime::now(),
        }
    }
}

impl<'o> Owner<'o> {
    /// Of the run that keeps this record, or of one that has not begun.
    pub fn of(record: Option<&Path>, destroy: &'o [String]) -> Self {
        Self {
            destroy,
            began: record.map_or_else(SystemTime::now, began),
        }
    }
}

/// When the run of a record began, by the clock of file systems, which ticks less often
/// than that of programs. A file system that does not tell: now.
pub fn began(record: &Path) -> SystemTime {
    let made = fs::metadata(record).and_then(|meta| meta.created());
    made.unwrap_or_else(|_| SystemTime::now())
}

/// Why one of these jobs may not do what it does to a file that is there.
///
/// # Errors
/// The first reason, with what to do.
pub fn check(jobs: &[JobSpec], work_dir: &Path, owner: Owner<'_>) -> Result<(), String> {
    check_at(jobs, work_dir, owner, &CheckedPaths::default())
}

/// [`check`] of what paths led to when they were followed.
///
/// # Errors
/// As there.
pub fn check_at(
    jobs: &[JobSpec],
    work_dir: &Path,
    owner: Owner<'_>,
    checked: &CheckedPaths,
) -> Result<(), String> {
    for job in jobs {
        // What cannot be told is refused elsewhere.
        for used in resolve::of(job, work_dir).unwrap_or_default() {
            let real = checked.real(&used.path);
            of_the_kernel(&used, &real)?;
            let Ok(meta) = fs::metadata(&real) else {
                continue;
            };
            if !meta.is_file() || is_newer(&meta, owner.began) {
                continue;
            }
            match used.action {
                JobPathUse::LayOut { .. } => lengthened(&used, &meta)?,
                JobPathUse::Log => replaced(job, &used, &real, work_dir)?,
                JobPathUse::Write => deleted(job, &used, &real, owner.destroy)?,
                JobPathUse::Read => {}
            }
        }
    }
    Ok(())
}

/// Whether a file was made since. A file system that does not tell may hold older ones.
fn is_newer(meta: &Metadata, began: SystemTime) -> bool {
    meta.created().is_ok_and(|made| made >= began)
}

#[cfg(not(target_os = "linux"))]
fn of_the_kernel(_: &PathUse, _: &Path) -> Result<(), String> {
    Ok(())
}

#[cfg(target_os = "linux")]
fn of_the_kernel(used: &PathUse, real: &Path) -> Result<(), String> {
    let there = real.ancestors().find(|path| path.exists());
    let kind = there.and_then(|path| rustix::fs::statfs(path).ok());
    let kind = kind.map(|kind| kind.f_type);
    let name = OF_THE_KERNEL.iter().find(|(magic, _)| kind == Some(*magic));
    match name {
        None => Ok(()),
        Some((_, name)) => Err(format!(
            "{} is a file of the kernel ({name}), and no storage; nothing was done\n  to do: name a device, or a file on a disk",
            used.named.display()
        )),
    }
}

fn lengthened(used: &PathUse, meta: &Metadata) -> Result<(), String> {
    match meta.nlink() {
        0 | 1 => Ok(()),
        names => Err(format!(
            "{} has {names} names (hard links) and is shorter than the job reads: making it longer would change the file under its other names; nothing was done\n  to do: give the job a size within the file, or a copy of it",
            used.named.display()
        )),
    }
}

/// A file that the job deletes must be its own, or given up by name.
fn deleted(job: &JobSpec, used: &PathUse, real: &Path, destroy: &[String]) -> Result<(), String> {
    let deletes = spec::is_on(job, "unlink")
        || spec::is_on(job, "unlink_each_loop")
        || spec::engine(job) == "filedelete";
    if !deletes || is_own_name(job, &used.path) {
        return Ok(());
    }
    let real = fs::canonicalize(real).ok();
    let given_up = |word: &String| real.is_some() && fs::canonicalize(word.trim()).ok() == real;
    if destroy.iter().any(given_up) {
        return Ok(());
    }
    let path = used.path.display();
    Err(format!(
        "job {} would delete {path}, which was there before; nothing was done\n  to do: if the file may be lost, add --destroy {path}",
        job.name
    ))
}

/// Whether a file has the name that fio gives the files of this job: `JOB.0.0`.
fn is_own_name(job: &JobSpec, path: &Path) -> bool {
    let named = ["filename", "filename_format", "opendir"];
    if named.iter().any(|name| spec::option(job, name).is_some()) {
        return false;
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let numbers = name
        .strip_prefix(&job.name)
        .and_then(|rest| rest.strip_prefix('.'));
    numbers
        .and_then(|numbers| numbers.split_once('.'))
        .is_some_and(|(clone, file)| {
            [clone, file].iter().all(|number| {
                !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
            })
        })
}

/// A log takes the place of such a log, and of nothing else.
fn replaced(job: &JobSpec, used: &PathUse, real: &Path, work_dir: &Path) -> Result<(), String> {
    by_its_like(real, "log of this kind", &|start| {
        is_such_a_log(job, &used.path, work_dir, start)
    })
}

/// Why a log of fio's own name may not be written here: one of all jobs, or the state of a
/// verify in another folder.
///
/// # Errors
/// The reason, with what to do.
pub fn check_log(path: &Path) -> Result<(), String> {
    by_its_like(path, "log of this kind", &|start| {
        is_of_its_name(path, start)
    })
}

/// Why what fio prints may not be written here, as JSON or as text.
///
/// # Errors
/// The reason, with what to do.
pub fn check_output(path: &Path, json: bool) -> Result<(), String> {
    let has = |text: &str, words: &[&str]| words.iter().any(|word| text.contains(word));
    by_its_like(path, "output of this format", &|start| {
        let text = String::from_utf8_lossy(start);
        match text.trim_start().starts_with('{') {
            true => json && has(&text, &["\"fio version\""]),
            false => !json && has(&text, &[": (g=", ": (groupid=", ";fio-"]),
        }
    })
}

/// Whether a file that is there holds nothing, or what it may be replaced by.
fn by_its_like(path: &Path, what: &str, is_such: &dyn Fn(&[u8]) -> bool) -> Result<(), String> {
    if !fs::metadata(path).is_ok_and(|meta| meta.is_file()) {
        return Ok(());
    }
    let mut start = Vec::new();
    let read = File::open(path).and_then(|file| file.take(START).read_to_end(&mut start));
    if read.is_ok() && (start.is_empty() || is_such(&start)) {
        return Ok(());
    }
    Err(format!(
        "{} is there and is no {what}: it would be replaced; nothing was done\n  to do: give the log another name, or move the file away",
        path.display()
    ))
}

fn is_such_a_log(job: &JobSpec, path: &Path, work_dir: &Path, start: &[u8]) -> bool {
    let of_ios = ["write_iolog", "merge_blktrace_file"].iter();
    let mut of_ios = of_ios.filter_map(|name| spec::option(job, name)?.value.as_deref());
    if of_ios.any(|named| work_dir.join(named) == path) {
        // blktrace_api.h, BLK_IO_TRACE_MAGIC: above the version, in either byte order.
        let traced = start.get(1..4) == Some(b"tae") || start.starts_with(b"eat");
        return traced || start.starts_with(b"fio version ");
    }
    is_of_its_name(path, start)
}

/// Whether a file is a log of the kind that its name tells.
fn is_of_its_name(path: &Path, start: &[u8]) -> bool {
    let name = path.to_string_lossy();
    if name.ends_with("verify.state") {
        // verify-state.h: version and size, 64 bits each, little endian.
        let version = start
            .first_chunk::<8>()
            .map(|bytes| u64::from_le_bytes(*bytes));
        return version.is_some_and(|version| (1..=16).contains(&version));
    }
    match LogName::of(path).map(|name| name.kind) {
        // What a command of the job prints has no form.
        None => true,
        // fio's own compression.
        Some(_) if name.ends_with(".fz") => true,
        Some(kind) => has_lines_of(kind, start),
    }
}

/// Whether the first lines are numbers with commas, as many as this kind of log has at the
/// least: time, value, direction, size; of a histogram time, direction, size, counts.
fn has_lines_of(kind: LogKind, start: &[u8]) -> bool {
    let columns = match kind {
        LogKind::ClatHistograms => 10,
        _ => 4,
    };
    let text = String::from_utf8_lossy(start);
    let mut lines = text.split('\n').collect::<Vec<_>>();
    // The last one may be cut.
    if lines.len() > 1 {
        lines.pop();
    }
    let is_number = |cell: &str| {
        let cell = cell.trim();
        let digits = cell.strip_prefix("0x").unwrap_or(cell);
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let is_line = |line: &&str| {
        let cells: Vec<&str> = line.trim_end().trim_end_matches(',').split(',').collect();
        cells.len() >= columns && cells.into_iter().all(is_number)
    };
    lines.iter().take(5).all(is_line)
}
