//! Binary block traces, as `blktrace` writes and `blkparse -d` joins them
//! (include/uapi/linux/blktrace_api.h). Only what was queued counts: everything else
//! follows from it in the block layer.

use std::io::{self, Read};

use super::{IologEntry, IologFault, IologOp, IologReader, MOST_FILES, ends_in_range};

/// The upper three bytes of a record's first field; the lowest is its version.
const MAGIC: u32 = 0x6561_7400;
const VERSION: u32 = 7;
/// Bytes of a record without what follows it.
const RECORD: usize = 48;
const SECTOR: u64 = 512;
/// What kind of I/O it is about, in the upper half of the action.
const READ: u32 = 1 << 16;
const WRITE: u32 = 1 << 17;
const FLUSH: u32 = 1 << 18;
const NOTIFY: u32 = 1 << 26;
const DISCARD: u32 = 1 << 29;
/// What was done, in its lower half.
const QUEUED: u32 = 1;
const BACK_MERGED: u32 = 2;
const FRONT_MERGED: u32 = 3;
const COMPLETED: u32 = 8;
/// Bits of a device's minor number (include/linux/kdev_t.h).
const MINOR_BITS: u32 = 20;
/// Deepest queue that is believed: stacked devices report no completions (blktrace.c,
/// read_blktrace).
const MOST_DEPTH: u32 = 1024;

/// The byte order of the machine that wrote a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByteOrder {
    Little,
    Big,
}

impl ByteOrder {
    /// That of a trace that begins like this; `None`: it is none.
    pub fn of(head: &[u8]) -> Option<Self> {
        let head: [u8; 4] = head.get(..4)?.try_into().ok()?;
        let is_magic = |order: &Self| order.u32(head) & !0xff == MAGIC;
        [Self::Little, Self::Big].into_iter().find(is_magic)
    }

    fn u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            Self::Little => u32::from_le_bytes(bytes),
            Self::Big => u32::from_be_bytes(bytes),
        }
    }

    fn u64(self, bytes: [u8; 8]) -> u64 {
        match self {
            Self::Little => u64::from_le_bytes(bytes),
            Self::Big => u64::from_be_bytes(bytes),
        }
    }
}

/// What counts of a record.
#[derive(Debug, Clone, Copy)]
pub struct TraceRecord {
    magic: u32,
    pub time_ns: u64,
    sector: u64,
    bytes: u32,
    action: u32,
    device: u32,
    /// Bytes that follow it and belong to it.
    more: u16,
}

impl TraceRecord {
    fn of(bytes: &[u8; RECORD], order: ByteOrder) -> Self {
        let four = |at: usize| {
            let field = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
            order.u32(field)
        };
        let eight = |at: usize| {
            let mut field = [0; 8];
            field.copy_from_slice(&bytes[at..at + 8]);
            order.u64(field)
        };
        let more = [bytes[46], bytes[47]];
        Self {
            magic: four(0),
            time_ns: eight(8),
            sector: eight(16),
            bytes: four(24),
            action: four(28),
            device: four(36),
            more: match order {
                ByteOrder::Little => u16::from_le_bytes(more),
                ByteOrder::Big => u16::from_be_bytes(more),
            },
        }
    }

    /// As a machine of the low byte first writes it. Who did it, on which CPU, and what
    /// followed it is no part of what is replayed.
    pub fn bytes(&self) -> [u8; RECORD] {
        let mut bytes = [0; RECORD];
        bytes[0..4].copy_from_slice(&(MAGIC | VERSION).to_le_bytes());
        bytes[8..16].copy_from_slice(&self.time_ns.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.sector.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.bytes.to_le_bytes());
        bytes[28..32].copy_from_slice(&self.action.to_le_bytes());
        bytes[36..40].copy_from_slice(&self.device.to_le_bytes());
        bytes
    }

    /// Whether it is one of an I/O that moves or drops data: others are not merged
    /// (blktrace.c, read_trace).
    pub fn is_data(&self) -> bool {
        self.op().is_some() && self.action & (READ | WRITE | DISCARD) != 0
    }

    fn done(&self) -> u32 {
        self.action & 0xffff
    }

    /// What is to be done for it; `None`: nothing is.
    fn op(&self) -> Option<IologOp> {
        if self.action & NOTIFY != 0 || self.done() != QUEUED {
            return None;
        }
        let op = if self.action & DISCARD != 0 {
            IologOp::Trim
        } else if self.action & FLUSH != 0 {
            IologOp::Sync
        } else if self.action & WRITE != 0 {
            IologOp::Write
        } else {
            IologOp::Read
        };
        Some(op)
    }
}

