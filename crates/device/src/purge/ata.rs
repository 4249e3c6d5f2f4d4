//! What an ATA drive behind SCSI/ATA translation can do, and its commands.
//!
//! Clauses are those of ACS-4 and, for the way there, of SAT-4.

use std::time::Duration;

use super::follow::PurgeState;
use super::method::SanitizeAction;
use crate::command::{Command, CommandData, Issue, Reply};
use crate::sys::SysBlock;
use std::path::Path;

/// Commands (ACS-4 7).
const IDENTIFY: u8 = 0xec;
const SANITIZE: u8 = 0xb4;
const SET_PASSWORD: u8 = 0xf1;
const ERASE_PREPARE: u8 = 0xf3;
const ERASE_UNIT: u8 = 0xf4;
const DISABLE_PASSWORD: u8 = 0xf6;
/// READ NATIVE MAX ADDRESS EXT and DEVICE CONFIGURATION IDENTIFY (ACS-2 7.32 and 7.10.2),
/// GET NATIVE MAX ADDRESS EXT (ACS-4 7.1.2).
const NATIVE_MAX: u8 = 0x27;
const CONFIGURATION: u8 = 0xb1;
const CONFIGURATION_IDENTIFY: u16 = 0xc2;
const ACCESSIBLE_MAX: u8 = 0x78;
/// Protocols of ATA PASS-THROUGH (SAT-4 table 142).
const NON_DATA: u8 = 3;
const PIO_IN: u8 = 4;
const PIO_OUT: u8 = 5;
const ASK: Duration = Duration::from_secs(30);
/// More than 508 minutes is all that the old form can say (ACS-4 7.12.7.46).
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// The password while an erase goes on. Not a secret: after a power cut it is
/// what unlocks the drive.
pub const PASSWORD: &str = "fathom";

/// What IDENTIFY DEVICE says (ACS-4 7.12.7).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ata {
    /// Word 59: bits 12 sanitize, 13 crypto, 14 overwrite, 15 block.
    sanitize: u16,
    /// Word 128: bits 0 supported, 1 enabled, 2 locked, 3 frozen, 4 too many
    /// wrong passwords, 5 enhanced erase.
    security: u16,
    /// Times in minutes that an erase takes, normal and enhanced.
    minutes: [Option<u32>; 2],
    /// Words 82 and 83, of feature sets: host protected area (bit 10 of the first), 48-bit
    /// addresses and device configuration overlay (bits 10 and 11 of the other).
    features: [u16; 2],
    /// Word 119: bit 8 accessible max address configuration.
    more_features: u16,
    /// Sectors that can be addressed: words 100 to 103, else 60 and 61.
    sectors: u64,
    /// Trimmed blocks read as zeros: word 69 bits 14 and 5.
    pub zeros: bool,
}

impl Ata {
    /// Asks the drive; `None` when it is none, or does not answer.
    pub(super) fn find(path: &Path, issue: &dyn Issue) -> Option<Self> {
        let command = pass_through(
            PIO_IN,
            IDENTIFY,
            &Registers::default(),
            CommandData::In(512),
            ASK,
        );
        let reply = issue.issue(path, &command).ok()?;
        if !reply.is_good() {
            return None;
        }
        Self::read(&reply.data)
    }

    fn read(data: &[u8]) -> Option<Self> {
        let word = |at: usize| {
            let bytes = data.get(2 * at..2 * at + 2)?.try_into().ok()?;
            Some(u16::from_le_bytes(bytes))
        };
        // Words of 0 or FFFFh where a feature set is not there at all.
        let or_none = |value: u16| if value == u16::MAX { 0 } else { value };
        Some(Self {
            sanitize: or_none(word(59)?),
            security: or_none(word(128)?),
            minutes: [minutes(word(89)?), minutes(word(90)?)],
            // Bits 15:14 of 01b say that the words mean something.
            features: match word(83)? >> 14 {
                1 => [word(82)?, word(83)?],
                _ => [0; 2],
            },
            more_features: Some(word(119)?).filter(|it| it >> 14 == 1).unwrap_or(0),
            sectors: match (0..4).try_fold(0, |sum, nth| {
                Some(sum | u64::from(word(100 + nth)?) << (16 * nth))
            })? {
                0 => u64::from(word(60)?) | u64::from(word(61)?) << 16,
                sectors => sectors,
            },
            zeros: or_none(word(69)?) & (1 << 14 | 1 << 5) == (1 << 14 | 1 << 5),
        })
    }

