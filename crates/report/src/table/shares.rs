//! The machines of a run side by side: rates, shares of the sum, percentiles.

use fathom_model::result::ALL_CLIENTS;
use fathom_model::{RunDocument, units};

use super::Marks;
use crate::shares::{HostShare, shares};
use fathom_sheet::grid::{Grid, GridCell, figures, words};
use fathom_sheet::style::{Style, Tone};

/// Percentiles that are shown; all are in the lines of the jobs.
pub(crate) const PERCENTS: [(f64, &str); 3] = [(50.0, "p50"), (99.0, "p99"), (99.9, "p99.9")];

/// A line for each host and direction, and their sum; nothing for a run on one
/// machine.
pub fn lines(doc: &RunDocument, marks: &Marks, style: Style) -> String {
    let shares = shares(doc);
    if shares.is_empty() {
        return String::new();
    }
    let mut columns = vec![
        words("host", 0),
        words("", 0),
        figures("IOPS", 0),
        figures("bandwidth", 0),
        figures("share", 0),
    ];
    columns.extend(PERCENTS.map(|(_, title)| figures(title, 2)));
    let mut grid = Grid::new(columns);
    let mut heading = String::new();
    for share in &shares {
        let own = [share.step, share.job].into_iter().flatten();
        let own = own.collect::<Vec<_>>().join(", ");
        if own != heading {
            grid.heading(own.as_str());
            heading = own;
        }
        grid.line(cells(share, marks));
    }
    grid.render(style)
}

fn cells(share: &HostShare, marks: &Marks) -> Vec<GridCell> {
    let result = &share.result;
    let signs = marks.signs(&result.kinds());
    let host = share.host.map(|host| host.label());
    let tone = match host {
        Some(_) => Tone::Plain,
        None => Tone::Strong,
    };
    let percent = |share: f64| GridCell::from(format!("{:.1} %", share * 100.0));
    let mut cells = vec![
        GridCell::new(tone, host.unwrap_or_else(|| ALL_CLIENTS.to_owned())),
        GridCell::from(share.dir.name()),
        GridCell::new(tone, units::count(result.iops)).marked(Tone::Doubtful, signs.clone()),
        GridCell::new(tone, units::bytes_per_second(result.bw_bytes)).marked(Tone::Doubtful, signs),
        share.share.map_or_else(GridCell::default, percent),
    ];
    let latency = result.clat.as_ref().or(result.lat.as_ref());
    cells.extend(PERCENTS.map(|(percent, _)| {
        let ns = latency.and_then(|latency| latency.percentile_ns(percent));
        ns.map_or_else(GridCell::default, |ns| {
            GridCell::from(units::latency(ns as f64))
        })
    }));
    cells
}