/// How many I/Os are under way, by direction: queued, not merged into another and not
/// completed.
#[derive(Debug, Default, Clone, Copy)]
pub struct TraceDepth {
    now: [i64; 3],
    most: [i64; 3],
    seen: bool,
}

impl TraceDepth {
    fn count(&mut self, record: &TraceRecord) {
        let kinds = [READ, WRITE, DISCARD];
        let dir = kinds.iter().position(|kind| record.action & kind != 0);
        let Some(dir) = dir.filter(|_| record.action & NOTIFY == 0) else {
            return;
        };
        match record.done() {
            QUEUED => {
                self.now[dir] += 1;
                self.seen = true;
            }
            BACK_MERGED | FRONT_MERGED => self.now[dir] -= 1,
            COMPLETED => {
                self.most[dir] = self.most[dir].max(self.now[dir]);
                self.now[dir] = 0;
            }
            _ => {}
        }
    }

    pub fn most(&self) -> u32 {
        let most = self.most.into_iter().max().unwrap_or(0);
        let most = u32::try_from(most).unwrap_or(0);
        most.clamp(u32::from(self.seen), MOST_DEPTH)
    }
}

impl IologReader {
    pub(super) fn next_of_trace(
        &mut self,
        order: ByteOrder,
    ) -> Result<Option<IologEntry>, IologFault> {
        while let Some(record) = self.record(order)? {
            self.depth.count(&record);
            let Some(op) = record.op() else { continue };
            let file = self.device(record.device)?;
            if record.bytes == 0 && op != IologOp::Sync {
                continue;
            }
            let offset = record.sector.checked_mul(SECTOR);
            let offset = match op {
                IologOp::Sync => Some(0),
                _ => offset.filter(|&offset| ends_in_range(offset, record.bytes)),
            };
            let Some(offset) = offset else {
                return Err(self.record_fault("an I/O behind the end of any device"));
            };
            return Ok(Some(IologEntry {
                op,
                file,
                offset,
                len: if op == IologOp::Sync { 0 } else { record.bytes },
                at_ns: record.time_ns,
            }));
        }
        Ok(None)
    }

    /// The next record, whatever it is about; `None` at the end.
    pub fn record(&mut self, order: ByteOrder) -> Result<Option<TraceRecord>, IologFault> {
        let mut bytes = Vec::with_capacity(RECORD);
        let read = self
            .input
            .by_ref()
            .take(RECORD as u64)
            .read_to_end(&mut bytes);
        if read.map_err(|error| self.unreadable(error))? == 0 {
            return Ok(None);
        }
        self.taken += 1;
        let Ok(whole) = <&[u8; RECORD]>::try_from(&bytes[..]) else {
            return Err(self.record_fault("the trace ends within it"));
        };
        let record = TraceRecord::of(whole, order);
        if record.magic & !0xff != MAGIC {
            return Err(self.record_fault("is none of a block trace"));
        }
        if record.magic & 0xff != VERSION {
            let what = format!("is of version {}, not {VERSION}", record.magic & 0xff);
            return Err(self.record_fault(&what));
        }
        let mut more = self.input.by_ref().take(record.more.into());
        let passed = io::copy(&mut more, &mut io::sink());
        if passed.map_err(|error| self.unreadable(error))? < u64::from(record.more) {
            return Err(self.record_fault("the trace ends within it"));
        }
        Ok(Some(record))
    }

    /// The place of a device among the files.
    fn device(&mut self, device: u32) -> Result<u32, IologFault> {
        if let Some(&place) = self.by_device.get(&device) {
            return Ok(place);
        }
        let (major, minor) = (device >> MINOR_BITS, device & ((1 << MINOR_BITS) - 1));
        let name = (self.device_name)(major, minor).ok_or_else(|| {
            let what =
                format!("its device {major}:{minor} is not here: add replay_redirect=DEVICE");
            self.record_fault(&what)
        })?;
        let place = self.add_file(&name).ok_or_else(|| {
            let what = format!("the trace is of more than {MOST_FILES} devices");
            self.record_fault(&what)
        })?;
        self.by_device.insert(device, place);
        Ok(place)
    }

    fn record_fault(&self, what: &str) -> IologFault {
        IologFault::Record {
            name: self.name.clone(),
            number: self.taken,
            what: what.to_owned(),
        }
    }
}
