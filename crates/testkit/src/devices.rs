//! Loop devices and small file systems on them.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use crate::{root, run, text};

/// A loop device; detached when dropped.
#[derive(Debug)]
pub struct LoopDevice {
    path: PathBuf,
    /// The folder of its image, when that is its own.
    _dir: Option<TempDir>,
    behind: PathBuf,
}

impl LoopDevice {
    /// Attaches a device of `bytes` over a sparse file of its own.
    ///
    /// # Errors
    /// Why this machine cannot.
    pub fn new(bytes: u64) -> Result<Self, String> {
        root()?;
        let dir = TempDir::with_prefix("fathom-loop-").map_err(|e| e.to_string())?;
        let image = dir.path().join("image");
        File::create(&image)
            .and_then(|file| file.set_len(bytes))
            .map_err(|e| format!("loop image: {e}"))?;
        let mut device = Self::over(&image)?;
        device._dir = Some(dir);
        Ok(device)
    }

    /// Attaches a device over a file or block device, and looks for partitions on it.
    ///
    /// # Errors
    /// Why this machine cannot.
    pub fn over(behind: &Path) -> Result<Self, String> {
        Self::attached(behind, &[])
    }

    /// As [`LoopDevice::over`], with logical blocks of so many bytes.
    ///
    /// # Errors
    /// Why this machine cannot.
    pub fn of_blocks(behind: &Path, bytes: u32) -> Result<Self, String> {
        Self::attached(behind, &["-b", &bytes.to_string()])
    }

    /// As [`LoopDevice::over`], past the page cache of the file behind it.
    ///
    /// # Errors
    /// Why this machine cannot.
    pub fn direct(behind: &Path) -> Result<Self, String> {
        Self::attached(behind, &["--direct-io=on"])
    }

    fn attached(behind: &Path, how: &[&str]) -> Result<Self, String> {
        root()?;
        let path = run(
            "losetup",
            &[how, &["-P", "-f", "--show", text(behind)]].concat(),
        )?;
        Ok(Self {
            path: PathBuf::from(path.trim()),
            _dir: None,
            behind: behind.to_owned(),
        })
    }

    /// The file or device behind it.
    pub fn behind(&self) -> &Path {
        &self.behind
    }

    /// The device, for example `/dev/loop3`.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let _ = run("losetup", &["-d", text(&self.path)]);
        // While anybody has it open, such as who looks at all devices, the kernel
        // detaches it later (loop(4), autoclear), and what is behind it is in use.
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let attached = PathBuf::from(format!("/sys/block/{name}/loop/backing_file"));
        for _ in 0..1000 {
            let behind = fs::read_to_string(&attached).unwrap_or_default();
            if !behind.starts_with(text(&self.behind)) {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Data in which no page is like another, so that nothing takes them for one value.
pub fn data(bytes: usize) -> Vec<u8> {
    let words = (0..bytes as u64 / 8).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    words.flat_map(u64::to_le_bytes).collect()
}

/// A file system on a [`LoopDevice`]; unmounted when dropped.
#[derive(Debug)]
pub struct SmallFs {
    // Order matters: it is unmounted before the device is detached.
    mounted: Mounted,
    device: LoopDevice,
}

impl SmallFs {
    /// Mounts an ext4 on a device of `bytes`, with `options` (`""` for none).
    ///
    /// # Errors
    /// Why this machine cannot.
    pub fn new(bytes: u64, options: &str) -> Result<Self, String> {
        Self::on(LoopDevice::new(bytes)?, options)
    }

    /// The same on a device that is there.
    ///
    /// # Errors
    /// Why this machine cannot.
    pub fn on(device: LoopDevice, options: &str) -> Result<Self, String> {
        let options = if options.is_empty() { "rw" } else { options };
        let make = ["mkfs.ext4", "-q", "-F", "-m", "0"];
        Self::made(device, &make, &["-o", options])
    }

    /// One of any kind: the program that makes it and the arguments of mount(8), both without
    /// the device.
    ///
    /// # Errors
    /// Why this machine cannot.
    pub fn made(device: LoopDevice, make: &[&str], mount: &[&str]) -> Result<Self, String> {
        let at = [text(device.path())];
        run(make[0], &[&make[1..], &at].concat())?;
        let mounted = Mounted::new(&[mount, &at].concat())?;
        Ok(Self { mounted, device })
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        self.mounted.path()
    }

    /// The device under it.
    pub fn device(&self) -> &Path {
        self.device.path()
    }
}

/// A file system of any kind, until it is dropped.
#[derive(Debug)]
pub struct Mounted {
    dir: TempDir,
}

impl Mounted {
    /// Mounts it with these arguments of mount(8); the folder comes last.
    ///
    /// # Errors
    /// Why this machine cannot.
    pub fn new(arguments: &[&str]) -> Result<Self, String> {
        root()?;
        let dir = TempDir::with_prefix("fathom-mounted-").map_err(|e| e.to_string())?;
        run("mount", &[arguments, &[text(dir.path())]].concat())?;
        Ok(Self { dir })
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = run("umount", &["-l", text(self.dir.path())]);
    }
}