    /// Of a disk that the kernel knows to be one.
    pub(super) fn behind(disk: &SysBlock, issue: &dyn Issue) -> Option<Self> {
        let is_ata = disk.dir.join("device/scsi_level").exists()
            && disk.text("device/vendor").as_deref() == Some("ATA");
        is_ata
            .then(|| Self::find(&disk.dev_path(), issue))
            .flatten()
    }

    /// Sectors that can be addressed.
    pub(super) fn sectors(&self) -> u64 {
        self.sectors
    }

    /// Sectors that there would be without what can hide some, each with its name: what does
    /// not answer is not among them.
    pub(super) fn native_sectors(
        &self,
        path: &Path,
        issue: &dyn Issue,
    ) -> Vec<(&'static str, u64)> {
        let [first, second] = self.features;
        let highest = |command| {
            let registers = Registers::default();
            let command = pass_through(NON_DATA, command, &registers, CommandData::None, ASK);
            let reply = issue.issue(path, &command).ok()?;
            let registers = returned(&reply.sense).filter(|it| it.status & 1 == 0)?;
            registers.is_whole.then_some(registers.lba)
        };
        let accessible = (self.more_features & 1 << 8 != 0).then(|| highest(ACCESSIBLE_MAX));
        let protected = (first & second & 1 << 10 != 0).then(|| highest(NATIVE_MAX));
        let overlaid = (second & 1 << 11 != 0).then(|| configured_max(path, issue));
        [
            ("accessible max address (AMAC)", accessible),
            ("host protected area (HPA)", protected),
            ("device configuration overlay (DCO)", overlaid),
        ]
        .into_iter()
        .filter_map(|(what, highest)| Some((what, highest??.checked_add(1)?)))
        .collect()
    }

    /// Whether there is this action of the sanitize device feature set.
    pub(super) fn sanitizes(&self, action: SanitizeAction) -> bool {
        let bit = match action {
            SanitizeAction::Crypto => 13,
            SanitizeAction::Overwrite => 14,
            SanitizeAction::Block => 15,
        };
        self.sanitize & (1 << 12) != 0 && self.sanitize & (1 << bit) != 0
    }

    /// Why SECURITY ERASE UNIT would not be done; `None` when it may be. Without
    /// `check` a drive that says that it has none is asked all the same.
    pub(super) fn security_stands_against(&self, enhanced: bool, check: bool) -> Option<String> {
        let is = |bit: u16| self.security & (1 << bit) != 0;
        Some(match () {
            () if check && !is(0) => "the drive has no security feature set".to_owned(),
            () if check && enhanced && !is(5) => {
                "the drive has no enhanced security erase".to_owned()
            }
            () if is(3) => "the drive's security is frozen (the firmware of most machines does \
                            that at start); suspend the machine and wake it up (systemctl \
                            suspend), or unplug the drive and plug it in again, then try again"
                .to_owned(),
            () if is(4) => "too many wrong passwords: switch the drive off and on first".to_owned(),
            () if is(2) => "the drive is locked by a password: unlock it first (hdparm \
                            --security-unlock); an erase that Fathom did not end used the \
                            password 'fathom'"
                .to_owned(),
            () if is(1) => "the drive has a password: take it away first (hdparm \
                            --security-disable); an erase that Fathom did not end used the \
                            password 'fathom'"
                .to_owned(),
            () => return None,
        })
    }

    /// How long the drive expects an erase to take.
    pub(super) fn estimate(&self, enhanced: bool) -> Option<Duration> {
        let minutes = self.minutes[usize::from(enhanced)]?;
        Some(Duration::from_secs(60 * u64::from(minutes)))
    }

    /// SECURITY SET PASSWORD: a user password, at the level high, which the
    /// master password can take away again (ACS-4 7.42).
    pub(super) fn set_password() -> Command {
        let data = CommandData::Out(password(0));
        pass_through(PIO_OUT, SET_PASSWORD, &Registers::default(), data, ASK)
    }

    /// SECURITY ERASE PREPARE (7.37): must stand right before the erase.
    pub(super) fn prepare() -> Command {
        pass_through(
            NON_DATA,
            ERASE_PREPARE,
            &Registers::default(),
            CommandData::None,
            ASK,
        )
    }

