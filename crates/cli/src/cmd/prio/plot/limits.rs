//! The limits of a folder of results, from its `cdl_descriptors`.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use fathom_analysis::priority::{DurationLimits, Limit};
use fathom_device::cdl::{CdlPage, show};
use fathom_model::Direction;

/// The name of the file, beside the depths.
const FILE: &str = "cdl_descriptors";

/// The limits of a workload; none where it has none.
///
/// # Errors
/// When the file is there and cannot be read, in words.
pub(super) fn of(workload: &Path) -> Result<DurationLimits, String> {
    let path = workload.join(FILE);
    let text = match fs::read_to_string(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(DurationLimits::default()),
        text => text.map_err(|error| format!("cannot read {}: {error}", path.display()))?,
    };
    let pages = show::parse(&text).map_err(|fault| {
        format!(
            "{}, line {}: {}; limits are not known",
            path.display(),
            fault.line,
            fault.what
        )
    })?;
    let mut limits = DurationLimits::default();
    for page in &pages {
        let dir = match page.kind {
            CdlPage::T2a => Direction::Read,
            CdlPage::T2b => Direction::Write,
        };
        for (number, descriptor) in (1..).zip(&page.descriptors) {
            let limit = Limit {
                number,
                ns: descriptor.whole_ns(),
                may_fail: descriptor.may_fail(),
            };
            limits.add(dir, limit);
        }
    }
    Ok(limits)
}
