//! Pages of a SCSI disk: which it has (REPORT SUPPORTED OPERATION CODES), reading
//! one (MODE SENSE) and uploading one (MODE SELECT).

use std::io;
use std::path::Path;
use std::time::Duration;

use super::wire::{self, BYTES, NotAPage};
use super::{CdlPage, Page};
use crate::command::{Command, CommandData, Issue, Reply};

/// These commands move no data of the medium; the kernel allows its own as much
/// (`SD_TIMEOUT`, drivers/scsi/sd.h).
const TIMEOUT: Duration = Duration::from_secs(30);
/// Head of the parameter list of MODE SENSE(10) and MODE SELECT(10) (SPC-6 7.5.6).
const MODE_HEAD: usize = 8;
/// Room for the head, block descriptors and the page.
const MODE_BYTES: u16 = 512;

/// What a disk did not do.
#[derive(Debug, thiserror::Error)]
pub enum ScsiError {
    /// The command could not be given.
    #[error("{command}: {source}")]
    Io {
        /// What was to be done.
        command: String,
        /// What the system said.
        source: io::Error,
    },
    /// The disk refused it.
    #[error("{command}: the disk refused it ({why})")]
    Refused {
        /// What was to be done.
        command: String,
        /// Its sense data.
        why: String,
    },
    /// It answered with something else.
    #[error(transparent)]
    NotAPage(#[from] NotAPage),
    /// What was read back is not what was uploaded.
    #[error("the disk did not take page {kind} as it is: {}", differences.join("; "))]
    Other {
        /// The page.
        kind: CdlPage,
        /// How it differs.
        differences: Vec<String>,
    },
}

/// Sense key and codes, as the kernel logs them (SPC-6 4.4: fixed or descriptor
/// format).
pub fn sense(reply: &Reply) -> String {
    let sense = &reply.sense;
    let at = |place: usize| sense.get(place).copied().unwrap_or(0);
    let (key, asc, ascq) = match at(0) & 0x7f {
        0x72 | 0x73 => (at(1), at(2), at(3)),
        0x70 | 0x71 => (at(2), at(12), at(13)),
        _ => return format!("status {:#04x}, without sense data", reply.status),
    };
    let name = match key & 0xf {
        0x2 => "not ready",
        0x3 => "medium error",
        0x4 => "hardware error",
        0x5 => "illegal request",
        0x6 => "unit attention",
        0x7 => "data protect",
        0xb => "aborted command",
        _ => "sense key",
    };
    format!("{name} {:x}h, {asc:02x}h/{ascq:02x}h", key & 0xf)
}

fn give(
    issue: &dyn Issue,
    disk: &Path,
    what: &str,
    cdb: &[u8],
    data: CommandData,
) -> Result<Reply, ScsiError> {
    let command = Command::Scsi {
        cdb: cdb.to_vec(),
        data,
        timeout: TIMEOUT,
    };
    let named = || what.to_owned();
    let given = issue.issue(disk, &command);
    let mut reply = given.map_err(|source| ScsiError::Io {
        command: named(),
        source,
    })?;
    // A unit attention tells of something before this command (SAM-6 5.14); the
    // command itself was not tried.
    if !reply.is_good() && sense(&reply).starts_with("unit attention") {
        reply = issue
            .issue(disk, &command)
            .map_err(|source| ScsiError::Io {
                command: named(),
                source,
            })?;
    }
    match reply.is_good() {
        true => Ok(reply),
        false => Err(ScsiError::Refused {
            command: named(),
            why: sense(&reply),
        }),
    }
}

/// Which page limits a command, as the disk reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CdlPages {
    /// The command knows no limits.
    None,
    /// Those of this page.
    Page(CdlPage),
    /// Those of page A or B, the older kind, which Linux does not use for reads
    /// and writes either.
    Older,
}

/// Asks which page limits READ(16) or WRITE(16): the commands in which Linux
/// hands limits down.
///
/// # Errors
/// When the disk does not know the question.
pub fn limits(issue: &dyn Issue, disk: &Path, kind: CdlPage) -> Result<CdlPages, ScsiError> {
    let opcode = match kind {
        CdlPage::T2a => 0x88,
        CdlPage::T2b => 0x8a,
    };
    // MAINTENANCE IN, service action 0Ch, one command by its opcode (SPC-6 6.35);
    // 20 bytes are the answer of a command with a 16-byte CDB.
    let cdb = [0xa3, 0x0c, 0x01, opcode, 0, 0, 0, 0, 0, 20, 0, 0];
    let what = format!("REPORT SUPPORTED OPERATION CODES {opcode:02x}h");
    let reply = give(issue, disk, &what, &cdb, CommandData::In(20))?;
    let [rwcdlp, support, ..] = reply.data[..] else {
        return Ok(CdlPages::None);
    };
    // SUPPORT 011b is "as the standard says"; CDLP is bits 3 and 4, and RWCDLP
    // says which pages it means (as in `scsi_cdl_check_cmd`, drivers/scsi/scsi.c).
    Ok(match (support & 7, support >> 3 & 3, rwcdlp & 1) {
        (3, 1, 1) => CdlPages::Page(CdlPage::T2a),
        (3, 2, 1) => CdlPages::Page(CdlPage::T2b),
        (3, 1 | 2, _) => CdlPages::Older,
        _ => CdlPages::None,
    })
}

