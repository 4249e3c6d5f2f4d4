//! The graphs of a run: which there are, what each shows, what its file is called.
//!
//! A [`Graph`] is a [`fathom_sheet::chart::Chart`] with a path. [`of_campaign`] makes those of a
//! campaign's curves, [`over_time`](time::over_time) those of samples. Names and
//! contents are described in docs/GRAPHS.md.

mod curve;
mod heat;
mod hosts;
mod metric;
mod options;
pub(crate) mod overlay;
mod overview;
pub mod prio;
pub mod time;
mod words;

#[cfg(test)]
mod tests;

use fathom_analysis::Curve;
use fathom_model::Direction;

use fathom_document::sweep::CampaignRecord;
use fathom_sheet::graph::Graph;
pub use metric::PointMetric;
pub use options::{GraphAxes, over_options};
pub(crate) use words::{unnumbered, x_axis};

/// What has no graph, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotDrawn {
    /// Name of the series.
    pub series: String,
    /// One sentence.
    pub reason: String,
}

/// The directions that have graphs, and the letters in their names.
const DIRECTIONS: [(Direction, &str); 3] = [
    (Direction::Read, "r"),
    (Direction::Write, "w"),
    (Direction::Trim, "t"),
];

/// All graphs of a campaign's curves, series by series, then those of several
/// series together. `wanted` says of a series' name whether it is to be drawn.
pub fn of_campaign(
    record: &CampaignRecord,
    wanted: &dyn Fn(&str) -> bool,
) -> (Vec<Graph>, Vec<NotDrawn>) {
    let all = record.sweep.series.iter();
    let series: Vec<&Curve> = all.filter(|series| wanted(&series.name)).collect();
    let (mut graphs, mut not_drawn) = (Vec::new(), Vec::new());
    for &one in &series {
        let drawn = curve::of_series(record, one);
        if drawn.is_empty() {
            not_drawn.push(NotDrawn {
                series: one.name.clone(),
                reason: words::why_not(one),
            });
        }
        graphs.extend(drawn);
    }
    for (folder, together) in overview::folders(&series) {
        graphs.extend(overview::of_folder(record, folder, &together));
        graphs.extend(heat::of_folder(record, folder, &together));
    }
    (graphs, not_drawn)
}
