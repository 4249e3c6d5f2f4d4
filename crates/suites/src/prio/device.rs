//! The device whose priorities are measured: what is said of it, and what it must be
//! able to do.

use std::path::Path;

use fathom_device::cdl::scsi::{self, CdlPages};
use fathom_device::cdl::{CdlPage, Page};
use fathom_device::command::{Command, Issue};
use fathom_device::environment::kernel_number;
use fathom_device::priority::{Feature, Info, Interface};
use fathom_flow::error::RunError;
use serde_json::{Value, json};

use super::{PrioWorkload, Rw};

/// The kernel that hands limits down to devices first.
const KERNEL_WITH_LIMITS: (u32, u32) = (6, 5);

/// The machine, as `uname` tells.
#[derive(Debug, Clone)]
pub struct System {
    node: String,
    release: String,
    version: String,
    arch: String,
}

impl System {
    /// This one.
    pub fn here() -> Self {
        let uname = rustix::system::uname();
        let text = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
        Self {
            node: text(uname.nodename()),
            release: text(uname.release()),
            version: text(uname.version()),
            arch: text(uname.machine()),
        }
    }

    /// Whether its kernel knows limits; `true` where the release cannot be read.
    fn knows_limits(&self) -> bool {
        kernel_number(&self.release).is_none_or(|it| it >= KERNEL_WITH_LIMITS)
    }
}

fn known(text: Option<&str>) -> &str {
    text.unwrap_or("unknown")
}

/// What is said of device and machine before anything is measured.
pub fn block(info: &Info, system: &System) -> String {
    let feature = |feature: Option<Feature>| known(feature.map(Feature::words));
    let ns = |ns: Option<u64>| ns.map_or_else(|| "unknown".to_owned(), |ns| format!("{ns} ns"));
    let mut lines = vec![
        format!("Device: {}", info.path.display()),
        format!("    Vendor: {}", known(info.vendor.as_deref())),
        format!("    Product: {}", known(info.product.as_deref())),
        format!("    Revision: {}", known(info.revision.as_deref())),
        format!(
            "    {} 512-byte sectors ({:.3} TB)",
            info.bytes / 512,
            info.bytes as f64 / 1e12
        ),
        format!("    Device interface: {}", info.interface.name()),
    ];
    if info.interface == Interface::Ata {
        let sat = info.sat.as_ref();
        let field = |text: Option<&str>| known(text.filter(|text| !text.is_empty())).to_owned();
        lines.extend([
            format!("      SAT Vendor: {}", field(sat.map(|sat| &*sat.vendor))),
            format!("      SAT Product: {}", field(sat.map(|sat| &*sat.product))),
            format!(
                "      SAT revision: {}",
                field(sat.map(|sat| &*sat.revision))
            ),
        ]);
    }
    let guidelines = info.guidelines.map(|yes| match yes {
        true => "supported",
        false => "not supported",
    });
    lines.extend([
        format!("    Command duration limits: {}", feature(info.cdl)),
        format!("    Command duration guidelines: {}", known(guidelines)),
        format!(
            "    High priority enhancement: {}",
            feature(info.ncq_priority)
        ),
        format!("    Duration minimum limit: {}", ns(info.min_limit_ns)),
        format!("    Duration maximum limit: {}", ns(info.max_limit_ns)),
        "System:".to_owned(),
        format!("    Node name: {}", system.node),
        format!("    Kernel: Linux {} {}", system.release, system.version),
        format!("    Architecture: {}", system.arch),
        format!("    Command duration limits: {}", of_system(info, system)),
        format!(
            "    Device {} command timeout: {}",
            info.name,
            info.timeout_s
                .map_or_else(|| "unknown".to_owned(), |s| format!("{s} s"))
        ),
    ]);
    lines.join("\n")
}

/// Whether the kernel hands limits down, and whether it does so on this device.
fn of_system(info: &Info, system: &System) -> &'static str {
    match (info.cdl, system.knows_limits()) {
        (Some(Feature { enabled: true, .. }), _) => "supported, enabled",
        (Some(_), _) | (None, true) => "supported, disabled",
        (None, false) => "not supported",
    }
}

