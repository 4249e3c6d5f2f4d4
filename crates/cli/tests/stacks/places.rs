//! Places of every kind to keep a file: file systems, devices and servers on each other.

use std::any::Any;
use std::fs;
use std::path::{Path, PathBuf};

use fathom_testkit::{LoopDevice, Mounted, Sshd, Zram, data, program, run};
use tempfile::TempDir;

/// Bytes of the measured file.
pub const BYTES: usize = 8 << 20;
const IMAGE_BYTES: u64 = 256 << 20;
/// Of a btrfs: where it has little room to reserve for metadata, it writes what is in the page
/// cache out at once (`shrink_delalloc`, fs/btrfs/space-info.c).
const BTRFS_BYTES: u64 = 8 << 30;
/// Complete at once: the kernel writes no tables of inodes later, beside the job.
const EXT4: [&str; 6] = [
    "-q",
    "-F",
    "-m",
    "0",
    "-E",
    "lazy_itable_init=0,lazy_journal_init=0",
];

/// A folder or a device, with what it lies on.
pub struct Place {
    /// A folder, or a block device.
    pub path: PathBuf,
    /// Files below whose pages the page cache may hold.
    pub cached: Vec<PathBuf>,
    /// Devices below, likewise, while they are open.
    pub devices: Vec<PathBuf>,
    /// What becomes of I/O there, by construction.
    pub traits: Traits,
    /// Dropped from the top down.
    held: Vec<Box<dyn Any>>,
}

/// What becomes of I/O at a place.
#[derive(Debug, Clone, Copy, Default)]
pub struct Traits {
    /// It ends in memory.
    pub is_memory: bool,
    /// Another machine has it, as far as this one can tell.
    pub is_remote: bool,
    /// It is a device, and no folder.
    pub is_device: bool,
    /// Direct reads are answered by the page cache.
    pub caches_reads: bool,
    /// Direct writes go to the page cache.
    pub caches_writes: bool,
    /// A loop device below keeps its file in the page cache.
    pub is_cached_below: bool,
    /// The file system compresses what the test wrote.
    pub compresses: bool,
    /// One below a loop device does, of what jobs write; what the test wrote does not shrink.
    pub compresses_below: bool,
}

pub type Made = Result<Place, String>;

impl Place {
    fn new(path: PathBuf, held: Box<dyn Any>) -> Self {
        Self {
            path,
            cached: Vec::new(),
            devices: Vec::new(),
            traits: Traits::default(),
            held: vec![held],
        }
    }

    /// Something on top of it.
    fn under(mut self, path: PathBuf, held: Box<dyn Any>) -> Self {
        self.held.insert(0, held);
        self.path = path;
        self
    }

