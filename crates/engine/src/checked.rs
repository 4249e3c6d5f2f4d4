//! What the paths of a request led to when they were checked.
//!
//! A path is only a name: another program can move a link, rename a file or mount
//! something over it at any time. So each path is followed once, what it leads to is
//! checked, and an engine then opens that object and nothing else.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use fathom_jobfile::resolve::PathUse;

/// As many links as the kernel follows (linux/namei.h, MAXSYMLINKS).
const MOST_LINKS: usize = 40;

/// What identifies an object of a file system.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct ObjectId {
    /// Device number of its file system.
    device: u64,
    inode: u64,
    /// Device number that it stands for; 0 for files and folders.
    rdev: u64,
    /// Sequence number of a block device. A disk that gets the same device number later
    /// has another one (Documentation/ABI/testing/sysfs-block, diskseq).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sequence: Option<String>,
}

impl ObjectId {
    fn of(meta: &std::fs::Metadata) -> Self {
        let kind = meta.mode() & MODE_KIND;
        let is_device = kind == MODE_BLOCK || kind == MODE_CHARACTER;
        Self {
            device: meta.dev(),
            inode: meta.ino(),
            rdev: if is_device { meta.rdev() } else { 0 },
            sequence: (kind == MODE_BLOCK)
                .then(|| sequence(meta.rdev()))
                .flatten(),
        }
    }
}

// The kind of an object in its mode (inode(7)).
const MODE_KIND: u32 = 0o170_000;
const MODE_BLOCK: u32 = 0o060_000;
const MODE_CHARACTER: u32 = 0o020_000;

fn sequence(rdev: u64) -> Option<String> {
    let (major, minor) = (rustix::fs::major(rdev), rustix::fs::minor(rdev));
    let node = fathom_device::Sys::live().by_number(major, minor)?;
    node.whole().text("diskseq")
}

/// Where a path leads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
struct CheckedPath {
    /// The path without links.
    real: PathBuf,
    /// The folder that it lies in; `None`: there is no such folder.
    folder: Option<ObjectId>,
    /// `None`: nothing was there.
    object: Option<ObjectId>,
    /// Whether a file stood there, or nothing: then the job may make one.
    is_file: bool,
}

/// The paths of a request, and what they led to when they were checked.
#[derive(Debug, Clone, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CheckedPaths {
    paths: BTreeMap<PathBuf, CheckedPath>,
    /// Folders of the paths, and those that are paths themselves: the job's generated
    /// files lie there.
    folders: BTreeMap<PathBuf, (PathBuf, ObjectId)>,
    /// When that was, in ns since 1970.
    at_ns: i128,
    /// Files that were made through this.
    #[serde(skip)]
    made: Arc<Mutex<BTreeSet<ObjectId>>>,
}

/// A path leads to something else than when it was checked.
#[derive(Debug)]
pub struct PathChanged {
    path: PathBuf,
    what: &'static str,
}

impl fmt::Display for PathChanged {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}; it was not opened", self.what)
    }
}

impl std::error::Error for PathChanged {}

impl PathChanged {
    /// The path, where that is what an error says.
    pub fn of(error: &io::Error) -> Option<&Path> {
        let inner = error.get_ref()?.downcast_ref::<Self>()?;
        Some(&inner.path)
    }

    /// Whether that is what an error says.
    pub fn is(error: &io::Error) -> bool {
        Self::of(error).is_some()
    }

    fn error(path: &Path, what: &'static str) -> io::Error {
        let path = path.to_owned();
        io::Error::other(Self { path, what })
    }
}

const OTHER_OBJECT: &str = "another object stands there than when the path was checked";
const OTHER_FOLDER: &str = "its folder is another one than when the path was checked";
const NOT_CHECKED: &str = "the path is not among those that were checked";

