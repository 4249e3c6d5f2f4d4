//! sg: READ and WRITE to SCSI disks by SG_IO, past the page cache and the disk's scheduler
//! (engines/sg.c).

#![allow(unsafe_code)] // each block says why it is sound

use std::io;
use std::os::fd::RawFd;
use std::path::Path;
use std::time::Duration;

use fathom_device::command::scsi_transfer;

use super::one_by_one::Immediate;
use super::{Io, Op, OpenFile};
use crate::native::job::{ScsiOptions, ScsiWrite};

/// How long a command may take: fio's value (engines/sg.c, SCSI_TIMEOUT_MS).
const TIMEOUT: Duration = Duration::from_secs(30);

/// The disks of one worker: descriptors, bytes of a block.
#[derive(Debug)]
pub(in crate::native) struct Scsi {
    disks: Vec<(RawFd, u32)>,
    options: ScsiOptions,
}

impl Scsi {
    /// Only of whole disks: a command counts blocks from the disk's start, whatever the
    /// partition or mapping that it is given to.
    pub(in crate::native) fn new(files: &[OpenFile], options: ScsiOptions) -> io::Result<Self> {
        let disk = |file: &OpenFile| Ok((file.fd, block_of(file.fd)?));
        Ok(Self {
            disks: files.iter().map(disk).collect::<io::Result<_>>()?,
            options,
        })
    }
}

const WANTED: &str = "its files must be whole SCSI disks, as /dev/sda or /dev/sg0";

/// Writes what the disk's cache holds to the medium: SYNCHRONIZE CACHE (10) of all blocks
/// (SBC-4, 5.25), as fio's engine does.
pub(in crate::native) fn sync(fd: RawFd) -> i64 {
    let command = [0x35, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let none = std::ptr::null_mut();
    // SAFETY: no data go along.
    let done = unsafe { scsi_transfer(fd, &command, false, none, 0, TIMEOUT) };
    match done {
        Ok(_) => 0,
        Err(error) => -i64::from(error.raw_os_error().unwrap_or(libc::EIO)),
    }
}

/// Bytes of a block of a whole SCSI disk.
fn block_of(fd: RawFd) -> io::Result<u32> {
    /// include/uapi/linux/fs.h: _IO(0x12, 104).
    const BLKSSZGET: libc::c_ulong = 0x1268;
    // SAFETY: all fields of stat are numbers, for which zero is a value.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes one stat at the pointer.
    if unsafe { libc::fstat(fd, &raw mut stat) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let (major, minor) = (libc::major(stat.st_rdev), libc::minor(stat.st_rdev));
    if stat.st_mode & libc::S_IFMT == libc::S_IFCHR {
        let disk = fathom_device::Sys::live().by_generic(major, minor);
        let block = disk.and_then(|disk| disk.value::<u32>("queue/logical_block_size"));
        return block
            .filter(|&block| block > 0)
            .ok_or_else(|| io::Error::other(WANTED));
    }
    let folder = format!("/sys/dev/block/{major}:{minor}");
    let is_block = stat.st_mode & libc::S_IFMT == libc::S_IFBLK;
    // Partitions have a number, and what is no SCSI disk has no level.
    let whole = !Path::new(&folder).join("partition").exists();
    let scsi = Path::new(&folder).join("device/scsi_level").exists();
    if !(is_block && whole && scsi) {
        return Err(io::Error::other(WANTED));
    }
    let mut block: libc::c_int = 0;
    // SAFETY: the kernel writes one int at the pointer.
    if unsafe { libc::ioctl(fd, BLKSSZGET as _, &raw mut block) } != 0 {
        return Err(io::Error::last_os_error());
    }
    u32::try_from(block)
        .ok()
        .filter(|&block| block > 0)
        .ok_or_else(|| io::ErrorKind::InvalidData.into())
}

impl Immediate for Scsi {
    fn run(&mut self, io: &Io) -> i64 {
        let (fd, block) = self.disks[io.file as usize];
        if matches!(io.op, Op::Fsync | Op::Fdatasync) {
            return sync(fd);
        }
        let whole = io.offset.is_multiple_of(block.into()) && io.len.is_multiple_of(block);
        if !whole {
            return -i64::from(libc::EINVAL);
        }
        let (lba, blocks) = (io.offset / u64::from(block), io.len / block);
        let kind = ScsiCommand::of(io.op, self.options);
        let (command, len) = kind.bytes(lba, blocks);
        let data = match kind.data {
            ScsiData::Whole => io.len,
            ScsiData::OneBlock => block,
            ScsiData::None => 0,
        };
        let writes = io.op == Op::Write;
        // SAFETY: `data`, at most `len`, are bytes of a slot nobody else uses.
        let moved = unsafe {
            scsi_transfer(
                fd,
                &command[..len],
                writes,
                io.data.pointer(),
                data,
                TIMEOUT,
            )
        };
        match moved {
            // All that was asked for was done, whatever went along.
            Ok(moved) if moved == data => io.len.into(),
            Ok(moved) => moved.into(),
            Err(error) => -i64::from(error.raw_os_error().unwrap_or(libc::EIO)),
        }
    }
}

/// What goes along with a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScsiData {
    Whole,
    OneBlock,
    None,
}

/// A command without its blocks (SBC-4, chapter 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ScsiCommand {
    /// Its opcode of ten bytes, if it has one, and of sixteen.
    opcodes: (Option<u8>, u8),
    /// Bits of byte 1.
    bits: u8,
    data: ScsiData,
}

