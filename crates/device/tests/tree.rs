//! A recorded tree: files and links of /sys, /proc and /dev, as the kernel makes them.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use fathom_device::{Sys, SysBlock};

/// Removed when the test ends.
pub(crate) struct Tree(tempfile::TempDir);

impl Tree {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn sys(&self) -> Sys {
        Sys::recorded(self.0.path())
    }

    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.0.path().join(path.strip_prefix('/').unwrap())
    }

    pub(crate) fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// A link to another absolute path of the tree.
    pub(crate) fn link(&self, path: &str, to: &str) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(self.at(to), path).unwrap();
    }

    /// A device at `dir`, with its links and its node in /dev.
    pub(crate) fn block(&self, dir: &str, number: &str, sectors: u64) -> SysBlock {
        let name = dir.rsplit('/').next().unwrap();
        self.write(&format!("{dir}/dev"), format!("{number}\n"));
        self.write(&format!("{dir}/size"), format!("{sectors}\n"));
        self.link(&format!("/sys/class/block/{name}"), dir);
        self.link(&format!("/sys/dev/block/{number}"), dir);
        self.write(&format!("/dev/{name}"), "");
        self.sys().by_name(name).unwrap()
    }

    pub(crate) fn disk(&self, dir: &str, number: &str, sectors: u64) -> SysBlock {
        let node = self.block(dir, number, sectors);
        self.link(&format!("/sys/block/{}", node.name), dir);
        node
    }
}