impl CheckedPaths {
    /// Follows paths, each once. Those that cannot be followed are not among them.
    pub fn of<'p>(paths: impl IntoIterator<Item = &'p Path>) -> Self {
        let mut checked = Self {
            at_ns: now_ns(),
            ..Self::default()
        };
        for path in paths {
            checked.add(path);
        }
        checked
    }

    /// Those of these uses.
    pub fn of_uses(uses: &[PathUse]) -> Self {
        Self::of(uses.iter().map(|used| used.path.as_path()))
    }

    fn add(&mut self, path: &Path) {
        // By its folder as that was followed, whatever a link to it leads to by now.
        let folder = path.parent().and_then(|parent| self.folder(parent));
        let from = match (&folder, path.file_name()) {
            (Some((real, _)), Some(name)) => real.join(name),
            _ => path.to_owned(),
        };
        let Some(real) = followed(&from).filter(|real| real.to_str().is_some()) else {
            return;
        };
        let meta = std::fs::symlink_metadata(&real).ok();
        let object = meta.as_ref().map(ObjectId::of);
        let is_dir = meta.as_ref().is_some_and(std::fs::Metadata::is_dir);
        if let (Some(object), true) = (&object, is_dir) {
            let itself = (real.clone(), object.clone());
            self.folders.insert(path.to_owned(), itself);
        }
        let parent = real.parent().unwrap_or(Path::new("/"));
        let folder = match folder {
            Some((known, id)) if known == parent => Some(id),
            _ => {
                let meta = std::fs::symlink_metadata(parent).ok();
                meta.as_ref().map(ObjectId::of)
            }
        };
        let checked = CheckedPath {
            folder,
            object,
            is_file: meta.is_none_or(|meta| meta.is_file()),
            real,
        };
        self.paths.insert(path.to_owned(), checked);
    }

    /// Follows a folder, once.
    fn folder(&mut self, path: &Path) -> Option<(PathBuf, ObjectId)> {
        if let Some(known) = self.folders.get(path) {
            return Some(known.clone());
        }
        // By the nearest one above it that is known.
        let mut above = path.ancestors().skip(1);
        let from = above.find_map(|folder| {
            let (real, _) = self.folders.get(folder)?;
            Some(real.join(path.strip_prefix(folder).ok()?))
        });
        let real = std::fs::canonicalize(from.as_deref().unwrap_or(path)).ok()?;
        let meta = std::fs::symlink_metadata(&real).ok()?;
        let folder = (real, ObjectId::of(&meta));
        self.folders.insert(path.to_owned(), folder.clone());
        Some(folder)
    }

    /// Where a path leads, without links; the path itself where it was not checked.
    pub fn real(&self, path: &Path) -> PathBuf {
        match self.place(path) {
            Ok(place) => place.real.clone(),
            Err(_) => path.to_owned(),
        }
    }

    /// Whether a path is among them.
    pub fn has(&self, path: &Path) -> bool {
        self.paths.contains_key(path)
    }

    /// Whether a path led to a device.
    pub fn is_device(&self, path: &Path) -> bool {
        let object = self.paths.get(path).and_then(|it| it.object.as_ref());
        object.is_some_and(|object| object.rdev != 0)
    }

    /// Whether links lie between a folder and a path below it.
    pub fn has_links_below(&self, folder: &Path) -> bool {
        let real = self.folders.get(folder).map(|(real, _)| real);
        self.paths.iter().any(|(path, checked)| {
            let below = path.strip_prefix(folder).ok();
            let below = below.filter(|below| !below.as_os_str().is_empty());
            matches!((below, real), (Some(below), Some(real)) if checked.real != real.join(below))
        })
    }

    /// A path that was checked, or one for a file in a folder that was.
    fn place(&self, path: &Path) -> io::Result<Cow<'_, CheckedPath>> {
        match self.paths.get(path) {
            Some(known) => Ok(Cow::Borrowed(known)),
            None => self.new_place(path).map(Cow::Owned),
        }
    }

    /// Where a file is made in a folder that was checked.
    fn new_place(&self, path: &Path) -> io::Result<CheckedPath> {
        let folder = path.parent().and_then(|parent| self.folders.get(parent));
        match (folder, path.file_name()) {
            (Some((real, folder)), Some(name)) => Ok(CheckedPath {
                real: real.join(name),
                folder: Some(folder.clone()),
                object: None,
                is_file: true,
            }),
            _ => Err(PathChanged::error(path, NOT_CHECKED)),
        }
    }
}

