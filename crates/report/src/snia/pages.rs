//! The report pages of a test, each a sheet of paper.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};

use fathom_analysis::snia::{
    CellSummary, Determination, Findings, NOTICE, PartEnding, Setup, SniaCell as Load, SniaTest,
    TestPart, Tracked,
};
use fathom_analysis::steady_state::Metric;
use fathom_model::units;

use super::sheet::{self, Sheet};
use super::{Document, charts, words};
use fathom_document::rfc3339;
use fathom_sheet::html::escape;

const PAGE: &str = include_str!("../../assets/snia.html");
const STYLES: [&str; 2] = [
    include_str!("../../assets/report.css"),
    include_str!("../../assets/snia.css"),
];

/// More deviations or notes than this have no room on a page.
const TOLD: usize = 9;

/// Writes the pages of all tests of a record as one HTML file. `now_ms`: when
/// the report is made, ms since 1970 UTC.
///
/// # Errors
/// When `out` cannot be written.
pub fn write(doc: &Document, now_ms: u64, out: &mut impl Write) -> io::Result<()> {
    let fills = BTreeMap::from([
        ("nonce", crate::html::nonce()),
        ("version", escape(env!("CARGO_PKG_VERSION"))),
        ("title", escape(&format!("{} – Fathom", doc.name))),
        ("style", STYLES.concat()),
        ("name", escape(&doc.name)),
        ("notice", escape(NOTICE)),
        ("record", escape(&doc.run)),
        ("sheets", sheets(doc, now_ms)),
    ]);
    for (place, part) in PAGE.split("{{").enumerate() {
        let (name, text) = match part.split_once("}}").filter(|_| place > 0) {
            Some((name, text)) => (Some(name), text),
            None => (None, part),
        };
        if let Some(fill) = name.and_then(|name| fills.get(name)) {
            out.write_all(fill.as_bytes())?;
        }
        out.write_all(text.as_bytes())?;
    }
    Ok(())
}

/// The sheets alone, to stand in another page.
pub fn sheets(doc: &Document, now_ms: u64) -> String {
    let made = rfc3339(now_ms).replace('T', " ");
    let made = format!("{} UTC", made.get(..16).unwrap_or(&made));
    let tests = doc.tests.iter();
    tests
        .map(|findings| sheet::html(doc, findings, &of_test(findings), &made))
        .collect()
}

/// In the order in which a reader asks.
fn of_test(findings: &Findings) -> Vec<Sheet> {
    let setup = &findings.setup;
    let mut sheets = vec![summary(findings)];
    let parts: Vec<&TestPart> = findings.parts.iter().collect();
    for part in &parts {
        match setup.test {
            SniaTest::Wsat => saturation(setup, part, &mut sheets),
            _ => steady(setup, part, &mut sheets),
        }
    }
    let measured = parts
        .iter()
        .any(|part| part.cells.iter().any(|cell| cell.n > 0));
    if measured && setup.test != SniaTest::Wsat {
        sheets.push(Sheet {
            title: format!("{} by block size and mix", setup.test.title()),
            body: tables(findings),
        });
        sheets.push(Sheet::chart(
            format!("{} over the block size", setup.test.title()),
            &charts::two_dimensional(setup, &parts),
        ));
    }
    if measured && setup.test == SniaTest::Iops {
        let title = "Heat map, in place of a plot in three dimensions".to_owned();
        sheets.push(Sheet::chart(title, &charts::heat(setup, parts[0])));
    }
    if let Some(cell) = &findings.histogram {
        sheets.push(histogram(setup, cell));
    }
    sheets
}

/// The first page: how it came out, and what is to be known of it.
fn summary(findings: &Findings) -> Sheet {
    let setup = &findings.setup;
    let mut body = String::new();
    for part in &findings.parts {
        let class = match part.ending {
            PartEnding::Attained => "good",
            PartEnding::AttainedLate | PartEnding::TooShort | PartEnding::Unfinished => "doubtful",
            PartEnding::NotAttained if setup.test == SniaTest::Wsat => "doubtful",
            PartEnding::NotAttained => "bad",
        };
        let _ = writeln!(
            body,
            "<p class=\"outcome {class}\">{}</p>",
            escape(&words::outcome(setup, part))
        );
    }
    body += &overview(findings);
    let all_cells = findings
        .parts
        .iter()
        .filter(|part| !part.all_cells.steady.is_empty());
    for part in all_cells.filter(|_| setup.test == SniaTest::Iops) {
        let (steady, of) = part.all_cells.steady.last().copied().unwrap_or_default();
        let verdict = match part.all_cells.at {
            Some(at) => format!("attained at round {at}"),
            None => "not attained".to_owned(),
        };
        let _ = writeln!(
            body,
            "<p>fio-tests' all-cells criterion, which is stricter: {verdict}; in the last round \
             {steady} of {of} cells kept fio's rule.</p>"
        );
    }
    for (title, class, list) in [
        ("Different from the specification", "", &findings.deviations),
        ("Noted while it ran", " plain", &findings.notes),
    ] {
        if !list.is_empty() {
            let mut items: String = list
                .iter()
                .take(TOLD)
                .map(|text| format!("<li>{}</li>", escape(text)))
                .collect();
            if let Some(more @ 1..) = list.len().checked_sub(TOLD) {
                let _ = write!(
                    items,
                    "<li>and {more} more: <code>fathom snia show</code></li>"
                );
            }
            let _ = writeln!(
                body,
                "<h4>{title}</h4>\n<ul class=\"notes{class}\">{items}</ul>"
            );
        }
    }
    Sheet {
        title: "Summary".to_owned(),
        body,
    }
}

