//! Folders for temporary files that say whose they are, so that what a killed
//! program left behind can be removed by the next one, and nothing else is.
//!
//! A pid alone names nobody: folders for temporary files are shared by machines
//! (NFS), by containers, and by those that come after a reboot.

use std::collections::BTreeSet;
use std::fs::{self, File, Permissions};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use tempfile::TempDir;

use crate::Sys;
use crate::process::Process;

/// What the names of these folders begin with.
pub const PREFIX: &str = "fathom-";
/// The file in such a folder that names its owner: one line of boot id, PID
/// namespace, pid and start time in clock ticks.
pub const OWNER: &str = ".fathom-owner";
/// More than any such line.
const OWNER_BYTES_MAX: u64 = 256;
/// For this user alone.
const PRIVATE: u32 = 0o700;

/// A private folder, removed when it is dropped; after a kill, by the next
/// program that makes one beside it.
#[derive(Debug)]
pub struct Scratch(TempDir);

impl Scratch {
    /// In the system's folder for temporary files.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn new() -> io::Result<Self> {
        Self::within(&std::env::temp_dir(), PREFIX)
    }

    /// In `parent`, with a name that begins with `prefix`. What stands beside it
    /// and whose owner is gone is removed first.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn within(parent: &Path, prefix: &str) -> io::Result<Self> {
        let sys = Sys::live();
        let own = Owner::of_this_process(&sys);
        if let Some(own) = &own
            && is_first(&parent.join(prefix))
        {
            sweep(&sys, own, parent, prefix);
        }
        let dir = tempfile::Builder::new()
            .prefix(prefix)
            .permissions(Permissions::from_mode(PRIVATE))
            .tempdir_in(parent)?;
        if let Some(own) = own {
            fs::write(dir.path().join(OWNER), own.line())?;
        }
        Ok(Self(dir))
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

/// Whether nothing was swept there before: once a program is enough.
fn is_first(names: &Path) -> bool {
    static SWEPT: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    let mut swept = SWEPT.lock().unwrap_or_else(PoisonError::into_inner);
    swept.insert(names.to_owned())
}

/// A process, as no other machine, container or later process can be named.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Owner {
    boot: String,
    namespace: String,
    pid: u32,
    /// Clock ticks since the boot.
    started: u64,
}

impl Owner {
    /// `None` where the system does not tell: such a folder is never swept.
    fn of_this_process(sys: &Sys) -> Option<Self> {
        let Process { pid, started, .. } = Process::of(sys, "self")?;
        // Else /proc is that of another PID namespace.
        (pid == std::process::id()).then_some(())?;
        Some(Self {
            boot: boot_id(sys)?,
            namespace: namespace(sys, "pid")?,
            pid,
            started,
        })
    }

    /// What stands in [`OWNER`].
    fn line(&self) -> String {
        let Self {
            boot,
            namespace,
            pid,
            started,
        } = self;
        format!("{boot} {namespace} {pid} {started}\n")
    }

    /// The owner that a whole line names.
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.strip_suffix('\n')?.split(' ');
        let owner = Self {
            boot: words.next()?.to_owned(),
            namespace: words.next()?.to_owned(),
            pid: words.next()?.parse().ok()?,
            started: words.next()?.parse().ok()?,
        };
        words.next().is_none().then_some(owner)
    }

    /// Whether it has surely ended, as seen by `own`. Of another boot id nobody
    /// can tell whether it is another machine's, of another namespace whether its
    /// processes live.
    fn is_gone(&self, sys: &Sys, own: &Self) -> bool {
        let is_known = self.boot == own.boot && self.namespace == own.namespace;
        let now = Process::of(sys, &self.pid.to_string());
        is_known && now.is_none_or(|it| it.started != self.started)
    }
}

