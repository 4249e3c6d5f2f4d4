//! The ways to purge a device, their names, and the order in which they are
//! tried.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A way to take all data away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PurgeMethod {
    /// Format NVM (NVMe Base Specification 2.0, 5.14).
    NvmeFormat,
    /// Sanitize of NVMe (5.24 there): the whole subsystem.
    NvmeSanitize(SanitizeAction),
    /// SANITIZE of SCSI (SBC-4 5.35).
    ScsiSanitize(SanitizeAction),
    /// FORMAT UNIT of SCSI (SBC-4 5.4).
    ScsiFormat,
    /// The sanitize device feature set of ATA (ACS-4 4.17).
    AtaSanitize(SanitizeAction),
    /// SECURITY ERASE UNIT of ATA (ACS-4 7.38), in its enhanced mode or not.
    AtaSecurityErase {
        /// Also blocks that were reallocated, with a pattern of the vendor's.
        enhanced: bool,
    },
    /// `BLKDISCARD`: the block layer's, whatever the device makes of it.
    Discard {
        /// `BLKSECDISCARD`: that the data cannot be had back either.
        secure: bool,
    },
    /// Blocks written by Fathom.
    Overwrite(OverwriteFill),
}

/// What a sanitize does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SanitizeAction {
    /// Erases the blocks of the medium.
    Block,
    /// Changes the key of all data.
    Crypto,
    /// Writes a pattern, zeros here, once.
    Overwrite,
}

/// What an overwrite writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OverwriteFill {
    /// Zeros.
    Zeros,
    /// Bytes that no drive can compress or find twice.
    Random,
}

use SanitizeAction::{Block, Crypto, Overwrite};

/// The ways in the order in which `auto` tries them; those that a device does
/// not know are passed over. What leaves a drive as new comes before what makes
/// it believe that it is full of data, and what the block layer can do for any
/// device comes last.
pub const AUTO: [PurgeMethod; 14] = [
    PurgeMethod::NvmeFormat,
    PurgeMethod::NvmeSanitize(Block),
    PurgeMethod::NvmeSanitize(Crypto),
    PurgeMethod::AtaSanitize(Block),
    PurgeMethod::AtaSanitize(Crypto),
    PurgeMethod::AtaSecurityErase { enhanced: true },
    PurgeMethod::AtaSecurityErase { enhanced: false },
    PurgeMethod::ScsiSanitize(Block),
    PurgeMethod::ScsiSanitize(Crypto),
    PurgeMethod::Discard { secure: false },
    PurgeMethod::ScsiFormat,
    PurgeMethod::Overwrite(OverwriteFill::Zeros),
    // Never reached by `auto`, which always can write zeros; here so that this
    // is the list of all, but for overwriting by the device itself.
    PurgeMethod::Discard { secure: true },
    PurgeMethod::Overwrite(OverwriteFill::Random),
];

/// The ways in which the device overwrites itself: as slow as an overwrite from
/// outside, and not to be stopped. Only by name.
const BY_NAME: [PurgeMethod; 3] = [
    PurgeMethod::NvmeSanitize(Overwrite),
    PurgeMethod::AtaSanitize(Overwrite),
    PurgeMethod::ScsiSanitize(Overwrite),
];

impl PurgeMethod {
    /// Every way, in the order of [`AUTO`].
    pub fn all() -> impl Iterator<Item = Self> {
        AUTO.into_iter().chain(BY_NAME)
    }

    /// Whether it acts on the whole device, also when it is given a part.
    pub fn is_whole(self) -> bool {
        !matches!(self, Self::Discard { .. } | Self::Overwrite(_))
    }

    /// What it does, for a person.
    pub fn about(self) -> &'static str {
        match self {
            Self::NvmeFormat => "formats the namespace (Format NVM)",
            Self::NvmeSanitize(Block) | Self::ScsiSanitize(Block) | Self::AtaSanitize(Block) => {
                "the drive erases all its blocks (Sanitize)"
            }
            Self::NvmeSanitize(Crypto) | Self::ScsiSanitize(Crypto) | Self::AtaSanitize(Crypto) => {
                "the drive changes the key of all data (Sanitize)"
            }
            Self::NvmeSanitize(Overwrite)
            | Self::ScsiSanitize(Overwrite)
            | Self::AtaSanitize(Overwrite) => "the drive writes zeros over all data (Sanitize)",
            Self::ScsiFormat => "the drive formats its medium (FORMAT UNIT)",
            Self::AtaSecurityErase { enhanced: false } => "the drive erases all its user data",
            Self::AtaSecurityErase { enhanced: true } => {
                "the drive erases all its data, reallocated blocks included"
            }
            Self::Discard { secure: false } => "tells the device that no block is needed",
            Self::Discard { secure: true } => "tells the device to erase every block",
            Self::Overwrite(OverwriteFill::Zeros) => "Fathom writes zeros over all blocks",
            Self::Overwrite(OverwriteFill::Random) => "Fathom writes random bytes over all blocks",
        }
    }
}

impl fmt::Display for SanitizeAction {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Self::Block => "block",
            Self::Crypto => "crypto",
            Self::Overwrite => "overwrite",
        })
    }
}