/// A path without links, also where nothing stands at its end. `None`: links lead in a
/// circle, or a folder on the way cannot be looked at.
fn followed(path: &Path) -> Option<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        if let Ok(real) = std::fs::canonicalize(&path) {
            return Some(real);
        }
        let name = path.file_name()?.to_owned();
        let parent = path.parent()?;
        let folder = std::fs::canonicalize(parent).unwrap_or_else(|_| parent.to_owned());
        match std::fs::read_link(&path) {
            // What a link leads to will be made.
            Ok(target) => path = folder.join(target),
            Err(_) => return Some(folder.join(name)),
        }
    }
    None
}

fn now_ns() -> i128 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| i128::try_from(now.as_nanos()).unwrap_or(i128::MAX))
}

#[cfg(target_os = "linux")]
mod opening {
    use std::ffi::{OsStr, OsString};
    use std::os::fd::{AsRawFd as _, OwnedFd};

    use rustix::fs::{AtFlags, CWD, Mode, OFlags};
    use rustix::io::Errno;

    use super::{
        CheckedPath, CheckedPaths, File, OTHER_FOLDER, OTHER_OBJECT, ObjectId, Path, PathBuf,
        PathChanged, PoisonError, io,
    };

    /// That of the files that fio makes (filesetup.c, generic_open_file).
    const MODE: Mode = Mode::from_raw_mode(0o644);
    /// How often something may stand there and be gone again while a file is made.
    const ATTEMPTS: u32 = 16;

    /// A folder that is held, where it is, and a name in it.
    #[derive(Debug)]
    pub struct HeldPlace {
        /// The folder, opened for no more than to be known (`O_PATH`).
        pub folder: OwnedFd,
        /// Its path without links.
        pub real: PathBuf,
        /// Empty for the folder itself.
        pub name: OsString,
    }

