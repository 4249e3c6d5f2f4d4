//! Log pages of a SCSI drive (LOG SENSE: SPC-5 6.10; pages: SPC-5 7.3, SBC-4 6.4).

use std::time::Duration;

use super::{Health, HealthQuery, TIMEOUT, big};
use crate::command::{Command, CommandData};

/// LOG SENSE.
const LOG_SENSE: u8 = 0x4d;
/// The values as they are now, in the page control field.
const CUMULATIVE: u8 = 0x40;
/// Room for a page: all that are asked for are shorter, but for the scan results
/// at the end of page 15h, which nobody reads here.
const BYTES: u16 = 512;

/// Temperature (SPC-5 7.3.24), parameter 0000h.
const TEMPERATURE: u8 = 0x0d;
/// Solid State Media (SBC-4 6.4.9), parameter 0001h.
const SOLID_STATE: u8 = 0x11;
/// Background Scan (SBC-4 6.4.2), parameter 0000h.
const BACKGROUND_SCAN: u8 = 0x15;
/// General Statistics and Performance (SPC-5 7.3.9), parameter 0001h.
const STATISTICS: u8 = 0x19;

/// The command that reads a page.
pub(super) fn command(page: u8) -> Command {
    log_sense(page, 0, BYTES)
}

/// The command that reads so much of a subpage.
pub(super) fn log_sense(page: u8, subpage: u8, bytes: u16) -> Command {
    let [high, low] = bytes.to_be_bytes();
    Command::Scsi {
        cdb: vec![
            LOG_SENSE,
            0,
            CUMULATIVE | page,
            subpage,
            0,
            0,
            0,
            high,
            low,
            0,
        ],
        data: CommandData::In(u32::from(bytes)),
        timeout: TIMEOUT,
    }
}

pub(super) fn health(ask: &HealthQuery, block_bytes: u64) -> Health {
    let read = |page: u8| {
        let data = ask.data(&command(page));
        // Some drives answer with another page than the one they lack.
        data.filter(|data| data.first().is_some_and(|first| first & 0x3f == page))
    };
    // Logical blocks that the drive received from, and transmitted to, hosts.
    let statistics = read(STATISTICS);
    let moved = |at| {
        let blocks = big(parameter(statistics.as_deref()?, 1)?, at, 8)?;
        blocks.checked_mul(block_bytes)
    };
    let solid_state = read(SOLID_STATE);
    let used = || big(parameter(solid_state.as_deref()?, 1)?, 3, 1);
    let scan = read(BACKGROUND_SCAN);
    let minutes = || big(parameter(scan.as_deref()?, 0)?, 0, 4);
    let temperature = read(TEMPERATURE);
    // FFh: it could not be read.
    let celsius = || {
        let degrees = big(parameter(temperature.as_deref()?, 0)?, 1, 1)?;
        (degrees != 0xff).then_some(degrees)
    };
    Health {
        host_written_bytes: moved(16),
        host_read_bytes: moved(24),
        used_percent: used().map(|percent| percent as f64),
        powered: minutes().map(|minutes| Duration::from_secs(minutes * 60)),
        powered_step: Duration::from_secs(60),
        temperature_celsius: celsius().map(|degrees| degrees as f64),
        ..Health::default()
    }
}

/// The value of a parameter: its code is in bytes 0 and 1, its length in byte 3.
pub(super) fn parameter(page: &[u8], code: u64) -> Option<&[u8]> {
    let length = usize::try_from(big(page, 2, 2)?).ok()?;
    let mut rest = page.get(4..page.len().min(4 + length))?;
    loop {
        let end = 4 + usize::from(*rest.get(3)?);
        if big(rest, 0, 2)? == code {
            return rest.get(4..end);
        }
        rest = rest.get(end..)?;
    }
}