    fn with(mut self, change: impl FnOnce(&mut Traits)) -> Self {
        change(&mut self.traits);
        self
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A folder on this machine's own disk.
pub fn disk() -> Made {
    let dir = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).map_err(|e| e.to_string())?;
    Ok(Place::new(dir.path().to_owned(), Box::new(dir)))
}

pub fn tmpfs() -> Made {
    let mounted = Mounted::new(&["-t", "tmpfs", "none"])?;
    let place = Place::new(mounted.path().to_owned(), Box::new(mounted));
    Ok(place.with(|it| it.is_memory = true))
}

pub fn dev_shm() -> Made {
    let dir = TempDir::new_in("/dev/shm").map_err(|e| e.to_string())?;
    let place = Place::new(dir.path().to_owned(), Box::new(dir));
    Ok(place.with(|it| it.is_memory = true))
}

pub fn zram() -> Made {
    let zram = Zram::filled(&data(BYTES))?;
    let place = Place::new(zram.path().to_owned(), Box::new(zram));
    Ok(place.with(|it| it.is_device = true))
}

/// A loop device over a file of a place, through the page cache or past it.
fn loop_on(below: Place, bytes: u64, is_direct: bool) -> Made {
    let image = below.path.join("image");
    let file = fs::File::create(&image).map_err(|e| e.to_string())?;
    file.set_len(bytes).map_err(|e| e.to_string())?;
    let device = match is_direct {
        true => LoopDevice::direct(&image)?,
        false => LoopDevice::over(&image)?,
    };
    let mut place = below.under(device.path().to_owned(), Box::new(device));
    place.cached.push(image);
    place.devices.push(place.path.clone());
    Ok(place.with(|it| {
        it.is_device = true;
        it.caches_reads = false;
        it.caches_writes = false;
        it.compresses_below = std::mem::take(&mut it.compresses);
        it.is_cached_below |= !is_direct;
    }))
}

/// A loop device over a file of a place, as `losetup` makes it.
pub fn on_loop(below: Made) -> Made {
    loop_on(below?, BYTES as u64, false)
}

/// A file system on a device over a file of the disk.
fn formatted(mkfs: &str, words: &[&str], mount: &[&str]) -> Made {
    formatted_on(loop_on(disk()?, IMAGE_BYTES, true)?, mkfs, words, mount)
}

fn formatted_btrfs(mount: &[&str]) -> Made {
    let below = loop_on(disk()?, BTRFS_BYTES, true)?;
    formatted_on(below, "mkfs.btrfs", &["-q", "-f"], mount)
}

fn formatted_on(below: Place, mkfs: &str, words: &[&str], mount: &[&str]) -> Made {
    run(mkfs, &[words, &[text(&below.path)]].concat())?;
    let mounted = Mounted::new(&[mount, &[text(&below.path)]].concat())?;
    let place = below.under(mounted.path().to_owned(), Box::new(mounted));
    Ok(place.with(|it| it.is_device = false))
}

pub fn ext4() -> Made {
    formatted("mkfs.ext4", &EXT4, &["-t", "ext4"])
}

/// On a loop device as `losetup` makes it, over a file of a disk that only it uses.
pub fn ext4_on_cached_loop() -> Made {
    let below = loop_on(ext4()?, IMAGE_BYTES / 2, false)?;
    formatted_on(below, "mkfs.ext4", &EXT4, &["-t", "ext4"])
}

pub fn ext4_in_memory() -> Made {
    let below = loop_on(dev_shm()?, 64 << 20, false)?;
    formatted_on(below, "mkfs.ext4", &EXT4, &["-t", "ext4"])
}

pub fn xfs() -> Made {
    // xfs wants 300 MB, and its tests less.
    formatted("mkfs.xfs", &["-q", "--unsupported"], &["-t", "xfs"])
}

// Direct writes of data with checksums go through the page cache since Linux 6.15, and are
// written out before they are over (btrfs_direct_write, fs/btrfs/direct-io.c).
pub fn btrfs() -> Made {
    formatted_btrfs(&["-t", "btrfs"])
}

pub fn btrfs_zstd() -> Made {
    let place = formatted_btrfs(&["-t", "btrfs", "-o", "compress-force=zstd"])?;
    Ok(place.with(|it| it.compresses = true))
}

pub fn btrfs_of_three() -> Made {
    let devices: Vec<Place> = (0..3)
        .map(|_| loop_on(disk()?, BTRFS_BYTES, true))
        .collect::<Result<_, _>>()?;
    let paths: Vec<String> = (devices.iter())
        .map(|it| text(&it.path).to_owned())
        .collect();
    let mut words = vec!["-q", "-f", "-d", "raid0", "-m", "raid1"];
    words.extend(paths.iter().map(String::as_str));
    run("mkfs.btrfs", &words)?;
    let members: Vec<String> = paths.iter().map(|it| format!("device={it}")).collect();
    let members = members.join(",");
    let mounted = Mounted::new(&["-t", "btrfs", "-o", &members, &paths[0]])?;
    let cached = devices.iter().flat_map(|it| it.cached.clone()).collect();
    let place = Place::new(mounted.path().to_owned(), Box::new(devices));
    let mut place = place.under(mounted.path().to_owned(), Box::new(mounted));
    place.cached = cached;
    Ok(place)
}

pub fn overlay(below: Made) -> Made {
    let below = below?;
    for name in ["lower", "upper", "work"] {
        fs::create_dir(below.path.join(name)).map_err(|e| e.to_string())?;
    }
    let at = |name: &str| below.path.join(name).display().to_string();
    let options = format!(
        "lowerdir={},upperdir={},workdir={}",
        at("lower"),
        at("upper"),
        at("work")
    );
    let mounted = Mounted::new(&["-t", "overlay", "overlay", "-o", &options])?;
    Ok(below.under(mounted.path().to_owned(), Box::new(mounted)))
}

/// A folder that a FUSE server passes on.
pub fn bindfs(below: Made) -> Made {
    let mut below = below?;
    let dir = TempDir::with_prefix("fathom-bindfs-").map_err(|e| e.to_string())?;
    run("bindfs", &[text(&below.path), text(dir.path())])?;
    below.cached.push(below.path.join("data"));
    let path = dir.path().to_owned();
    Ok(through_the_cache(
        below.under(path, Box::new(Unmounted(dir))),
    ))
}

pub fn sshfs(below: Made) -> Made {
    let mut below = below?;
    let sshd = Sshd::configured(&[], "Subsystem sftp internal-sftp")?;
    let dir = TempDir::with_prefix("fathom-sshfs-").map_err(|e| e.to_string())?;
    let from = format!("{}:{}", sshd.host(), text(&below.path));
    let command = format!("ssh_command={}", sshd.command());
    run("sshfs", &["-o", &command, &from, text(dir.path())])?;
    below.cached.push(below.path.join("data"));
    let path = dir.path().to_owned();
    let place = below.under(path.clone(), Box::new(sshd));
    let place = place.under(path, Box::new(Unmounted(dir)));
    Ok(place.with(|it| it.is_remote = true))
}

/// What a FUSE server has mounted on a folder.
struct Unmounted(TempDir);

impl Drop for Unmounted {
    fn drop(&mut self) {
        let _ = run("umount", &["-l", text(self.0.path())]);
    }
}

fn served(mkfs: &str, words: &[&str], kind: &str) -> Made {
    formatted(mkfs, words, &["-t", kind]).map(through_the_cache)
}

/// A FUSE server opens what lies below without direct I/O.
fn through_the_cache(place: Place) -> Place {
    place.with(|it| {
        it.caches_reads = true;
        it.caches_writes = true;
    })
}

pub fn ntfs() -> Made {
    program("ntfs-3g")?;
    served("mkfs.ntfs", &["-q", "-F", "-Q"], "ntfs-3g")
}

pub fn exfat() -> Made {
    program("mount.exfat-fuse")?;
    served("mkfs.exfat", &[], "exfat-fuse")
}