/// Removes the folders of this user in `parent` that name their owners, all of
/// whom are gone. What cannot be removed stays for the next one.
fn sweep(sys: &Sys, own: &Owner, parent: &Path, prefix: &str) {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    for entry in entries {
        let is_named = entry.file_name().to_string_lossy().starts_with(prefix);
        if is_named && is_left(sys, own, &entry.path()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Whether a folder was left behind. Another owner may have a folder of its own
/// in it: what one program began for another.
fn is_left(sys: &Sys, own: &Owner, dir: &Path) -> bool {
    let user = rustix::process::geteuid().as_raw();
    let is_private =
        |meta: fs::Metadata| meta.is_dir() && meta.uid() == user && meta.mode() & 0o777 == PRIVATE;
    if !dir.symlink_metadata().is_ok_and(is_private) {
        return false;
    }
    let Ok(below) = fs::read_dir(dir) else {
        return false;
    };
    let inner = below.flatten().map(|entry| entry.path().join(OWNER));
    let is_gone = |file: PathBuf| owner(&file).is_some_and(|it| it.is_gone(sys, own));
    is_gone(dir.join(OWNER))
        && inner
            .filter(|file| file.symlink_metadata().is_ok())
            .all(is_gone)
}

fn owner(file: &Path) -> Option<Owner> {
    file.symlink_metadata().ok()?.is_file().then_some(())?;
    let mut line = String::new();
    let opened = File::open(file).ok()?;
    opened
        .take(OWNER_BYTES_MAX)
        .read_to_string(&mut line)
        .ok()?;
    Owner::parse(&line)
}

/// What names this boot of this machine, and no other.
pub fn boot_id(sys: &Sys) -> Option<String> {
    let text = fs::read_to_string(sys.path("/proc/sys/kernel/random/boot_id")).ok()?;
    let id = text.trim();
    (!id.is_empty() && !id.contains(char::is_whitespace)).then(|| id.to_owned())
}

/// What names a namespace of this process: `mnt`, `pid`, …
pub fn namespace(sys: &Sys, kind: &str) -> Option<String> {
    let link = fs::read_link(sys.path(format!("/proc/self/ns/{kind}"))).ok()?;
    let name = link.to_str()?;
    (!name.contains(char::is_whitespace)).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn here() -> Owner {
        Owner::of_this_process(&Sys::live()).unwrap()
    }

    /// A folder of a name of its own, as an owner leaves it.
    fn left(parent: &Path, nth: usize, line: Option<&str>) -> PathBuf {
        let dir = parent.join(format!("{PREFIX}{nth}"));
        fs::create_dir(&dir).unwrap();
        fs::set_permissions(&dir, Permissions::from_mode(PRIVATE)).unwrap();
        fs::write(dir.join("program"), "x").unwrap();
        if let Some(line) = line {
            fs::write(dir.join(OWNER), line).unwrap();
        }
        dir
    }

    #[test]
    fn only_what_is_surely_left_behind_is_swept() {
        let parent = tempfile::tempdir().unwrap();
        let parent = parent.path();
        let mut child = Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let own = here();
        let dead = Owner {
            pid: child.id(),
            ..own.clone()
        };
        let line = |change: &dyn Fn(&mut Owner)| {
            let mut owner = dead.clone();
            change(&mut owner);
            owner.line()
        };
        let gone = [
            dead.line(),
            // The pid is another process's by now.
            line(&|it| (it.pid, it.started) = (own.pid, own.started - 1)),
        ];
        let kept = [
            Some(own.line()),
            Some(line(&|it| it.boot = "0f0e".to_owned())),
            Some(line(&|it| it.namespace = "pid:[1]".to_owned())),
            Some(dead.line().trim_end().to_owned()),
            Some(format!("{}x", dead.line())),
            Some(String::new()),
            None,
        ];
        let gone: Vec<PathBuf> = gone
            .iter()
            .enumerate()
            .map(|(nth, line)| left(parent, nth, Some(line)))
            .collect();
        let kept: Vec<PathBuf> = kept
            .iter()
            .enumerate()
            .map(|(nth, line)| left(parent, 10 + nth, line.as_deref()))
            .collect();
        let open = left(parent, 20, Some(&dead.line()));
        fs::set_permissions(&open, Permissions::from_mode(0o755)).unwrap();
        // What it began for a program that lives.
        let outer = left(parent, 21, Some(&dead.line()));
        fs::create_dir(outer.join("inner")).unwrap();
        fs::write(outer.join("inner").join(OWNER), own.line()).unwrap();
        let other = parent.join("other");
        fs::create_dir(&other).unwrap();
        fs::write(other.join(OWNER), dead.line()).unwrap();
        std::os::unix::fs::symlink(&other, parent.join(format!("{PREFIX}link"))).unwrap();
        let scratch = Scratch::within(parent, PREFIX).unwrap();
        assert!(gone.iter().all(|dir| !dir.exists()), "{gone:?}");
        assert!(kept.iter().all(|dir| dir.exists()), "{kept:?}");
        assert!(open.exists() && outer.exists() && other.join(OWNER).exists());
        let mode = scratch.path().metadata().unwrap().mode();
        assert_eq!(mode & 0o777, 0o700);
        assert_eq!(owner(&scratch.path().join(OWNER)), Some(own));
    }
}
