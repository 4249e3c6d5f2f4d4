//! The device or its link counted errors while it was measured.

use fathom_model::{ReasonKind, VerdictReason};

use crate::verdict::JudgedFigure;

/// Counters of errors, and from how many on they speak against a figure: data that were
/// lost from the first on, packets that were sent again and commands that were repeated
/// from ten on, because a link may do that now and then and costs some µs.
const COUNTERS: [(&str, &str, u64); 3] = [
    ("media_errors", "errors of its media", 1),
    ("link_errors", "errors of its link", 10),
    ("command_errors", "commands with errors", 10),
];

pub(super) fn rule(figure: &JudgedFigure) -> Option<VerdictReason> {
    let evidence = figure.evidence()?;
    let mut devices = evidence.devices("target").chain(evidence.devices("under"));
    devices.find_map(|device| {
        COUNTERS.iter().find_map(|(counter, words, least)| {
            let n = evidence.count(&format!("{device}.{counter}"))?;
            (n >= *least).then(|| {
                let text = format!("{device} counted {n} {words} meanwhile");
                VerdictReason::found(ReasonKind::DeviceErrors, text, [(*counter, n as f64)])
            })
        })
    })
}
