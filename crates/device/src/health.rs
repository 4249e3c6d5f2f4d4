//! What a drive says of itself: how much was written to it in all its life, how
//! worn it is, how long it has been powered.
//!
//! NVMe drives are asked for their SMART log, SCSI ones for log pages, ATA ones
//! behind a SCSI translation for their statistics. All of these only read.
//! Virtual devices say nothing, and are asked nothing. What a drive does not
//! tell, or tells in a way that cannot be believed, is `None`.

use std::path::Path;
use std::time::Duration;

use fathom_model::LedgerEvent;

use crate::command::{Command, Issue};
use crate::sys::{Sys, SysBlock, text};

mod ata;
mod limits;
mod nvme;
mod scsi;

pub use limits::{FIGURES as LIMIT_FIGURES, LimitCount, MissedTime, limit_counts, missed_limit};

/// Longest time that a drive may take to answer: the commands are of those that
/// it answers from memory. A drive that is busy erasing needs its time.
const TIMEOUT: Duration = Duration::from_secs(10);

/// What a drive says of itself.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Health {
    /// Bytes that hosts have written to it in all its life. NVMe drives count
    /// all namespaces together.
    pub host_written_bytes: Option<u64>,
    /// Bytes that hosts have read from it in all its life.
    pub host_read_bytes: Option<u64>,
    /// Share of its rated endurance that is used, in percent; may exceed 100.
    pub used_percent: Option<f64>,
    /// Spare blocks that are left, in percent of what there were.
    pub spare_percent: Option<f64>,
    /// Time it has been powered in all its life, rounded down to
    /// [`Health::powered_step`].
    pub powered: Option<Duration>,
    /// The step in which it counts that: an hour, or a minute.
    pub powered_step: Duration,
    /// How often it was switched on.
    pub power_cycles: Option<u64>,
    /// How often it lost its power without notice.
    pub unsafe_shutdowns: Option<u64>,
    /// I/Os whose data it could not give.
    pub media_errors: Option<u64>,
    /// Entries of its log of errors.
    pub error_log_entries: Option<u64>,
    /// How often it slowed itself down for its temperature.
    pub thermal_transitions: Option<u64>,
    /// How long it did so, in s.
    pub thermal_s: Option<u64>,
    /// Its temperature in °C.
    pub temperature_celsius: Option<f64>,
    /// What it warns of, each in a few words.
    pub warnings: Vec<&'static str>,
    /// Bytes that this kernel has written to it since it found it.
    pub kernel_written_bytes: Option<u64>,
    /// Which boot of the machine that kernel is.
    pub boot: Option<String>,
}

impl Health {
    /// Asks the drive behind a path; of a partition the disk it is on.
    pub fn of_path(issue: &dyn Issue, sys: &Sys, path: &Path) -> Self {
        sys.by_path(path)
            .map_or_else(Self::default, |node| Self::of(issue, sys, &node))
    }

    /// Asks a drive.
    pub fn of(issue: &dyn Issue, sys: &Sys, node: &SysBlock) -> Self {
        let disk = node.whole();
        let ask = HealthQuery {
            issue,
            path: &disk.dev_path(),
        };
        let health = match HealthProtocol::of(&disk) {
            HealthProtocol::Nvme => nvme::health(&ask),
            HealthProtocol::Scsi => scsi::health(&ask, block_bytes(&disk)),
            HealthProtocol::Ata => ata::health(&ask, block_bytes(&disk)),
            HealthProtocol::Virtual => Self::default(),
        };
        Self {
            kernel_written_bytes: disk.written_bytes(),
            boot: boot(sys),
            ..health
        }
    }

    /// As a ledger keeps it.
    pub fn seen(&self) -> LedgerEvent {
        LedgerEvent::Seen {
            host_written_bytes: self.host_written_bytes,
            used_percent: self.used_percent,
            power_on_hours: self.powered.map(|powered| powered.as_secs() / 3600),
            kernel_written_bytes: self.kernel_written_bytes,
            boot: self.boot.clone(),
        }
    }
}

/// Which boot of the machine this is.
pub fn boot(sys: &Sys) -> Option<String> {
    text(&sys.path("/proc/sys/kernel/random/boot_id"))
}

/// How a device is asked.
enum HealthProtocol {
    Nvme,
    Scsi,
    Ata,
    Virtual,
}

impl HealthProtocol {
    fn of(disk: &SysBlock) -> Self {
        if disk.dir.join("nsid").exists() {
            return Self::Nvme;
        }
        match disk.text("device/vendor") {
            Some(vendor) if vendor == "ATA" => Self::Ata,
            // The vendor of a PCI device, such as a virtio disk, is a number.
            Some(vendor) if !vendor.starts_with("0x") => Self::Scsi,
            _ => Self::Virtual,
        }
    }
}

/// A device, and the way to it.
struct HealthQuery<'a> {
    issue: &'a dyn Issue,
    path: &'a Path,
}

impl HealthQuery<'_> {
    /// The data of a command that the device has completed; a drive need not
    /// have what it is asked for.
    fn data(&self, command: &Command) -> Option<Vec<u8>> {
        let reply = self.issue.issue(self.path, command).ok()?;
        reply.is_good().then_some(reply.data)
    }
}

/// Size of a logical block in bytes.
fn block_bytes(disk: &SysBlock) -> u64 {
    disk.value("queue/logical_block_size").unwrap_or(512)
}

/// A little-endian number of up to 16 bytes at `at`; `None` beyond the end, and
/// for one that no 64 bits hold.
fn little(page: &[u8], at: usize, bytes: usize) -> Option<u64> {
    let field = page.get(at..at + bytes)?;
    let number = field
        .iter()
        .rev()
        .fold(0_u128, |number, byte| number << 8 | u128::from(*byte));
    u64::try_from(number).ok()
}

/// A big-endian number of up to 8 bytes at `at`.
fn big(page: &[u8], at: usize, bytes: usize) -> Option<u64> {
    let field = page.get(at..at + bytes)?;
    Some(
        field
            .iter()
            .fold(0, |number, byte| number << 8 | u64::from(*byte)),
    )
}

fn hours(hours: u64) -> Option<Duration> {
    Some(Duration::from_secs(hours.checked_mul(3600)?))
}
