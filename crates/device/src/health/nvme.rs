//! The SMART / Health Information log of an NVMe drive (NVMe Base Specification
//! 2.0, 5.16.1.3).

use std::time::Duration;

use super::{Health, HealthQuery, TIMEOUT, hours, little};
use crate::command::{Command, CommandData};

/// Get Log Page (NVMe Base Specification 2.0, 5.16).
const GET_LOG_PAGE: u8 = 0x02;
/// SMART / Health Information.
const SMART: u32 = 0x02;
/// Its length in bytes.
const BYTES: u32 = 512;
/// The log of the whole controller: few drives have one for each namespace.
const ALL_NAMESPACES: u32 = 0xffff_ffff;
/// Data units are thousands of 512 bytes.
const UNIT_BYTES: u64 = 512_000;

/// What each bit of the critical warning says.
const WARNINGS: [&str; 6] = [
    "few spare blocks are left",
    "it is too hot or too cold",
    "its media are no longer reliable",
    "its media are read-only",
    "its memory is not backed up against a loss of power",
    "its persistent memory region is read-only",
];

/// The command that reads it: the number of dwords is counted from 0, its low
/// half in the high half of dword 10.
pub(super) fn command() -> Command {
    Command::Nvme {
        opcode: GET_LOG_PAGE,
        nsid: ALL_NAMESPACES,
        dwords: [(BYTES / 4 - 1) << 16 | SMART, 0, 0, 0, 0, 0],
        data: CommandData::In(BYTES),
        timeout: TIMEOUT,
    }
}

pub(super) fn health(ask: &HealthQuery) -> Health {
    match ask.data(&command()) {
        Some(page) if page.len() >= BYTES as usize => of(&page),
        _ => Health::default(),
    }
}

fn of(page: &[u8]) -> Health {
    let number = |at, bytes| little(page, at, bytes);
    // Zero data units and zero kelvins stand for "not reported".
    let told = |number: Option<u64>| number.filter(|number| *number > 0);
    let units = |at| told(number(at, 16))?.checked_mul(UNIT_BYTES);
    let kelvins = told(number(1, 2));
    let warned = |bit: &usize| page[0] & 1 << bit != 0;
    Health {
        warnings: (0..WARNINGS.len())
            .filter(warned)
            .map(|bit| WARNINGS[bit])
            .collect(),
        temperature_celsius: kelvins.map(|kelvins| kelvins as f64 - 273.0),
        spare_percent: number(3, 1).map(|percent| percent as f64),
        used_percent: number(5, 1).map(|percent| percent as f64),
        host_read_bytes: units(32),
        host_written_bytes: units(48),
        power_cycles: number(112, 16),
        powered: number(128, 16).and_then(hours),
        powered_step: Duration::from_secs(3600),
        unsafe_shutdowns: number(144, 16),
        media_errors: number(160, 16),
        error_log_entries: number(176, 16),
        // Light and heavy throttling together.
        thermal_transitions: both(number(216, 4), number(220, 4)),
        thermal_s: both(number(224, 4), number(228, 4)),
        ..Health::default()
    }
}

fn both(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    Some(one?.saturating_add(other?))
}
