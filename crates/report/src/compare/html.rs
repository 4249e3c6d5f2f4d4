//! A comparison as one HTML page: the figures, and both sides laid over each other as
//! curves, over time, as distributions of latencies.

use std::collections::BTreeSet;

use fathom_analysis::Sweep;
use fathom_analysis::compare::CompareVerdict;
use fathom_model::{Direction, Histogram, histogram};
use fathom_record::RecordError;

use super::text::{difference, interval, ratio, title, told, unmatched};
use super::{CompareDocument, CompareRequest, ComparedRun};
use crate::graphs::overlay;
use crate::graphs::time::{StepIops, iops_over_time};
use crate::html::plain::{drawn, plain_page};
use fathom_document::sweep::read_sweep;
use fathom_sheet::chart::palette::Ink;
use fathom_sheet::chart::{Chart, ChartAxis, Ends, Layer, Panel, Quantity, Scale, Shape, Size};
use fathom_sheet::html::escape;

/// Graphs of a kind that are drawn.
const CHARTS_MOST: usize = 24;
/// Two stand beside each other on a screen, and one on a telephone can still be read.
const SIZE: Size = Size {
    width: 460.0,
    height: 320.0,
};

/// The page.
///
/// # Errors
/// When a record cannot be read.
pub fn html(doc: &CompareDocument, request: &CompareRequest) -> Result<String, RecordError> {
    let sides = [("A", &doc.a), ("B", &doc.b)]
        .map(|(name, runs)| format!("<p><b>{name}</b> {}</p>\n", escape(&runs.join(", "))));
    let mut page = String::new();
    if !doc.differences.is_empty() {
        page += "<h2>What differs</h2>\n<div class=\"scroll\" tabindex=\"0\"><table><thead><tr><td></td>\
            <th scope=\"col\">A</th><th scope=\"col\">B</th></tr></thead>\n<tbody>\n";
        for one in &doc.differences {
            let cells = difference(one).map(|cell| format!("<td>{}</td>", escape(&cell)));
            page += &format!("<tr>{}</tr>\n", cells.concat());
        }
        page += "</tbody></table></div>\n";
    }
    page += &rows(doc);
    for note in unmatched(doc).iter().chain(&doc.notes) {
        page += &format!("<p>{}</p>\n", escape(note));
    }
    let [a, b] = [&request.a, &request.b].map(|side| sweeps(side));
    let curves = overlay::curves([&a?, &b?]);
    let [a, b] = [&request.a, &request.b].map(|side| steps(side));
    let over_time = overlay::over_time([&a?, &b?]);
    // Of a campaign the figures are thousands of rows: links lead past them.
    let mut links = String::new();
    for (id, title, charts) in [
        ("curves", "Curves", curves),
        ("time", "Over time", over_time),
        ("latencies", "Latencies", distributions(request)),
    ] {
        if !charts.is_empty() {
            links += &format!("<a href=\"#{id}\">{title}</a> ");
            page += &section(id, title, &charts);
        }
    }
    let links = match links.is_empty() {
        true => links,
        false => format!("<p>{links}</p>\n"),
    };
    Ok(plain_page("Comparison", &(sides.concat() + &links), &page))
}

/// The curves of each run that has any.
fn sweeps(side: &[ComparedRun]) -> Result<Vec<Sweep>, RecordError> {
    let dirs = side.iter().filter_map(|run| run.dir.as_deref());
    dirs.map(|dir| Ok(read_sweep(dir)?.sweep)).collect()
}

/// What each run did over time, of the first steps that are compared.
fn steps(side: &[ComparedRun]) -> Result<Vec<Vec<StepIops>>, RecordError> {
    let runs = side
        .iter()
        .filter_map(|run| Some((run, run.dir.as_deref()?)));
    let each = runs.map(|(run, dir)| {
        let prepares = |step: &&str| run.doc.preparations.iter().any(|name| name == step);
        let mut names = BTreeSet::new();
        for step in run.doc.jobs.iter().filter_map(|job| job.step.as_deref()) {
            // As many as are drawn, and those that the other side lacks.
            if names.len() < 2 * CHARTS_MOST && !prepares(&step) {
                names.insert(step);
            }
        }
        // A run of one job file has one step, which its jobs do not name.
        iops_over_time(dir, &|name| names.is_empty() || names.contains(name))
    });
    each.collect()
}

