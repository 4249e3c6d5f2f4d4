//! Devices with a limit: a control group whose processes get so many I/Os a
//! second from a device, and zram devices.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::root;

const V1: &str = "/sys/fs/cgroup/blkio";
const V2: &str = "/sys/fs/cgroup";

/// A control group that limits the I/Os of a device; removed when dropped, when
/// no process is in it any more.
#[derive(Debug)]
pub struct Throttle {
    dir: PathBuf,
    /// The device's number, as the limits name it.
    number: String,
}

impl Throttle {
    /// `iops` reads and as many writes a second from `device`. Exact over a
    /// second, but in bursts: for rates, not for latencies.
    ///
    /// # Errors
    /// Why this machine cannot.
    pub fn new(device: &Path, iops: u32) -> Result<Self, String> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        root()?;
        let number = fs::metadata(device).map_err(|e| format!("{}: {e}", device.display()))?;
        let number = number.rdev();
        // The kernel's MAJOR and MINOR for numbers below 256 each (kdev_t.h).
        let number = format!("{}:{}", (number >> 8) & 0xfff, number & 0xff);
        let name = format!(
            "fathom-{}-{}",
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        let cannot = |e: std::io::Error| format!("I/O cannot be throttled here: {e}");
        let v1 = Path::new(V1)
            .join("blkio.throttle.read_iops_device")
            .exists();
        let dir = Path::new(if v1 { V1 } else { V2 }).join(name);
        fs::create_dir(&dir).map_err(cannot)?;
        if !v1 {
            // Where it is refused, io.max is missing below.
            let _ = fs::write(Path::new(V2).join("cgroup.subtree_control"), "+io");
        }
        let group = Self { dir, number };
        group.limit(iops)?;
        Ok(group)
    }

    /// Another limit, from now on.
    ///
    /// # Errors
    /// Why this machine cannot.
    pub fn limit(&self, iops: u32) -> Result<(), String> {
        for (file, line) in self.limits(iops) {
            let written = fs::write(self.dir.join(file), line);
            written.map_err(|e| format!("I/O cannot be throttled here: {e}"))?;
        }
        Ok(())
    }

    /// A command for the shell that sets another limit.
    pub fn limit_command(&self, iops: u32) -> String {
        let each = self
            .limits(iops)
            .into_iter()
            .map(|(file, line)| format!("echo '{line}' >{}", self.dir.join(file).display()));
        each.collect::<Vec<_>>().join(" && ")
    }

    /// What is written to which of its files for a limit.
    fn limits(&self, iops: u32) -> Vec<(&'static str, String)> {
        let number = &self.number;
        if self.dir.starts_with(V1) {
            let line = format!("{number} {iops}");
            return vec![
                ("blkio.throttle.read_iops_device", line.clone()),
                ("blkio.throttle.write_iops_device", line),
            ];
        }
        vec![("io.max", format!("{number} riops={iops} wiops={iops}"))]
    }

    /// A command, to be followed by a program and its arguments, that runs it
    /// within the limit.
    pub fn command(&self) -> Vec<String> {
        let enter = format!(
            "echo $$ >{}/cgroup.procs && exec \"$@\"",
            self.dir.display()
        );
        ["sh", "-c", &enter, "sh"].map(str::to_owned).to_vec()
    }
}

impl Drop for Throttle {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.dir);
    }
}

/// A zram device; removed when dropped.
#[derive(Debug)]
pub struct Zram {
    number: String,
    path: PathBuf,
}

impl Zram {
    /// A device of `bytes`.
    ///
    /// # Errors
    /// Why this machine cannot.
    pub fn new(bytes: u64) -> Result<Self, String> {
        root()?;
        let number = fs::read_to_string("/sys/class/zram-control/hot_add");
        let number = number.map_err(|e| format!("no zram device can be added: {e}"))?;
        let number = number.trim().to_owned();
        let path = PathBuf::from(format!("/dev/zram{number}"));
        let zram = Self { number, path };
        let size = format!("/sys/block/zram{}/disksize", zram.number);
        fs::write(size, bytes.to_string()).map_err(|e| format!("zram: {e}"))?;
        Ok(zram)
    }

    /// A device that holds this data, and no more.
    ///
    /// # Errors
    /// Why this machine cannot.
    pub fn filled(data: &[u8]) -> Result<Self, String> {
        let zram = Self::new(data.len() as u64)?;
        let open = fs::OpenOptions::new().write(true).open(zram.path());
        let written = open.and_then(|mut file| file.write_all(data).and_then(|()| file.sync_all()));
        written.map_err(|e| format!("{}: {e}", zram.path().display()))?;
        Ok(zram)
    }

    /// The device.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Zram {
    fn drop(&mut self) {
        // An io_uring lets go of its files some time after its process has ended
        // (io_uring/io_uring.c, io_ring_exit_work).
        for _ in 0..500 {
            if fs::write("/sys/class/zram-control/hot_remove", &self.number).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}
