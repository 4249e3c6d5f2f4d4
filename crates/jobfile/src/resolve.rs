//! Every path that a job will read, lay out, write or create, as the file system
//! stands: what is judged before a step begins.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use fathom_device::regular;
use fathom_model::{Failure, FailureKind, JobSpec, units};

use crate::{
    FIRST_DUMP, Replay, Role, TargetUse, below, first_dump, first_verify_state, folders, numbered,
    replay, spec, targets,
};
use fathom_model::value::{self, Amount};

/// Folders of a tree that lie deeper are a circle of mounts.
const DEEPEST: usize = 64;
/// Names of one `filename_format` that are looked at: a second or two.
const MOST_FORMATTED: u64 = 1 << 20;

/// What a job does to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JobPathUse {
    /// Reads it.
    Read,
    /// Reads it after it was made, or made longer.
    LayOut {
        /// Its bytes now; `None`: it is not there.
        from: Option<u64>,
        /// Bytes that it needs.
        to: u64,
    },
    /// May change or delete what is there.
    Write,
    /// Writes text there: a log.
    Log,
}

/// A path and what a job does to it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PathUse {
    /// From the root on.
    pub path: PathBuf,
    /// As the job names it.
    pub named: PathBuf,
    /// What is done.
    pub action: JobPathUse,
}

impl PathUse {
    /// Bytes that are laid out.
    pub fn layout_bytes(&self) -> u64 {
        match self.action {
            JobPathUse::LayOut { from, to } => to.saturating_sub(from.unwrap_or(0)),
            _ => 0,
        }
    }

    /// What will be laid out, in a sentence; `None` when nothing is.
    pub fn layout(&self) -> Option<String> {
        let size = |bytes: u64| units::bytes(bytes as f64);
        let named = self.named.display();
        match self.action {
            JobPathUse::LayOut { from: None, to } => Some(format!(
                "{named} will be created and laid out: {}",
                size(to)
            )),
            JobPathUse::LayOut {
                from: Some(from),
                to,
            } => Some(format!(
                "{named} is {}, the job reads {}: {} will be appended",
                size(from),
                size(to),
                size(to - from)
            )),
            _ => None,
        }
    }
}

/// Everything that jobs use, each path once for each thing that is done to it.
///
/// # Errors
/// Of the first job of which it cannot be told.
pub fn all(jobs: &[JobSpec], work_dir: &Path) -> Result<Vec<PathUse>, Failure> {
    let mut uses: Vec<PathUse> = Vec::new();
    let mut longest: BTreeMap<PathBuf, usize> = BTreeMap::new();
    let mut seen: HashSet<PathUse> = HashSet::new();
    for job in jobs {
        for new in of(job, work_dir)? {
            match (new.action, longest.get(&new.path)) {
                // Several jobs read one file: it is as long as the longest of them needs.
                (JobPathUse::LayOut { to, .. }, Some(&known)) => {
                    if let JobPathUse::LayOut { to: had, .. } = &mut uses[known].action {
                        *had = to.max(*had);
                    }
                }
                (JobPathUse::LayOut { .. }, None) => {
                    longest.insert(new.path.clone(), uses.len());
                    uses.push(new);
                }
                _ if seen.contains(&new) => {}
                _ => {
                    seen.insert(new.clone());
                    uses.push(new);
                }
            }
        }
    }
    Ok(uses)
}

/// Everything one job uses: what it names, and what the log names that it replays.
///
/// # Errors
/// When the log does not tell or cannot be read, a folder cannot, or it cannot be
/// said how long a file must be.
pub fn of(job: &JobSpec, work_dir: &Path) -> Result<Vec<PathUse>, Failure> {
    let replayed = replayed(job, work_dir)?;
    let named = targets(job);
    let mut uses = Uses {
        job,
        work_dir,
        end: ReadExtent::of(job),
        folders: folders(job),
        list: Vec::new(),
        seen: HashSet::new(),
    };
    for target in named.iter().chain(&replayed) {
        uses.add(target).map_err(|error| {
            let what = format!("{error}");
            Failure::new(FailureKind::Open, what).about(target.path.display().to_string())
        })?;
    }
    for target in &replayed {
        uses.also_below(&target.path, target.writes);
    }
    if let Some(path) = job.value("replay_redirect") {
        uses.also_below(Path::new(path), true);
    }
    let unsure = uses.list.iter().find(|used| uses.end.is_unsure(used));
    match unsure {
        None => Ok(uses.list),
        Some(used) => {
            let what = "it is shorter than the job wants it, and offset is a share of it: make it longer first";
            let subject = used.named.display().to_string();
            Err(Failure::new(FailureKind::NoSize, what).about(subject))
        }
    }
}

