//! I/Os are no multiples of the device's physical block, or begin within one.

use fathom_model::{Direction, ReasonKind, VerdictReason};

use crate::verdict::JudgedFigure;

/// A drive whose block is larger than the request reads the rest of it first
/// (Documentation/ABI/stable/sysfs-block, physical_block_size). Reads cost it nothing more.
pub(super) fn rule(figure: &JudgedFigure) -> Option<VerdictReason> {
    if figure.dir != Direction::Write {
        return None;
    }
    let bs = figure.block_bytes()?;
    figure.devices().find_map(|device| {
        let physical = u64::from(device.physical_block_bytes);
        let start = device.partition.as_ref().map_or(0, |part| part.start_bytes);
        if physical <= u64::from(device.logical_block_bytes) || physical == 0 {
            return None;
        }
        let text = match (bs % physical, start % physical) {
            (0, 0) => return None,
            (0, _) => format!(
                "the partition begins within a block of {physical} bytes of {}",
                device.name
            ),
            _ => format!(
                "blocks of {bs} bytes are no multiples of the {physical} of {}",
                device.name
            ),
        };
        let numbers = [
            ("block_bytes", bs as f64),
            ("physical_block_bytes", physical as f64),
        ];
        Some(VerdictReason::found(ReasonKind::Misaligned, text, numbers))
    })
}
