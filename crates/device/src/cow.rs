//! File systems that copy on write: how btrfs keeps the data of a file.

use std::io;
use std::path::{Path, PathBuf};

use crate::environment::kernel_number;
use crate::mounts::Mount;
use crate::sys::{Sys, SysBlock, names_in, text};

/// The folder of sysfs of the btrfs that a device belongs to.
pub(crate) fn btrfs_folder(sys: &Sys, device: &SysBlock) -> Option<PathBuf> {
    let all = sys.path("/sys/fs/btrfs");
    let mut folders = names_in(&all).into_iter().map(|uuid| all.join(uuid));
    folders.find(|dir| {
        let names = names_in(&dir.join("devices"));
        names
            .iter()
            .any(|name| name.replace('!', "/") == device.name)
    })
}

/// What differs from plain copy-on-write with checksums on one device, and that direct writes
/// are buffered where they are.
pub(crate) fn of_btrfs(sys: &Sys, mount: &Mount, devices: &[SysBlock], path: &Path) -> Vec<String> {
    let flags = Flags::of(path);
    let has = |name: &str| mount.options.split(',').any(|it| it == name);
    let is_nocow = flags.is_nocow || has("nodatacow");
    let has_checksums = !is_nocow && !has("nodatasum");
    let mut found = Vec::new();
    let folder = devices.first().and_then(|it| btrfs_folder(sys, it));
    found.extend(folder.and_then(|dir| profile(&dir)));
    found.extend(compression(mount, &flags).filter(|_| !is_nocow));
    if is_nocow {
        found.push("nocow".to_owned());
    }
    match has_checksums {
        true if guards_checksums(sys) => found.push("direct writes are buffered".to_owned()),
        true => {}
        false => found.push("no checksums".to_owned()),
    }
    found
}

/// How data is spread over devices; nothing where each byte is on one.
fn profile(folder: &Path) -> Option<String> {
    // Beside the profile there are only files (fs/btrfs/sysfs.c, `space_info_attrs`).
    let data = folder.join("allocation/data");
    let mut names = names_in(&data).into_iter();
    names.find(|name| data.join(name).is_dir() && name != "single")
}

/// By the mount, or by the file or its folder.
fn compression(mount: &Mount, flags: &Flags) -> Option<String> {
    let mut options = mount.options.split(',');
    let of_mount = options.find_map(|option| {
        let (name, how) = option.split_once('=')?;
        ["compress", "compress-force"]
            .contains(&name)
            .then_some(how)
    });
    let of_file = flags.is_compressed.then_some("compressed");
    let how = of_mount.or(of_file).filter(|_| !flags.is_never_compressed);
    how.filter(|how| *how != "no").map(str::to_owned)
}

/// Whether new files of a folder are not copied on write, or a file is not.
pub fn is_nocow(path: &Path) -> bool {
    Flags::of(path).is_nocow
}

/// Has new files of an empty folder not copied on write.
///
/// # Errors
/// Where the file system does not know that.
#[cfg(target_os = "linux")]
pub fn set_nocow(folder: &Path) -> io::Result<()> {
    use rustix::fs::{IFlags, Mode, OFlags};
    let how = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let open = rustix::fs::open(folder, how, Mode::empty())?;
    let flags = rustix::fs::ioctl_getflags(&open)?;
    rustix::fs::ioctl_setflags(&open, flags | IFlags::NOCOW)?;
    // Some take a flag that they do not know.
    match rustix::fs::ioctl_getflags(&open)?.contains(IFlags::NOCOW) {
        true => Ok(()),
        false => Err(io::ErrorKind::Unsupported.into()),
    }
}

/// Other systems have no such files.
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub fn set_nocow(_: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Since Linux 6.15 data with checksums is copied to the page cache first, so that it cannot
/// change beneath them, and written out before the write is over (`btrfs_direct_write`,
/// fs/btrfs/direct-io.c).
fn guards_checksums(sys: &Sys) -> bool {
    let release = text(&sys.path("/proc/sys/kernel/osrelease"));
    let number = release.and_then(|it| kernel_number(&it));
    number.is_some_and(|it| it >= (6, 15))
}

/// `FS_NOCOMP_FL` (include/uapi/linux/fs.h).
#[cfg(target_os = "linux")]
const NOT_COMPRESSED: u32 = 0x400;

/// Attributes of a file, or of the folder that a new one takes them from.
#[derive(Debug, Default)]
struct Flags {
    is_nocow: bool,
    is_compressed: bool,
    is_never_compressed: bool,
}

impl Flags {
    #[cfg(target_os = "linux")]
    fn of(path: &Path) -> Self {
        use rustix::fs::{IFlags, Mode, OFlags};
        // Neither a device nor a pipe is opened: they have other layers.
        if !path.is_file() && !path.is_dir() {
            return Self::default();
        }
        let how = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let open = rustix::fs::open(path, how, Mode::empty());
        let Ok(flags) = open.and_then(rustix::fs::ioctl_getflags) else {
            return Self::default();
        };
        Self {
            is_nocow: flags.contains(IFlags::NOCOW),
            is_compressed: flags.contains(IFlags::COMPRESSED),
            is_never_compressed: flags.bits() & NOT_COMPRESSED != 0,
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn of(_: &Path) -> Self {
        Self::default()
    }
}
