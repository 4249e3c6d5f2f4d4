//! What a SCSI device can do, and its commands.
//!
//! Clauses are those of SPC-5 and SBC-4.

use std::path::Path;
use std::time::Duration;

use super::follow::PurgeState;
use super::method::SanitizeAction;
use crate::command::{Command, CommandData, Issue, Reply};

/// Operation codes (SPC-5 table D.2).
const REQUEST_SENSE: u8 = 0x03;
const FORMAT_UNIT: u8 = 0x04;
const INQUIRY: u8 = 0x12;
const SANITIZE: u8 = 0x48;
const SERVICE_ACTION_IN: u8 = 0x9e;
const MAINTENANCE_IN: u8 = 0xa3;
const ASK: Duration = Duration::from_secs(30);
/// What REQUEST SENSE and INQUIRY are asked for; the most that they can give.
const SENSE_BYTES: u8 = 252;
const PAGE_BYTES: u16 = 255;

/// What the device says; what it does not say is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scsi {
    /// Sanitize by block erase, crypto erase and overwrite.
    sanitize: [Option<bool>; 3],
    /// FORMAT UNIT.
    pub format: Option<bool>,
    /// Blocks that were unmapped read as zeros (LBPRZ of READ CAPACITY(16)).
    pub zeros: bool,
    /// Type of protection information in force; 0 is none.
    protection: u8,
    /// VPD page 89h is there: it is an ATA drive behind a translation.
    pub ata: bool,
}

impl Scsi {
    /// Asks the device.
    pub(super) fn find(path: &Path, issue: &dyn Issue) -> Self {
        let mut this = Self {
            sanitize: [
                SanitizeAction::Block,
                SanitizeAction::Crypto,
                SanitizeAction::Overwrite,
            ]
            .map(|action| supports(path, issue, SANITIZE, Some(service_action(action)))),
            format: supports(path, issue, FORMAT_UNIT, None),
            ..Self::default()
        };
        if let Some(capacity) = ask(path, issue, read_capacity(), 32)
            && let (Some(&byte12), Some(&byte14)) = (capacity.get(12), capacity.get(14))
        {
            // LBPME and LBPRZ; PROT_EN and P_TYPE (SBC-4 table 108).
            this.zeros = byte14 & 0xc0 == 0xc0;
            this.protection = if byte12 & 1 == 1 {
                (byte12 >> 1 & 7) + 1
            } else {
                0
            };
        }
        // Page 00h lists the pages that there are (SPC-5 7.7.16).
        let pages = ask(path, issue, inquiry(0), u32::from(PAGE_BYTES)).unwrap_or_default();
        let count = pages.get(3).map_or(0, |&count| usize::from(count));
        this.ata = pages.iter().skip(4).take(count).any(|&page| page == 0x89);
        this
    }

    /// Whether there is this action of SANITIZE; `None`: the device does not say.
    pub(super) fn sanitizes(&self, action: SanitizeAction) -> Option<bool> {
        self.sanitize[match action {
            SanitizeAction::Block => 0,
            SanitizeAction::Crypto => 1,
            SanitizeAction::Overwrite => 2,
        }]
    }

    /// SANITIZE (SBC-4 5.35), which answers at once and is followed (IMMED).
    /// Overwriting: once, with four bytes of zeros (table 122).
    pub(super) fn sanitize(action: SanitizeAction) -> (Command, &'static str) {
        let parameters = match action {
            SanitizeAction::Overwrite => vec![1, 0, 0, 4, 0, 0, 0, 0],
            SanitizeAction::Block | SanitizeAction::Crypto => Vec::new(),
        };
        let mut cdb = vec![
            SANITIZE,
            0x80 | service_action(action),
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
        ];
        cdb[8] = parameters.len() as u8;
        let data = match parameters.is_empty() {
            true => CommandData::None,
            false => CommandData::Out(parameters),
        };
        let timeout = ASK;
        let like = match action {
            SanitizeAction::Block => "sg_sanitize --block --quick",
            SanitizeAction::Crypto => "sg_sanitize --crypto --quick",
            SanitizeAction::Overwrite => "sg_sanitize --overwrite --zero --quick",
        };
        (Command::Scsi { cdb, data, timeout }, like)
    }

    /// FORMAT UNIT (SBC-4 5.4) with a short parameter list that says IMMED and
    /// nothing else; protection information stays as it is (FMTPINFO, table 44).
    pub(super) fn format(&self) -> (Command, String) {
        let (information, usage) = match self.protection {
            0 => (0, 0),
            1 => (2, 0),
            2 => (3, 0),
            _ => (3, 1),
        };
        let cdb = vec![FORMAT_UNIT, information << 6 | 0x10, 0, 0, 0, 0];
        let command = Command::Scsi {
            cdb,
            data: CommandData::Out(vec![usage, 0x02, 0, 0]),
            timeout: ASK,
        };
        let like = format!("sg_format --format --fmtpinfo={information} --pfu={usage} --quick");
        (command, like)
    }
}

/// REQUEST SENSE (SPC-5 6.39).
pub(super) fn request_sense() -> Command {
    Command::Scsi {
        cdb: vec![REQUEST_SENSE, 0, 0, 0, SENSE_BYTES, 0],
        data: CommandData::In(SENSE_BYTES.into()),
        timeout: ASK,
    }
}

