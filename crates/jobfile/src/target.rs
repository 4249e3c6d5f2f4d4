//! What a job touches, and whether it writes there: the ground of every check
//! for the safety of data, so what is not understood counts as a write.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use fathom_model::io_engine::{Access, io_engine};
use fathom_model::{JobOption, JobSpec, Origin};

use super::spec;
use super::table::table;

/// What a path of a job stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The file or device itself.
    File,
    /// A folder in which the job's files have names that are made for them.
    Folder,
    /// A folder of which all files are used, however deep they lie (`opendir`).
    Tree,
    /// Files of a `filename_format` that are too many to be named one by one: a path
    /// with `$jobnum` and `$filenum` in it.
    Format,
    /// A file that fio writes text to: a log, a state. Others may stand beside it
    /// that are called alike up to the last `.` and number.
    Log,
}

/// A path a job uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetUse {
    /// File, device or folder, as the job names it (with its `directory`).
    pub path: PathBuf,
    /// What it stands for.
    pub role: Role,
    /// Whether the job may change or delete data that is there.
    pub writes: bool,
    /// Whether the job makes the file when it is missing, and makes it longer
    /// when it is too short for its size: reading jobs do that, too.
    pub creates: bool,
    /// Where the path was written; for generated names what they come from.
    pub named_by: Origin,
}

/// Generated names beyond this many are represented by their folder.
const MOST_NAMES: u64 = 4096;

/// Every path the job file tells the job uses, each once (a log that is
/// replayed names more: [`super::replay()`]). Generated file names stand as the
/// folder they fall in, unless `filename_format` or the job's name could lead
/// them elsewhere: then as themselves.
pub fn targets(job: &JobSpec) -> Vec<TargetUse> {
    let mut found = Targets {
        writes: is_write(job),
        creates: spec::option(job, "allow_file_create").is_none()
            || spec::is_on(job, "allow_file_create"),
        list: Vec::new(),
        seen: HashSet::new(),
    };
    if matches!(access(job), Access::Sync | Access::Async | Access::Always) {
        found.files(job);
    }
    found.others(job);
    found.list
}

/// Whether the job may change its targets. A reading job does not, even where
/// it lays out a missing file first ([`TargetUse::creates`]).
pub fn is_write(job: &JobSpec) -> bool {
    // A log that is replayed decides itself what is written, and where; a
    // profile brings options of its own.
    if ["read_iolog", "profile"]
        .iter()
        .any(|name| spec::option(job, name).is_some())
    {
        return true;
    }
    match access(job) {
        Access::None => return false,
        Access::Always => return true,
        Access::Sync | Access::Async | Access::Remote => {}
    }
    let direction = spec::rw(job).is_none_or(|rw| rw.writes || rw.trims);
    direction || changes_regardless(job)
}

/// Whether the job changes its files whatever the direction of its I/O is.
pub fn changes_regardless(job: &JobSpec) -> bool {
    let changes = ["unlink", "unlink_each_loop"]
        .iter()
        .any(|name| spec::is_on(job, name));
    let trims = spec::option(job, "trim_percentage").is_some()
        && spec::number(job, "trim_percentage") != Some(0);
    let engine = io_engine(spec::engine(job));
    changes || trims || engine.is_none_or(|row| row.access == Access::Always)
}

/// Whether the files that a job names are such of this machine.
pub fn reaches_files(job: &JobSpec) -> bool {
    let is_here = matches!(access(job), Access::Sync | Access::Async | Access::Always);
    // Its names have sizes in them.
    is_here && spec::engine(job) != "pmemblk"
}

/// Whether a job names no files, and makes names in the folder that it runs in.
pub fn makes_names(job: &JobSpec) -> bool {
    let named = ["filename", "opendir", "read_iolog", "directory"];
    let leads_elsewhere = |name: &str| name.starts_with('/') || name.contains("..");
    let format = job.value("filename_format").unwrap_or_default();
    reaches_files(job)
        && named.iter().all(|name| job.value(name).is_none())
        && !leads_elsewhere(format)
        && !leads_elsewhere(&job.name)
}

/// An engine that is not known may do anything to files.
fn access(job: &JobSpec) -> Access {
    io_engine(spec::engine(job)).map_or(Access::Sync, |row| row.access)
}

struct Targets {
    writes: bool,
    creates: bool,
    list: Vec<TargetUse>,
    seen: HashSet<(PathBuf, bool)>,
}

