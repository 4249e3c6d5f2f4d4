//! The Device Statistics log of an ATA drive (ACS-4 9.5), read through the SCSI
//! translation that Linux puts over it (SAT-4 12.2.2).

use std::time::Duration;

use super::{Health, HealthQuery, TIMEOUT, hours, little};
use crate::command::{Command, CommandData};

/// IDENTIFY DEVICE (ACS-4 7.12).
const IDENTIFY: u8 = 0xec;
/// READ LOG EXT (ACS-4 7.22).
const READ_LOG: u8 = 0x2f;
/// The Device Statistics log.
const STATISTICS: u8 = 0x04;
/// Its pages: which there are, general ones, errors, temperature, solid state.
const LIST: u8 = 0x00;
const GENERAL: u8 = 0x01;
const ERRORS: u8 = 0x04;
const TEMPERATURE: u8 = 0x05;
const SOLID_STATE: u8 = 0x07;
/// A page, and the answer to IDENTIFY DEVICE.
const BYTES: usize = 512;

/// ATA PASS-THROUGH (16) of a command that reads one sector by PIO: protocol 4
/// with 48-bit registers in byte 1; in byte 2 from the device, in blocks, as many
/// as the count says (SAT-4 12.2.2.3). A log's address is in LBA 7:0, its page
/// in LBA 15:8.
fn read(command: u8, log: u8, page: u8) -> Command {
    let mut cdb = vec![0; 16];
    cdb[0] = 0x85;
    cdb[1] = 4 << 1 | 1;
    cdb[2] = 0x0e;
    cdb[6] = 1;
    cdb[8] = log;
    cdb[10] = page;
    cdb[14] = command;
    Command::Scsi {
        cdb,
        data: CommandData::In(BYTES as u32),
        timeout: TIMEOUT,
    }
}

/// The command that reads who it is.
pub(super) fn identify() -> Command {
    read(IDENTIFY, 0, 0)
}

/// The command that reads a page of the statistics.
pub(super) fn statistics(page: u8) -> Command {
    read(READ_LOG, STATISTICS, page)
}

pub(super) fn health(ask: &HealthQuery, block_bytes: u64) -> Health {
    let Some(list) = statistics_list(ask) else {
        return Health::default();
    };
    let read = |page: u8| listed(ask, &list, page).unwrap_or_default();
    let (general, errors) = (read(GENERAL), read(ERRORS));
    let (temperature, solid_state) = (read(TEMPERATURE), read(SOLID_STATE));
    let moved = |at| statistic(&general, at, 6)?.checked_mul(block_bytes);
    Health {
        power_cycles: statistic(&general, 8, 4),
        powered: statistic(&general, 16, 4).and_then(hours),
        powered_step: Duration::from_secs(3600),
        host_written_bytes: moved(24),
        host_read_bytes: moved(40),
        media_errors: statistic(&errors, 8, 4),
        temperature_celsius: statistic(&temperature, 8, 1)
            .map(|degrees| f64::from(degrees as u8 as i8)),
        used_percent: statistic(&solid_state, 8, 1).map(|percent| percent as f64),
        ..Health::default()
    }
}

/// A sector that a command gives, whole.
fn sector(ask: &HealthQuery, command: &Command) -> Option<Vec<u8>> {
    ask.data(command).filter(|data| data.len() == BYTES)
}

/// Which pages of statistics there are; none of a drive without logs, which would keep a
/// command that it does not know among its errors.
fn statistics_list(ask: &HealthQuery) -> Option<Vec<u8>> {
    sector(ask, &identify()).filter(|identity| has_logs(identity))?;
    sector(ask, &statistics(LIST))
}

fn listed(ask: &HealthQuery, list: &[u8], page: u8) -> Option<Vec<u8>> {
    let is_there = has_page(list, page);
    let data = is_there.then(|| sector(ask, &statistics(page)))?;
    // Byte 2 of a page repeats its number.
    data.filter(|data| data[2] == page)
}

/// A page of the statistics, where the drive has it.
pub(super) fn statistics_page(ask: &HealthQuery, page: u8) -> Option<Vec<u8>> {
    listed(ask, &statistics_list(ask)?, page)
}

/// The first page of a log that is known to be there.
pub(super) fn log_page(ask: &HealthQuery, log: u8) -> Option<Vec<u8>> {
    sector(ask, &read(READ_LOG, log, 0))
}

/// Whether the General Purpose Logging feature set is there: bit 5 of word 84,
/// which is valid when its two highest bits are 01b (ACS-4 7.12.7.41).
fn has_logs(identity: &[u8]) -> bool {
    let word = little(identity, 2 * 84, 2).unwrap_or(0);
    word >> 14 == 0b01 && word & 1 << 5 != 0
}

/// The list's byte 8 counts the pages that follow it (ACS-4 9.5.2).
fn has_page(list: &[u8], page: u8) -> bool {
    let pages = list.get(9..).unwrap_or_default();
    let count = usize::from(list.get(8).copied().unwrap_or(0));
    pages.iter().take(count).any(|one| *one == page)
}

/// A statistic: eight bytes, in the highest of which bit 7 says that the drive
/// has it and bit 6 that its value is valid (ACS-4 9.5.1).
pub(super) fn statistic(page: &[u8], at: usize, bytes: usize) -> Option<u64> {
    let flags = page.get(at + 7)?;
    (flags >> 6 == 0b11)
        .then(|| little(page, at, bytes))
        .flatten()
}
