//! The machines of a run: when each began, how its clock stands, what became
//! of it.

use fathom_model::{Host, RunDocument, units};

use crate::grid::{Cell, Grid, figures, words};
use crate::style::{Style, Tone};

/// A line for each host; nothing for a run on one machine.
pub fn lines(doc: &RunDocument, style: Style) -> String {
    if doc.hosts.is_empty() {
        return String::new();
    }
    let mut grid = Grid::new([
        words("host", 0),
        words("calls itself", 1),
        words("engine", 1),
        figures("began", 0),
        figures("ran", 0),
        figures("clock", 1),
        words("", 0),
    ]);
    let mut step = None;
    for host in &doc.hosts {
        if host.step != step {
            step.clone_from(&host.step);
            grid.heading(step.as_deref().unwrap_or_default());
        }
        let first = first_start_ms(doc, host.step.as_deref());
        grid.line([
            Cell::new(Tone::Strong, shown(host)),
            Cell::from(host.hostname.clone().unwrap_or_else(|| "–".to_owned())),
            Cell::from(
                host.engine_version
                    .clone()
                    .unwrap_or_else(|| "–".to_owned()),
            ),
            Cell::from(match (host.start_ms, first) {
                (Some(start), Some(first)) => format!("+{}", short(start - first)),
                _ => "–".to_owned(),
            }),
            Cell::from(match (host.start_ms, host.end_ms) {
                (Some(start), Some(end)) => units::duration((end - start).max(0.0) as u64),
                _ => "–".to_owned(),
            }),
            Cell::from(match &host.clock {
                Some(clock) => format!("{:+.1} ± {:.1} ms", clock.offset_ms, clock.error_ms),
                None => "–".to_owned(),
            }),
            match &host.lost {
                Some(_) => Cell::new(Tone::Bad, "lost".to_owned()),
                None => Cell::from(""),
            },
        ]);
    }
    grid.render(style)
}

/// The host with its port, where that tells more than its name.
fn shown(host: &Host) -> String {
    match host.port {
        Some(port) => format!("{}:{port}", host.name),
        None => host.name.clone(),
    }
}

fn first_start_ms(doc: &RunDocument, step: Option<&str>) -> Option<f64> {
    let of_step = doc.hosts.iter().filter(|host| host.step.as_deref() == step);
    of_step.filter_map(|host| host.start_ms).reduce(f64::min)
}

/// A time of a few ms with a digit behind the point.
fn short(ms: f64) -> String {
    match ms {
        ..1000.0 => format!("{ms:.1} ms"),
        ms => units::duration(ms as u64),
    }
}