/// Every tracked variable in a line.
fn overview(findings: &Findings) -> String {
    let mut rows = String::new();
    for part in &findings.parts {
        for tracked in &part.tracked {
            let Some(found) = &tracked.determination else {
                continue;
            };
            let (class, verdict) = verdict(found);
            let _ = writeln!(
                rows,
                "<tr><th scope=\"row\">{}</th><td>{}</td><td class=\"n\">{}</td>\
                 <td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"{class}\">{verdict}</td></tr>",
                escape(&words::tracked(tracked)),
                words::window(part),
                words::value(tracked.metric, found.window.mean),
                words::percent(found.window.range_percent),
                words::percent(found.window.slope_excursion_percent),
            );
        }
    }
    if rows.is_empty() {
        return rows;
    }
    format!(
        "<table><thead><tr><th>tracked variable</th><th>window</th><th class=\"n\">average</th>\
         <th class=\"n\">data excursion</th><th class=\"n\">slope excursion</th><th>verdict</th></tr>\
         </thead><tbody>{rows}</tbody></table>\n"
    )
}

fn verdict(found: &Determination) -> (&'static str, &'static str) {
    match found.holds {
        true => ("good", "steady"),
        false => ("bad", "NOT steady"),
    }
}

/// Convergence and window of every tracked variable.
fn steady(setup: &Setup, part: &TestPart, sheets: &mut Vec<Sheet>) {
    for tracked in &part.tracked {
        if part.measured.is_empty() {
            continue;
        }
        sheets.push(Sheet::chart(
            format!("Steady-state convergence plot: {}", words::tracked(tracked)),
            &charts::convergence(setup, part, tracked),
        ));
        if setup.test == SniaTest::Latency {
            sheets.push(Sheet::chart(
                "Steady-state convergence plot: maximum latency".to_owned(),
                &charts::convergence_of_maximum(setup, part),
            ));
        }
        push_window(setup, part, tracked, sheets);
    }
}

fn push_window(setup: &Setup, part: &TestPart, tracked: &Tracked, sheets: &mut Vec<Sheet>) {
    if let Some(found) = &tracked.determination {
        sheets.push(Sheet::beside(
            format!("Measurement window: {}", words::tracked(tracked)),
            &charts::window(setup, tracked, found),
            &determination(part, tracked, found),
        ));
    }
}

/// The determination box: every term of the inequality.
fn determination(part: &TestPart, tracked: &Tracked, found: &Determination) -> String {
    let value = |v: f64| words::value(tracked.metric, v);
    let mut rows = String::new();
    let mut row = |name: &str, text: String, class: &str| {
        let _ = writeln!(
            rows,
            "<tr><th scope=\"row\">{name}</th><td class=\"{class}\">{}</td></tr>",
            escape(&text)
        );
    };
    row("tracked variable", words::tracked(tracked), "");
    row("window", words::window(part), "");
    row("average", value(found.window.mean), "");
    for term in &found.terms {
        let class = if term.holds { "good" } else { "bad" };
        let name = words::term(term);
        row(
            &format!("{name} allowed"),
            format!(
                "≤ {} ({} % of the average)",
                value(term.allowed),
                term.allowed_percent
            ),
            "",
        );
        row(
            &format!("{name} measured"),
            format!(
                "{} ({})",
                value(term.measured),
                words::percent(term.measured_percent)
            ),
            class,
        );
    }
    row(
        "fit, x the round",
        format!("{} {}", found.formula, unit(tracked.metric)),
        "",
    );
    let r = found.window.correlation;
    row(
        "correlation",
        r.map_or_else(
            || "none: all values are equal".to_owned(),
            |r| format!("{r:.4}"),
        ),
        "",
    );
    let (class, verdict) = verdict(found);
    row("steady state", verdict.to_owned(), class);
    format!(
        "<table class=\"box\"><caption>Steady-state determination</caption><tbody>{rows}</tbody></table>\n"
    )
}