    impl CheckedPaths {
        /// Opens what a path led to when it was checked. With [`OFlags::CREATE`] a missing
        /// file is made.
        ///
        /// # Errors
        /// What the system says; [`PathChanged`] where it leads to something else now.
        pub fn open(&self, path: &Path, flags: OFlags) -> io::Result<File> {
            let place = self.place(path)?;
            let (folder, name) = self.folder_of(&place)?;
            let flags = flags | OFlags::CLOEXEC;
            for _ in 0..ATTEMPTS {
                match self.find(&place, &folder, name) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    found => {
                        let flags = flags - OFlags::CREATE - OFlags::EXCL;
                        let held = found?;
                        return match reopen(&held, flags) {
                            // Without /proc what is held can be opened by its name only.
                            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                                open_by_name(&held, (&folder, name), flags, path)
                            }
                            opened => opened,
                        };
                    }
                }
                if !flags.contains(OFlags::CREATE) || !place.is_file {
                    return Err(Errno::NOENT.into());
                }
                let anew = flags | OFlags::EXCL | OFlags::NOFOLLOW;
                match rustix::fs::openat(&folder, name, anew, MODE) {
                    Err(Errno::EXIST) => {}
                    made => {
                        let made = File::from(made?);
                        let id = ObjectId::of(&made.metadata()?);
                        let mut all = self.made.lock().unwrap_or_else(PoisonError::into_inner);
                        all.insert(id);
                        return Ok(made);
                    }
                }
            }
            Err(PathChanged::error(path, OTHER_OBJECT))
        }

        /// Opens the file that a path led to for writing, without what it held, or makes it.
        ///
        /// # Errors
        /// As [`CheckedPaths::open`].
        pub fn create(&self, path: &Path) -> io::Result<File> {
            self.open(path, OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC)
        }

        /// Makes a new file in the folder that was checked, in place of what has its name.
        ///
        /// # Errors
        /// As [`CheckedPaths::open`].
        pub fn replace(&self, path: &Path) -> io::Result<File> {
            let place = self.new_place(path)?;
            let (folder, name) = self.folder_of(&place)?;
            match rustix::fs::unlinkat(&folder, name, AtFlags::empty()) {
                Err(Errno::NOENT) | Ok(()) => {}
                Err(error) => return Err(error.into()),
            }
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            Ok(rustix::fs::openat(&folder, name, flags, MODE)?.into())
        }

        /// Holds what a path led to when it was checked, without opening it for I/O.
        ///
        /// # Errors
        /// As [`CheckedPaths::open`].
        pub fn hold(&self, path: &Path) -> io::Result<OwnedFd> {
            let place = self.place(path)?;
            let (folder, name) = self.folder_of(&place)?;
            Ok(self.find(&place, &folder, name)?.into())
        }

        /// Holds the folder that a path led to.
        ///
        /// # Errors
        /// As [`CheckedPaths::open`].
        pub fn hold_dir(&self, path: &Path) -> io::Result<HeldPlace> {
            let (real, known) = self.folders.get(path).ok_or(Errno::NOENT)?;
            let folder = open_dir(real)?;
            match ObjectId::of(&folder.metadata()?) == *known {
                true => Ok(HeldPlace {
                    folder: folder.into(),
                    real: real.clone(),
                    name: OsString::new(),
                }),
                false => Err(PathChanged::error(path, OTHER_FOLDER)),
            }
        }

        /// Holds the folder that a path lies in, behind all links.
        ///
        /// # Errors
        /// As [`CheckedPaths::open`].
        pub fn hold_folder(&self, path: &Path) -> io::Result<HeldPlace> {
            self.held(&*self.place(path)?)
        }

        /// Holds the folder in which a path is a name, be it that of a link.
        ///
        /// # Errors
        /// As [`CheckedPaths::open`].
        pub fn hold_folder_of_name(&self, path: &Path) -> io::Result<HeldPlace> {
            self.held(&self.new_place(path)?)
        }

        fn held(&self, place: &CheckedPath) -> io::Result<HeldPlace> {
            let (folder, name) = self.folder_of(place)?;
            Ok(HeldPlace {
                folder: folder.into(),
                name: name.to_owned(),
                real: place.real.parent().unwrap_or(&place.real).to_owned(),
            })
        }

        /// Removes the file that a path led to.
        ///
        /// # Errors
        /// As [`CheckedPaths::open`].
        pub fn remove(&self, path: &Path) -> io::Result<()> {
            let place = self.place(path)?;
            let (folder, name) = self.folder_of(&place)?;
            self.find(&place, &folder, name)?;
            Ok(rustix::fs::unlinkat(&folder, name, AtFlags::empty())?)
        }

        fn folder_of<'p>(&self, place: &'p CheckedPath) -> io::Result<(File, &'p OsStr)> {
            let folder = open_dir(place.real.parent().unwrap_or(&place.real))?;
            let id = ObjectId::of(&folder.metadata()?);
            let name = place.real.file_name().unwrap_or(OsStr::new("."));
            match place.folder.as_ref() == Some(&id) {
                true => Ok((folder, name)),
                false => Err(PathChanged::error(&place.real, OTHER_FOLDER)),
            }
        }

        /// What stands at a name now, held without being opened.
        fn find(&self, place: &CheckedPath, folder: &File, name: &OsStr) -> io::Result<File> {
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let found = File::from(rustix::fs::openat(folder, name, flags, Mode::empty())?);
            let meta = found.metadata()?;
            let id = ObjectId::of(&meta);
            let is_checked = place.object.as_ref() == Some(&id);
            let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
            if is_checked || made.contains(&id) {
                return Ok(found);
            }
            // A job's own commands may make its files.
            let is_new = place.is_file && self.was_made_since(&meta);
            match is_new {
                true => Ok(found),
                false => Err(PathChanged::error(&place.real, OTHER_OBJECT)),
            }
        }

        /// Whether it is a file that was made since the paths were checked. File systems
        /// date files by a clock that ticks every few ms: within the same tick it is not.
        /// Where a file system does not tell, any file counts that has no other name.
        fn was_made_since(&self, meta: &std::fs::Metadata) -> bool {
            use std::os::unix::fs::MetadataExt as _;
            let made = meta.created().ok();
            let made = made.and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
            let is_old = made.is_some_and(|made| {
                i128::try_from(made.as_nanos()).is_ok_and(|made| made <= self.at_ns)
            });
            meta.is_file() && meta.nlink() == 1 && !is_old
        }
    }

    fn open_dir(path: &Path) -> io::Result<File> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(rustix::fs::open(path, flags, Mode::empty())?.into())
    }

    /// Opens what is held by its name. What has that name by now is opened, too, and left
    /// as it is.
    pub(super) fn open_by_name(
        held: &File,
        (folder, name): (&File, &OsStr),
        flags: OFlags,
        path: &Path,
    ) -> io::Result<File> {
        let careful = (flags - OFlags::TRUNC) | OFlags::NOFOLLOW;
        let opened = File::from(rustix::fs::openat(folder, name, careful, Mode::empty())?);
        if ObjectId::of(&opened.metadata()?) != ObjectId::of(&held.metadata()?) {
            return Err(PathChanged::error(path, OTHER_OBJECT));
        }
        if flags.contains(OFlags::TRUNC) {
            opened.set_len(0)?;
        }
        Ok(opened)
    }

    /// Opens what is held; its name plays no part in it any more.
    fn reopen(held: &File, flags: OFlags) -> io::Result<File> {
        let flags = flags - OFlags::NOFOLLOW;
        let path = format!("/proc/self/fd/{}", held.as_raw_fd());
        Ok(rustix::fs::openat(CWD, path, flags, Mode::empty())?.into())
    }
}

