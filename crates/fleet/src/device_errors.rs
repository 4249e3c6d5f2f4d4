//! What an error number means on a device: the kernel has few of them, and says the same
//! of a full file system and of a disk that was pulled out.

use std::fs::File;
use std::io::{Seek as _, SeekFrom};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use fathom_device::Sys;
use fathom_model::{Failure, FailureKind};
use rustix::io::Errno;

/// The blocks that every disk takes, in bytes.
const SMALLEST_BLOCK: u64 = 512;

/// A failure of a step on these paths, with what its error number means there.
pub(crate) fn explained(failure: Failure, paths: &[PathBuf]) -> Failure {
    let Some(errno) = failure.errno.map(Errno::from_raw_os_error) else {
        return failure;
    };
    let named = |path: &&PathBuf| failure.subject.as_deref() == path.to_str();
    let of_it = paths.iter().find(named);
    let concerned = match of_it {
        Some(path) => std::slice::from_ref(path),
        None => paths,
    };
    let lost = [Errno::NOSPC, Errno::IO, Errno::NODEV, Errno::NXIO];
    if lost.contains(&errno)
        && let Some(path) = concerned.iter().find(|path| is_gone(path))
    {
        let what = format!("the device disappeared while it was in use ({errno})");
        let gone = Failure::new(FailureKind::NoDevice, what).with_errno(errno.raw_os_error());
        let gone = gone.to_do("see in the kernel log (dmesg) why, and its cable and power");
        return gone.about(path.display().to_string());
    }
    if errno == Errno::INVAL
        && let Some(block) = concerned.iter().find_map(|path| large_block(path))
    {
        let what = format!(
            "{}: the device has logical blocks of {block} bytes",
            failure.message
        );
        let advice = format!("with direct=1 give bs, bssplit and offset in multiples of {block}");
        return Failure {
            message: what,
            ..failure
        }
        .to_do(advice);
    }
    failure
}

/// Whether a device is there no more, or has lost its medium.
fn is_gone(path: &Path) -> bool {
    match std::fs::metadata(path) {
        Err(_) => path.starts_with("/dev"),
        Ok(meta) if meta.file_type().is_block_device() => {
            let size = File::open(path).and_then(|mut file| file.seek(SeekFrom::End(0)));
            size.map_or(true, |bytes| bytes == 0)
        }
        Ok(_) => false,
    }
}

/// The logical block size of a device, where it is more than usual.
fn large_block(path: &Path) -> Option<u64> {
    let meta = std::fs::metadata(path).ok()?;
    let disk = Sys::live().by_path(path)?.whole();
    let block = disk.value::<u64>("queue/logical_block_size")?;
    (meta.file_type().is_block_device() && block > SMALLEST_BLOCK).then_some(block)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_is_gone_has_not_run_out_of_space() {
        let failure = || {
            let errno = Errno::NOSPC.raw_os_error();
            Failure::new(FailureKind::NoSpace, "no space left").with_errno(errno)
        };
        let gone = explained(failure(), &[PathBuf::from("/dev/of-no-disk")]);
        assert_eq!(gone.kind, FailureKind::NoDevice);
        assert!(gone.message.contains("disappeared"), "{gone:?}");
        assert_eq!(gone.subject.as_deref(), Some("/dev/of-no-disk"));
        // A file system is full.
        let full = explained(
            failure(),
            &[PathBuf::from("/tmp/f"), PathBuf::from("/dev/null")],
        );
        assert_eq!(full.kind, FailureKind::NoSpace);
    }
}
