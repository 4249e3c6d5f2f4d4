//! A cache below the measured device answered: the page cache of a loop device's file, or
//! that of a hypervisor.

use fathom_model::environment::is_in_memory;
use fathom_model::{
    Direction, EvidenceSum, LayerKind, ReasonKind, StackLayer, VerdictReason, units,
};

use super::throttled;
use crate::verdict::JudgedFigure;

/// Less than this share of what the loop device moved reached the device below it. Holes,
/// read-ahead and other files change the ratio, so half leaves room for them.
const SHARE: f64 = 0.5;
/// Mean latency of random reads, in ms, that no turning disk reaches: half a turn at 15,000
/// rpm, the fastest that are sold, takes 2 ms.
const TURNING_MS: f64 = 1.0;

pub(super) fn rule(figure: &JudgedFigure) -> Option<VerdictReason> {
    let evidence = figure.evidence()?;
    // Where a limit is the figure, a cache below it changes nothing.
    if throttled::rule(figure).is_some() {
        return None;
    }
    let mut devices = evidence.devices("target").chain(evidence.devices("under"));
    devices
        .find_map(|device| of_loop(figure, evidence, device))
        .or_else(|| of_disk(figure, evidence))
}

/// A loop device without direct I/O reads and writes its file through the page cache.
fn of_loop(figure: &JudgedFigure, evidence: &EvidenceSum, device: &str) -> Option<VerdictReason> {
    if evidence.set_to(&format!("{device}.direct")) != Some("0") {
        return None;
    }
    let name = match figure.dir {
        Direction::Read => "read_bytes",
        Direction::Write => "write_bytes",
        _ => return None,
    };
    let moved = evidence.count(&format!("{device}.{name}"))? as f64;
    // Records of earlier versions have no stack.
    let layer = (figure.stacks().flat_map(StackLayer::layers)).find(|layer| layer.name == device);
    let kept_in = |layer: &StackLayer| {
        let mut leaves = layer.leaves();
        let memory = leaves.find(|leaf| leaf.kind == LayerKind::Memory);
        memory.map(|leaf| leaf.name.clone())
    };
    let told = evidence.set_to(&format!("{device}.backing_file_system"));
    let told = told.filter(|kind| is_in_memory(kind)).map(str::to_owned);
    if let Some(kind) = layer.and_then(kept_in).or(told) {
        let text = format!("the file of {device} lies in memory ({kind}): no storage was measured");
        return Some(VerdictReason::found(ReasonKind::CachedBelow, text, []));
    }
    let below = layer.map(right_under);
    let reached: Vec<u64> = (evidence.devices("under"))
        .filter(|under| *under != device && below.as_ref().is_none_or(|its| its.contains(under)))
        .filter_map(|under| evidence.count(&format!("{under}.{name}")))
        .collect();
    let reached = reached.iter().copied().reduce(u64::saturating_add)?;
    // Others may have read the same disks; what the kernel's workers read was for loop devices.
    let by_workers = match figure.dir {
        Direction::Read => evidence.count("job.loop_read_bytes"),
        _ => None,
    };
    let reached = by_workers.map_or(reached, |its| its.min(reached)) as f64;
    if moved == 0.0 || reached >= SHARE * moved {
        return None;
    }
    let under = layer.into_iter().flat_map(|it| &it.under);
    let (kind, why) = match under.filter_map(StackLayer::compression).next() {
        Some(how) => (
            ReasonKind::Compressed,
            format!("its file is compressed ({how})"),
        ),
        None => {
            let why = "the page cache below it did the rest";
            (ReasonKind::CachedBelow, why.to_owned())
        }
    };
    let text = format!(
        "{device} moved {}, and {} of that reached its storage: {why}",
        units::bytes(moved),
        units::bytes(reached)
    );
    let numbers = [("moved_bytes", moved), ("reached_bytes", reached)];
    Some(VerdictReason::found(kind, text, numbers))
}

/// The devices right under a loop device's file; those further down count the same again.
fn right_under(layer: &StackLayer) -> Vec<&str> {
    let devices = layer.under.iter().flat_map(StackLayer::first_devices);
    devices.map(|device| device.name.as_str()).collect()
}

/// A disk that says it turns, and answers random reads faster than one can. Virtual disks
/// claim this whatever is below them, so this is only a note.
fn of_disk(figure: &JudgedFigure, evidence: &EvidenceSum) -> Option<VerdictReason> {
    let is_random = figure.pattern().is_some_and(|rw| rw.starts_with("rand"));
    if figure.dir != Direction::Read || !is_random || figure.own().is_none() {
        return None;
    }
    let device = figure.hardware()?;
    if evidence.set_to(&format!("{device}.rotational")) != Some("1") {
        return None;
    }
    let ms = figure
        .result
        .clat
        .as_ref()
        .or(figure.result.lat.as_ref())?
        .mean_ns
        / 1e6;
    let text = format!(
        "{device} says that it is a turning disk, and answers random reads in {ms:.2} ms: it is none, or a cache below it answers"
    );
    let found = VerdictReason::found(ReasonKind::CachedBelow, text, [("mean_ms", ms)]);
    (ms < TURNING_MS).then(|| found.noted())
}
