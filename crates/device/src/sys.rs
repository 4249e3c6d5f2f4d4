//! Reading /proc, /sys and /dev, of this machine or of a recorded tree.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Where /proc, /sys, /dev and /run are read from.
#[derive(Debug, Clone)]
pub struct Sys {
    root: PathBuf,
}

/// A block device as sysfs has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SysBlock {
    /// Kernel name, for example `sda1`.
    pub name: String,
    /// Its folder in sysfs, without links.
    pub dir: PathBuf,
}

impl Sys {
    /// This machine.
    pub fn live() -> Self {
        Self::recorded("/")
    }

    /// A tree under `root` that holds `sys/`, `proc/`, `dev/` of another machine.
    pub fn recorded(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Whether it is this machine.
    pub fn is_live(&self) -> bool {
        self.root == Path::new("/")
    }

    /// The place of an absolute path in this tree.
    pub fn path(&self, absolute: impl AsRef<Path>) -> PathBuf {
        let absolute = absolute.as_ref();
        self.root
            .join(absolute.strip_prefix("/").unwrap_or(absolute))
    }

    /// The block device of a number.
    pub fn by_number(&self, major: u32, minor: u32) -> Option<SysBlock> {
        SysBlock::at(&self.path(format!("/sys/dev/block/{major}:{minor}")))
    }

    /// The block device of a kernel name. Slashes in it (`cciss/c0d0`) stand as
    /// `!` in sysfs.
    pub fn by_name(&self, name: &str) -> Option<SysBlock> {
        let name = name.replace('/', "!");
        SysBlock::at(&self.path(format!("/sys/class/block/{name}")))
    }

    /// The block device of a generic device's number: /dev/ng0n1 gives commands to the
    /// namespace that /dev/nvme0n1 reads and writes, /dev/sg0 to the SCSI disk /dev/sda.
    /// The first two lie in one folder of sysfs, the controller's or, of several paths, the
    /// subsystem's (drivers/nvme/host/core.c, `nvme_alloc_ns`; multipath.c,
    /// `nvme_mpath_set_live`), the others each in one of the SCSI device.
    pub fn by_generic(&self, major: u32, minor: u32) -> Option<SysBlock> {
        let dir = self.path(format!("/sys/dev/char/{major}:{minor}"));
        let dir = fs::canonicalize(dir).ok()?;
        let class = fs::canonicalize(dir.join("subsystem")).ok()?;
        let disk = match class.file_name()?.to_str()? {
            "nvme-generic" => {
                let numbers = dir.file_name()?.to_str()?.strip_prefix("ng")?;
                dir.with_file_name(format!("nvme{numbers}"))
            }
            "scsi_generic" => {
                let disks = dir.parent()?.with_file_name("block");
                disks.join(names_in(&disks).first()?)
            }
            _ => return None,
        };
        let disk = SysBlock::at(&disk)?;
        disk.number().is_some().then_some(disk)
    }

    /// Where the block device behind a path is opened: at the path itself, unless that is
    /// a generic device.
    pub fn block_path(&self, path: &Path) -> PathBuf {
        let is_generic =
            fs::metadata(self.path(path)).is_ok_and(|meta| meta.file_type().is_char_device());
        match is_generic.then(|| self.by_path(path)).flatten() {
            Some(disk) => disk.dev_path(),
            None => path.to_owned(),
        }
    }

    /// The block device behind a path such as /dev/sda, /dev/mapper/vg-lv, /dev/ng0n1 or /dev/sg0;
    /// `None` when it is none.
    pub fn by_path(&self, path: &Path) -> Option<SysBlock> {
        let real = fs::canonicalize(self.path(path)).ok()?;
        let meta = fs::metadata(&real).ok()?;
        if meta.file_type().is_block_device() {
            let (major, minor) = numbers(meta.rdev());
            return self.by_number(major, minor);
        }
        if meta.file_type().is_char_device() {
            let (major, minor) = numbers(meta.rdev());
            return self.by_generic(major, minor);
        }
        // A recorded tree has files in place of device nodes.
        let name = real.strip_prefix(self.path("/dev")).ok()?;
        (self.root != Path::new("/"))
            .then(|| self.by_name(name.to_str()?))
            .flatten()
    }

    /// All block devices that are no partitions.
    pub fn disks(&self) -> Vec<SysBlock> {
        names_in(&self.path("/sys/block"))
            .iter()
            .filter_map(|name| self.by_name(name))
            .collect()
    }
}

impl SysBlock {
    fn at(link: &Path) -> Option<Self> {
        let dir = fs::canonicalize(link).ok()?;
        // Names with a slash, see `Sys::by_name`.
        let name = dir.file_name()?.to_str()?.replace('!', "/");
        Some(Self { name, dir })
    }

