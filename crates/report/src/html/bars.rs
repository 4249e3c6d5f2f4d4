//! What each machine of a run had of it: bars beside each other, with the median
//! of all.

use std::fmt::Write as _;

use fathom_analysis::hosts::{HostFigures, by_host, median, parts_of};
use fathom_model::result::SlowBy;
use fathom_model::{Direction, Host, JobResult, ReasonKind, units};

use super::marks::DoubtMarks;
use super::story::Story;
use crate::table::shown as name_of;
use fathom_sheet::html::escape;

/// Hosts of more than these are closed at first.
const OPEN: usize = 64;

/// One column of bars.
struct BarColumn {
    title: &'static str,
    slow_by: SlowBy,
    value: fn(&HostFigures) -> Option<f64>,
    text: fn(f64) -> String,
}

const FIGURES: [BarColumn; 3] = [
    BarColumn {
        title: "bandwidth",
        slow_by: SlowBy::Bandwidth,
        value: |host| Some(host.bw_bytes),
        text: units::bytes_per_second,
    },
    BarColumn {
        title: "IOPS",
        slow_by: SlowBy::Iops,
        value: |host| Some(host.iops),
        text: units::count,
    },
    BarColumn {
        title: "p99 latency",
        slow_by: SlowBy::ClatP99,
        value: |host| Some(host.clat.as_ref()?.percentile_ns(99.0)? as f64),
        text: units::latency,
    },
];

/// A chart for each sum over hosts and direction; nothing for a run on one machine.
pub fn bars(story: &Story, marks: &DoubtMarks) -> String {
    let mut body = String::new();
    for total in story.doc.jobs.iter().filter(|job| job.across.is_some()) {
        for (dir, _) in total.directions().filter(|(_, r)| r.total_ios > 0) {
            body += &chart(story, total, dir, marks);
        }
    }
    if body.is_empty() {
        return body;
    }
    let lead = "<p class=\"lead\">Each host's own figures over its own time. The line across the bars is \
         the median of all; a bar far off it is red.</p>\n";
    format!("{lead}{body}")
}

fn chart(story: &Story, total: &JobResult, dir: Direction, marks: &DoubtMarks) -> String {
    let of_step = story
        .doc
        .hosts
        .iter()
        .filter(|host| host.step == total.step);
    let hosts: Vec<Host> = of_step.cloned().collect();
    let parts = parts_of(total, &story.doc.jobs, &hosts);
    let figures = by_host(&parts, dir);
    let shown: Vec<&BarColumn> = FIGURES
        .iter()
        .filter(|figure| figures.iter().any(|host| (figure.value)(host).is_some()))
        .collect();
    let mut html = String::from("<table class=\"hosts\"><thead><tr><th scope=\"col\">host</th>");
    for figure in &shown {
        let _ = write!(
            html,
            "<th scope=\"col\" colspan=\"2\">{}</th>",
            figure.title
        );
    }
    html += "</tr></thead><tbody>\n";
    for host in &hosts {
        let label = host.label();
        let node = host
            .node
            .as_ref()
            .map_or_else(String::new, |node| format!(" ({node})"));
        let _ = write!(
            html,
            "<tr><th scope=\"row\">{}",
            escape(&(name_of(host) + &node))
        );
        let Some(own) = figures.iter().find(|figures| figures.host == label) else {
            let why = host.lost.as_deref().unwrap_or("no figures");
            let cells = 2 * shown.len();
            let _ = writeln!(
                html,
                "</th><td class=\"bad\" colspan=\"{cells}\">{}</td></tr>",
                escape(why)
            );
            continue;
        };
        let is_slow = |figure: &BarColumn| {
            let slow = total.across.iter().flat_map(|across| &across.slow);
            let mut own = slow.filter(|slow| slow.host == label && slow.dir == dir);
            own.any(|slow| slow.figure == figure.slow_by)
        };
        if FIGURES.iter().any(is_slow) {
            html += &marks.of_doubts(&[ReasonKind::SlowHost]);
        }
        html += "</th>";
        for figure in &shown {
            html += &cells(figure, own, &figures, is_slow(figure));
        }
        html += "</tr>\n";
    }
    html += "</tbody></table>\n";
    let step = total
        .step
        .as_ref()
        .map_or_else(String::new, |step| format!("{step}, "));
    let name = total.name.strip_prefix("All clients: ");
    let name = name.map_or_else(String::new, |name| format!("{name}, "));
    let title = format!("{step}{name}{} by host", dir.name());
    let open = if hosts.len() <= OPEN { " open" } else { "" };
    format!(
        "<details class=\"table\"{open}><summary>{}</summary><div class=\"scroll\">{html}</div></details>\n",
        escape(&title)
    )
}

/// A bar and its figure.
fn cells(figure: &BarColumn, own: &HostFigures, all: &[HostFigures], is_slow: bool) -> String {
    let values = || {
        all.iter()
            .filter_map(figure.value)
            .filter(|value| value.is_finite())
    };
    let most = values().fold(0.0, f64::max);
    let (Some(value), Some(median)) = ((figure.value)(own), median(values())) else {
        return "<td></td><td class=\"n\">–</td>".to_owned();
    };
    let percent = |value: f64| {
        if most > 0.0 {
            value * 100.0 / most
        } else {
            0.0
        }
    };
    let class = if is_slow { " class=\"slow\"" } else { "" };
    let (width, line) = (percent(value), percent(median));
    format!(
        "<td{class}><svg class=\"hostbar\" aria-hidden=\"true\"><rect width=\"{width:.1}%\" height=\"100%\" rx=\"2\"/>\
         <line x1=\"{line:.1}%\" x2=\"{line:.1}%\" y1=\"0\" y2=\"100%\"/></svg></td><td class=\"n\">{}</td>",
        escape(&(figure.text)(value))
    )
}
