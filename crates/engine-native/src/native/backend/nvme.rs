//! io_uring_cmd: READ and WRITE to NVMe namespaces by their generic devices
//! (/dev/ngXnY), past the block layer (engines/nvme.c).

use std::io;

use fathom_device::command::nvme_namespace;
use io_uring::{cqueue, opcode, squeue, types};

use super::uring::{RingCommands, Uring};
use super::{Io, Op, OpenFile};
use crate::native::buffer::Buffers;
use crate::native::job::Queue;

/// `_IOWR('N', 0x80, struct nvme_uring_cmd)` (linux/nvme_ioctl.h).
const NVME_URING_CMD_IO: u32 = 0xc048_4e80;
/// NVM Command Set Specification 1.0, figure 19.
const WRITE: u8 = 0x01;
const READ: u8 = 0x02;
const METADATA: &str = "its blocks carry metadata, which io_uring_cmd does not give";

/// Commands to the namespaces of one worker.
pub(in crate::native) struct NvmeCommands {
    namespaces: Vec<NamespaceBlocks>,
    /// Bytes of the I/O of each slot: an answer does not tell them.
    lens: Vec<u32>,
    fixed_buffers: bool,
}

/// A namespace's number and the power of two of its blocks.
#[derive(Debug, Clone, Copy)]
struct NamespaceBlocks {
    nsid: u32,
    shift: u32,
}

/// A ring of commands; buffers are registered with `fixedbufs` only: kernels before 6.1
/// know none in commands.
pub(in crate::native) fn ring(
    files: &[OpenFile],
    buffers: &Buffers,
    queue: &Queue,
) -> io::Result<Uring<NvmeCommands>> {
    let blocks = |file: &OpenFile| {
        let namespace = nvme_namespace(file.fd)?;
        match namespace.metadata_bytes {
            0 => Ok(NamespaceBlocks {
                nsid: namespace.nsid,
                shift: namespace.block_bytes.trailing_zeros(),
            }),
            _ => Err(io::Error::other(METADATA)),
        }
    };
    let namespaces = files.iter().map(blocks).collect::<io::Result<_>>()?;
    let lens = vec![0; buffers.slots()];
    let registered = queue.fixed_buffers.then_some(buffers);
    Uring::with(files, registered, queue, |fixed_buffers| NvmeCommands {
        namespaces,
        lens,
        fixed_buffers,
    })
}

impl RingCommands for NvmeCommands {
    type Request = squeue::Entry128;
    type Answer = cqueue::Entry32;

    #[inline]
    fn request(&mut self, io: &Io, flags: squeue::Flags) -> Option<squeue::Entry128> {
        let command = command(io, self.namespaces[io.file as usize])?;
        self.lens[io.slot as usize] = io.len;
        let entry = opcode::UringCmd80::new(types::Fixed(io.file), NVME_URING_CMD_IO)
            .buf_index(self.fixed_buffers.then_some(io.slot as u16))
            .cmd(command)
            .build();
        Some(entry.flags(flags).user_data(u64::from(io.slot)))
    }

    /// 0 is all of it, above stands the drive's own status (Base Specification 2.0,
    /// 3.3.3.2.1), below an errno.
    #[inline]
    fn result(&self, slot: u32, answer: i32) -> i64 {
        match answer {
            0 => self.lens[slot as usize].into(),
            1.. => -i64::from(libc::EIO),
            errno => errno.into(),
        }
    }
}

/// `struct nvme_uring_cmd` (linux/nvme_ioctl.h) of an I/O; `None` where it is no whole
/// blocks, or no read or write.
fn command(io: &Io, namespace: NamespaceBlocks) -> Option<[u8; 80]> {
    let opcode = match io.op {
        Op::Read => READ,
        Op::Write => WRITE,
        Op::Trim | Op::Fsync | Op::Fdatasync => return None,
    };
    let block = 1u32 << namespace.shift;
    if !io.offset.is_multiple_of(block.into()) || !io.len.is_multiple_of(block) {
        return None;
    }
    // The number of blocks is 16 bits wide, and 0 is one.
    let blocks = u16::try_from((io.len >> namespace.shift).checked_sub(1)?).ok()?;
    let mut bytes = [0; 80];
    bytes[0] = opcode;
    bytes[4..8].copy_from_slice(&namespace.nsid.to_ne_bytes());
    bytes[24..32].copy_from_slice(&(io.data.pointer() as u64).to_ne_bytes());
    bytes[36..40].copy_from_slice(&io.len.to_ne_bytes());
    // Dwords 10 to 12: the first block in two, how many.
    let lba = io.offset >> namespace.shift;
    bytes[40..44].copy_from_slice(&(lba as u32).to_ne_bytes());
    bytes[44..48].copy_from_slice(&((lba >> 32) as u32).to_ne_bytes());
    bytes[48..52].copy_from_slice(&u32::from(blocks).to_ne_bytes());
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::buffer::DataPlace;

    const NAMESPACE: NamespaceBlocks = NamespaceBlocks { nsid: 7, shift: 12 };

    fn io(op: Op, offset: u64, len: u32) -> Io {
        Io {
            slot: 1,
            op,
            file: 0,
            offset,
            len,
            data: DataPlace::unused(0x1_2345_6000),
            priority: 0,
        }
    }

    /// Dword `n` of the command, which begins at dword 10's place less forty bytes.
    fn dword(bytes: &[u8; 80], n: usize) -> u32 {
        u32::from_ne_bytes(bytes[4 * n..4 * n + 4].try_into().unwrap())
    }

    #[test]
    fn commands_count_the_blocks_of_the_namespace() {
        let far = command(&io(Op::Read, (1 << 44) + 0x3000, 0x4000), NAMESPACE).unwrap();
        assert_eq!(far[0], 2);
        assert_eq!(dword(&far, 1), 7);
        assert_eq!((dword(&far, 6), dword(&far, 7)), (0x2345_6000, 1));
        assert_eq!(dword(&far, 9), 0x4000);
        assert_eq!([10, 11, 12].map(|n| dword(&far, n)), [3, 1, 3]);
        assert_eq!(command(&io(Op::Write, 0, 4096), NAMESPACE).unwrap()[0], 1);
    }

    #[test]
    fn what_is_no_whole_blocks_or_no_transfer_has_no_command() {
        for odd in [
            io(Op::Read, 512, 4096),
            io(Op::Read, 0, 512),
            io(Op::Read, 0, 0),
            io(Op::Write, 0, (65_536 + 1) << 12),
            io(Op::Trim, 0, 4096),
            io(Op::Fsync, 0, 0),
        ] {
            assert_eq!(command(&odd, NAMESPACE), None, "{odd:?}");
        }
        assert!(command(&io(Op::Write, 0, 65_536 << 12), NAMESPACE).is_some());
    }

    #[test]
    fn an_answer_is_all_of_it_a_status_or_an_errno() {
        let commands = NvmeCommands {
            namespaces: vec![NAMESPACE],
            lens: vec![0, 8192],
            fixed_buffers: false,
        };
        assert_eq!(commands.result(1, 0), 8192);
        assert_eq!(commands.result(1, 0x80), -i64::from(libc::EIO));
        assert_eq!(commands.result(1, -libc::EINVAL), -i64::from(libc::EINVAL));
    }
}
