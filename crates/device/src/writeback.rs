//! Writes back what the page cache holds of a step's targets before the step begins, so
//! that the device does not do it while it is measured.

use std::fs::{self, OpenOptions};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::PathBuf;

/// Writes back the dirty pages of files and block devices, and waits for them. No flush is
/// sent: what a drive's own cache holds stays there, as for the job itself.
pub fn write_back(targets: &[PathBuf]) {
    let holds_data = |path: &&PathBuf| {
        let kind = fs::metadata(path).map(|meta| meta.file_type());
        kind.is_ok_and(|kind| kind.is_file() || kind.is_block_device())
    };
    for target in targets.iter().filter(holds_data) {
        let open = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(target);
        // If it cannot be opened, the step itself reports why.
        if let Ok(file) = open {
            wait(file.as_raw_fd());
        }
    }
}

#[cfg(target_os = "linux")]
fn wait(file: std::os::fd::RawFd) {
    let how = libc::SYNC_FILE_RANGE_WAIT_BEFORE
        | libc::SYNC_FILE_RANGE_WRITE
        | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    // SAFETY: the descriptor is open; no memory is passed.
    unsafe { libc::sync_file_range(file, 0, 0, how) };
}

/// Other systems have no call for one file that sends no flush.
#[cfg(not(target_os = "linux"))]
fn wait(_: std::os::fd::RawFd) {}