/// How far a sanitize or format is, from the parameter data of REQUEST SENSE:
/// NOT READY with 04h/04h (format) or 04h/1Bh (sanitize) and a progress in
/// 65536ths (SPC-5 4.4.2.4.4); MEDIUM ERROR 31h/xx: it failed.
pub(super) fn progress(reply: &Reply) -> PurgeState {
    if !reply.is_good() {
        return PurgeState::Unknown(sense_text(reply));
    }
    let Some(sense) = Sense::read(&reply.data) else {
        return PurgeState::Unknown("no sense data came".to_owned());
    };
    match (sense.key, sense.code, sense.qualifier) {
        (2, 0x04, 0x04 | 0x1b) => {
            PurgeState::Going(sense.progress.map_or(0.0, |done| f64::from(done) / 65536.0))
        }
        (0, 0, _) | (1, 0x17 | 0x18, _) => PurgeState::Done,
        // Something else has happened meanwhile (a reset): ask again.
        (6, ..) => PurgeState::Going(0.0),
        _ => PurgeState::Failed(format!("the device says: {sense}")),
    }
}

/// What stands in a reply that is not good.
pub(super) fn sense_text(reply: &Reply) -> String {
    match Sense::read(&reply.sense) {
        Some(sense) => format!("the device says: {sense}"),
        None => format!("SCSI status {:#04x}", reply.status),
    }
}

struct Sense {
    key: u8,
    code: u8,
    qualifier: u8,
    progress: Option<u16>,
}

impl Sense {
    /// Fixed (70h, 71h) and descriptor (72h, 73h) format (SPC-5 4.4).
    fn read(bytes: &[u8]) -> Option<Self> {
        let two = |at: usize| Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]));
        match bytes.first()? & 0x7f {
            0x70 | 0x71 => Some(Self {
                key: bytes.get(2)? & 0xf,
                code: bytes.get(12).copied().unwrap_or(0),
                qualifier: bytes.get(13).copied().unwrap_or(0),
                // SKSV says that the bytes mean something.
                progress: bytes
                    .get(15)
                    .filter(|byte| *byte & 0x80 != 0)
                    .and_then(|_| two(16)),
            }),
            0x72 | 0x73 => {
                let mut at = 8;
                let mut progress = None;
                while let Some(&[kind, length]) = bytes.get(at..at + 2) {
                    let is_set = bytes.get(at + 4).is_some_and(|byte| byte & 0x80 != 0);
                    match kind {
                        2 if is_set => progress = two(at + 5),
                        // Another progress indication.
                        0x0a => progress = two(at + 6),
                        _ => {}
                    }
                    at += 2 + usize::from(length);
                }
                Some(Self {
                    key: bytes.get(1)? & 0xf,
                    code: *bytes.get(2)?,
                    qualifier: *bytes.get(3)?,
                    progress,
                })
            }
            _ => None,
        }
    }
}

impl std::fmt::Display for Sense {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        // SPC-5 table 49.
        const KEYS: [&str; 16] = [
            "no sense",
            "recovered error",
            "not ready",
            "medium error",
            "hardware error",
            "illegal request",
            "unit attention",
            "data protect",
            "blank check",
            "vendor specific",
            "copy aborted",
            "aborted command",
            "reserved",
            "volume overflow",
            "miscompare",
            "completed",
        ];
        let key = KEYS[usize::from(self.key & 0xf)];
        write!(
            f,
            "{key} (sense {:x}h/{:02x}h/{:02x}h)",
            self.key, self.code, self.qualifier
        )
    }
}

fn service_action(action: SanitizeAction) -> u8 {
    match action {
        SanitizeAction::Overwrite => 1,
        SanitizeAction::Block => 2,
        SanitizeAction::Crypto => 3,
    }
}

/// REPORT SUPPORTED OPERATION CODES for one command (SPC-5 6.37): bits 2:0 of
/// byte 1 are 001b not supported, 011b and 101b supported.
fn supports(path: &Path, issue: &dyn Issue, code: u8, action: Option<u8>) -> Option<bool> {
    let option = if action.is_some() { 2 } else { 1 };
    let mut cdb = vec![MAINTENANCE_IN, 0x0c, option, code, 0, action.unwrap_or(0)];
    cdb.extend([0, 0, 0, 64, 0, 0]);
    let answer = ask(path, issue, cdb, 64)?;
    match answer.get(1)? & 7 {
        1 => Some(false),
        3 | 5 => Some(true),
        _ => None,
    }
}

fn read_capacity() -> Vec<u8> {
    let mut cdb = vec![0; 16];
    cdb[0] = SERVICE_ACTION_IN;
    cdb[1] = 0x10;
    cdb[13] = 32;
    cdb
}

fn inquiry(page: u8) -> Vec<u8> {
    let length = PAGE_BYTES.to_be_bytes();
    vec![INQUIRY, 1, page, length[0], length[1], 0]
}

fn ask(path: &Path, issue: &dyn Issue, cdb: Vec<u8>, bytes: u32) -> Option<Vec<u8>> {
    let data = CommandData::In(bytes);
    let timeout = ASK;
    let reply = issue
        .issue(path, &Command::Scsi { cdb, data, timeout })
        .ok()?;
    reply.is_good().then_some(reply.data)
}