#[cfg(target_os = "linux")]
pub use opening::HeldPlace;

#[cfg(not(target_os = "linux"))]
impl CheckedPaths {
    /// Opens what a path led to when it was checked, which must be there.
    ///
    /// # Errors
    /// What the system says; [`PathChanged`] where it leads to something else now.
    pub fn open(&self, path: &Path, flags: rustix::fs::OFlags) -> io::Result<File> {
        use rustix::fs::{Mode, OFlags};
        let place = self.place(path)?;
        let flags = (flags - OFlags::CREATE) | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::open(&place.real, flags, Mode::empty())?);
        let id = ObjectId::of(&file.metadata()?);
        match place.object == Some(id) {
            true => Ok(file),
            false => Err(PathChanged::error(path, OTHER_OBJECT)),
        }
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::io::Write as _;
    use std::os::unix::fs::symlink;
    use std::time::Duration;

    use rustix::fs::OFlags;

    use super::*;

    const MAKE: OFlags = OFlags::RDWR.union(OFlags::CREATE);

    /// A folder with `link` to `right`, `wrong` beside it.
    fn linked() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        for name in ["right", "wrong"] {
            std::fs::write(dir.path().join(name), name).unwrap();
        }
        symlink("right", dir.path().join("link")).unwrap();
        let link = dir.path().join("link");
        (dir, link)
    }

    fn swap(dir: &Path, what: &str) {
        symlink(what, dir.join("swap")).unwrap();
        std::fs::rename(dir.join("swap"), dir.join("link")).unwrap();
    }

    #[test]
    fn a_link_that_moves_does_not_move_what_is_opened() {
        let (dir, link) = linked();
        let checked = CheckedPaths::of([link.as_path()]);
        swap(dir.path(), "wrong");
        let mut file = checked.open(&link, OFlags::RDWR).unwrap();
        file.write_all(b"RIGHT").unwrap();
        let read = |name| std::fs::read_to_string(dir.path().join(name)).unwrap();
        assert_eq!(
            (read("right"), read("wrong")),
            ("RIGHT".into(), "wrong".into())
        );
    }

    #[test]
    fn without_proc_what_is_held_is_opened_by_its_name_and_nothing_else() {
        let (dir, _) = linked();
        let right = dir.path().join("right");
        let held = File::open(&right).unwrap();
        let folder = File::open(dir.path()).unwrap();
        let name = std::ffi::OsStr::new("right");
        let flags = OFlags::RDWR | OFlags::TRUNC;
        let open = || opening::open_by_name(&held, (&folder, name), flags, &right);
        assert_eq!(open().unwrap().metadata().unwrap().len(), 0);
        std::fs::rename(dir.path().join("wrong"), &right).unwrap();
        assert!(open().is_err());
        assert_eq!(std::fs::read_to_string(&right).unwrap(), "wrong");
    }

    #[test]
    fn what_takes_the_place_of_a_checked_file_is_not_opened() {
        let (dir, link) = linked();
        let right = dir.path().join("right");
        let checked = CheckedPaths::of([link.as_path(), right.as_path()]);
        std::fs::rename(dir.path().join("wrong"), &right).unwrap();
        for path in [&link, &right] {
            let error = checked.open(path, MAKE).unwrap_err();
            assert!(PathChanged::is(&error), "{error}");
            assert!(PathChanged::is(&checked.remove(path).unwrap_err()));
        }
        assert!(right.exists());
    }

    #[test]
    fn a_missing_file_is_made_in_its_folder_and_through_no_link() {
        let (dir, _) = linked();
        let new = dir.path().join("new");
        let other = dir.path().join("job.0.1");
        let checked = CheckedPaths::of([new.as_path()]);
        symlink("wrong", &new).unwrap();
        assert!(PathChanged::is(&checked.open(&new, MAKE).unwrap_err()));
        std::fs::hard_link(dir.path().join("wrong"), &other).unwrap();
        assert!(PathChanged::is(&checked.open(&other, MAKE).unwrap_err()));
        std::fs::remove_file(&new).unwrap();
        checked.open(&new, MAKE).unwrap();
        checked.open(&new, OFlags::RDONLY).unwrap();
        checked.remove(&new).unwrap();
        // A file that a command of the job has made, a tick of the clock later.
        let date = || std::fs::metadata(&new).unwrap().created().unwrap();
        let checked_at = UNIX_EPOCH + Duration::from_nanos(checked.at_ns.try_into().unwrap());
        std::fs::write(&new, "").unwrap();
        while date() <= checked_at {
            std::fs::remove_file(&new).unwrap();
            std::fs::write(&new, "").unwrap();
        }
        checked.open(&new, OFlags::RDWR).unwrap();
        let elsewhere = Path::new("/tmp/elsewhere");
        assert!(PathChanged::is(&checked.open(elsewhere, MAKE).unwrap_err()));
    }

    #[test]
    fn a_folder_that_is_replaced_gets_no_files() {
        let dir = tempfile::tempdir().unwrap();
        let [folder, old] = ["folder", "old"].map(|name| dir.path().join(name));
        std::fs::create_dir(&folder).unwrap();
        let new = folder.join("new");
        let checked = CheckedPaths::of([folder.as_path(), new.as_path()]);
        std::fs::rename(&folder, &old).unwrap();
        symlink(&old, &folder).unwrap();
        // The same folder by another way.
        checked.open(&new, MAKE).unwrap();
        std::fs::remove_file(&folder).unwrap();
        std::fs::create_dir(&folder).unwrap();
        assert!(PathChanged::is(&checked.open(&new, MAKE).unwrap_err()));
        assert!(PathChanged::is(
            &checked.open(&folder.join("job.0.0"), MAKE).unwrap_err()
        ));
    }

    #[test]
    fn a_link_to_a_file_that_is_not_there_leads_to_where_it_is_made() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("link");
        symlink("new", &link).unwrap();
        let checked = CheckedPaths::of([link.as_path()]);
        checked.open(&link, MAKE).unwrap();
        assert!(dir.path().join("new").is_file());
    }
}