/// What a job leaves of its verify in `folder` when fio is given it as `--aux-path`:
/// the first states and dumps, and all that are there.
pub fn states(job: &JobSpec, folder: &Path) -> Vec<PathBuf> {
    let first = folder.join(first_verify_state(job));
    let mut all = and_alike(&first, Path::new(""));
    if spec::is_on(job, "verify_dump") {
        all.extend(and_alike(&folder.join(first_dump(job)), Path::new("")));
    }
    all
}

fn replayed(job: &JobSpec, work_dir: &Path) -> Result<Vec<TargetUse>, Failure> {
    let open = |path: &Path| -> io::Result<Box<dyn io::Read + Send>> {
        Ok(Box::new(regular::open(&work_dir.join(path))?))
    };
    let refused = |what: String| Failure::new(FailureKind::BadOption, what).about(&job.name);
    match replay(job, &open) {
        Ok(Replay::None) => Ok(Vec::new()),
        Ok(Replay::Files(files)) => Ok(files),
        Ok(Replay::Unknown(why)) => Err(refused(format!(
            "the log that read_iolog replays names its devices itself, and cannot be understood here: {why}; to do it with one device all the same: replay_redirect=DEVICE"
        ))),
        Err(error) => Err(refused(format!(
            "the log that read_iolog replays cannot be read: {error}"
        ))),
    }
}

struct Uses<'j> {
    job: &'j JobSpec,
    work_dir: &'j Path,
    end: ReadExtent,
    folders: Vec<String>,
    list: Vec<PathUse>,
    seen: HashSet<PathUse>,
}