    /// SECURITY ERASE UNIT (7.38). Bit 1 of word 0: enhanced. It may take twice
    /// what the drive expects.
    pub(super) fn erase(&self, enhanced: bool) -> Command {
        let data = CommandData::Out(password(if enhanced { 2 } else { 0 }));
        let timeout = self
            .estimate(enhanced)
            .map_or(LONGEST, |time| 2 * time + ASK);
        pass_through(PIO_OUT, ERASE_UNIT, &Registers::default(), data, timeout)
    }

    /// SECURITY DISABLE PASSWORD (7.36): what an erase that was done has done.
    pub(super) fn disable_password() -> Command {
        let data = CommandData::Out(password(0));
        pass_through(PIO_OUT, DISABLE_PASSWORD, &Registers::default(), data, ASK)
    }

    /// CRYPTO SCRAMBLE EXT, BLOCK ERASE EXT, OVERWRITE EXT (7.33 to 7.35): the
    /// word in the LBA is the drive's proof that it was meant.
    pub(super) fn sanitize(action: SanitizeAction) -> Command {
        let registers = match action {
            // "CryP", "BkEr", "OW" with the pattern 00000000h, one pass.
            SanitizeAction::Crypto => Registers {
                features: 0x11,
                count: 0,
                lba: 0x4372_7970,
            },
            SanitizeAction::Block => Registers {
                features: 0x12,
                count: 0,
                lba: 0x426b_4572,
            },
            SanitizeAction::Overwrite => Registers {
                features: 0x14,
                count: 1,
                lba: 0x4f57_0000_0000,
            },
        };
        pass_through(NON_DATA, SANITIZE, &registers, CommandData::None, ASK)
    }

    /// SANITIZE STATUS EXT (7.36.6).
    pub(super) fn sanitize_status() -> Command {
        pass_through(
            NON_DATA,
            SANITIZE,
            &Registers::default(),
            CommandData::None,
            ASK,
        )
    }
}

