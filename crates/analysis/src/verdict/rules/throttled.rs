//! A control group held the job back: its CPU, or its I/O.

use fathom_model::{EvidenceSum, ReasonKind, VerdictReason, text, units};

use crate::verdict::JudgedFigure;
use crate::verdict::limit::{BUSY_PERCENT, SeenOfStep};

/// Share of the time in which tasks of the group were not let run
/// (Documentation/admin-guide/cgroup-v2.rst, cpu.stat).
const STOPPED_SHARE: f64 = 0.01;
/// A device that does this share of a limit of its group is at the limit: the kernel lets
/// I/O through in slices of 100 ms (block/blk-throttle.c), of which the first and the
/// last may be in part.
const LIMIT_SHARE: f64 = 0.9;
/// io_uring hands I/O that a group holds back to workers, which wait in turn: a job may do less
/// than the limit while most of its I/O waits for it. Below about half something else is.
const HELD_SHARE: f64 = 0.45;
/// I/Os that are held back are under way for the job and not for the device: at least so
/// many times as many.
const HELD_DEPTH: f64 = 2.0;

/// Limits, and what counts against each.
const LIMITS: [(&str, &str, bool); 4] = [
    ("limit_riops", "read_ios", false),
    ("limit_wiops", "write_ios", false),
    ("limit_rbps", "read_bytes", true),
    ("limit_wbps", "write_bytes", true),
];

pub(super) fn rule(figure: &JudgedFigure) -> Option<VerdictReason> {
    let evidence = figure.evidence()?;
    of_io(figure, evidence).or_else(|| of_cpu(evidence))
}

fn of_cpu(evidence: &EvidenceSum) -> Option<VerdictReason> {
    let ms = evidence.count("cgroup.cpu_throttled_us")? as f64 / 1000.0;
    let share = ms / evidence.span_ms.max(1) as f64;
    if share < STOPPED_SHARE {
        return None;
    }
    let text = format!(
        "{} kept the job from the CPU for {} in all, {:.0} % of the time",
        name_of(evidence, "cgroup.cpu_throttled_in"),
        units::duration(ms.round() as u64),
        share * 100.0
    );
    let numbers = [("cpu_throttled_ms", ms)];
    Some(VerdictReason::found(ReasonKind::Throttled, text, numbers))
}

fn of_io(figure: &JudgedFigure, evidence: &EvidenceSum) -> Option<VerdictReason> {
    let ms = figure.io_ms(evidence);
    let devices = evidence.devices("target").chain(evidence.devices("under"));
    let share = match is_held_before(&SeenOfStep::of(figure)) {
        true => HELD_SHARE,
        false => LIMIT_SHARE,
    };
    // The figure's own direction first: the other one holds a mixed job back, too.
    let mut limits = LIMITS;
    limits.sort_by_key(|(_, counted, _)| !counted.starts_with(figure.dir.name()));
    let found = devices.into_iter().find_map(|device| {
        limits.iter().find_map(|(limit, figure, is_bytes)| {
            let most = evidence.gauge(&format!("{device}.{limit}"))?.min;
            let done = evidence.count(&format!("{device}.{figure}"))? as f64 * 1000.0 / ms;
            let group = name_of(evidence, &format!("{device}.{limit}_group"));
            (done >= share * most).then_some((device, most, done, *is_bytes, group))
        })
    });
    let (device, most, done, is_bytes, group) = found?;
    let rate = |value: f64| match is_bytes {
        true => units::bytes_per_second(value),
        false => format!("{} IOPS", units::count(value)),
    };
    let told = format!(
        "{group} allows {} on {device}, and it did {}",
        rate(most),
        rate(done)
    );
    let numbers = match is_bytes {
        true => [("limit_bw_bytes", most), ("bw_bytes", done)],
        false => [("limit_iops", most), ("iops", done)],
    };
    Some(VerdictReason::found(ReasonKind::Throttled, told, numbers))
}

/// The group that a setting names. The root has no limits of its own: that name is what a
/// container sees of its group.
fn name_of(evidence: &EvidenceSum, setting: &str) -> String {
    match evidence.setting(setting).last() {
        Some(name) if name != "/" => format!("the cgroup {}", text::line(name)),
        _ => "a cgroup".to_owned(),
    }
}

/// Whether most I/Os that are under way for the job are not at the device.
fn is_held_before(seen: &SeenOfStep) -> bool {
    let is_idle = seen.device_busy_percent.is_some_and(|it| it < BUSY_PERCENT);
    let depths = seen.job_depth.zip(seen.device_depth);
    is_idle && depths.is_some_and(|(job, device)| job >= HELD_DEPTH && job >= HELD_DEPTH * device)
}
