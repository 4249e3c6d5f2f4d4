//! Ways to do I/O, by fio's names.

use std::time::Duration;

/// How I/O reaches the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::native) enum IoEngine {
    /// Nothing is done; what an I/O costs without a device.
    Null,
    /// lseek and read or write.
    Sync,
    /// pread and pwrite.
    Psync,
    /// preadv2 and pwritev2.
    Pvsync2,
    /// io_submit and io_getevents.
    Libaio,
    /// io_uring.
    IoUring,
    /// Commands to NVMe namespaces in an io_uring.
    IoUringCmd,
    /// A thread for each file that serves it in order, as glibc's aio does.
    Posixaio,
    /// memcpy from and to a shared mapping.
    Mmap,
    /// Commands to a SCSI disk (SG_IO).
    Sg,
    /// splice and vmsplice through a pipe.
    Splice,
    /// fallocate of each block's range.
    Falloc,
    /// ftruncate to each block's offset.
    Ftruncate,
    /// An operation on each file as a whole.
    FileOp(FileOp),
    /// No I/O: a processor is kept busy.
    Cpuio,
}

/// What is done to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::native) enum FileOp {
    Create,
    Stat,
    Delete,
}

/// What ioengine=filestat calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::native) enum StatCall {
    #[default]
    Stat,
    Lstat,
    Statx,
}

impl IoEngine {
    /// Names in job files.
    pub(in crate::native) const NAMES: [(&'static str, Self); 17] = [
        ("cpuio", Self::Cpuio),
        ("falloc", Self::Falloc),
        ("filecreate", Self::FileOp(FileOp::Create)),
        ("filedelete", Self::FileOp(FileOp::Delete)),
        ("filestat", Self::FileOp(FileOp::Stat)),
        ("ftruncate", Self::Ftruncate),
        ("io_uring", Self::IoUring),
        ("io_uring_cmd", Self::IoUringCmd),
        ("libaio", Self::Libaio),
        ("mmap", Self::Mmap),
        ("null", Self::Null),
        ("posixaio", Self::Posixaio),
        ("psync", Self::Psync),
        ("pvsync2", Self::Pvsync2),
        ("sg", Self::Sg),
        ("splice", Self::Splice),
        ("sync", Self::Sync),
    ];

    /// Whether an I/O is over when it has been submitted: the depth is then 1.
    pub(in crate::native) fn is_synchronous(self) -> bool {
        !matches!(
            self,
            Self::Null | Self::Libaio | Self::IoUring | Self::IoUringCmd | Self::Posixaio
        )
    }

    /// Whether data go through buffers.
    pub(in crate::native) fn moves_data(self) -> bool {
        let none = matches!(
            self,
            Self::Null | Self::Falloc | Self::Ftruncate | Self::Cpuio
        );
        !none && self.file_op().is_none()
    }

    /// Whether it does its I/O on open files.
    pub(in crate::native) fn opens_files(self) -> bool {
        !matches!(self, Self::Null | Self::Cpuio) && self.file_op().is_none()
    }

    /// Whether its I/Os wait in an io_uring.
    pub(in crate::native) fn is_ring(self) -> bool {
        matches!(self, Self::IoUring | Self::IoUringCmd)
    }

    pub(in crate::native) fn file_op(self) -> Option<FileOp> {
        match self {
            Self::FileOp(op) => Some(op),
            _ => None,
        }
    }
}

/// How ioengine=cpuio keeps a processor busy.
#[derive(Debug, Clone)]
pub(in crate::native) struct BurnOptions {
    /// Share of the time, in percent; 0: the job does not say.
    pub(in crate::native) load: u32,
    /// How long at a time.
    pub(in crate::native) chunk: Duration,
    /// By sorting, which takes as long as it takes.
    pub(in crate::native) sorts: bool,
    /// It ends when no job is left that does I/O.
    pub(in crate::native) ends_with_io: bool,
}

impl Default for BurnOptions {
    fn default() -> Self {
        Self {
            load: 0,
            chunk: Duration::from_millis(50),
            sorts: false,
            ends_with_io: false,
        }
    }
}

impl BurnOptions {
    /// The pause after so much work, in the same unit.
    pub(in crate::native) fn pause(&self, busy: u64) -> u64 {
        let load = u64::from(self.load.max(1));
        busy.saturating_mul(100 - load.min(100)) / load
    }
}

/// How ioengine=sg reads and writes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::native) struct ScsiOptions {
    /// The medium is read, whatever the disk's cache has.
    pub(in crate::native) read_fua: bool,
    /// A write is over when it is on the medium.
    pub(in crate::native) write_fua: bool,
    pub(in crate::native) write: ScsiWrite,
}

/// The command that a write is (SBC-4).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::native) enum ScsiWrite {
    #[default]
    Write,
    /// WRITE AND VERIFY.
    AndVerify,
    /// WRITE SAME: the first block of the data, over and over.
    Same,
    /// WRITE SAME without data: zeros.
    SameZeros,
    /// VERIFY, which writes nothing: that the medium can be read.
    VerifyMedium,
    /// That it holds the data.
    VerifyData,
    /// That each block is the first of the data.
    VerifySame,
}
