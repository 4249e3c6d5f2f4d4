//! Being the one exclusive holder of the block devices that a command writes to.
//!
//! What mounts a device, makes it swap, part of another device or a file system
//! claims it exclusively first (O_EXCL, open(2)), and cannot while another holder
//! does. Programs that only open it, as fio does, are not kept away.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::Duration;

use rustix::fs::OFlags;

use crate::safety::{InUse, Refusal};
use crate::usage::{self, Use};
use crate::{Sys, SysBlock, openers, paths};

/// udev, blkid and the like open a device for moments after every change: that is
/// waited for, a second at the most.
pub(crate) const LOOKS: u32 = 50;
/// Processes of our own are waited for longer, ten seconds.
const LOOKS_AT_OURS: u32 = 10 * LOOKS;
pub(crate) const PAUSE: Duration = Duration::from_millis(20);

/// Block devices that nobody else can take into use until it is dropped.
#[derive(Debug, Default)]
#[must_use = "what it claims is free again once it is dropped"]
pub struct Claim(Vec<(SysBlock, File)>);

impl Claim {
    /// Claims a device besides those that are claimed already; a path that is no
    /// block device needs none, and one that cannot be opened is left to the engine
    /// to fail on.
    ///
    /// # Errors
    /// [`Refusal::InUse`] when somebody else has claimed it.
    pub fn add(&mut self, path: &Path) -> Result<(), Refusal> {
        let sys = Sys::live();
        let Some(node) = sys.by_path(path) else {
            return Ok(());
        };
        // Whoever takes another path to the drive into use takes this one.
        for path_node in paths::of(&sys, &node) {
            let other = path_node.dev_path();
            self.add_node(&sys, path, &other, path_node)?;
        }
        self.add_node(&sys, path, &sys.block_path(path), node)
    }

    /// Claims `node`, opened at `at`, for whoever named it `path`.
    fn add_node(
        &mut self,
        sys: &Sys,
        path: &Path,
        at: &Path,
        node: SysBlock,
    ) -> Result<(), Refusal> {
        if self.has(&node) {
            return Ok(());
        }
        // The whole disk instead of its partitions: the kernel gives both to nobody.
        self.0.retain(|(part, _)| part.whole() != node);
        match open_in_time(at) {
            Ok(Some(file)) => {
                self.0.push((node, file));
                return Ok(());
            }
            Ok(None) => {}
            Err(_) => return Ok(()),
        }
        let mut uses = usage::of_device(sys, &node);
        if uses.is_empty() {
            uses.push(Use::Exclusive {
                device: node.dev_path(),
            });
        }
        Err(Refusal::InUse(Box::new(InUse {
            path: path.to_owned(),
            uses,
            word: None,
        })))
    }

    /// Whether a device, or the disk it is part of, is claimed by this.
    pub fn has(&self, node: &SysBlock) -> bool {
        let part_of = |claimed: &SysBlock| node.is_partition() && node.whole() == *claimed;
        self.0
            .iter()
            .any(|(claimed, _)| claimed == node || part_of(claimed))
    }

    /// Gives all of them up, for a program that wants to claim them itself.
    pub fn release(&mut self) {
        self.0.clear();
    }
}

/// Opens a block device exclusively; `None`: somebody else has it so, and keeps it.
///
/// A process that this one is starting has copies of what it held until it executes
/// its program, which a busy machine can put off: that is waited for.
pub(crate) fn open_in_time(path: &Path) -> io::Result<Option<File>> {
    for look in 0..LOOKS_AT_OURS {
        match open(path) {
            Err(e) if e.kind() == io::ErrorKind::ResourceBusy => {}
            opened => return opened.map(Some),
        }
        if look >= LOOKS && !openers::ours_have_open(&Sys::live(), path) {
            break;
        }
        std::thread::sleep(PAUSE);
    }
    Ok(None)
}

/// Opens a block device exclusively, for reading. O_EXCL without O_CREAT is defined
/// for block devices only (open(2)).
fn open(path: &Path) -> io::Result<File> {
    let flags =
        i32::try_from((OFlags::EXCL | OFlags::NONBLOCK).bits()).map_err(io::Error::other)?;
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}
