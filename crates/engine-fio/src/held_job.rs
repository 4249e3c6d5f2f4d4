//! A job file in which every path stands for an object that Fathom holds.
//!
//! fio opens its files by name, long after they were checked. So it is given names that
//! no other program can change: `/proc/PID/fd/N` of a descriptor of this process, which
//! outlives fio. A device is held itself. A file is named within its folder, which is
//! held; where the system allows it, fio sees the folder as a mount of its own, in which
//! no link is followed and no device opened. In all that fio prints and writes the names
//! of the job file take the place of these again.

#![allow(unsafe_code)] // each block says why it is sound

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, BufWriter, Write as _};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use fathom_jobfile::variables::variable;
use fathom_jobfile::{JobFile, log_kinds, makes_names, reaches_files, resolve, split_names};
use fathom_model::{JobOption, JobSpec, Origin};
use rustix::fs::{MemfdFlags, OFlags, memfd_create};

use fathom_engine::Request;
use fathom_engine::checked::{CheckedPaths, HeldPlace, PathChanged};
use fathom_engine::requested::passed_value;

/// What every name that is given to fio begins with, apart from the process.
const FOLDER: &[u8] = b"/proc/";
/// The option of fio's command line for the folder of states and dumps.
const AUX_PATH: &str = "aux-path";

/// What fio is started with, and what that keeps open.
#[derive(Debug)]
pub(super) struct HeldJob {
    job_file: OwnedFd,
    work_dir: Option<OwnedFd>,
    /// The folder of states and dumps, for fio's command line.
    aux_path: Option<(String, PathBuf)>,
    names: HeldNames,
    /// A line that is not whole yet, of standard output and of standard error.
    partial: [Vec<u8>; 2],
    /// Logs of I/Os, in which fio writes names.
    iologs: Vec<PathBuf>,
    checked: CheckedPaths,
    _held: Vec<OwnedFd>,
}

/// The names that fio was given, and those that the job file has.
#[derive(Debug, Default)]
struct HeldNames {
    /// Longest first.
    pairs: Vec<(String, String)>,
    /// The folder of a job that names none: its line in fio's options is not the job's.
    added: Option<String>,
}

impl HeldJob {
    /// Holds everything that the jobs of a request name. `None`: its job file is one that
    /// fio runs nothing of, and says so.
    ///
    /// # Errors
    /// [`PathChanged`] where something is not what was checked.
    pub(super) fn new(request: &Request) -> io::Result<Option<Self>> {
        let read = JobFile::read(&request.job_file, &variable).ok();
        let Some(read) = read.filter(|read| !read.has_errors()) else {
            return Ok(None);
        };
        let mut file = read.file;
        file.keep_sections(&request.sections);
        let checked = match &request.checked {
            Some(checked) => checked.clone(),
            None => {
                let uses = resolve::all(&file.jobs(), &request.work_dir);
                CheckedPaths::of_uses(&uses.unwrap_or_default())
            }
        };
        let mut holder = Holder {
            work_dir: &request.work_dir,
            checked: &checked,
            pairs: BTreeMap::new(),
            iologs: Vec::new(),
            held: Vec::new(),
            sealed: BTreeMap::new(),
            is_seen: file.jobs().iter().all(stays_who_it_is),
        };
        let added = holder.jobs(&mut file)?;
        let aux_path = holder.aux_path(request, &file.jobs())?;
        let Holder {
            pairs,
            iologs,
            mut held,
            sealed,
            ..
        } = holder;
        held.extend(sealed.into_values());
        let mut pairs: Vec<_> = pairs.into_iter().collect();
        pairs.sort_by_key(|(given, _)| std::cmp::Reverse(given.len()));
        // A memory file's name is for people; the kernel takes 249 bytes of it (memfd_create(2)).
        let name = request.job_file.file_name().unwrap_or_default();
        let name = name.as_bytes();
        let job_file = memfd_create(&name[..name.len().min(249)], MemfdFlags::CLOEXEC)?;
        let mut out = File::from(job_file);
        out.write_all(file.render().as_bytes())?;
        Ok(Some(Self {
            job_file: out.into(),
            work_dir: match checked.hold_dir(&request.work_dir) {
                Err(error) if PathChanged::is(&error) => return Err(error),
                held => held.ok().map(|held| held.folder),
            },
            aux_path,
            names: HeldNames { pairs, added },
            partial: Default::default(),
            iologs,
            checked,
            _held: held,
        }))
    }