impl ScsiCommand {
    fn of(op: Op, options: ScsiOptions) -> Self {
        const FUA: u8 = 0x08;
        let fua = |wanted: bool| if wanted { FUA } else { 0 };
        let (opcodes, bits, data) = match (op, options.write) {
            (Op::Read, _) => ((Some(0x28), 0x88), fua(options.read_fua), ScsiData::Whole),
            (_, ScsiWrite::Write) => {
                let bits = fua(options.write_fua);
                ((Some(0x2a), 0x8a), bits, ScsiData::Whole)
            }
            (_, ScsiWrite::AndVerify) => ((Some(0x2e), 0x8e), 0, ScsiData::Whole),
            (_, ScsiWrite::Same) => ((Some(0x41), 0x93), 0, ScsiData::OneBlock),
            // NDOB.
            (_, ScsiWrite::SameZeros) => ((None, 0x93), 0x01, ScsiData::None),
            // BYTCHK.
            (_, ScsiWrite::VerifyMedium) => ((Some(0x2f), 0x8f), 0, ScsiData::None),
            (_, ScsiWrite::VerifyData) => ((Some(0x2f), 0x8f), 0x02, ScsiData::Whole),
            (_, ScsiWrite::VerifySame) => ((Some(0x2f), 0x8f), 0x06, ScsiData::OneBlock),
        };
        Self {
            opcodes,
            bits,
            data,
        }
    }

    /// Ten bytes where its fields have room, else sixteen; and which.
    fn bytes(self, lba: u64, blocks: u32) -> ([u8; 16], usize) {
        let mut bytes = [0; 16];
        bytes[1] = self.bits;
        let short = (u32::try_from(lba), u16::try_from(blocks));
        if let (Some(opcode), (Ok(lba), Ok(blocks))) = (self.opcodes.0, short) {
            bytes[0] = opcode;
            bytes[2..6].copy_from_slice(&lba.to_be_bytes());
            bytes[7..9].copy_from_slice(&blocks.to_be_bytes());
            return (bytes, 10);
        }
        bytes[0] = self.opcodes.1;
        bytes[2..10].copy_from_slice(&lba.to_be_bytes());
        bytes[10..14].copy_from_slice(&blocks.to_be_bytes());
        (bytes, 16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ: ScsiOptions = ScsiOptions {
        read_fua: false,
        write_fua: false,
        write: ScsiWrite::Write,
    };

    #[test]
    fn commands_count_blocks_and_are_as_long_as_they_must_be() {
        let bytes = |op, lba, blocks| {
            let (bytes, len) = ScsiCommand::of(op, READ).bytes(lba, blocks);
            bytes[..len].to_vec()
        };
        assert_eq!(
            bytes(Op::Read, 0x091a_2b00, 8),
            [0x28, 0, 9, 0x1a, 0x2b, 0, 0, 0, 8, 0]
        );
        assert_eq!(
            bytes(Op::Write, 0x800, 256),
            [0x2a, 0, 0, 0, 8, 0, 0, 1, 0, 0]
        );
        // Behind 2 TiB, and more than 65535 blocks.
        let far = bytes(Op::Read, 1 << 32, 1);
        assert_eq!(far, [0x88, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0]);
        let long = bytes(Op::Write, 0, 65_536);
        assert_eq!(long, [0x8a, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0]);
    }

    /// The codes of SBC-4; FUA is bit 3 of byte 1.
    #[test]
    fn options_choose_the_command_and_its_bits() {
        let of = |options: ScsiOptions, op| {
            let command = ScsiCommand::of(op, options);
            (command.bytes(0, 1).0[..2].to_vec(), command.data)
        };
        for (fua, bits) in [(false, 0), (true, 8)] {
            let options = ScsiOptions {
                read_fua: fua,
                write_fua: !fua,
                ..READ
            };
            assert_eq!(of(options, Op::Read).0, [0x28, bits]);
            assert_eq!(of(options, Op::Write).0, [0x2a, 8 - bits]);
        }
        for (write, bytes, data) in [
            (ScsiWrite::AndVerify, [0x2e, 0], ScsiData::Whole),
            (ScsiWrite::Same, [0x41, 0], ScsiData::OneBlock),
            (ScsiWrite::SameZeros, [0x93, 1], ScsiData::None),
            (ScsiWrite::VerifyMedium, [0x2f, 0], ScsiData::None),
            (ScsiWrite::VerifyData, [0x2f, 2], ScsiData::Whole),
            (ScsiWrite::VerifySame, [0x2f, 6], ScsiData::OneBlock),
        ] {
            let options = ScsiOptions { write, ..READ };
            assert_eq!(of(options, Op::Write), (bytes.to_vec(), data));
        }
    }

    #[test]
    fn what_is_no_whole_scsi_disk_is_refused() {
        use std::os::fd::AsRawFd as _;
        let file = std::fs::File::open("/dev/null").unwrap();
        assert!(block_of(file.as_raw_fd()).is_err());
    }
}
