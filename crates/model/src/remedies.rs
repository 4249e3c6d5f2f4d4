//! What to do about an error of the system, by its number and what it happened to.

use crate::failure::FailureKind;

/// What to do, by kind of failure and errno. Numbers are those of every Linux but MIPS,
/// SPARC, Alpha and PA-RISC (include/uapi/asm-generic/errno.h).
const REMEDIES: [(FailureKind, i32, &str); 15] = [
    (
        FailureKind::Permission,
        EPERM,
        "run as root; where that is so already, look whether the file is immutable or append-only (lsattr), and in a container whether it blocks the system call (then another ioengine may work)",
    ),
    (
        FailureKind::Permission,
        EACCES,
        "check the permissions of the file and of every folder above it (namei -l), or run as root",
    ),
    (
        FailureKind::Open,
        EINVAL,
        "direct=0: this file system takes no direct I/O; or name a file on another one",
    ),
    (
        FailureKind::Open,
        ENXIO,
        "the device is there by name only: check that it is attached (lsblk), and that a loop or zram device is set up",
    ),
    (
        FailureKind::Open,
        ENOTDIR,
        "a folder on the way is a file: check the path; where a name has a colon, write \\: in a job file",
    ),
    (
        FailureKind::Open,
        EBUSY,
        "see who uses it: fuser -v FILE; lsblk shows what is mounted or made of it",
    ),
    (
        FailureKind::Open,
        ETXTBSY,
        "it runs as a program or is swap: name another file",
    ),
    (
        FailureKind::Open,
        EMFILE,
        "lower openfiles or nrfiles, or raise the limit of open files: ulimit -n",
    ),
    (
        FailureKind::Open,
        ENFILE,
        "raise the system's limit of open files: sysctl fs.file-max",
    ),
    (FailureKind::Open, EFBIG, FILE_SIZE),
    (
        FailureKind::Open,
        EROFS,
        "the file system is read-only: mount it for writing (mount -o remount,rw), or name another",
    ),
    (
        FailureKind::Open,
        ENAMETOOLONG,
        "a name may have 255 bytes: a shorter filename or job name (files are called JOB.CLONE.FILE)",
    ),
    (
        FailureKind::Open,
        ELOOP,
        "the last part of the path is a link, or links lead in a circle: name the file itself",
    ),
    (FailureKind::Io, EFBIG, FILE_SIZE),
    (
        FailureKind::Io,
        EINVAL,
        "with direct=1 blocks and offsets must be multiples of the device's logical block: bs, blockalign, offset",
    ),
];

/// Of EFBIG, wherever it comes up.
const FILE_SIZE: &str = "raise the limit of a file's size (ulimit -f); files on FAT end at 4 GiB";

const EPERM: i32 = 1;
const ENXIO: i32 = 6;
const EACCES: i32 = 13;
const EBUSY: i32 = 16;
const ENOTDIR: i32 = 20;
const EINVAL: i32 = 22;
const ENFILE: i32 = 23;
const EMFILE: i32 = 24;
const ETXTBSY: i32 = 26;
const EFBIG: i32 = 27;
const EROFS: i32 = 30;
const ENAMETOOLONG: i32 = 36;
const ELOOP: i32 = 40;

/// What to do about an errno; `None`: its kind tells.
pub(crate) fn of(kind: FailureKind, errno: i32) -> Option<&'static str> {
    let mut all = REMEDIES.iter();
    let found = all.find(|(of, number, _)| (*of, *number) == (kind, errno))?;
    Some(found.2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Failure;

    #[test]
    fn an_errno_tells_more_than_its_kind_and_the_failure_itself_more_than_both() {
        let failure = |errno: i32| Failure::new(FailureKind::Open, "x").with_errno(errno);
        assert!(failure(EINVAL).to_be_done().starts_with("direct=0"));
        assert!(failure(EMFILE).to_be_done().contains("openfiles"));
        assert_eq!(failure(999).to_be_done(), FailureKind::Open.advice());
        assert_eq!(failure(EINVAL).to_do("leave it").to_be_done(), "leave it");
    }
}
