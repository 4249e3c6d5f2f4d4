//! The engine ran on CPUs of another NUMA node than the device's.

use fathom_model::{ReasonKind, VerdictReason};

use crate::verdict::JudgedFigure;

/// No CPU that the job may use is one of the device's node
/// (`local_cpulist`, Documentation/ABI/testing/sysfs-bus-pci).
pub(super) fn rule(figure: &JudgedFigure) -> Option<VerdictReason> {
    let evidence = figure.evidence()?;
    let allowed = match figure.option("cpus_allowed") {
        Some(list) => cpus(list),
        None => cpus(evidence.set_to("cpu.allowed")?),
    };
    let is_far = |device: &str| {
        let local = evidence.set_to(&format!("{device}.local_cpus")).map(cpus);
        local.is_some_and(|local| {
            !local.is_empty()
                && !local.iter().any(|(from, to)| {
                    allowed
                        .iter()
                        .any(|(begin, end)| begin <= to && from <= end)
                })
        })
    };
    let mut devices = evidence.devices("target").chain(evidence.devices("under"));
    let far = devices
        .find(|device| is_far(device))
        .filter(|_| !allowed.is_empty())?;
    let text = format!("none of the engine's CPUs is on the NUMA node of {far}");
    Some(VerdictReason::found(ReasonKind::FarCpus, text, []))
}

/// `0-3,8` as ranges; what is none is left out.
fn cpus(list: &str) -> Vec<(u32, u32)> {
    let range = |part: &str| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        Some((from.trim().parse().ok()?, to.trim().parse().ok()?))
    };
    list.split(',').filter_map(range).collect()
}
