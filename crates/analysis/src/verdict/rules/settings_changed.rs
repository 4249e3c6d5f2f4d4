//! A setting of a queue changed while it was measured.

use fathom_model::{ReasonKind, VerdictReason};

use crate::verdict::JudgedFigure;

/// Settings that decide how requests go to the device; one change is enough.
const SETTINGS: [&str; 6] = [
    "scheduler",
    "nr_requests",
    "wbt_lat_usec",
    "write_cache",
    "max_sectors_kb",
    "read_ahead_kb",
];
/// Limits of control groups: they are gauges, because they are numbers.
const LIMITS: [&str; 4] = ["limit_rbps", "limit_wbps", "limit_riops", "limit_wiops"];

pub(super) fn rule(figure: &JudgedFigure) -> Option<VerdictReason> {
    let evidence = figure.evidence()?;
    let mut devices = evidence.devices("target").chain(evidence.devices("under"));
    let text = devices.find_map(|device| {
        let settings = SETTINGS.iter().find_map(|setting| {
            let values = evidence.setting(&format!("{device}.{setting}"));
            let changed = values.len() > 1;
            changed.then(|| format!("{setting} of {device} changed: {}", values.join(", then ")))
        });
        let limits = || {
            LIMITS.iter().find_map(|limit| {
                let gauge = evidence.gauge(&format!("{device}.{limit}"))?;
                let (low, high) = (gauge.min, gauge.max);
                let name = limit.trim_start_matches("limit_");
                (low < high).then(|| {
                    format!("the limit {name} of a control group for {device} changed between {low} and {high}")
                })
            })
        };
        settings.or_else(limits)
    })?;
    Some(VerdictReason::found(ReasonKind::SettingsChanged, text, []))
}
