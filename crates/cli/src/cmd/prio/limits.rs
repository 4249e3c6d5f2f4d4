//! The limits of a folder of results, from its `cdl_descriptors`, and what the disk counted
//! of them.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use fathom_analysis::priority::{DurationLimits, Limit, MissedLimit};
use fathom_device::cdl::{Bound, CdlPage, Page, show};
use fathom_device::health::missed_limit;
use fathom_model::Direction;
use fathom_suites::prio::STATISTICS;

/// The name of the file, beside the depths.
const FILE: &str = "cdl_descriptors";

/// The limits of a workload; none where it has none.
///
/// # Errors
/// When the file is there and cannot be read, in words.
pub(super) fn of(workload: &Path) -> Result<DurationLimits, String> {
    Ok(Descriptors::of(workload)?.limits())
}

/// What a folder says of limits.
#[derive(Debug, Clone, Default)]
pub struct Descriptors(Vec<Page>);

impl Descriptors {
    /// Those of a log: they lie beside it, or beside the depths of its workload.
    ///
    /// # Errors
    /// As for those of a workload.
    pub fn of_log(log: &Path) -> Result<Self, String> {
        // Also of a name without folders.
        let whole = std::path::absolute(log).map_err(|error| error.to_string())?;
        for folder in whole.ancestors().skip(1).take(2) {
            let found = Self::of(folder)?;
            if !found.0.is_empty() {
                return Ok(found);
            }
        }
        Ok(Self::default())
    }

    fn of(folder: &Path) -> Result<Self, String> {
        let path = folder.join(FILE);
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
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
        Ok(Self(pages))
    }

    /// The limits themselves.
    pub fn limits(&self) -> DurationLimits {
        let mut limits = DurationLimits::default();
        for page in &self.0 {
            for (number, descriptor) in (1..).zip(&page.descriptors) {
                let limit = Limit {
                    number,
                    ns: descriptor.whole_ns(),
                    may_fail: descriptor.may_fail(),
                };
                limits.add(direction(page.kind), limit);
            }
        }
        limits
    }

    /// How many I/Os missed a limit, as the disk counted while a log was written; `None`
    /// where it did not.
    pub fn counted(&self, missed: &MissedLimit, log: &Path) -> Option<u64> {
        let is_its = |page: &&Page| direction(page.kind) == missed.dir;
        let page = self.0.iter().find(is_its)?;
        let number = missed.limit.number;
        let descriptor = page.descriptor(number)?;
        let text = fs::read_to_string(log.parent()?.join(STATISTICS)).ok()?;
        missed_limit(descriptor.limit(Bound::Duration).time != 0, |time| {
            let figure = time.figure(page.kind, number);
            let n = |line: &str| line.strip_prefix(&figure)?.trim().parse().ok();
            text.lines().find_map(n)
        })
    }
}

fn direction(page: CdlPage) -> Direction {
    match page {
        CdlPage::T2a => Direction::Read,
        CdlPage::T2b => Direction::Write,
    }
}
