//! Loop devices and small file systems on them.

use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::{requires, requires_root, run, temp_dir, unmount};

/// A loop device over a sparse file of its own.
#[derive(Debug)]
pub struct Loop {
    device: PathBuf,
    _backing: TempDir,
}

impl Loop {
    /// Attaches a device of `bytes`.
    ///
    /// # Errors
    /// The reason to skip: no root, no losetup, no free loop device.
    pub fn new(bytes: u64) -> Result<Self, String> {
        requires_root()?;
        requires(&["losetup"])?;
        let backing = temp_dir();
        let image = backing.path().join("image");
        File::create(&image)
            .and_then(|file| file.set_len(bytes))
            .map_err(|e| format!("{}: {e}", image.display()))?;
        let args = [OsStr::new("-f"), OsStr::new("--show"), image.as_os_str()];
        let device = PathBuf::from(run("losetup", &args)?.trim());
        Ok(Self {
            device,
            _backing: backing,
        })
    }

    /// The device, for example `/dev/loop3`.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.device
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = run("losetup", &[OsStr::new("-d"), self.device.as_os_str()]);
    }
}

/// A small file system on a loop device, mounted.
#[derive(Debug)]
pub struct Mounted {
    at: TempDir,
    device: Loop,
}

impl Mounted {
    /// Makes and mounts an ext4 file system of `bytes`.
    ///
    /// # Errors
    /// The reason to skip.
    pub fn ext4(bytes: u64) -> Result<Self, String> {
        requires(&["mkfs.ext4", "mount", "umount"])?;
        let device = Loop::new(bytes)?;
        let path = device.path().as_os_str();
        run("mkfs.ext4", &[OsStr::new("-q"), OsStr::new("-F"), path])?;
        let at = temp_dir();
        run("mount", &[path, at.path().as_os_str()])?;
        Ok(Self { at, device })
    }

    /// Where it is mounted.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.at.path()
    }

    /// What is mounted.
    #[must_use]
    pub fn device(&self) -> &Path {
        self.device.path()
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        unmount(self.at.path());
    }
}