impl Uses<'_> {
    fn add(&mut self, target: &TargetUse) -> io::Result<()> {
        match target.role {
            Role::File => {
                let action = self.action(&target.path, target.writes);
                self.push(&target.path, action);
            }
            Role::Log => {
                for path in and_alike(&target.path, self.work_dir) {
                    self.push(&path, JobPathUse::Log);
                }
            }
            Role::Tree => self.tree(&target.path, target.writes)?,
            Role::Format => self.formatted(&target.path, target.writes)?,
            Role::Folder => {
                let action = match target.writes {
                    true => JobPathUse::Write,
                    false => JobPathUse::Read,
                };
                self.push(&target.path, action);
                // The first name tells what making a file there means; all that
                // are there already count.
                let first = target.path.join(format!("{}.0.0", self.job.name));
                let mut files = self.generated(&target.path);
                if !files.contains(&first) {
                    files.push(first);
                }
                for path in files {
                    let action = self.action(&path, target.writes);
                    self.push(&path, action);
                }
            }
        }
        Ok(())
    }

    /// A name that `directory` is not meant for. Where that stands before `opendir`, or
    /// a log is replayed, fio puts it in front all the same: what is there counts.
    fn also_below(&mut self, path: &Path, writes: bool) {
        let again: Vec<PathBuf> = below(&self.folders, path).collect();
        for path in again {
            if fs::symlink_metadata(self.work_dir.join(&path)).is_ok() {
                let action = self.action(&path, writes);
                self.push(&path, action);
            }
        }
    }

    fn push(&mut self, named: &Path, action: JobPathUse) {
        // Without the `.` in it, and the slash behind.
        let path = self.work_dir.join(named).components().collect();
        let used = PathUse {
            path,
            named: named.to_owned(),
            action,
        };
        if self.seen.insert(used.clone()) {
            self.list.push(used);
        }
    }

    fn action(&self, named: &Path, writes: bool) -> JobPathUse {
        if writes {
            return JobPathUse::Write;
        }
        let meta = fs::metadata(self.work_dir.join(named)).ok();
        let real = meta.as_ref().map(fs::Metadata::len);
        let is_file = meta.is_none_or(|meta| meta.is_file());
        match self.end.bytes(real.unwrap_or(0)) {
            Some(to) if is_file && real.is_none_or(|real| real < to) => {
                JobPathUse::LayOut { from: real, to }
            }
            _ => JobPathUse::Read,
        }
    }

    /// The existing files of a `filename_format`, and the first name in each folder, which
    /// stands for those that the job would create there.
    fn formatted(&mut self, pattern: &Path, writes: bool) -> io::Result<()> {
        let clones = spec::numjobs(self.job).max(1);
        let files = spec::number(self.job, "nrfiles").unwrap_or(1).max(1);
        if clones.saturating_mul(files) > MOST_FORMATTED {
            let what = "its filename_format names more files than can be looked at: leave it out, or have fewer of nrfiles and numjobs";
            return Err(io::Error::other(what));
        }
        let pattern = pattern.to_string_lossy();
        let mut folders = HashSet::new();
        for (clone, file) in (0..clones).flat_map(|clone| (0..files).map(move |file| (clone, file)))
        {
            let path = PathBuf::from(numbered(&pattern, clone, file));
            let is_there = || fs::symlink_metadata(self.work_dir.join(&path)).is_ok();
            let is_first = folders.insert(path.parent().map(Path::to_owned));
            if is_first || is_there() {
                let action = self.action(&path, writes);
                self.push(&path, action);
            }
        }
        Ok(())
    }

    fn tree(&mut self, folder: &Path, writes: bool) -> io::Result<()> {
        let mut files = Vec::new();
        tree_files(self.work_dir, folder, 0, &mut files)?;
        for path in files {
            let action = self.action(&path, writes);
            self.push(&path, action);
            self.also_below(&path, writes);
        }
        Ok(())
    }

    /// The job's generated files that are there: `NAME.JOB.FILE`.
    fn generated(&self, folder: &Path) -> Vec<PathBuf> {
        let number = |text: &str| text.parse::<u64>().is_ok();
        let is_ours = |name: &str| {
            let rest = name.strip_prefix(self.job.name.as_str());
            let rest = rest.and_then(|rest| rest.strip_prefix('.'));
            rest.and_then(|rest| rest.split_once('.'))
                .is_some_and(|(job, file)| number(job) && number(file))
        };
        files_where(self.work_dir, folder, &is_ours)
    }
}

/// The files of a tree, as fio gathers them: neither links nor devices (filesetup.c,
/// recurse_dir).
pub fn tree_files(
    work_dir: &Path,
    folder: &Path,
    depth: usize,
    files: &mut Vec<PathBuf>,
) -> io::Result<()> {
    if depth > DEEPEST {
        return Ok(());
    }
    let mut entries = fs::read_dir(work_dir.join(folder))?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_unstable_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = folder.join(entry.file_name());
        let kind = entry.file_type()?;
        if kind.is_file() {
            files.push(path);
        } else if kind.is_dir() {
            tree_files(work_dir, &path, depth + 1, files)?;
        }
    }
    Ok(())
}

/// A log, and those beside it that differ in their number, or are packed.
fn and_alike(log: &Path, work_dir: &Path) -> Vec<PathBuf> {
    let mut logs = vec![log.to_owned()];
    let name = log.file_name().map(|name| name.to_string_lossy());
    let name = name.unwrap_or_default();
    let folder = log.parent().unwrap_or(Path::new(""));
    // Those of any file.
    if name.ends_with(FIRST_DUMP) {
        let ends = [".received", ".expected", ".hdr_fail"];
        let is_dump = |other: &str| ends.iter().any(|end| other.ends_with(end));
        logs.extend(files_where(work_dir, folder, &is_dump));
        return logs;
    }
    // `x_lat.1.log`, `local-x-0-verify.state`: what stands before the number.
    let stem = name
        .strip_suffix("1.log")
        .or_else(|| name.strip_suffix("0-verify.state"));
    if let Some(stem) = stem {
        let is_alike = |other: &str| {
            let end = [".log", ".log.fz", "-verify.state"];
            other.starts_with(stem) && end.iter().any(|end| other.ends_with(end))
        };
        logs.extend(files_where(work_dir, folder, &is_alike));
    }
    logs
}

