//! The ioctls behind [`Command`](super::Command).

#![allow(unsafe_code)] // each block says why it is sound

#[cfg(target_os = "linux")]
pub(super) use linux::issue;
#[cfg(target_os = "linux")]
pub use linux::{nvme_namespace, scsi_transfer};

/// Other systems have other ways; none of them is known here.
#[cfg(not(target_os = "linux"))]
pub(super) fn issue(_: &std::path::Path, _: &super::Command) -> std::io::Result<super::Reply> {
    Err(std::io::ErrorKind::Unsupported.into())
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::{File, OpenOptions};
    use std::io;
    use std::os::fd::{AsRawFd as _, RawFd};
    use std::os::unix::fs::OpenOptionsExt as _;
    use std::path::Path;
    use std::time::Duration;

    use super::super::{Command, CommandData, NvmeNamespace, Reply};

    /// `_IO('N', 0x40)` (linux/nvme_ioctl.h).
    const NVME_IOCTL_ID: u64 = 0x4e40;
    /// `_IOWR('N', 0x41, struct nvme_admin_cmd)` (linux/nvme_ioctl.h).
    const NVME_IOCTL_ADMIN_CMD: u64 = 0xc048_4e41;
    /// scsi/sg.h.
    const SG_IO: u64 = 0x2285;
    /// `_IO(0x12, 119)` and `_IO(0x12, 125)` (linux/fs.h).
    const BLKDISCARD: u64 = 0x1277;
    const BLKSECDISCARD: u64 = 0x127d;
    /// Longest sense data that a device may give (SPC-5 4.4.1).
    const SENSE_MAX: usize = 252;

    /// `struct nvme_passthru_cmd` (linux/nvme_ioctl.h).
    #[repr(C)]
    #[derive(Default)]
    struct NvmeCommand {
        opcode: u8,
        flags: u8,
        reserved: u16,
        nsid: u32,
        cdw2: u32,
        cdw3: u32,
        metadata: u64,
        addr: u64,
        metadata_len: u32,
        data_len: u32,
        cdw: [u32; 6],
        timeout_ms: u32,
        result: u32,
    }

    /// `struct sg_io_hdr` (scsi/sg.h).
    #[repr(C)]
    struct SgHeader {
        interface_id: i32,
        dxfer_direction: i32,
        cmd_len: u8,
        mx_sb_len: u8,
        iovec_count: u16,
        dxfer_len: u32,
        dxferp: *mut libc::c_void,
        cmdp: *const u8,
        sbp: *mut u8,
        timeout: u32,
        flags: u32,
        pack_id: i32,
        usr_ptr: *mut libc::c_void,
        status: u8,
        masked_status: u8,
        msg_status: u8,
        sb_len_wr: u8,
        host_status: u16,
        driver_status: u16,
        resid: i32,
        duration: u32,
        info: u32,
    }

    pub fn issue(path: &Path, command: &Command) -> io::Result<Reply> {
        let reads = matches!(
            command,
            Command::Scsi {
                data: CommandData::In(_) | CommandData::None,
                ..
            } | Command::Nvme {
                data: CommandData::In(_),
                ..
            }
        );
        // Without O_NONBLOCK a drive without a medium would keep the open waiting.
        let file = OpenOptions::new()
            .read(true)
            .write(!reads)
            .custom_flags(libc::O_NONBLOCK)
            .open(path)?;
        match command {
            Command::Nvme {
                opcode,
                nsid,
                dwords,
                data,
                timeout,
            } => {
                let mut buffer = buffer(data);
                let mut raw = NvmeCommand {
                    opcode: *opcode,
                    nsid: *nsid,
                    addr: if buffer.is_empty() {
                        0
                    } else {
                        buffer.as_mut_ptr() as u64
                    },
                    data_len: length(&buffer)?,
                    cdw: *dwords,
                    timeout_ms: millis(*timeout),
                    ..NvmeCommand::default()
                };
                // SAFETY: the structure is the kernel's, and its buffer lives
                // and is as long as it says until the call returns.
                let status =
                    unsafe { ioctl(file.as_raw_fd(), NVME_IOCTL_ADMIN_CMD, &raw mut raw) }?;
                Ok(Reply {
                    status,
                    data: come(data, buffer),
                    sense: Vec::new(),
                    result: raw.result,
                })
            }
            Command::Scsi { cdb, data, timeout } => scsi(&file, cdb, data, *timeout),
            Command::Discard {
                offset,
                bytes,
                secure,
            } => {
                let mut range = [*offset, *bytes];
                let request = if *secure { BLKSECDISCARD } else { BLKDISCARD };
                // SAFETY: both take a pointer to two 64-bit numbers.
                unsafe { ioctl(file.as_raw_fd(), request, range.as_mut_ptr()) }?;
                Ok(Reply::default())
            }
            Command::Attribute { .. } | Command::Program { .. } => {
                Err(io::ErrorKind::InvalidInput.into())
            }
        }
    }

    fn scsi(file: &File, cdb: &[u8], data: &CommandData, timeout: Duration) -> io::Result<Reply> {
        // SG_DXFER_NONE, _TO_DEV, _FROM_DEV (scsi/sg.h).
        let direction = match data {
            CommandData::None => -1,
            CommandData::Out(_) => -2,
            CommandData::In(_) => -3,
        };
        let mut buffer = buffer(data);
        let mut sense = [0; SENSE_MAX];
        let (at, len) = (buffer.as_mut_ptr(), length(&buffer)?);
        // SAFETY: the buffer lives, and is as long as it says, until the call returns.
        let header = unsafe {
            sg_io(
                file.as_raw_fd(),
                cdb,
                direction,
                (at, len),
                &mut sense,
                timeout,
            )
        }?;
        let missing = usize::try_from(header.resid).unwrap_or(0);
        buffer.truncate(buffer.len().saturating_sub(missing));
        Ok(Reply {
            status: u32::from(header.status),
            data: come(data, buffer),
            sense: sense[..usize::from(header.sb_len_wr).min(SENSE_MAX)].to_vec(),
            result: 0,
        })
    }

    /// The namespace behind an open device, a block device or a generic one.
    ///
    /// # Errors
    /// Those of the ioctls, which no device but an NVMe one knows.
    pub fn nvme_namespace(file: RawFd) -> io::Result<NvmeNamespace> {
        /// Identify, of which 0 is Identify Namespace, and its length (NVMe Base
        /// Specification 2.0, 5.17).
        const IDENTIFY: u8 = 0x06;
        const IDENTIFY_BYTES: usize = 4096;
        // SAFETY: the request takes no argument.
        let nsid = unsafe { ioctl(file, NVME_IOCTL_ID, std::ptr::null_mut::<u8>()) }?;
        let mut identity = vec![0u8; IDENTIFY_BYTES];
        let mut raw = NvmeCommand {
            opcode: IDENTIFY,
            nsid,
            addr: identity.as_mut_ptr() as u64,
            data_len: length(&identity)?,
            ..NvmeCommand::default()
        };
        // SAFETY: the structure is the kernel's, and its buffer lives and is as long as it
        // says until the call returns.
        let status = unsafe { ioctl(file, NVME_IOCTL_ADMIN_CMD, &raw mut raw) }?;
        let found = NvmeNamespace::read(nsid, &identity).filter(|_| status == 0);
        found.ok_or_else(|| io::Error::other("its namespace does not say what its blocks are"))
    }

    /// A SCSI command that moves `len` bytes from memory (`writes`) or to it, or none; how
    /// many it moved. Any status but GOOD is EIO.
    ///
    /// # Safety
    /// `data` has `len` bytes that nobody else uses until the call returns.
    ///
    /// # Errors
    /// Those of the ioctl, which no device but a SCSI one knows, and EIO.
    pub unsafe fn scsi_transfer(
        file: RawFd,
        cdb: &[u8],
        writes: bool,
        data: *mut u8,
        len: u32,
        timeout: Duration,
    ) -> io::Result<u32> {
        let direction = match (len, writes) {
            (0, _) => -1,
            (_, true) => -2,
            (_, false) => -3,
        };
        let mut sense = [0; SENSE_MAX];
        // SAFETY: the caller's promise.
        let header = unsafe { sg_io(file, cdb, direction, (data, len), &mut sense, timeout) }?;
        match header.status {
            0 => Ok(len.saturating_sub(u32::try_from(header.resid).unwrap_or(0))),
            _ => Err(io::Error::from_raw_os_error(libc::EIO)),
        }
    }

    /// # Safety
    /// The data have as many bytes as they say that nobody else uses until the call returns.
    unsafe fn sg_io(
        file: RawFd,
        cdb: &[u8],
        direction: i32,
        (data, len): (*mut u8, u32),
        sense: &mut [u8; SENSE_MAX],
        timeout: Duration,
    ) -> io::Result<SgHeader> {
        let mut header = SgHeader {
            interface_id: i32::from(b'S'),
            dxfer_direction: direction,
            cmd_len: u8::try_from(cdb.len()).map_err(|_| io::ErrorKind::InvalidInput)?,
            mx_sb_len: SENSE_MAX as u8,
            iovec_count: 0,
            dxfer_len: len,
            dxferp: data.cast(),
            cmdp: cdb.as_ptr(),
            sbp: sense.as_mut_ptr(),
            timeout: millis(timeout),
            flags: 0,
            pack_id: 0,
            usr_ptr: std::ptr::null_mut(),
            status: 0,
            masked_status: 0,
            msg_status: 0,
            sb_len_wr: 0,
            host_status: 0,
            driver_status: 0,
            resid: 0,
            duration: 0,
            info: 0,
        };
        // SAFETY: the structure is the kernel's; command, data and sense live
        // and are as long as it says until the call returns.
        unsafe { ioctl(file, SG_IO, &raw mut header) }?;
        if header.host_status != 0 {
            // The command did not reach the device, or no answer came back.
            let what = format!(
                "the host adapter gave up (host status {:#04x})",
                header.host_status
            );
            return Err(io::Error::other(what));
        }
        Ok(header)
    }

    /// # Safety
    /// `argument` is what the kernel expects for `request`.
    unsafe fn ioctl<T>(file: RawFd, request: u64, argument: *mut T) -> io::Result<u32> {
        // SAFETY: the caller's promise; the descriptor is open. The type of the
        // request differs between C libraries.
        let code = unsafe { libc::ioctl(file, request as _, argument) };
        u32::try_from(code).map_err(|_| io::Error::last_os_error())
    }

    fn buffer(data: &CommandData) -> Vec<u8> {
        match data {
            CommandData::None => Vec::new(),
            CommandData::In(bytes) => vec![0; *bytes as usize],
            CommandData::Out(bytes) => bytes.clone(),
        }
    }

    /// What came from the device; nothing of what went to it.
    fn come(data: &CommandData, buffer: Vec<u8>) -> Vec<u8> {
        match data {
            CommandData::In(_) => buffer,
            CommandData::None | CommandData::Out(_) => Vec::new(),
        }
    }

    fn length(buffer: &[u8]) -> io::Result<u32> {
        u32::try_from(buffer.len()).map_err(|_| io::ErrorKind::InvalidInput.into())
    }

    fn millis(time: Duration) -> u32 {
        u32::try_from(time.as_millis()).unwrap_or(u32::MAX)
    }
}