impl fmt::Display for PurgeMethod {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::NvmeFormat => f.write_str("nvme-format"),
            Self::NvmeSanitize(action) => write!(f, "nvme-sanitize-{action}"),
            Self::ScsiSanitize(action) => write!(f, "scsi-sanitize-{action}"),
            Self::ScsiFormat => f.write_str("scsi-format"),
            Self::AtaSanitize(action) => write!(f, "ata-sanitize-{action}"),
            Self::AtaSecurityErase { enhanced: false } => f.write_str("ata-security-erase"),
            Self::AtaSecurityErase { enhanced: true } => f.write_str("ata-security-erase-enhanced"),
            Self::Discard { secure: false } => f.write_str("blkdiscard"),
            Self::Discard { secure: true } => f.write_str("blkdiscard-secure"),
            Self::Overwrite(OverwriteFill::Zeros) => f.write_str("overwrite"),
            Self::Overwrite(OverwriteFill::Random) => f.write_str("overwrite-random"),
        }
    }
}

/// The ways to choose from, in the order of preference: the first that the
/// device can do is taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PurgeMethods(Vec<PurgeMethod>);

impl PurgeMethods {
    /// These, the first one first.
    pub fn of(methods: impl IntoIterator<Item = PurgeMethod>) -> Self {
        Self(methods.into_iter().collect())
    }

    /// The ways, in order.
    pub fn methods(&self) -> &[PurgeMethod] {
        &self.0
    }

    /// The one way, where there is no choice.
    pub fn only(&self) -> Option<PurgeMethod> {
        match self.0[..] {
            [only] => Some(only),
            _ => None,
        }
    }
}

impl Default for PurgeMethods {
    fn default() -> Self {
        Self(AUTO.to_vec())
    }
}

/// `auto`, a way by its name, or a family of them: `nvme-sanitize`,
/// `ata-sanitize`, `scsi-sanitize`, whose first possible action is taken.
impl FromStr for PurgeMethods {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        if name == "auto" {
            return Ok(Self::default());
        }
        if let Some(method) = PurgeMethod::all().find(|method| method.to_string() == name) {
            return Ok(Self(vec![method]));
        }
        let family = name.ends_with("-sanitize").then(|| format!("{name}-"));
        let of_family = |method: &PurgeMethod| {
            family
                .as_ref()
                .is_some_and(|family| method.to_string().starts_with(family))
        };
        let family: Vec<PurgeMethod> = PurgeMethod::all().filter(of_family).collect();
        if !family.is_empty() {
            return Ok(Self(family));
        }
        let names: Vec<String> = PurgeMethod::all()
            .map(|method| method.to_string())
            .collect();
        Err(format!(
            "there is no such method; there are auto, {}",
            names.join(", ")
        ))
    }
}

/// Settings of Format NVM; what is absent stays as the namespace has it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FormatNvm {
    /// The namespace, in place of the one that sysfs names; FFFFFFFFh is all.
    pub nsid: Option<u32>,
    /// Index of the LBA format.
    pub lbaf: Option<u8>,
    /// Metadata: 0 in a buffer of its own, 1 at the end of each block.
    pub ms: Option<u8>,
    /// Type of protection information; 0 is none.
    pub pi: Option<u8>,
    /// Protection information: 0 as the last, 1 as the first bytes of the metadata.
    pub pil: Option<u8>,
    /// Secure erase: 0 none, 1 user data, 2 cryptographic; absent: 1.
    pub ses: Option<u8>,
    /// How long it may take; absent: [`FormatNvm::TIMEOUT`].
    pub timeout: Option<Duration>,
    /// Whether the controller is reset afterwards.
    pub reset: bool,
}

impl FormatNvm {
    /// The default of fio-tests' `PURGE_TIMEOUT_MS`; the kernel's own, a
    /// minute (`admin_timeout`, drivers/nvme/host/core.c), is too short for
    /// many drives.
    pub const TIMEOUT: Duration = Duration::from_millis(600_000);
}

/// What is wanted of a purge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PurgeSettings {
    /// The ways to choose from.
    pub choice: PurgeMethods,
    /// Settings of `nvme-format`.
    pub format: FormatNvm,
    /// Whether ways and settings that the device says it lacks are refused
    /// beforehand (fio-tests' `PURGE_NVME_PURGE_VERIFY`); else the device is
    /// asked to do them, where they are named. Not about the verification,
    /// which always is made.
    pub check: bool,
    /// How many samples are written and looked for; fewer where the device has
    /// fewer blocks.
    pub samples: u64,
}

impl PurgeSettings {
    /// Samples when nothing else is asked for: left-overs of 0.45 % of a device
    /// are found with a probability of 99 %, in seconds on a hard disk.
    pub const SAMPLES: u64 = 1024;
}

impl Default for PurgeSettings {
    fn default() -> Self {
        Self {
            choice: PurgeMethods::default(),
            format: FormatNvm::default(),
            check: true,
            samples: Self::SAMPLES,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_has_a_name_that_is_read_back() {
        for method in PurgeMethod::all() {
            let name = method.to_string();
            assert_eq!(
                name.parse::<PurgeMethods>().unwrap().only(),
                Some(method),
                "{name}"
            );
        }
        assert_eq!(PurgeMethod::all().count(), 17);
        let family: PurgeMethods = "ata-sanitize".parse().unwrap();
        let names: Vec<String> = family
            .methods()
            .iter()
            .map(PurgeMethod::to_string)
            .collect();
        let all = [
            "ata-sanitize-block",
            "ata-sanitize-crypto",
            "ata-sanitize-overwrite",
        ];
        assert_eq!(names, all);
        assert_eq!(
            "auto".parse::<PurgeMethods>().unwrap(),
            PurgeMethods::default()
        );
        assert!(
            "hammer"
                .parse::<PurgeMethods>()
                .unwrap_err()
                .contains("nvme-format")
        );
    }
}
