//! The machines of a run: when each began, how its clock stands, what became
//! of it.

use fathom_model::{Host, RunDocument, units};

use fathom_sheet::grid::{Column, Grid, GridCell, figures, words};
use fathom_sheet::style::{Style, Tone};

/// A line for each host; nothing for a run on one machine.
pub fn lines(doc: &RunDocument, style: Style) -> String {
    if doc.hosts.is_empty() {
        return String::new();
    }
    let columns: Vec<&(Column, Fact)> = COLUMNS
        .iter()
        .filter(|(_, fact)| doc.hosts.iter().any(|host| fact(doc, host).is_some()))
        .collect();
    let titles = columns.iter().map(|(column, _)| *column);
    let mut grid = Grid::new(
        [words("host", 0)]
            .into_iter()
            .chain(titles)
            .chain([words("", 0)])
            .collect::<Vec<_>>(),
    );
    let mut step = None;
    for host in &doc.hosts {
        if host.step != step {
            step.clone_from(&host.step);
            grid.heading(step.as_deref().unwrap_or_default());
        }
        let facts = columns.iter().map(|(_, fact)| fact(doc, host));
        let mut cells = vec![GridCell::new(Tone::Strong, shown(host))];
        cells.extend(facts.map(|fact| GridCell::from(fact.unwrap_or_else(|| "–".to_owned()))));
        cells.push(match &host.lost {
            Some(_) => GridCell::new(Tone::Bad, "lost".to_owned()),
            None => GridCell::from(""),
        });
        grid.line(cells);
    }
    grid.render(style)
}

/// What a column tells of a host, where it is known.
type Fact = fn(&RunDocument, &Host) -> Option<String>;

/// The columns; those of which nothing is known are left out.
const COLUMNS: [(Column, Fact); 6] = [
    (words("node", 0), |_, host| host.node.clone()),
    (words("calls itself", 1), |_, host| host.hostname.clone()),
    (words("engine", 1), |_, host| host.engine_version.clone()),
    (figures("began", 0), |doc, host| {
        let first = first_start_ms(doc, host.step.as_deref())?;
        Some(format!("+{}", short(host.start_ms? - first)))
    }),
    (figures("ran", 0), |_, host| {
        let ms = (host.end_ms? - host.start_ms?).max(0.0);
        Some(units::duration(ms as u64))
    }),
    (figures("clock", 1), |_, host| {
        let clock = host.clock.as_ref()?;
        Some(format!(
            "{:+.1} ± {:.1} ms",
            clock.offset_ms, clock.error_ms
        ))
    }),
];

/// The host with its port, where that tells more than its name.
pub(crate) fn shown(host: &Host) -> String {
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
