//! The frames that fio's client and server exchange, as far as somebody between
//! the two must understand them.
//!
//! The layout of the head has been the same since client and server exist
//! (`struct fio_net_cmd` in server.h, little-endian): version, operation, flags,
//! tag, length of the payload, and a CRC-16 each of what stands before and of
//! the payload. What a payload holds depends on the version, so that only those
//! are looked into that can be checked.

/// Length of a frame's head.
pub const HEAD_BYTES: usize = 24;
/// The part of it that its own checksum covers.
const CHECKED_BYTES: usize = 20;
/// No frame of fio is longer: payloads are cut into pieces of 1 KiB
/// (`FIO_SERVER_MAX_FRAGMENT_PDU`), in old versions up to a whole histogram.
const PAYLOAD_BYTES_MAX: u32 = 64 << 20;
/// Set in all pieces of a payload but the last (`FIO_NET_CMD_F_MORE`).
const MORE: u32 = 1;

/// Operations (`enum` in server.h).
pub mod op {
    /// The sender has nothing more to say.
    pub const QUIT: u16 = 1;
    /// A line of output.
    pub const TEXT: u16 = 5;
    /// Figures of a job.
    pub const TS: u16 = 6;
    /// How far are you?
    pub const SEND_ETA: u16 = 8;
    /// So far.
    pub const ETA: u16 = 9;
    /// Who are you?
    pub const PROBE: u16 = 10;
    /// The jobs are understood; how many there are.
    pub const START: u16 = 11;
    /// The jobs have ended; with which error.
    pub const STOP: u16 = 12;
    /// The jobs begin.
    pub const SERVER_START: u16 = 14;
    /// Begin.
    pub const RUN: u16 = 16;
    /// A log that a job wrote.
    pub const IOLOG: u16 = 17;
    /// Run a command.
    pub const VTRIGGER: u16 = 20;
    /// Send a file of yours.
    pub const SENDFILE: u16 = 21;
}

/// A whole frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'b> {
    /// Version of the sender's protocol.
    pub version: u16,
    /// What it wants.
    pub op: u16,
    /// Tag that an answer carries back.
    pub tag: u64,
    /// Whether the payload goes on in the next frame.
    pub more: bool,
    /// What came with it.
    pub payload: &'b [u8],
    /// The frame as it came.
    pub bytes: &'b [u8],
}

/// Bytes that are no frame of fio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoFrame;

/// The frame at the beginning of `bytes`; `None` when it is not whole yet.
///
/// # Errors
/// When it is none.
pub fn first(bytes: &[u8]) -> Result<Option<Frame<'_>>, NoFrame> {
    let Some(head) = bytes.get(..HEAD_BYTES) else {
        return Ok(None);
    };
    let length = u32_at(head, 16);
    if crc16(&head[..CHECKED_BYTES]) != u16_at(head, 20) || length > PAYLOAD_BYTES_MAX {
        return Err(NoFrame);
    }
    let whole = HEAD_BYTES + length as usize;
    let Some(bytes) = bytes.get(..whole) else {
        return Ok(None);
    };
    Ok(Some(Frame {
        version: u16_at(head, 0),
        op: u16_at(head, 2),
        tag: u64_at(head, 8),
        more: u32_at(head, 4) & MORE != 0,
        payload: &bytes[HEAD_BYTES..],
        bytes,
    }))
}

/// A frame without payload.
pub fn simple(version: u16, op: u16, tag: u64) -> [u8; HEAD_BYTES] {
    let mut head = [0; HEAD_BYTES];
    head[0..2].copy_from_slice(&version.to_le_bytes());
    head[2..4].copy_from_slice(&op.to_le_bytes());
    head[8..16].copy_from_slice(&tag.to_le_bytes());
    let crc = crc16(&head[..CHECKED_BYTES]);
    head[20..22].copy_from_slice(&crc.to_le_bytes());
    head
}

/// What a server says of its jobs when asked how far they are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ServerProgress {
    /// Jobs that do I/O.
    pub running: u32,
    /// Jobs that are ramping up.
    pub ramping: u32,
    /// Bytes per second since it was asked before; read, write, trim. fio cuts
    /// them to whole KiB.
    pub bw_bytes: [u64; 3],
    /// I/Os per second since then.
    pub iops: [u32; 3],
    /// Seconds until all have ended, where it can tell.
    pub left_s: u64,
}

/// Longest payload of which the length alone does not tell that it is wrong:
/// the fixed part and a letter for each of the at most 4096 jobs.
const PROGRESS_BYTES: std::ops::RangeInclusive<usize> = 164..=1024;