    /// Whether it is a partition.
    pub fn is_partition(&self) -> bool {
        self.dir.join("partition").exists()
    }

    /// The whole device: itself, or the disk a partition is on.
    pub fn whole(&self) -> Self {
        match self.dir.parent() {
            Some(disk) if self.is_partition() => Self::at(disk).unwrap_or_else(|| self.clone()),
            _ => self.clone(),
        }
    }

    /// Its partitions.
    pub fn partitions(&self) -> Vec<Self> {
        names_in(&self.dir)
            .iter()
            .filter(|name| self.dir.join(name).join("partition").exists())
            .filter_map(|name| Self::at(&self.dir.join(name)))
            .collect()
    }

    /// The devices under `slaves` or over `holders` of it.
    pub(crate) fn linked(&self, folder: &str) -> Vec<Self> {
        let dir = self.dir.join(folder);
        names_in(&dir)
            .iter()
            .filter_map(|name| Self::at(&dir.join(name)))
            .collect()
    }

    /// Its device number.
    pub fn number(&self) -> Option<(u32, u32)> {
        let text = self.text("dev")?;
        let (major, minor) = text.split_once(':')?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    }

    /// Size in bytes; sysfs counts sectors of 512 bytes whatever the block size
    /// is (Documentation/ABI/stable/sysfs-block).
    pub fn size_bytes(&self) -> u64 {
        self.value::<u64>("size").unwrap_or(0).saturating_mul(512)
    }

    /// Bytes written to it since it is there, as the kernel counted: the seventh
    /// number of `stat` has sectors of 512 bytes (Documentation/block/stat.rst).
    pub fn written_bytes(&self) -> Option<u64> {
        let sectors: u64 = self.text("stat")?.split_whitespace().nth(6)?.parse().ok()?;
        sectors.checked_mul(512)
    }

    /// Its usual path in /dev.
    pub fn dev_path(&self) -> PathBuf {
        Path::new("/dev").join(&self.name)
    }

    /// An attribute as text without surrounding white space; `None` when it is
    /// missing or empty.
    pub fn text(&self, attribute: &str) -> Option<String> {
        text(&self.dir.join(attribute))
    }

    /// An attribute as a number.
    pub fn value<T: FromStr>(&self, attribute: &str) -> Option<T> {
        self.text(attribute)?.parse().ok()
    }
}

/// A small file's text without surrounding white space and control characters;
/// `None` when it cannot be read or has none.
pub(crate) fn text(path: &Path) -> Option<String> {
    printable(&fs::read(path).ok()?)
}

/// Text of an identity field, which may be padded with blanks or zeros.
pub(crate) fn printable(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let text: String = text.chars().filter(|c| !c.is_control()).collect();
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// Opens a regular file to look at it, without waiting; with its length in bytes. `None`:
/// it cannot be opened, or is something else.
pub(crate) fn open_regular(path: &Path) -> Option<(File, u64)> {
    // Opening a device can do something (a tape rewinds), so look first.
    fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)
        .ok()?;
    let meta = file.metadata().ok().filter(fs::Metadata::is_file)?;
    Some((file, meta.len()))
}

/// Names in a folder, sorted; none when it cannot be read.
pub(crate) fn names_in(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

/// Major and minor number of a device.
pub(crate) fn numbers(device: u64) -> (u32, u32) {
    (rustix::fs::major(device), rustix::fs::minor(device))
}
