//! What is behind a loop device, as the kernel holds it.

#![allow(unsafe_code)] // each block says why it is sound

use std::path::Path;

/// What `LOOP_GET_STATUS64` tells of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LoopStatus {
    /// Number of the file system that the file behind it is on, as stat(2) gives it.
    pub(crate) file_system: u64,
    /// The file's own number there.
    pub(crate) inode: u64,
    /// What is behind it is a device: its number; else 0.
    pub(crate) device_number: u64,
}

/// Asks a loop device; `None` where it may not be asked, or is none.
#[cfg(target_os = "linux")]
pub(crate) fn read(device: &Path) -> Option<LoopStatus> {
    use std::os::fd::AsRawFd as _;
    use std::os::unix::fs::OpenOptionsExt as _;

    /// linux/loop.h.
    const LOOP_GET_STATUS64: u64 = 0x4c05;
    /// `struct loop_info64` has 232 bytes; `lo_device`, `lo_inode` and `lo_rdevice`
    /// come first.
    const WORDS: usize = 232 / 8;

    let file = std::fs::OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(device)
        .ok()?;
    let mut words = [0u64; WORDS];
    // SAFETY: the descriptor is open, and the kernel writes a `struct loop_info64`, which
    // is as large as `words`. What is no loop device does not know the request. The type
    // of the request differs between C libraries.
    let code = unsafe { libc::ioctl(file.as_raw_fd(), LOOP_GET_STATUS64 as _, &raw mut words) };
    let [file_system, inode, device_number, ..] = words;
    (code == 0).then_some(LoopStatus {
        file_system,
        inode,
        device_number,
    })
}

/// Other systems have no loop devices of this kind.
#[cfg(not(target_os = "linux"))]
pub(crate) fn read(_: &Path) -> Option<LoopStatus> {
    None
}