/// Graphs of one kind.
fn section(id: &str, title: &str, charts: &[Chart]) -> String {
    let each = charts.iter().take(CHARTS_MOST).enumerate();
    let each = each.map(|(place, chart)| drawn(chart, SIZE, &format!("{id}{place}")));
    let left = match charts.len().saturating_sub(CHARTS_MOST) {
        0 => String::new(),
        _ => format!(
            "<p>{CHARTS_MOST} of {} graphs are drawn here, the first ones; fathom graph draws all of a run</p>\n",
            charts.len()
        ),
    };
    format!(
        "<h2 id=\"{id}\">{title}</h2>\n<div class=\"cards\">\n{}</div>\n{left}",
        each.collect::<String>()
    )
}

fn rows(doc: &CompareDocument) -> String {
    let heads =
        ["A", "B", "B/A", "95 %"].map(|head| format!("<th scope=\"col\" class=\"n\">{head}</th>"));
    let mut table = format!(
        "<h2>Figures</h2>\n<div class=\"scroll\" tabindex=\"0\"><table><thead><tr>\
         <th scope=\"col\">job</th><th scope=\"col\">figure</th>{}<td></td></tr></thead>\n<tbody>\n",
        heads.concat()
    );
    for row in &doc.rows {
        let shown = |value: Option<f64>| value.map_or("–".to_owned(), |v| row.figure.shown(v));
        let class = match row.comparison.verdict {
            CompareVerdict::Faster => "good",
            CompareVerdict::Slower => "bad",
            CompareVerdict::Same => "same",
            CompareVerdict::CannotTell => "doubtful",
        };
        let cells = [
            shown(row.comparison.a),
            shown(row.comparison.b),
            ratio(row.comparison.ratio),
            interval(row),
        ]
        .map(|cell| format!("<td class=\"n\">{}</td>", escape(&cell)));
        table += &format!(
            "<tr><td>{}</td><td>{}</td>{}<td class=\"{class}\">{}</td></tr>\n",
            escape(&title(row)),
            row.figure.name(),
            cells.concat(),
            escape(&told(doc, row).1),
        );
    }
    table + "</tbody></table></div>\n"
}

/// The latencies of each job and direction that both sides have: of all runs of a side
/// together.
fn distributions(request: &CompareRequest) -> Vec<Chart> {
    let Some(first) = request.a.first() else {
        return Vec::new();
    };
    let mut charts = Vec::new();
    for job in &first.doc.jobs {
        for dir in [Direction::Read, Direction::Write, Direction::Trim] {
            let side = |runs: &[ComparedRun]| {
                let mut all = Histogram::new();
                let same = runs.iter().flat_map(|run| &run.doc.jobs).filter(|other| {
                    (&other.step, &other.name, &other.hostname)
                        == (&job.step, &job.name, &job.hostname)
                });
                for (_, result) in same
                    .flat_map(|job| job.directions())
                    .filter(|one| one.0 == dir)
                {
                    let clat = result
                        .clat
                        .as_ref()
                        .and_then(|clat| clat.histogram.as_ref());
                    clat.into_iter().for_each(|clat| all.merge(clat));
                }
                all
            };
            let (a, b) = (side(&request.a), side(&request.b));
            if a.is_empty() || b.is_empty() {
                continue;
            }
            let step = job
                .step
                .as_ref()
                .map_or_else(String::new, |step| format!("{step} · "));
            charts.push(chart(format!("{step}{} {}", job.name, dir.name()), &a, &b));
        }
    }
    charts
}

fn chart(title: String, a: &Histogram, b: &Histogram) -> Chart {
    let axis = |title: &str, quantity, scale, ends| ChartAxis {
        title: title.to_owned(),
        quantity,
        scale,
        ends,
    };
    let mut panel = Panel::new(
        axis("Latency", Quantity::Latency, Scale::Log10, Ends::Values),
        axis(
            "Share of the I/Os",
            Quantity::Percent,
            Scale::Linear,
            Ends::Ticks,
        ),
    );
    for (place, (name, of)) in [("A", a), ("B", b)].into_iter().enumerate() {
        panel.layers.push(Layer {
            name: Some(name.to_owned()),
            shape: Shape::Curve(shares(of)),
            ink: Ink::of_place(place),
        });
    }
    Chart {
        title: format!("{title}: share of the I/Os that took no longer"),
        panels: vec![panel],
        ..Chart::default()
    }
}

fn shares(of: &Histogram) -> Vec<(f64, f64)> {
    let mut seen = 0;
    let all = of.total() as f64;
    let points = of.buckets().map(|(bucket, count)| {
        seen += count;
        let ns = histogram::bounds_of(bucket).1;
        (ns.max(1) as f64, 100.0 * seen as f64 / all)
    });
    points.collect()
}