    /// The command that is run in place of the one that is told.
    pub(super) fn argv(&self, argv: &[OsString]) -> Vec<OsString> {
        let mut argv = argv.to_vec();
        if let Some((option, _)) = &self.aux_path {
            // Of an option that is given twice fio takes the last.
            let job_file = argv.len() - 1;
            argv.insert(job_file, option.into());
        }
        if let Some(last) = argv.last_mut() {
            *last = given(self.job_file.as_raw_fd()).into();
        }
        argv
    }

    /// The folder that fio runs in.
    pub(super) fn work_dir(&self) -> Option<PathBuf> {
        let held = self.work_dir.as_ref();
        held.map(|folder| given(folder.as_raw_fd()).into())
    }

    /// What fio has printed to `stream`, 0 or 1, in whole lines with the job's names.
    pub(super) fn pass(&mut self, stream: usize, bytes: &[u8]) -> Vec<u8> {
        let mut line = std::mem::take(&mut self.partial[stream]);
        line.extend_from_slice(bytes);
        let whole = memchr::memrchr(b'\n', &line).map_or(0, |end| end + 1);
        self.partial[stream] = line.split_off(whole);
        self.names.lines(&line)
    }

    /// What is left of a stream that has ended.
    pub(super) fn rest(&mut self, stream: usize) -> Vec<u8> {
        let line = std::mem::take(&mut self.partial[stream]);
        self.names.lines(&line)
    }

    /// Puts the job's names into what fio has left: logs of I/Os, names of dumps.
    ///
    /// # Errors
    /// Those of the file system.
    pub(super) fn end(&self) -> io::Result<()> {
        for path in &self.iologs {
            let Ok(log) = self.checked.open(path, OFlags::RDONLY) else {
                continue;
            };
            let mut out = BufWriter::new(self.checked.replace(path)?);
            let mut log = BufReader::new(log);
            let mut line = Vec::new();
            while log.read_until(b'\n', &mut line)? > 0 {
                out.write_all(&self.names.named(&line))?;
                line.clear();
            }
            out.flush()?;
        }
        match &self.aux_path {
            Some((_, folder)) => self.rename_dumps(folder),
            None => Ok(()),
        }
    }

    /// `9.4096.received`, of a device that fio knew as `/proc/PID/fd/9`.
    fn rename_dumps(&self, folder: &Path) -> io::Result<()> {
        let held = self.checked.hold_dir(folder)?.folder;
        let prefix = given("");
        for (given, named) in &self.names.pairs {
            let Some(number) = given.strip_prefix(&prefix) else {
                continue;
            };
            if number.contains('/') {
                continue;
            }
            let base = Path::new(named).file_name().unwrap_or_default();
            for entry in std::fs::read_dir(folder)? {
                let name = entry?.file_name();
                let Some(rest) = dump_of(&name, number) else {
                    continue;
                };
                let new = [base.as_bytes(), b".", rest.as_bytes()].concat();
                rustix::fs::renameat(&held, &name, &held, OsStr::from_bytes(&new))?;
            }
        }
        Ok(())
    }
}

/// What follows the number in the name of a dump of this file (verify.c, dump_buf).
fn dump_of<'n>(name: &'n OsStr, number: &str) -> Option<&'n str> {
    let rest = name.to_str()?.strip_prefix(number)?.strip_prefix('.')?;
    let (offset, kind) = rest.split_once('.')?;
    let is_dump = matches!(kind, "received" | "expected" | "hdr_fail");
    (is_dump && offset.parse::<u64>().is_ok()).then_some(rest)
}

impl HeldNames {
    fn lines(&self, text: &[u8]) -> Vec<u8> {
        let Some(added) = &self.added else {
            return self.named(text).into_owned();
        };
        let is_added = |line: &&[u8]| {
            let line = line.trim_ascii_start();
            line.starts_with(b"\"directory\"")
                && memchr::memmem::find(line, added.as_bytes()).is_some()
        };
        let lines = text.split_inclusive(|&byte| byte == b'\n');
        let kept: Vec<u8> = lines
            .filter(|line| !is_added(line))
            .collect::<Vec<_>>()
            .concat();
        self.named(&kept).into_owned()
    }

