//! Writes back what the page cache holds of a step's targets before the step begins, so
//! that the device does not do it while it is measured.

#![allow(unsafe_code)] // each block says why it is sound

use std::fs::{self, File, OpenOptions};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::PathBuf;

use crate::sys::Sys;

/// Dirty pages from which on other files are written back as well, in bytes: less is no
/// twentieth of what a job of a few seconds moves (`foreign_io`).
const DIRTY_BYTES: u64 = 8 << 20;

/// Writes back the dirty pages of files and block devices, and waits for them. Where much is
/// dirty, the file systems of the files are synced as a whole: what else the kernel would
/// write to their devices meanwhile is not the job's. Else no flush is sent: what a drive's
/// own cache holds stays there, as for the job itself.
pub fn write_back(targets: &[PathBuf]) {
    let is_much = crate::environment::dirty_bytes(&Sys::live()).is_some_and(|it| it >= DIRTY_BYTES);
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
            let is_file = file.metadata().is_ok_and(|meta| meta.is_file());
            if is_much && is_file {
                sync_all(&file);
            }
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

/// Syncs the file system of a file. What cannot be written fails the step that needs it.
#[cfg(target_os = "linux")]
fn sync_all(file: &File) {
    let _ = rustix::fs::syncfs(file);
}

/// Other systems have no call for one file that sends no flush, nor for one file system.
#[cfg(not(target_os = "linux"))]
fn wait(_: std::os::fd::RawFd) {}
#[cfg(not(target_os = "linux"))]
fn sync_all(_: &File) {}
