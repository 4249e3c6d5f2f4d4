//! What a zoned block device says of its zones, and resets (include/uapi/linux/blkzoned.h).

#![allow(unsafe_code)] // each block says why it is sound

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

use super::table::Zone;

/// `_IOWR(0x12, 130, struct blk_zone_report)`, `_IOW(0x12, 131, struct blk_zone_range)`.
const BLKREPORTZONE: u64 = 0xc010_1282;
const BLKRESETZONE: u64 = 0x4010_1283;
const SECTOR: u64 = 512;
/// Zones that are asked for at once: 512 KiB.
const AT_ONCE: usize = 8192;
/// Capacities are told.
const HAS_CAPACITY: u32 = 1;
const CONVENTIONAL: u8 = 1;
const SEQUENTIAL_REQUIRED: u8 = 2;
const SEQUENTIAL_PREFERRED: u8 = 3;
/// Conditions.
const NOT_WP: u8 = 0;
const EMPTY: u8 = 1;
const OPEN: std::ops::RangeInclusive<u8> = 2..=3;
const CLOSED: u8 = 4;
const FULL: u8 = 14;

/// `struct blk_zone`; places in sectors.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct BlkZone {
    start: u64,
    len: u64,
    wp: u64,
    kind: u8,
    cond: u8,
    non_seq: u8,
    reset: u8,
    resv: [u8; 4],
    capacity: u64,
    reserved: [u8; 24],
}

/// `struct blk_zone_report` with its zones.
#[repr(C)]
struct ZoneReport {
    sector: u64,
    nr_zones: u32,
    flags: u32,
    zones: [BlkZone; AT_ONCE],
}

/// All zones of a device of `bytes`, and their size.
pub(super) fn zones(block: &Path, bytes: u64) -> io::Result<(Vec<Zone>, u64)> {
    let file = File::open(block)?;
    let mut zones = Vec::new();
    let (mut from, mut size) = (0, 0);
    while from < bytes {
        let report = ask(&file, from)?;
        let told = &report.zones[..(report.nr_zones as usize).min(AT_ONCE)];
        let Some(first) = told.first() else {
            return Err(odd("says nothing of some of its zones"));
        };
        if zones.is_empty() {
            size = first.len.saturating_mul(SECTOR);
        }
        for blk in told {
            let zone = zone(blk, report.flags & HAS_CAPACITY != 0)?;
            if size == 0 || zone.start != zones.len() as u64 * size {
                return Err(odd("has zones of several sizes"));
            }
            zones.push(zone);
        }
        from = zones.len() as u64 * size;
    }
    Ok((zones, size))
}

fn odd(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the device {what}"))
}

fn ask(file: &File, from: u64) -> io::Result<Box<ZoneReport>> {
    let mut report: Box<ZoneReport> = Box::new(ZoneReport {
        sector: from / SECTOR,
        nr_zones: AT_ONCE as u32,
        flags: 0,
        zones: [BlkZone::default(); AT_ONCE],
    });
    // SAFETY: the structure is the kernel's and has room for as many zones as it says.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), BLKREPORTZONE as _, &raw mut *report) };
    match result {
        0 => Ok(report),
        _ => Err(io::Error::last_os_error()),
    }
}

fn zone(blk: &BlkZone, has_capacity: bool) -> io::Result<Zone> {
    let bytes = |sectors: u64| sectors.saturating_mul(SECTOR);
    let sequential = match blk.kind {
        CONVENTIONAL | SEQUENTIAL_PREFERRED => false,
        SEQUENTIAL_REQUIRED => true,
        _ => return Err(odd("has a zone of an unknown type")),
    };
    let (start, len) = (bytes(blk.start), bytes(blk.len));
    let capacity = match has_capacity {
        true => bytes(blk.capacity),
        false => len,
    };
    let offline = !(matches!(blk.cond, NOT_WP | EMPTY | CLOSED | FULL) || OPEN.contains(&blk.cond));
    let pointer = match blk.cond {
        NOT_WP | FULL => start.saturating_add(capacity),
        _ if offline => start,
        _ => bytes(blk.wp),
    };
    if capacity > len || !(start..=start.saturating_add(len)).contains(&pointer) {
        return Err(odd("has a zone that is written beyond its end"));
    }
    Ok(Zone {
        start,
        pointer,
        capacity,
        sequential,
        offline,
        was_open: OPEN.contains(&blk.cond),
    })
}

/// Empties the zone of these bytes.
pub(super) fn reset(file: &File, start: u64, len: u64) -> io::Result<()> {
    let range = [start / SECTOR, len / SECTOR];
    // SAFETY: the request takes a pointer to two 64-bit numbers.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), BLKRESETZONE as _, range.as_ptr()) };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_what_the_kernel_says_of_them() {
        assert_eq!(size_of::<BlkZone>(), 64);
        assert_eq!(std::mem::offset_of!(ZoneReport, zones), 16);
        let blk = |kind, cond, wp| BlkZone {
            start: 8192,
            len: 8192,
            wp,
            kind,
            cond,
            capacity: 6144,
            ..BlkZone::default()
        };
        let of = |blk: BlkZone| zone(&blk, true).unwrap();
        let open = of(blk(2, 2, 8200));
        assert_eq!((open.pointer, open.sequential), (8200 * 512, true));
        assert!(open.was_open && !open.offline);
        assert_eq!(of(blk(2, 14, 0)).pointer, (8192 + 6144) * 512);
        let dead = of(blk(2, 13, 9000));
        assert!(dead.offline && dead.pointer == dead.start);
        assert!(!of(blk(1, 0, u64::MAX)).sequential);
        assert_eq!(zone(&blk(1, 0, 0), false).unwrap().capacity, 8192 * 512);
        assert!(zone(&blk(7, 0, 0), true).is_err());
        assert!(zone(&blk(2, 2, 99_000), true).is_err());
    }
}