/// The highest address by the device configuration: words 3 to 6 of what the drive has been
/// made with.
fn configured_max(path: &Path, issue: &dyn Issue) -> Option<u64> {
    let registers = Registers {
        features: CONFIGURATION_IDENTIFY,
        ..Registers::default()
    };
    let command = pass_through(PIO_IN, CONFIGURATION, &registers, CommandData::In(512), ASK);
    let reply = issue.issue(path, &command).ok()?;
    let bytes = reply.data.get(6..14).filter(|_| reply.is_good())?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

/// How far a sanitize is: bits 15 done without error, 14 in progress of the
/// count; bits 15:0 of the LBA in 65536ths (ACS-4 table 152).
pub(super) fn sanitize_progress(reply: &Reply) -> PurgeState {
    let Some(registers) = returned(&reply.sense) else {
        return PurgeState::Unknown("its registers did not come back".to_owned());
    };
    if registers.status & 1 != 0 {
        return PurgeState::Failed(format!(
            "the drive aborted it (error {:#04x})",
            registers.error
        ));
    }
    let share = registers.lba as u16;
    match registers.upper {
        CountUpper::Known(bits) if bits & 0x40 != 0 => {
            PurgeState::Going(f64::from(share) / 65536.0)
        }
        CountUpper::Known(bits) if bits & 0x80 != 0 => PurgeState::Done,
        // Not in progress, the share is FFFFh (ACS-4 9.29.2); what the drive says to have done
        // is looked for on its medium afterwards.
        CountUpper::Some if share == u16::MAX => PurgeState::Done,
        CountUpper::Some => PurgeState::Going(f64::from(share) / 65536.0),
        CountUpper::Known(_) => {
            PurgeState::Failed("the drive says that the sanitize was not done".to_owned())
        }
    }
}

/// Why an ATA command was not done; `None` when it was. With CK_COND the
/// registers come in sense data also when all went well (SAT-4 12.2.2.6).
pub(super) fn failure(reply: &Reply) -> Option<String> {
    match returned(&reply.sense) {
        Some(registers) if registers.status & 1 != 0 => Some(format!(
            "the drive aborted it (ATA error {:#04x})",
            registers.error
        )),
        Some(_) => None,
        None if reply.is_good() => None,
        None => Some(super::scsi::sense_text(reply)),
    }
}

/// What goes into the registers of a command.
#[derive(Debug, Default)]
struct Registers {
    features: u16,
    count: u16,
    lba: u64,
}

/// What comes back in them.
struct Returned {
    error: u8,
    status: u8,
    /// Bits 15:8 of the count.
    upper: CountUpper,
    lba: u64,
    /// Whether all of the address is there.
    is_whole: bool,
}

/// The upper half of the count.
#[derive(Clone, Copy)]
enum CountUpper {
    Known(u8),
    /// It is not zero, which is all that fixed format has room for.
    Some,
}

/// ATA PASS-THROUGH(16) (SAT-4 12.2.2.3). Data go by the sector, and their
/// number stands in the count (T_LENGTH 2, BYT_BLOK); commands without data are
/// those of 48 bits here (EXTEND) and give their registers back (CK_COND).
fn pass_through(
    protocol: u8,
    command: u8,
    registers: &Registers,
    data: CommandData,
    timeout: Duration,
) -> Command {
    let extended = matches!(command, SANITIZE | NATIVE_MAX | ACCESSIBLE_MAX);
    let (flags, count) = match data {
        CommandData::In(bytes) => (0x0e, (bytes / 512) as u16),
        CommandData::Out(ref bytes) => (0x06, (bytes.len() / 512) as u16),
        CommandData::None => (0x20, registers.count),
    };
    let features = registers.features.to_be_bytes();
    let count = count.to_be_bytes();
    let lba = registers.lba.to_le_bytes();
    let cdb = vec![
        0x85,
        protocol << 1 | u8::from(extended),
        flags,
        features[0],
        features[1],
        count[0],
        count[1],
        // (31:24) (7:0) (39:32) (15:8) (47:40) (23:16)
        lba[3],
        lba[0],
        lba[4],
        lba[1],
        lba[5],
        lba[2],
        // Bit 6: addresses are LBAs.
        0x40,
        command,
        0,
    ];
    Command::Scsi { cdb, data, timeout }
}

/// The registers in sense data: in descriptor format (SPC-5 4.4.2) in the ATA Status Return
/// descriptor (SAT-4 12.2.2.7), code 09h; in fixed format, as SAS adapters give it, where
/// the fields for information stand (SAT-4 12.2.2.8).
fn returned(sense: &[u8]) -> Option<Returned> {
    match sense.first()? & 0x7f {
        0x72 | 0x73 => {}
        0x70 | 0x71 => return returned_fixed(sense),
        _ => return None,
    }
    let mut at = 8;
    while let Some(&[code, length]) = sense.get(at..at + 2) {
        if let (9, Some(d)) = (code, sense.get(at..at + 14)) {
            let lba = [d[7], d[9], d[11], d[6], d[8], d[10], 0, 0];
            return Some(Returned {
                error: d[3],
                upper: CountUpper::Known(d[4]),
                lba: u64::from_le_bytes(lba),
                is_whole: true,
                status: d[13],
            });
        }
        at += 2 + usize::from(length);
    }
    None
}

/// Bytes 3 to 6: error, status, device, count (7:0); byte 8: bit 6, whether the rest of the
/// count is not zero, bit 5 the same of the LBA; bytes 9 to 11: LBA (23:0). That these are registers is known by
/// 00h/1Dh, ATA PASS THROUGH INFORMATION AVAILABLE, or by a status that cannot be 0.
fn returned_fixed(sense: &[u8]) -> Option<Returned> {
    let [
        _,
        _,
        _,
        error,
        status,
        _,
        _,
        _,
        flags,
        low,
        middle,
        high,
        code,
        qualifier,
    ] = *sense.first_chunk()?;
    let is_told = (code, qualifier) == (0, 0x1d) || (sense[2] & 0xf == 0xb && status & 1 != 0);
    is_told.then_some(Returned {
        error,
        status,
        upper: match flags & 0x40 {
            0 => CountUpper::Known(0),
            _ => CountUpper::Some,
        },
        lba: u64::from_le_bytes([low, middle, high, 0, 0, 0, 0, 0]),
        is_whole: flags & 0x20 == 0,
    })
}

/// The sector that goes with the security commands: word 0, then the password
/// in words 1 to 16 (ACS-4 table 137).
fn password(word0: u8) -> Vec<u8> {
    let mut sector = vec![0; 512];
    sector[0] = word0;
    sector[2..2 + PASSWORD.len()].copy_from_slice(PASSWORD.as_bytes());
    sector
}

/// Words 89 and 90: with bit 15 bits 14:0 count 2 minutes, else bits 7:0 do;
/// 0: not told; all ones: more than can be said.
fn minutes(word: u16) -> Option<u32> {
    let (count, most) = match word & 0x8000 {
        0 => (word & 0xff, 0xff),
        _ => (word & 0x7fff, 0x7fff),
    };
    (count != 0 && count != most).then(|| 2 * u32::from(count))
}