fn files_where(work_dir: &Path, folder: &Path, wanted: &dyn Fn(&str) -> bool) -> Vec<PathBuf> {
    let entries = fs::read_dir(work_dir.join(folder));
    let names = entries.into_iter().flatten().flatten();
    let names = names.map(|entry| entry.file_name());
    names
        .filter(|name| wanted(&name.to_string_lossy()))
        .map(|name| folder.join(name))
        .collect()
}

/// How long a reading job wants its files (filesetup.c, setup_files).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ReadExtent {
    /// Bytes from the offset on; `None` when they follow from the file itself.
    part: Option<TargetPart>,
    offset: Amount,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TargetPart {
    /// `size`, with what the job's clones begin further on.
    Bytes(u64),
    /// `filesize`: the whole file's length, unless it is within these bounds.
    Whole(u64, u64),
}

impl ReadExtent {
    fn of(job: &JobSpec) -> Self {
        let reads = spec::rw(job).is_some_and(|rw| rw.reads);
        let offset = spec::amount(job, "offset").unwrap_or(Amount::Number(0));
        let lays_out = reads && !spec::is_on(job, "create_on_open");
        Self {
            part: lays_out.then(|| part(job)).flatten(),
            offset,
        }
    }

    /// Bytes that a file of `real` bytes must have.
    fn bytes(&self, real: u64) -> Option<u64> {
        match self.part? {
            // Any length within the bounds will do: the longest.
            TargetPart::Whole(low, high) => (real < low).then_some(high),
            TargetPart::Bytes(bytes) => Some(self.start(real).saturating_add(bytes)),
        }
    }

    fn start(&self, real: u64) -> u64 {
        match self.offset {
            Amount::Number(bytes) => u64::try_from(bytes).unwrap_or(0),
            Amount::Percent(percent) => {
                u64::try_from(u128::from(real) * u128::from(percent) / 100).unwrap_or(u64::MAX)
            }
            // Of a zoned device, which nobody lays out.
            Amount::Zones(_) => 0,
        }
    }

    /// Whether a file that is there would have to become longer by an unknown
    /// length: the longer it is, the further on begins its share.
    fn is_unsure(&self, used: &PathUse) -> bool {
        let share = matches!(self.offset, Amount::Percent(1..));
        share
            && matches!(self.part, Some(TargetPart::Bytes(_)))
            && matches!(
                used.action,
                JobPathUse::LayOut {
                    from: Some(1..),
                    ..
                }
            )
    }
}

fn part(job: &JobSpec) -> Option<TargetPart> {
    let base = spec::base(job);
    if let Some(text) = job.value("filesize") {
        let size = |bound: &str| value::size(bound, base);
        let (low, high) = size(text)
            .map(|one| (one, one))
            .or_else(|_| value::range(text, size))
            .ok()?;
        let [low, high] = [low, high].map(|bytes| u64::try_from(bytes).ok());
        return Some(TargetPart::Whole(low?, high?));
    }
    let Amount::Number(size) = spec::size(job)? else {
        return None;
    };
    let size = u64::try_from(size).ok().filter(|&size| size > 0)?;
    let of_option = |option: &str| {
        let all = job.options.iter().filter(|set| set.name == option);
        all.map(|set| crate::split_names(set.value.as_deref().unwrap_or_default()).len() as u64)
            .sum::<u64>()
    };
    let files = match of_option("filename") {
        0 => spec::number(job, "nrfiles").unwrap_or(1),
        named => named,
    };
    let files = files.max(1);
    // What does not divide evenly makes the first files longer, by a block.
    let longer = match size % files {
        0 => 0,
        rest => spec::bs(job).map_or(rest, |bs| bs[0]),
    };
    let clones = spec::numjobs(job).saturating_sub(1);
    let further = match spec::amount(job, "offset_increment") {
        Some(Amount::Number(bytes)) => u64::try_from(bytes).unwrap_or(0).saturating_mul(clones),
        _ => 0,
    };
    Some(TargetPart::Bytes(
        (size / files)
            .saturating_add(longer)
            .saturating_add(further),
    ))
}

#[cfg(test)]
mod tests;