    /// A text with the job's names.
    fn named<'t>(&self, text: &'t [u8]) -> Cow<'t, [u8]> {
        if self.pairs.is_empty() || memchr::memmem::find(text, FOLDER).is_none() {
            return Cow::Borrowed(text);
        }
        let mut out = Vec::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = memchr::memmem::find(rest, FOLDER) {
            out.extend_from_slice(&rest[..at]);
            rest = &rest[at..];
            match self.at_start(rest) {
                Some((given, named)) => {
                    out.extend_from_slice(named.as_bytes());
                    rest = &rest[given.len()..];
                }
                None => {
                    out.extend_from_slice(FOLDER);
                    rest = &rest[FOLDER.len()..];
                }
            }
        }
        out.extend_from_slice(rest);
        Cow::Owned(out)
    }

    fn at_start(&self, text: &[u8]) -> Option<&(String, String)> {
        let is_it = |given: &str| {
            let behind = text.strip_prefix(given.as_bytes());
            // Not of `fd/1` in `fd/12`.
            behind.is_some_and(|behind| {
                let goes_on = behind.first().is_some_and(u8::is_ascii_digit);
                !(goes_on && given.ends_with(|last: char| last.is_ascii_digit()))
            })
        };
        self.pairs.iter().find(|(given, _)| is_it(given))
    }
}

/// The name under which other processes reach what this one holds.
fn given(number: impl fmt::Display) -> String {
    format!("/proc/{}/fd/{number}", std::process::id())
}

/// Whether fio takes a name as it stands: not one with what job files give a meaning.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && !name.contains(['$', '\\', '#', ';', '"', '\n', '\r'])
}

/// Holds the paths of a job file, one option after the other.
struct Holder<'r> {
    work_dir: &'r Path,
    checked: &'r CheckedPaths,
    /// By the names that fio is given.
    pairs: BTreeMap<String, String>,
    iologs: Vec<PathBuf>,
    /// Devices, and folders with links of the user's below.
    held: Vec<OwnedFd>,
    /// Folders by their paths without links.
    sealed: BTreeMap<PathBuf, OwnedFd>,
    /// Whether fio's jobs may look into this process: not where they become another user.
    is_seen: bool,
}