impl Targets {
    fn add(&mut self, path: impl Into<PathBuf>, writes: bool, named_by: &Origin) {
        self.add_as(Role::File, path, writes, named_by);
    }

    fn add_as(&mut self, role: Role, path: impl Into<PathBuf>, writes: bool, named_by: &Origin) {
        let path = path.into();
        if self.seen.insert((path.clone(), writes)) {
            self.list.push(TargetUse {
                path,
                role,
                writes,
                creates: self.creates,
                named_by: named_by.clone(),
            });
        }
    }

    /// The files of the I/O itself. fio adds up all `filename` and `opendir`
    /// options of a job and its globals; of `directory` the last one counts.
    fn files(&mut self, job: &JobSpec) {
        let directory = spec::option(job, "directory");
        let folders = folders(job);
        let mut named = false;
        for option in &job.options {
            match option.name.as_str() {
                "filename" => {
                    named = true;
                    let block_device = spec::engine(job) == "pmemblk";
                    for name in names(option) {
                        // pmemblk: PATH,BLOCKSIZE,SIZE
                        let name = if block_device {
                            name.split(',').next().unwrap_or_default()
                        } else {
                            &name
                        };
                        // "-" is standard input or output.
                        if name != "-" {
                            self.in_folders(&folders, name, &option.origin);
                        }
                    }
                }
                // One folder, whatever letters are in its name.
                "opendir" => {
                    named = true;
                    let name = option.value.as_deref().unwrap_or_default();
                    self.add_as(Role::Tree, name, self.writes, &option.origin);
                }
                _ => {}
            }
        }
        if !named && spec::option(job, "read_iolog").is_none() {
            self.generated(job, &folders, directory);
        }
    }

    fn in_folders(&mut self, folders: &[String], name: &str, named_by: &Origin) {
        if folders.is_empty() {
            self.add(name, self.writes, named_by);
        }
        for path in below(folders, Path::new(name)) {
            self.add(path, self.writes, named_by);
        }
    }

    fn generated(&mut self, job: &JobSpec, folders: &[String], directory: Option<&JobOption>) {
        const DEFAULT: &str = "$jobname.$jobnum.$filenum";
        let format = spec::option(job, "filename_format");
        let pattern = format
            .and_then(|option| option.value.as_deref())
            .unwrap_or(DEFAULT);
        let origin = format
            .or(directory)
            .or_else(|| job.options.first())
            .map_or_else(
                || Origin::Fathom {
                    reason: "names made from the job's".to_owned(),
                },
                |o| o.origin.clone(),
            );
        let files = spec::number(job, "nrfiles").unwrap_or(1).max(1);
        let jobs = spec::numjobs(job).max(1);
        let writes = self.writes;
        if pattern == DEFAULT && !job.name.contains('/') {
            if folders.is_empty() {
                self.add_as(Role::Folder, ".", writes, &origin);
            }
            for folder in folders {
                self.add_as(Role::Folder, folder.as_str(), writes, &origin);
            }
            return;
        }
        let pattern = pattern
            .replace("$jobname", &job.name)
            .replace("$clientuid", "");
        if jobs.saturating_mul(files) > MOST_NAMES {
            if folders.is_empty() {
                self.add_as(Role::Format, pattern.as_str(), writes, &origin);
            }
            for path in below(folders, Path::new(&pattern)) {
                self.add_as(Role::Format, path, writes, &origin);
            }
            return;
        }
        for (job, file) in (0..jobs).flat_map(|job| (0..files).map(move |file| (job, file))) {
            self.in_folders(folders, &numbered(&pattern, job, file), &origin);
        }
    }

