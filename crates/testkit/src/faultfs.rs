//! A FUSE file system that passes everything through to a folder, with faults
//! on demand: `faultfs/faultfs.c`, built with the system's compiler on first use.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::compile::compile;
use crate::{program, root, run, text};

const SOURCE: &str = include_str!("../faultfs/faultfs.c");
/// A mount that is not there by then never comes.
const MOUNT_DEADLINE: Duration = Duration::from_secs(60);

/// The operations that can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultOp {
    /// `read`
    Read,
    /// `write`
    Write,
    /// `fsync` and `fdatasync`
    Fsync,
    /// `open` and creation
    Open,
}

impl FaultOp {
    fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Fsync => "fsync",
            Self::Open => "open",
        }
    }
}

/// Reads or writes that a [`FaultFs`] has served.
#[derive(Debug, Clone, Copy)]
pub struct Served {
    /// How many.
    pub ios: u64,
    /// What it took for all of them together: less than whoever asked has waited.
    pub took: Duration,
}

/// The mounted file system; unmounted, and its server ended, when dropped.
#[derive(Debug)]
pub struct FaultFs {
    mount: PathBuf,
    server: Child,
    _dir: TempDir,
}

impl FaultFs {
    /// Mounts one over an empty folder.
    ///
    /// # Errors
    /// Why this machine cannot (no FUSE, no root, no compiler or libfuse3).
    pub fn new() -> Result<Self, String> {
        root()?;
        program("fusermount3").map_err(|reason| format!("FUSE: {reason}"))?;
        let binary = build()?;
        let dir = TempDir::with_prefix("fathom-faultfs-").map_err(|e| e.to_string())?;
        let (backing, mount) = (dir.path().join("backing"), dir.path().join("mount"));
        for folder in [&backing, &mount] {
            fs::create_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        }
        let server = Command::new(binary)
            .args([text(&backing), text(&mount), "-f"])
            .stdin(Stdio::null())
            .spawn()
            .map_err(|e| format!("FUSE: faultfs: {e}"))?;
        let mut faultfs = Self {
            mount,
            server,
            _dir: dir,
        };
        faultfs.wait_until_mounted()?;
        Ok(faultfs)
    }

    fn wait_until_mounted(&mut self) -> Result<(), String> {
        let end = Instant::now() + MOUNT_DEADLINE;
        while !self.control_file().exists() {
            let ended = self.server.try_wait().map_err(|e| e.to_string())?;
            if ended.is_some() || Instant::now() > end {
                return Err("FUSE: faultfs could not be mounted".to_owned());
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        &self.mount
    }

    /// The `nth` operation from now, and that one only, fails with `errno`.
    pub fn fail_once(&self, op: FaultOp, nth: u64, errno: i32) {
        self.control(&format!("{} {nth} {errno}", op.name()));
    }

    /// Every operation from the `nth` on fails with `errno`.
    pub fn fail_from(&self, op: FaultOp, nth: u64, errno: i32) {
        self.control(&format!("{}+ {nth} {errno}", op.name()));
    }

    /// The `nth` write from now moves half of what it was given.
    pub fn short_write(&self, nth: u64) {
        self.control(&format!("short-write {nth}"));
    }

    /// The `nth` read from now moves half of what it was asked for.
    pub fn short_read(&self, nth: u64) {
        self.control(&format!("short-read {nth}"));
    }

    /// Every read and write takes this much longer.
    pub fn delay(&self, each: Duration) {
        let micros = each.as_micros();
        self.control(&format!("delay-read {micros}"));
        self.control(&format!("delay-write {micros}"));
    }

    /// Its server dies: everything on it fails from now on.
    pub fn kill(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }

    /// Reads from the `nth` on wait until [`FaultFs::release`]; with more than a few
    /// that wait it would not hear that any more.
    pub fn hold_reads_from(&self, nth: u64) {
        self.control(&format!("hold-read {nth}"));
    }

    /// Reads need not wait any more.
    pub fn release(&self) {
        self.control("release");
    }

    /// How many reads wait for [`FaultFs::release`].
    ///
    /// # Panics
    /// When its server is gone.
    pub fn held(&self) -> u64 {
        self.told()[4]
    }

    /// What it has served since it was mounted or cleared: reads, then writes.
    ///
    /// # Panics
    /// When its server is gone.
    pub fn served(&self) -> [Served; 2] {
        let told = self.told();
        [0, 2].map(|at| Served {
            ios: told[at],
            took: Duration::from_nanos(told[at + 1]),
        })
    }

    fn told(&self) -> Vec<u64> {
        let told = fs::read_to_string(self.control_file()).expect("faultfs tells its counts");
        let numbers = told.split_whitespace().map(str::parse);
        numbers
            .map(|number| number.expect("faultfs tells numbers"))
            .collect()
    }

    /// No more faults, delays and waiting; its counts begin anew.
    pub fn clear(&self) {
        self.control("clear");
    }

    fn control_file(&self) -> PathBuf {
        self.mount.join(".faultctl")
    }

    fn control(&self, command: &str) {
        fs::write(self.control_file(), command).expect("faultfs takes its own commands");
    }
}

impl Drop for FaultFs {
    fn drop(&mut self) {
        let _ = run("umount", &["-l", text(&self.mount)]);
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// Compiles the server once per process and gives its path.
fn build() -> Result<PathBuf, String> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = BUILT.get_or_init(|| {
        let flags = run("pkg-config", &["--cflags", "--libs", "fuse3"])
            .map_err(|reason| format!("FUSE: {reason}"))?;
        compile("faultfs", SOURCE, &flags).map_err(|reason| format!("FUSE: {reason}"))
    });
    built.clone()
}