/// The unit in which a fit is written.
fn unit(metric: Metric) -> &'static str {
    match metric {
        Metric::Iops => "IOPS",
        Metric::Bandwidth => "B/s",
        Metric::Latency | Metric::Percentile(_) => "ns",
    }
}

/// The tables of a test: the tracked figure; of latencies the tail too.
fn tables(findings: &Findings) -> String {
    let setup = &findings.setup;
    let figure = |metric: Metric| {
        move |cell: &CellSummary| {
            charts::figure(cell, metric).map(|value| words::value(metric, value))
        }
    };
    let ns = |ns: Option<u64>| ns.map(|ns| units::latency(ns as f64));
    match setup.test {
        SniaTest::Latency => {
            let tables = [
                table(findings, "Mean latency, average", &figure(Metric::Latency)),
                table(findings, "99.999 % of the merged histograms", &|cell| {
                    ns(cell.lat_p99999_ns)
                }),
                table(findings, "Maximum", &|cell| ns(cell.lat_max_ns)),
            ];
            format!("<div class=\"tables\">{}</div>\n", tables.concat())
        }
        test => {
            let title = format!("{}, average", test.title());
            table(findings, &title, &figure(test.metric()))
        }
    }
}

/// Block sizes down, mixes across, averages over the window.
fn table(
    findings: &Findings,
    title: &str,
    figure: &dyn Fn(&CellSummary) -> Option<String>,
) -> String {
    let setup = &findings.setup;
    let windows: Vec<String> = findings.parts.iter().map(words::window).collect();
    let mut html = format!(
        "<table class=\"grid\"><caption>{} over {}, reads and writes together</caption>\
         <thead><tr><th>block size</th>",
        escape(title),
        windows.join(" / ")
    );
    for mix in &setup.mixes {
        let _ = write!(html, "<th class=\"n\">{mix}/{}</th>", 100 - mix);
    }
    html += "</tr></thead><tbody>\n";
    for &block_bytes in &setup.blocks {
        let load = |reads_percent| Load {
            reads_percent,
            block_bytes,
        };
        let _ = write!(html, "<tr><th scope=\"row\">{}</th>", load(0).block());
        for &mix in &setup.mixes {
            let mut cells = findings.parts.iter().flat_map(|part| &part.cells);
            let found = cells.find(|cell| cell.cell == load(mix)).and_then(figure);
            let text = found.unwrap_or_else(|| "–".to_owned());
            let _ = write!(html, "<td class=\"n\">{}</td>", escape(&text));
        }
        html += "</tr>\n";
    }
    html + "</tbody></table>\n"
}

fn saturation(setup: &Setup, part: &TestPart, sheets: &mut Vec<Sheet>) {
    if part.measured.iter().all(|round| round.cells.is_empty()) {
        return;
    }
    for over_fills in [false, true] {
        let title = match over_fills {
            true => "Write saturation over drive fills",
            false => "Write saturation over time",
        };
        let chart = charts::saturation(setup, part, over_fills);
        sheets.push(Sheet::chart(title.to_owned(), &chart));
    }
    for tracked in &part.tracked {
        push_window(setup, part, tracked, sheets);
    }
}

fn histogram(setup: &Setup, cell: &fathom_analysis::snia::CellFigures) -> Sheet {
    let title = format!(
        "Response time histogram: {} for {}",
        cell.cell,
        units::duration(setup.histogram_ms)
    );
    if let Some(why) = &cell.failed {
        let body = format!("<p class=\"bad\">It failed: {}</p>", escape(why));
        return Sheet { title, body };
    }
    let ns = |ns: Option<u64>| ns.map_or("–".to_owned(), |ns| units::latency(ns as f64));
    let at = |percent| ns(cell.percentile_ns(percent));
    let rows: String = [
        ("I/Os", units::count(cell.lat.total() as f64)),
        ("IOPS", cell.iops.map_or("–".to_owned(), units::count)),
        (
            "mean",
            cell.lat_mean_ns.map_or("–".to_owned(), units::latency),
        ),
        ("50 %", at(50.0)),
        ("99 %", at(99.0)),
        ("99.9 %", at(99.9)),
        ("99.99 %", at(99.99)),
        ("99.999 %", at(99.999)),
        ("maximum", ns(cell.lat_max_ns)),
    ]
    .iter()
    .map(|(name, value)| {
        format!(
            "<tr><th scope=\"row\">{name}</th><td class=\"n\">{}</td></tr>",
            escape(value)
        )
    })
    .collect();
    let html = format!(
        "<table class=\"box\"><caption>Completion latencies</caption><tbody>{rows}</tbody></table>"
    );
    if cell.lat.is_empty() {
        let note = "<p class=\"doubtful\">The engine gave no histogram.</p>";
        return Sheet {
            title,
            body: html + note,
        };
    }
    Sheet::beside(title, &charts::histogram(cell.cell, &cell.lat), &html)
}