    /// Paths that are opened beside the I/O.
    fn others(&mut self, job: &JobSpec) {
        for option in &job.options {
            let value = option.value.as_deref().unwrap_or_default();
            match table().canonical(&option.name) {
                "replay_redirect" => self.add(value, true, &option.origin),
                "write_iolog" | "merge_blktrace_file" => {
                    self.add_as(Role::Log, value, true, &option.origin);
                }
                name if log_kinds(name).is_some() => {
                    // Without a value, or with a 1, the job's name stands for it.
                    let prefix = match value {
                        "" | "1" => job.name.as_str(),
                        other => other,
                    };
                    for kind in log_kinds(name).unwrap_or_default() {
                        let path = format!("{prefix}_{kind}.1.log");
                        self.add_as(Role::Log, path, true, &option.origin);
                    }
                }
                // Where it stands is kept when the job is ended early.
                "verify" if is_write(job) && value != "0" => {
                    let kept = spec::option(job, "verify_state_save").is_none()
                        || spec::is_on(job, "verify_state_save");
                    if kept {
                        let path = first_verify_state(job);
                        self.add_as(Role::Log, path, true, &option.origin);
                    }
                }
                // Where what they print goes, in the folder that fio runs in (backend.c,
                // exec_string; engines/exec.c).
                name @ ("exec_prerun" | "exec_postrun") => {
                    let word = name.trim_start_matches("exec_");
                    let path = format!("{}.{word}.txt", job.name);
                    self.add_as(Role::Log, path, true, &option.origin);
                }
                "program" => {
                    for stream in ["stdout", "stderr"] {
                        let path = format!("{}.{stream}", job.name);
                        self.add_as(Role::Log, path, true, &option.origin);
                    }
                }
                "verify_dump" if spec::is_on(job, "verify_dump") => {
                    self.add_as(Role::Log, first_dump(job), true, &option.origin);
                }
                // The file that backs the buffers is written to when it is shared.
                "mem" => {
                    if let Some((kind, path)) = value.split_once(':')
                        && kind.starts_with("mmap")
                    {
                        self.add(path, true, &option.origin);
                    }
                }
                // Of the profiles tiobench and act.
                "dir" => self.add(value, true, &option.origin),
                "device-names" => {
                    for device in value.split(',') {
                        self.add(device, true, &option.origin);
                    }
                }
                "donorname" => self.add(value, true, &option.origin),
                _ => {}
            }
        }
    }
}

/// The verify state of a job that is the first of its run (verify-state.h,
/// verify_state_gen_name).
pub fn first_verify_state(job: &JobSpec) -> String {
    format!("local-{}-0-verify.state", job.name.replace('/', "."))
}

/// A file of what `verify_dump` keeps of a mismatch, where nobody knows yet in which file
/// it will be (verify.c, dump_buf).
pub fn first_dump(job: &JobSpec) -> String {
    format!("{}{FIRST_DUMP}", job.name.replace('/', "."))
}

/// The end of its name.
pub const FIRST_DUMP: &str = ".0.received";

/// Whether programs of the user's run beside the job's I/O, on the same devices perhaps.
pub fn runs_programs(job: &JobSpec) -> bool {
    let options = ["exec_prerun", "exec_postrun"];
    options.iter().any(|option| job.value(option).is_some())
        || job.value("ioengine") == Some("exec")
}

/// The folders of the `directory` that counts: the last one.
pub fn folders(job: &JobSpec) -> Vec<String> {
    spec::option(job, "directory").map_or_else(Vec::new, names)
}

/// Where a name lies in each of the folders: fio puts a directory before every name,
/// an absolute one, too (filesetup.c, add_file).
pub fn below<'f>(folders: &'f [String], name: &'f Path) -> impl Iterator<Item = PathBuf> + 'f {
    let name = name.strip_prefix("/").unwrap_or(name);
    folders
        .iter()
        .map(move |folder| Path::new(folder).join(name))
}

/// The name that a `filename_format` gives a job's clone and file.
pub fn numbered(pattern: &str, job: u64, file: u64) -> String {
    pattern
        .replace("$jobnum", &job.to_string())
        .replace("$filenum", &file.to_string())
}

/// What fio calls the logs of an option behind its prefix: `x_slat.1.log` (fio's
/// HOWTO, "Measurements and reporting").
pub fn log_kinds(option: &str) -> Option<&'static [&'static str]> {
    match option {
        "write_bw_log" => Some(&["bw"]),
        "write_lat_log" => Some(&["lat", "slat", "clat"]),
        "write_iops_log" => Some(&["iops"]),
        "write_hist_log" => Some(&["clat_hist"]),
        _ => None,
    }
}

/// The names in an option's value.
pub fn names(option: &JobOption) -> Vec<String> {
    split_names(option.value.as_deref().unwrap_or_default())
}

/// The names in a list joined by `:`; `\:` is a colon of a name.
pub fn split_names(text: &str) -> Vec<String> {
    let mut list = vec![String::new()];
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' if letters.peek() == Some(&':') => {
                letters.next();
                push(&mut list, ':');
            }
            ':' => list.push(String::new()),
            other => push(&mut list, other),
        }
    }
    list.iter()
        .map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty())
        .collect()
}

fn push(list: &mut [String], letter: char) {
    if let Some(last) = list.last_mut() {
        last.push(letter);
    }
}