/// Reads `struct jobs_eta` (stat.h), whose fields up to the estimate have been
/// the same since fio 2.2.12; `None` when the payload cannot be one.
pub fn progress(payload: &[u8]) -> Option<ServerProgress> {
    if !PROGRESS_BYTES.contains(&payload.len()) {
        return None;
    }
    // m_rate, t_rate, rate of three directions, then the same of IOPS.
    let rate = |dir: usize| u64_at(payload, 16 + 8 * (6 + dir)).checked_mul(1024);
    let iops = |dir: usize| u32_at(payload, 88 + 4 * (6 + dir));
    Some(ServerProgress {
        running: u32_at(payload, 0),
        ramping: u32_at(payload, 4),
        bw_bytes: [rate(0)?, rate(1)?, rate(2)?],
        iops: [iops(0), iops(1), iops(2)],
        left_s: u64_at(payload, 136),
    })
}

/// The lines of a TEXT (`struct cmd_text_pdu`: level, length, two times, text).
pub fn text(payload: &[u8]) -> String {
    String::from_utf8_lossy(payload.get(24..).unwrap_or_default())
        .trim_end_matches('\0')
        .to_owned()
}

/// Host name and fio's version in the answer to a PROBE (`struct
/// cmd_probe_reply_pdu`: 64 bytes of name, one of endianness, 32 of version).
pub fn probe(payload: &[u8]) -> (Option<String>, Option<String>) {
    let word = |range: std::ops::Range<usize>| {
        let bytes = payload.get(range)?;
        let end = bytes.iter().position(|&byte| byte == 0)?;
        let text = std::str::from_utf8(&bytes[..end]).ok()?;
        (!text.is_empty() && text.chars().all(|c| c.is_ascii_graphic())).then(|| text.to_owned())
    };
    let version = [65usize, 68]
        .into_iter()
        .find_map(|at| word(at..payload.len()).filter(|text| text.starts_with("fio-")));
    (word(0..64), version)
}

/// The error that a STOP carries, an errno.
pub fn error(payload: &[u8]) -> i32 {
    match payload.len() {
        0..4 => 0,
        _ => i32::from_le_bytes([payload[0], payload[1], payload[2], payload[3]]),
    }
}

/// How many jobs will report, by a START; `None` when it does not say.
pub fn reports(payload: &[u8]) -> Option<u32> {
    (payload.len() >= 8).then(|| u32_at(payload, 4))
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from(u16_at(bytes, at)) | u32::from(u16_at(bytes, at + 2)) << 16
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

/// CRC-16/ARC, as fio uses it (crc/crc16.c): polynomial 0x8005, reflected.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, &byte| {
        (0..8).fold(crc ^ u16::from(byte), |crc, _| match crc & 1 {
            0 => crc >> 1,
            _ => (crc >> 1) ^ 0xa001,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_the_published_one() {
        // The check value of CRC-16/ARC in the catalogue of parametrised CRCs.
        assert_eq!(crc16(b"123456789"), 0xbb3d);
    }

    #[test]
    fn a_frame_reads_back_whatever_has_come_of_it() {
        let bytes = simple(97, op::SEND_ETA, 0x1234_5678_9abc);
        for end in 0..HEAD_BYTES {
            assert_eq!(first(&bytes[..end]), Ok(None), "{end}");
        }
        let frame = first(&bytes).unwrap().unwrap();
        assert_eq!((frame.version, frame.op), (97, op::SEND_ETA));
        assert_eq!((frame.tag, frame.more), (0x1234_5678_9abc, false));
        let mut wrong = bytes;
        wrong[3] ^= 1;
        assert_eq!(first(&wrong), Err(NoFrame));
        assert_eq!(
            first(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
            Err(NoFrame),
            "another service"
        );
    }

    #[test]
    fn progress_is_read_at_fios_places() {
        let mut payload = vec![0u8; 173];
        payload[0] = 2;
        payload[4] = 1;
        payload[64..72].copy_from_slice(&45_853u64.to_le_bytes());
        payload[112..116].copy_from_slice(&11_463u32.to_le_bytes());
        payload[136] = 9;
        let read = progress(&payload).unwrap();
        assert_eq!((read.running, read.ramping, read.left_s), (2, 1, 9));
        assert_eq!(read.bw_bytes, [45_853 * 1024, 0, 0]);
        assert_eq!(read.iops, [11_463, 0, 0]);
        assert_eq!(progress(&payload[..100]), None);
    }

    #[test]
    fn who_a_server_is_stands_in_its_answer() {
        let mut payload = vec![0u8; 112];
        payload[..2].copy_from_slice(b"vm");
        payload[65..73].copy_from_slice(b"fio-3.33");
        assert_eq!(
            probe(&payload),
            (Some("vm".into()), Some("fio-3.33".into()))
        );
        assert_eq!(probe(b"\xff"), (None, None));
    }
}
