//! Keeping block devices to oneself while they are written to.
//!
//! Two programs that write to one device spoil each other's figures, and both
//! found it free. The lock is the one that mkfs, parted and udev keep to
//! (<https://systemd.io/BLOCK_DEVICE_LOCKING/>): flock(2) on the device's node.
//! The kernel releases it when its holder ends, however that ends. It asks nobody
//! who does not ask it: a [`crate::Claim`] keeps others away.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

use crate::Sys;
use crate::claim::{LOOKS, PAUSE};
use crate::safety::{InUse, Refusal};
use crate::usage::Use;

/// Devices and files that are kept until it is dropped.
#[derive(Debug, Default)]
#[must_use = "what it holds is free again once it is dropped"]
pub struct Hold(Vec<File>);

impl Drop for Hold {
    /// A process that is being started has copies of the files until it executes its
    /// program: closing these would leave the locks with it.
    fn drop(&mut self) {
        for file in &self.0 {
            let _ = flock(file, FlockOperation::Unlock);
        }
    }
}

impl Hold {
    /// Takes those of the paths that are block devices; of a partition the
    /// whole disk is shared with other partitions, and with nobody who wants it
    /// all.
    ///
    /// # Errors
    /// [`Refusal::InUse`] for a device that another program keeps. One that
    /// cannot be opened or locked at all is left to the engine to fail on.
    pub fn of<'p>(paths: impl IntoIterator<Item = &'p Path>) -> Result<Self, Refusal> {
        let sys = Sys::live();
        let nodes = paths.into_iter().filter_map(|path| sys.by_path(path));
        let (parts, wholes): (Vec<_>, Vec<_>) = nodes.partition(crate::SysBlock::is_partition);
        let exclusive = wholes.iter().chain(&parts);
        let mut devices: Vec<_> = exclusive
            .map(|node| (node.dev_path(), FlockOperation::NonBlockingLockExclusive))
            .collect();
        let shared = parts.iter().map(|part| part.whole().dev_path());
        devices.extend(shared.map(|path| (path, FlockOperation::NonBlockingLockShared)));
        let mut hold = Self::default();
        let mut held = BTreeSet::new();
        for (device, lock) in devices {
            // What it has already it does not ask itself for again.
            if held.insert(device.clone()) {
                hold.lock(&device, lock)?;
            }
        }
        Ok(hold)
    }

    /// Keeps the lock that `file` has.
    pub fn of_locked(file: File) -> Self {
        Self(vec![file])
    }

    fn lock(&mut self, device: &Path, lock: FlockOperation) -> Result<(), Refusal> {
        let nonblock = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
        let opened = OpenOptions::new()
            .read(true)
            .custom_flags(nonblock)
            .open(device);
        let Ok(file) = opened else { return Ok(()) };
        // udev locks a device for moments while it looks at it, on a busy machine for seconds.
        for _ in 0..5 * LOOKS {
            match flock(&file, lock) {
                Err(Errno::WOULDBLOCK) => std::thread::sleep(PAUSE),
                _ => {
                    self.0.push(file);
                    return Ok(());
                }
            }
        }
        Err(Refusal::InUse(Box::new(InUse {
            path: device.to_owned(),
            uses: vec![Use::Locked {
                device: device.to_owned(),
            }],
            word: None,
        })))
    }
}
