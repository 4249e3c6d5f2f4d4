//! An array, a file system or trims worked on the device meanwhile.

use fathom_model::{Direction, ReasonKind, VerdictReason, units};

use crate::verdict::JudgedFigure;

/// What an array says when it does nothing (Documentation/admin-guide/md.rst).
const AT_REST: [&str; 2] = ["idle", "frozen"];
/// Bytes that were trimmed though no job trims: fstrim and online discards do it in such
/// amounts, a file that is removed in smaller ones.
const TRIMMED_BYTES: u64 = 64 << 20;

pub(super) fn rule(figure: &JudgedFigure) -> Option<VerdictReason> {
    let evidence = figure.evidence()?;
    let found = |text: String| Some(VerdictReason::found(ReasonKind::Maintenance, text, []));
    let devices = || evidence.devices("target").chain(evidence.devices("under"));
    for device in devices() {
        let actions = evidence.setting(&format!("{device}.sync_action"));
        if let Some(action) = actions.iter().find(|it| !AT_REST.contains(&it.as_str())) {
            return found(format!("the array {device} was busy with '{action}'"));
        }
    }
    let exclusive = evidence.settings.iter();
    let mut exclusive = exclusive.filter(|(name, _)| name.ends_with(".exclusive_operation"));
    let of_btrfs = exclusive.find_map(|(_, values)| values.iter().find(|it| *it != "none"));
    if let Some(operation) = of_btrfs {
        return found(format!("btrfs was busy with '{operation}'"));
    }
    let trims = |(dir, result): (Direction, &fathom_model::DirectionResult)| {
        dir == Direction::Trim && result.total_ios > 0
    };
    if figure.siblings().any(|job| job.directions().any(trims)) {
        return None;
    }
    devices().find_map(|device| {
        let bytes = evidence.count(&format!("{device}.discard_bytes"))?;
        let text = format!(
            "{} of {device} were trimmed by somebody else",
            units::bytes(bytes as f64)
        );
        let numbers = [("trimmed_bytes", bytes as f64)];
        (bytes >= TRIMMED_BYTES)
            .then(|| VerdictReason::found(ReasonKind::Maintenance, text, numbers))
    })
}
