//! What a device knows of priorities and duration limits: from sysfs, and from
//! `cdladm` where that is installed.

use std::path::{Path, PathBuf};

use crate::SysBlock;
use crate::command::{Command, Issue};
use crate::sys::printable;

/// What speaks with the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interface {
    /// ATA, behind the kernel's or an adapter's translation (SAT).
    Ata,
    /// SCSI.
    Scsi,
    /// NVMe.
    Nvme,
    /// Neither.
    Other,
}

impl Interface {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ata => "ATA",
            Self::Scsi => "SCSI",
            Self::Nvme => "NVMe",
            Self::Other => "unknown",
        }
    }
}

/// The translation between SCSI and ATA (VPD page 89h, SAT-5 12.4.2).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sat {
    /// Who made it.
    pub vendor: String,
    /// What it is.
    pub product: String,
    /// Its revision.
    pub revision: String,
}

/// A feature that can be switched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Feature {
    /// The device has it.
    pub supported: bool,
    /// It is on.
    pub enabled: bool,
}

impl Feature {
    /// `supported, disabled`.
    pub fn words(self) -> &'static str {
        match (self.supported, self.enabled) {
            (true, true) => "supported, enabled",
            (true, false) => "supported, disabled",
            (false, true) => "not supported, enabled",
            (false, false) => "not supported, disabled",
        }
    }
}

/// A device, as far as anybody can say: what nobody can is `None`.
#[derive(Debug, Clone, PartialEq)]
pub struct Info {
    /// Path by which it was named.
    pub path: PathBuf,
    /// Kernel name.
    pub name: String,
    /// Vendor.
    pub vendor: Option<String>,
    /// Product.
    pub product: Option<String>,
    /// Firmware.
    pub revision: Option<String>,
    /// Size in bytes.
    pub bytes: u64,
    /// How it is spoken with.
    pub interface: Interface,
    /// The translation, of an ATA device.
    pub sat: Option<Sat>,
    /// Command Duration Limits. `None`: the kernel knows nothing of them (it is
    /// older than 6.5), or it is no disk that could have them.
    pub cdl: Option<Feature>,
    /// Whether it keeps duration guidelines.
    pub guidelines: Option<bool>,
    /// NCQ priority.
    pub ncq_priority: Option<Feature>,
    /// Shortest limit in ns.
    pub min_limit_ns: Option<u64>,
    /// Longest limit in ns.
    pub max_limit_ns: Option<u64>,
    /// How long the kernel waits for a command, in s.
    pub timeout_s: Option<u64>,
    /// The I/O schedulers there are, the one in force in brackets.
    pub scheduler: Option<String>,
}

/// What is known of a disk. `issue` is asked for `cdladm info`, which may not be
/// there.
pub fn info(node: &SysBlock, path: &Path, issue: &dyn Issue) -> Info {
    let feature = |name: &str| {
        let flag = |what: &str| node.value::<u8>(&format!("device/{name}_{what}"));
        Some(Feature {
            supported: flag("supported")? != 0,
            enabled: flag("enable").unwrap_or(0) != 0,
        })
    };
    let vendor = node.text("device/vendor");
    let sat = sat(node);
    let interface = match &vendor {
        _ if node.name.starts_with("nvme") => Interface::Nvme,
        Some(vendor) if vendor == "ATA" || sat.is_some() => Interface::Ata,
        Some(_) if node.dir.join("device/scsi_level").exists() => Interface::Scsi,
        _ => Interface::Other,
    };
    let told = cdladm(node, issue);
    let line = |name: &str| {
        let (_, value) = told.iter().find(|(key, _)| key == name)?;
        Some(value.as_str())
    };
    let ns = |name| line(name)?.split_whitespace().next()?.parse().ok();
    Info {
        path: path.to_owned(),
        name: node.name.clone(),
        vendor,
        product: node.text("device/model"),
        revision: node
            .text("device/rev")
            .or_else(|| node.text("device/firmware_rev")),
        bytes: node.size_bytes(),
        interface,
        sat,
        cdl: feature("cdl"),
        guidelines: line("Command duration guidelines").map(|words| words == "supported"),
        ncq_priority: feature("ncq_prio").or_else(|| {
            let words = line("High priority enhancement")?;
            Some(Feature {
                supported: words.starts_with("supported"),
                enabled: words.ends_with("enabled"),
            })
        }),
        min_limit_ns: ns("Duration minimum limit"),
        max_limit_ns: ns("Duration maximum limit"),
        timeout_s: node.value("device/timeout"),
        scheduler: node.text("queue/scheduler"),
    }
}

/// Fixed places in the page: vendor 8 to 15, product 16 to 31, revision 32 to 35.
fn sat(node: &SysBlock) -> Option<Sat> {
    let page = std::fs::read(node.dir.join("device/vpd_pg89")).ok()?;
    let field = |from: usize, to: usize| printable(page.get(from..to)?);
    Some(Sat {
        vendor: field(8, 16)?,
        product: field(16, 32).unwrap_or_default(),
        revision: field(32, 36).unwrap_or_default(),
    })
}

/// The lines `name: value` of `cdladm info`; none where it is not there or fails.
fn cdladm(node: &SysBlock, issue: &dyn Issue) -> Vec<(String, String)> {
    let device = node.dev_path();
    let argv = ["cdladm", "info"].map(str::to_owned).into_iter();
    let argv = argv.chain([device.display().to_string()]).collect();
    let Ok(reply) = issue.issue(&device, &Command::Program { argv }) else {
        return Vec::new();
    };
    if !reply.is_good() {
        return Vec::new();
    }
    let text = String::from_utf8_lossy(&reply.data).into_owned();
    text.lines()
        .take_while(|line| !line.starts_with("System"))
        .filter_map(|line| line.trim().split_once(':'))
        .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
        .collect()
}