/// What MODE SENSE gave: all that MODE SELECT needs to send it back.
#[derive(Debug, Clone)]
struct Sensed {
    /// DEVICE-SPECIFIC PARAMETER and the others of the head.
    head: [u8; MODE_HEAD],
    page: [u8; BYTES],
}

fn mode_sense(issue: &dyn Issue, disk: &Path, kind: CdlPage) -> Result<Sensed, ScsiError> {
    let [high, low] = MODE_BYTES.to_be_bytes();
    // DBD: no block descriptors; current values (SPC-6 6.14).
    let cdb = [
        0x5a,
        0x08,
        wire::CONTROL,
        kind.subpage(),
        0,
        0,
        0,
        high,
        low,
        0,
    ];
    let what = format!("MODE SENSE page {kind}");
    let reply = give(issue, disk, &what, &cdb, CommandData::In(MODE_BYTES.into()))?;
    let short = || NotAPage {
        kind,
        what: format!("{} bytes came", reply.data.len()),
    };
    let (head, rest) = reply
        .data
        .split_first_chunk::<MODE_HEAD>()
        .ok_or_else(short)?;
    let blocks = usize::from(u16::from_be_bytes([head[6], head[7]]));
    let page = rest
        .get(blocks..)
        .and_then(|page| page.first_chunk::<BYTES>());
    Ok(Sensed {
        head: *head,
        page: *page.ok_or_else(short)?,
    })
}

fn mode_select(
    issue: &dyn Issue,
    disk: &Path,
    kind: CdlPage,
    sensed: &Sensed,
) -> Result<(), ScsiError> {
    let mut list = sensed.head.to_vec();
    // MODE DATA LENGTH is reserved here, WP and DPOFUA too, and no block
    // descriptors come along (SPC-6 6.11, SBC-5 6.5.1).
    list[..2].fill(0);
    list[3] = 0;
    list[6..].fill(0);
    list.extend(sensed.page);
    // The PS bit of a page is reserved when it is sent.
    list[MODE_HEAD] &= 0x7f;
    let [high, low] = (list.len() as u16).to_be_bytes();
    // PF: pages as the standard has them; not saved, so that a power cycle
    // brings back what the disk has in store.
    let cdb = [0x55, 0x10, 0, 0, 0, 0, 0, high, low, 0];
    let what = format!("MODE SELECT page {kind}");
    give(issue, disk, &what, &cdb, CommandData::Out(list)).map(drop)
}

/// Reads a page; its bytes come along, for [`put_back`].
///
/// # Errors
/// When the disk has no such page, or does not answer.
pub fn read(
    issue: &dyn Issue,
    disk: &Path,
    kind: CdlPage,
) -> Result<(Page, [u8; BYTES]), ScsiError> {
    let sensed = mode_sense(issue, disk, kind)?;
    Ok((wire::decode(kind, &sensed.page)?, sensed.page))
}

/// Uploads a page and reads it back.
///
/// # Errors
/// When the disk refuses it, or has something else afterwards.
pub fn upload(issue: &dyn Issue, disk: &Path, page: &Page) -> Result<(), ScsiError> {
    let mut sensed = mode_sense(issue, disk, page.kind)?;
    wire::encode_over(page, &mut sensed.page);
    mode_select(issue, disk, page.kind, &sensed)?;
    check(issue, disk, page)
}

/// Uploads the bytes of a page that was read before, and reads it back.
///
/// # Errors
/// When the disk refuses it, or has something else afterwards.
pub fn put_back(
    issue: &dyn Issue,
    disk: &Path,
    kind: CdlPage,
    bytes: &[u8; BYTES],
) -> Result<(), ScsiError> {
    let mut sensed = mode_sense(issue, disk, kind)?;
    sensed.page = *bytes;
    mode_select(issue, disk, kind, &sensed)?;
    check(issue, disk, &wire::decode(kind, bytes)?)
}

fn check(issue: &dyn Issue, disk: &Path, page: &Page) -> Result<(), ScsiError> {
    let (have, _) = read(issue, disk, page.kind)?;
    let differences = page.differences(&have);
    match differences.is_empty() {
        true => Ok(()),
        false => Err(ScsiError::Other {
            kind: page.kind,
            differences,
        }),
    }
}
