//! What a disk itself counts of its duration limits: I/Os that missed one.
//!
//! SCSI disks have a log page of it, ATA disks a page of their statistics whose counters
//! each limit's descriptor chooses. Numbers of fields are those of sg_logs (sg3_utils) and
//! cdladm (cdl-tools); of counters that only drafts of the standard agree on nothing is read.

use super::{HealthProtocol, HealthQuery, ata, big, scsi};
use crate::cdl::{CdlPage, DESCRIPTORS};
use crate::command::Issue;
use crate::sys::SysBlock;

/// General Statistics and Performance, and its subpage of Command Duration Limits.
const STATISTICS: (u8, u8) = (0x19, 0x21);
/// Room for a parameter of commands and for fourteen of limits.
const BYTES: u16 = 1024;
/// Parameters of the limits of reads, and of writes: that of limit N is N more.
const PARAMETERS: [(CdlPage, u64); 2] = [(CdlPage::T2a, 0x10), (CdlPage::T2b, 0x20)];

/// The log of limits of an ATA disk: where the descriptors of reads and of writes begin,
/// and how long each is (ACS-5 9.9).
const ATA_LIMITS: u8 = 0x18;
const ATA_DESCRIPTORS: [(CdlPage, usize); 2] = [(CdlPage::T2a, 64), (CdlPage::T2b, 288)];
const ATA_DESCRIPTOR_BYTES: usize = 32;
/// Page of its Device Statistics: counters A and B of reads and of writes, seven each.
const ATA_COUNTERS: u8 = 0x09;
const ATA_COUNTERS_AT: [[usize; 2]; 2] = [[16, 128], [72, 184]];

/// How the names of these counts begin.
pub const FIGURES: &str = "cdl_";

/// Which time of a limit was missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissedTime {
    /// Until the disk began with the I/O.
    Inactive,
    /// While it worked on it.
    Active,
    /// One of these, the disk does not tell which.
    Either,
    /// The guideline for the whole of it.
    Duration,
}

impl MissedTime {
    /// The name of its count in the evidence of a record.
    pub fn figure(self, page: CdlPage, number: u8) -> String {
        let name = match self {
            Self::Inactive => "inactive",
            Self::Active => "active",
            Self::Either => "either",
            Self::Duration => "duration",
        };
        format!("{FIGURES}{}_{number}_{name}", page.name().to_lowercase())
    }
}

/// How many I/Os missed a limit, of the times that `count` knows: the guideline where the
/// limit has one, else one of the other two.
pub fn missed_limit(has_guideline: bool, count: impl Fn(MissedTime) -> Option<u64>) -> Option<u64> {
    if has_guideline {
        return count(MissedTime::Duration);
    }
    count(MissedTime::Either).or_else(|| {
        let parts = [MissedTime::Inactive, MissedTime::Active].map(count);
        parts.into_iter().flatten().reduce(|one, other| one + other)
    })
}

/// What a disk has counted of one limit since whenever it began to count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitCount {
    /// The page of the limit.
    pub page: CdlPage,
    /// Its number, from 1.
    pub number: u8,
    /// What its I/Os missed.
    pub missed: MissedTime,
    /// How many did.
    pub n: u64,
}

/// Asks a disk that has duration limits what it has counted of them; none where it counts
/// nothing. Other devices are asked nothing.
pub fn limit_counts(issue: &dyn Issue, node: &SysBlock) -> Vec<LimitCount> {
    let disk = node.whole();
    if disk.value::<u8>("device/cdl_supported") != Some(1) {
        return Vec::new();
    }
    let ask = HealthQuery {
        issue,
        path: &disk.dev_path(),
    };
    match HealthProtocol::of(&disk) {
        HealthProtocol::Scsi => of_scsi(&ask),
        HealthProtocol::Ata => of_ata(&ask),
        HealthProtocol::Nvme | HealthProtocol::Virtual => Vec::new(),
    }
}

fn of_scsi(ask: &HealthQuery) -> Vec<LimitCount> {
    let (page, subpage) = STATISTICS;
    let data = ask.data(&scsi::log_sense(page, subpage, BYTES));
    // SPF beside the page's code says that byte 1 is a subpage (SPC-5 7.3.2).
    let is_it = |data: &Vec<u8>| data.get(..2) == Some(&[0x40 | page, subpage]);
    let Some(data) = data.filter(is_it) else {
        return Vec::new();
    };
    let mut counts = Vec::new();
    for (page, before) in PARAMETERS {
        for number in 1..=DESCRIPTORS as u8 {
            let Some(counters) = scsi::parameter(&data, before + u64::from(number)) else {
                continue;
            };
            for (missed, at) in [
                (MissedTime::Inactive, 0),
                (MissedTime::Active, 4),
                (MissedTime::Duration, 8),
            ] {
                counts.extend(big(counters, at, 4).map(|n| LimitCount {
                    page,
                    number,
                    missed,
                    n,
                }));
            }
        }
    }
    counts
}

fn of_ata(ask: &HealthQuery) -> Vec<LimitCount> {
    let Some(counters) = ata::statistics_page(ask, ATA_COUNTERS) else {
        return Vec::new();
    };
    let Some(limits) = ata::log_page(ask, ATA_LIMITS) else {
        return Vec::new();
    };
    let mut counts = Vec::new();
    for ((page, from), at) in ATA_DESCRIPTORS.into_iter().zip(ATA_COUNTERS_AT) {
        for place in 0..DESCRIPTORS {
            // Bytes 12 and 13 choose what counters A and B of this limit count.
            let chosen = from + ATA_DESCRIPTOR_BYTES * place + 12;
            for (counter, at) in at.into_iter().enumerate() {
                let missed = match limits[chosen + counter] {
                    1 => MissedTime::Inactive,
                    2 => MissedTime::Active,
                    3 => MissedTime::Either,
                    // Off, or all I/Os that name it.
                    _ => continue,
                };
                counts.extend(
                    ata::statistic(&counters, at + 8 * place, 4).map(|n| LimitCount {
                        page,
                        number: place as u8 + 1,
                        missed,
                        n,
                    }),
                );
            }
        }
    }
    counts
}