/// The same for the record.
pub fn facts(info: &Info, system: &System) -> (Value, Value) {
    let feature = |feature: Option<Feature>| {
        feature.map(|f| json!({ "supported": f.supported, "enabled": f.enabled }))
    };
    let device = json!({
        "path": info.path,
        "vendor": info.vendor,
        "product": info.product,
        "revision": info.revision,
        "bytes": info.bytes,
        "interface": match info.interface {
            Interface::Other => None,
            known => Some(known.name()),
        },
        "sat": info.sat.as_ref().map(|sat| json!({
            "vendor": sat.vendor, "product": sat.product, "revision": sat.revision,
        })),
        "command_duration_limits": feature(info.cdl),
        "command_duration_guidelines": info.guidelines,
        "ncq_priority": feature(info.ncq_priority),
        "min_limit_ns": info.min_limit_ns,
        "max_limit_ns": info.max_limit_ns,
        "command_timeout_s": info.timeout_s,
    });
    let system = json!({
        "node": system.node,
        "kernel": format!("Linux {} {}", system.release, system.version),
        "arch": system.arch,
        "command_duration_limits": of_system(info, system),
    });
    (device, system)
}

/// Refuses what device, kernel and privilege cannot do; touches nothing. Gives
/// the pages that limit the I/Os.
pub fn check(
    info: &Info,
    system: &System,
    workloads: &[PrioWorkload],
    rw: Rw,
    issue: &dyn Issue,
) -> Result<Vec<CdlPage>, RunError> {
    let dev = info.path.display();
    let cdl = workloads.iter().any(PrioWorkload::is_cdl);
    let ncq = workloads.iter().any(|w| matches!(w, PrioWorkload::Ncq(_)));
    if ncq && !info.ncq_priority.is_some_and(|feature| feature.supported) {
        return Err(RunError::Missing(format!(
            "{dev} has no NCQ priority: it needs a SATA disk with this feature on a SATA port \
             (/sys/block/{}/device/ncq_prio_supported says 1 then)\n  to do: leave --ncq-prio out",
            info.name
        )));
    }
    if cdl && !system.knows_limits() {
        return Err(RunError::Missing(format!(
            "Linux {} hands no duration limits down to devices\n  to do: boot 6.5 or later",
            system.release
        )));
    }
    if cdl && !info.cdl.is_some_and(|feature| feature.supported) {
        return Err(RunError::Missing(format!(
            "{dev} has no Command Duration Limits (/sys/block/{}/device/cdl_supported says 1 \
             where a disk has them)\n  to do: leave --cdl-single and --cdl-multi out",
            info.name
        )));
    }
    if (cdl || ncq) && !rustix::process::geteuid().is_root() {
        return Err(RunError::Missing(
            "switching priorities and limits, and I/Os with them, need root\n  to do: run as root"
                .to_owned(),
        ));
    }
    match cdl {
        true => pages(info, rw, issue),
        false => Ok(Vec::new()),
    }
}

/// Which pages the disk takes: one that the I/Os need must be there, the other
/// is uploaded where it is.
fn pages(info: &Info, rw: Rw, issue: &dyn Issue) -> Result<Vec<CdlPage>, RunError> {
    let dev = Path::new("/dev").join(&info.name);
    if info.interface == Interface::Ata {
        let argv = ["cdladm", "--version"].map(str::to_owned).to_vec();
        let there = issue.issue(&dev, &Command::Program { argv });
        return match there {
            Ok(_) => Ok(CdlPage::ALL.to_vec()),
            Err(_) => Err(RunError::Missing(
                fathom_device::switches::SwitchError::NoCdladm.to_string(),
            )),
        };
    }
    let mut pages = Vec::new();
    for (kind, needed) in [(CdlPage::T2a, rw.reads()), (CdlPage::T2b, rw.writes())] {
        let limits = scsi::limits(issue, &dev, kind);
        match limits {
            Ok(CdlPages::Page(page)) if page == kind => pages.push(kind),
            _ if !needed => {}
            Ok(other) => {
                let how = match other {
                    CdlPages::None => "not limited at all".to_owned(),
                    CdlPages::Older => "limited by page A or B, the older kind".to_owned(),
                    CdlPages::Page(page) => format!("limited by page {page}"),
                };
                let of = super::of(kind);
                return Err(RunError::Missing(format!(
                    "{}: its {of} are {how}; page {kind} is needed",
                    info.path.display()
                )));
            }
            Err(error) => {
                return Err(RunError::Missing(format!(
                    "{}: {error}",
                    info.path.display()
                )));
            }
        }
    }
    Ok(pages)
}

/// What stands in the way of limits that I/Os name: those without a time.
pub fn limits_without_time(workloads: &[PrioWorkload], pages: &[&Page]) -> Vec<String> {
    let mut list = Vec::new();
    for page in pages {
        for number in workloads.iter().flat_map(PrioWorkload::limits) {
            let none = page
                .descriptor(number)
                .is_some_and(|d| d.whole_ns().is_none());
            let text = format!(
                "limit {number} of page {} has no time: it limits nothing",
                page.kind
            );
            if none && !list.contains(&text) {
                list.push(text);
            }
        }
    }
    list
}
