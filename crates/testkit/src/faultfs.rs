//! The file system with faults, built from its source when a test needs it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::{output, requires, requires_root, temp_dir, unmount};

/// A mounted `faultfs`: files written here lie in a folder of its own and meet
/// the faults that [`FaultFs::control`] orders.
#[derive(Debug)]
pub struct FaultFs {
    at: TempDir,
    server: Child,
    _backing: TempDir,
}

impl FaultFs {
    /// Builds the program (once, then kept beside the tests) and mounts it.
    ///
    /// # Errors
    /// The reason to skip: no root, no FUSE, no compiler or no libfuse3.
    pub fn mount() -> Result<Self, String> {
        requires_root()?;
        if !Path::new("/dev/fuse").exists() {
            return Err("the kernel has no FUSE (/dev/fuse)".into());
        }
        let program = build()?;
        let (backing, at) = (temp_dir(), temp_dir());
        let server = Command::new(&program)
            .args([backing.path(), at.path(), Path::new("-f")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .map_err(|e| format!("{}: {e}", program.display()))?;
        let mounted = Self {
            at,
            server,
            _backing: backing,
        };
        mounted.wait_until_mounted()?;
        Ok(mounted)
    }

    /// Where it is mounted.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.at.path()
    }

    /// Orders a fault or takes all back; the head of `faultfs.c` lists the words.
    ///
    /// # Panics
    /// When the file system does not take the order.
    pub fn control(&self, order: &str) {
        fs::write(self.path().join(".faultctl"), order).expect("faultfs takes an order");
    }

    fn wait_until_mounted(&self) -> Result<(), String> {
        let end = Instant::now() + Duration::from_secs(5);
        while !self.path().join(".faultctl").exists() {
            if Instant::now() > end {
                return Err("faultfs did not mount within 5 s".into());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }
}

impl Drop for FaultFs {
    fn drop(&mut self) {
        unmount(self.at.path());
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// Compiles `faultfs.c` unless a build of this very source is there already.
fn build() -> Result<PathBuf, String> {
    requires(&["gcc", "pkg-config"])?;
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("faultfs/faultfs.c");
    let text = fs::read(&source).map_err(|e| format!("{}: {e}", source.display()))?;
    let program = std::env::temp_dir().join(format!("fathom-faultfs-{:016x}", fnv1a(&text)));
    if program.exists() {
        return Ok(program);
    }
    let flags = output(Command::new("pkg-config").args(["--cflags", "--libs", "fuse3"]))
        .map_err(|e| format!("libfuse3-dev is not installed ({e})"))?;
    // Tests build at the same time: each under a name of its own, then renamed.
    let fresh = program.with_extension(std::process::id().to_string());
    output(
        Command::new("gcc")
            .args(["-O2", "-Wall", "-D_FILE_OFFSET_BITS=64", "-o"])
            .args([&fresh, &source])
            .args(flags.split_whitespace()),
    )?;
    fs::rename(&fresh, &program).map_err(|e| format!("{}: {e}", program.display()))?;
    Ok(program)
}

/// FNV-1a, 64 bits: names a build by its source.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
