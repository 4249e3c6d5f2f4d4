//! Devices in memory, and a limit on how fast a device may be used.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::root;

const CONTROL: &str = "/sys/class/zram-control";
/// How often and how long an io_uring is waited for that lets go of its device
/// some time after its process is gone (io_uring/io_uring.c, io_ring_exit_work).
const ATTEMPTS: u32 = 100;
const PAUSE: Duration = Duration::from_millis(50);

/// A zram device; removed when dropped.
#[derive(Debug)]
pub struct ZramDevice {
    number: u32,
    path: PathBuf,
}

impl ZramDevice {
    /// A device of `bytes`.
    ///
    /// # Errors
    /// Why this machine cannot.
    pub fn new(bytes: u64) -> Result<Self, String> {
        root()?;
        let number = fs::read_to_string(format!("{CONTROL}/hot_add"))
            .map_err(|e| format!("zram is not here: {e}"))?;
        let number: u32 = number.trim().parse().map_err(|e| format!("zram: {e}"))?;
        let device = Self {
            number,
            path: PathBuf::from(format!("/dev/zram{number}")),
        };
        fs::write(
            format!("/sys/block/zram{number}/disksize"),
            bytes.to_string(),
        )
        .map_err(|e| format!("zram{number}: {e}"))?;
        Ok(device)
    }

    /// The device, for example `/dev/zram3`.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ZramDevice {
    fn drop(&mut self) {
        for _ in 0..ATTEMPTS {
            let _ = fs::write(format!("/sys/block/zram{}/reset", self.number), "1");
            if fs::write(format!("{CONTROL}/hot_remove"), self.number.to_string()).is_ok() {
                return;
            }
            std::thread::sleep(PAUSE);
        }
    }
}

/// A group of processes that a device serves only so fast; removed when dropped.
#[derive(Debug)]
pub struct Throttle {
    group: PathBuf,
}

impl Throttle {
    /// Limits the reads of `device` to `iops` a second.
    ///
    /// # Errors
    /// Why this machine cannot.
    pub fn reads(device: &Path, iops: u32) -> Result<Self, String> {
        root()?;
        let name = device.file_name().and_then(|name| name.to_str());
        let name = name.ok_or("a device has a name")?;
        let number = fs::read_to_string(format!("/sys/class/block/{name}/dev"))
            .map_err(|e| format!("{name}: {e}"))?;
        let group = PathBuf::from(format!(
            "/sys/fs/cgroup/blkio/fathom-test-{}-{name}",
            std::process::id()
        ));
        fs::create_dir(&group).map_err(|e| format!("no cgroup v1 of blkio: {e}"))?;
        let throttle = Self { group };
        let limit = throttle.group.join("blkio.throttle.read_iops_device");
        fs::write(limit, format!("{} {iops}", number.trim()))
            .map_err(|e| format!("no throttle on {name}: {e}"))?;
        Ok(throttle)
    }

    /// The file that takes a process into the group, children to come included.
    #[must_use]
    pub fn door(&self) -> PathBuf {
        self.group.join("cgroup.procs")
    }
}

impl Drop for Throttle {
    fn drop(&mut self) {
        for _ in 0..ATTEMPTS {
            if fs::remove_dir(&self.group).is_ok() {
                return;
            }
            std::thread::sleep(PAUSE);
        }
    }
}