impl Holder<'_> {
    /// Puts held names into a job file; gives the name of the folder that was added to
    /// jobs that name none.
    fn jobs(&mut self, file: &mut JobFile) -> io::Result<Option<String>> {
        let jobs = file.jobs();
        let all = |of: &[JobSpec], is: &dyn Fn(&JobSpec) -> bool| of.iter().all(is);
        file.map_values(&mut |name, users, option| {
            let users = &jobs[users];
            let value = option.value.as_deref().unwrap_or_default();
            let by_name = all(users, &|job| {
                reaches_files(job) && job.value("directory").is_none()
            });
            match name {
                "filename" if by_name => self.list(value, &mut |this, name| this.file(name)),
                "directory" => self.list(value, &mut |this, name| this.folder(name)),
                "opendir" if is_plain(value) => self.folder(value),
                "replay_redirect" => self.file(value),
                "write_iolog" | "merge_blktrace_file" => {
                    if name == "write_iolog" {
                        self.iologs.push(self.work_dir.join(value));
                    }
                    self.text(value)
                }
                _ if log_kinds(name).is_some() => self.log(value, users),
                _ => Ok(None),
            }
        })?;
        let added = jobs.iter().enumerate().filter(|(_, job)| makes_names(job));
        let added: Vec<usize> = added.map(|(nth, _)| nth).collect();
        if added.is_empty() {
            return Ok(None);
        }
        let Some(folder) = self.held_folder(self.work_dir)? else {
            return Ok(None);
        };
        self.pairs.insert(format!("{folder}/"), String::new());
        for nth in added {
            let option = JobOption {
                name: "directory".to_owned(),
                value: Some(folder.clone()),
                origin: Origin::Fathom {
                    reason: "the folder that is held".to_owned(),
                },
            };
            file.add_first(nth, &option);
        }
        Ok(Some(folder))
    }

    /// A list of names joined by `:`.
    fn list(
        &mut self,
        value: &str,
        hold: &mut dyn FnMut(&mut Self, &str) -> io::Result<Option<String>>,
    ) -> io::Result<Option<String>> {
        let mut names = Vec::new();
        for name in split_names(value) {
            let held = match is_plain(&name) {
                true => hold(self, &name)?,
                false => None,
            };
            names.push(held.unwrap_or(name).replace(':', "\\:"));
        }
        Ok(Some(names.join(":")))
    }

    /// A file or device; `None`: it was not checked, or cannot be held.
    fn file(&mut self, named: &str) -> io::Result<Option<String>> {
        let path = self.work_dir.join(named);
        if named == "-" || !self.checked.has(&path) {
            return Ok(None);
        }
        if self.checked.is_device(&path) {
            let device = self.checked.hold(&path)?;
            let held = self.name(&device, &self.checked.real(&path));
            self.held.push(device);
            self.pairs.insert(held.clone(), named.to_owned());
            return Ok(Some(held));
        }
        self.in_folder(self.checked.hold_folder(&path), named)
    }

    /// A name in the folder that the path leads to.
    fn in_folder(
        &mut self,
        place: io::Result<HeldPlace>,
        named: &str,
    ) -> io::Result<Option<String>> {
        let Some(place) = found(place)? else {
            return Ok(None);
        };
        let Some(name) = place.name.to_str().filter(|name| is_plain(name)) else {
            return Ok(None);
        };
        let held = format!("{}/{name}", self.sealed(place.real, place.folder));
        self.pairs.insert(held.clone(), named.to_owned());
        Ok(Some(held))
    }

    /// A folder in which files have names that are made for them, or that lie below it.
    fn folder(&mut self, named: &str) -> io::Result<Option<String>> {
        let held = self.held_folder(&self.work_dir.join(named))?;
        if let Some(held) = &held {
            self.pairs.insert(held.clone(), named.to_owned());
        }
        Ok(held)
    }

    fn held_folder(&mut self, path: &Path) -> io::Result<Option<String>> {
        let Some(place) = found(self.checked.hold_dir(path))? else {
            return Ok(None);
        };
        let held = match self.checked.has_links_below(path) {
            // Links of the user's, which keep working.
            true => {
                let held = self.name(&place.folder, &place.real);
                self.held.push(place.folder);
                held
            }
            false => self.sealed(place.real, place.folder),
        };
        // Without the dot it is a link, which fio does not take for a folder.
        Ok(Some(format!("{held}/.")))
    }

    /// What the names of a log begin with.
    fn log(&mut self, value: &str, users: &[JobSpec]) -> io::Result<Option<String>> {
        let prefix = match (value, users) {
            ("" | "1", [job]) => job.name.as_str(),
            ("" | "1", _) => return Ok(None),
            (value, _) => value,
        };
        self.text(prefix)
    }

    /// What is written as text: to no link.
    fn text(&mut self, named: &str) -> io::Result<Option<String>> {
        let path = self.work_dir.join(named);
        self.in_folder(self.checked.hold_folder_of_name(&path), named)
    }

    /// The folder of states and dumps, where jobs leave any.
    fn aux_path(
        &mut self,
        request: &Request,
        jobs: &[JobSpec],
    ) -> io::Result<Option<(String, PathBuf)>> {
        let verifies = jobs.iter().any(|job| job.value("verify").is_some());
        let folder = match passed_value(&request.extra_args, AUX_PATH) {
            Some(folder) => self.work_dir.join(folder),
            None if verifies => self.work_dir.to_owned(),
            None => return Ok(None),
        };
        let held = self.held_folder(&folder)?;
        Ok(held.map(|held| (format!("--{AUX_PATH}={held}"), folder)))
    }

    /// The name of a folder that is seen as a mount of its own.
    fn sealed(&mut self, real: PathBuf, folder: OwnedFd) -> String {
        if !self.sealed.contains_key(&real) {
            let sealed = seal(folder.as_fd()).unwrap_or(folder);
            self.sealed.insert(real.clone(), sealed);
        }
        self.name(&self.sealed[&real], &real)
    }

    fn name(&self, held: &OwnedFd, real: &Path) -> String {
        match (self.is_seen, real.to_str()) {
            (false, Some(real)) => real.to_owned(),
            _ => given(held.as_raw_fd()),
        }
    }
}

/// What is held; `None` where fio will say itself that it cannot be.
fn found(place: io::Result<HeldPlace>) -> io::Result<Option<HeldPlace>> {
    match place {
        Err(error) if !PathChanged::is(&error) => Ok(None),
        place => place.map(Some),
    }
}

/// Whether a job keeps the user that it is started as.
fn stays_who_it_is(job: &JobSpec) -> bool {
    let changes = ["uid", "gid"].map(|option| job.value(option).is_some());
    changes == [false; 2]
}

/// A folder as a mount of its own, with all that is mounted below, in which no link is
/// followed and no device opened (mount_setattr(2); Linux 5.14, root only).
fn seal(folder: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    use rustix::mount::{OpenTreeFlags, open_tree};
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_RECURSIVE;
    let tree = open_tree(folder, "", flags)?;
    let wanted = libc::mount_attr {
        attr_set: libc::MOUNT_ATTR_NODEV | libc::MOUNT_ATTR_NOSYMFOLLOW,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    // SAFETY: a descriptor, an empty C string, and an attribute with its size.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | libc::AT_RECURSIVE,
            &raw const wanted,
            size_of::<libc::mount_attr>(),
        )
    };
    match result {
        0 => Ok(tree),
        _ => Err(io::Error::last_os_error()),
    }
}
