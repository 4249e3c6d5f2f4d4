//! A comparison as one HTML page, with the distributions of latencies laid over each
//! other.

use fathom_analysis::compare::CompareVerdict;
use fathom_model::{Direction, Histogram, histogram};

use super::text::{difference, interval, ratio, title, told, unmatched};
use super::{CompareDocument, CompareRequest, ComparedRun};
use crate::chart::palette::Ink;
use crate::chart::{Chart, ChartAxis, Ends, Layer, Panel, Quantity, Scale, Shape, Size, Theme};
use crate::html::markup::escape;

/// Distributions that are drawn.
const CHARTS_MOST: usize = 24;
/// The page needs nothing but itself, and runs nothing.
const HEAD: &str = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>Comparison – Fathom</title>\n\
<style>\nbody{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}\n\
table{border-collapse:collapse;margin:1rem 0}td,th{padding:.25rem .7rem;border-bottom:1px solid #ddd;text-align:left}\n\
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}.faster{color:#0a7227;font-weight:600}\n\
.slower{color:#b3261e;font-weight:600}.cannot{color:#8a5a00}svg{max-width:100%;height:auto}\n</style>\n</head>\n<body>\n";

/// The page.
#[must_use]
pub fn html(doc: &CompareDocument, request: &CompareRequest) -> String {
    let mut page = HEAD.to_owned();
    page += "<h1>Comparison</h1>\n";
    for (name, runs) in [("A", &doc.a), ("B", &doc.b)] {
        page += &format!("<p><b>{name}</b> {}</p>\n", escape(&runs.join(", ")));
    }
    if !doc.differences.is_empty() {
        page += "<h2>What differs</h2>\n<table><tr><th></th><th>A</th><th>B</th></tr>\n";
        for one in &doc.differences {
            let cells = difference(one).map(|cell| format!("<td>{}</td>", escape(&cell)));
            page += &format!("<tr>{}</tr>\n", cells.concat());
        }
        page += "</table>\n";
    }
    page += &rows(doc);
    for note in unmatched(doc).iter().chain(&doc.notes) {
        page += &format!("<p>{}</p>\n", escape(note));
    }
    let charts: Vec<Chart> = distributions(request);
    if !charts.is_empty() {
        page += "<h2>Latencies</h2>\n";
    }
    for chart in charts.iter().take(CHARTS_MOST) {
        page += &chart.svg(&Theme::LIGHT, Size::default());
        page += "\n";
    }
    page += "</body>\n</html>\n";
    page
}

fn rows(doc: &CompareDocument) -> String {
    let mut table = "<h2>Figures</h2>\n<table><tr><th></th><th></th><th class=\"n\">A</th>\
        <th class=\"n\">B</th><th class=\"n\">B/A</th><th class=\"n\">95 %</th><th></th></tr>\n"
        .to_owned();
    for row in &doc.rows {
        let shown = |value: Option<f64>| value.map_or("–".to_owned(), |v| row.figure.shown(v));
        let class = match row.comparison.verdict {
            CompareVerdict::Faster => "faster",
            CompareVerdict::Slower => "slower",
            CompareVerdict::Same => "same",
            CompareVerdict::CannotTell => "cannot",
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
    table + "</table>\n"
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
