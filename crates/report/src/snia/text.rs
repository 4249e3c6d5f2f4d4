//! The findings as a person reads them on a terminal.

use fathom_analysis::snia::{Findings, NOTICE, PartEnding, SniaCell as Load, SniaTest, TestPart};
use fathom_model::{StageKind, units};

use super::{Document, charts, words};
use fathom_sheet::grid::{Grid, GridCell, figures, words as column};
use fathom_sheet::style::{Style, Tone, wrap};

/// The findings as text, ending in a newline.
pub fn text(doc: &Document, style: Style) -> String {
    let mut sections = Vec::new();
    for findings in &doc.tests {
        sections.push(head(doc, findings, style));
        for part in &findings.parts {
            sections.push(determinations(part, style));
        }
        sections.push(table(findings, style));
        sections.push(histogram(findings, style));
        let told = findings.deviations.iter().chain(&findings.notes);
        sections.push(told.map(|text| item(text, style)).collect());
    }
    sections.retain(|section| !section.is_empty());
    sections.join("\n")
}

fn head(doc: &Document, findings: &Findings, style: Style) -> String {
    let setup = &findings.setup;
    let title = format!("{} test, {}", setup.title(), setup.class);
    let mut text = format!("{} {}\n", style.paint(Tone::Strong, &title), doc.run);
    let faint = |line: &str| format!("{}\n", style.paint(Tone::Faint, line));
    for line in wrap(NOTICE, style.columns()) {
        text += &faint(&line);
    }
    let about = [
        words::stimulus(setup),
        format!("QD {} × {} threads", setup.iodepth, setup.jobs),
        format!("active range {}", words::active_range(setup)),
    ];
    text += &faint(&about.join(", "));
    for kind in [StageKind::Purge, StageKind::Fill] {
        text += &words::stages(findings, kind).map_or_else(String::new, |told| faint(&told));
    }
    text += &faint(&format!("write cache: {}", words::write_cache(setup)));
    for part in &findings.parts {
        let tone = match part.ending {
            PartEnding::Attained => Tone::Good,
            _ => Tone::Doubtful,
        };
        for line in wrap(&words::outcome(setup, part), style.columns()) {
            text += &format!("{}\n", style.paint(tone, &line));
        }
    }
    text
}

/// A line for each tracked variable, with every term.
fn determinations(part: &TestPart, style: Style) -> String {
    let mut grid = Grid::new([
        column("tracked variable", 0),
        column("rounds", 0),
        figures("average", 0),
        figures("data excursion", 0),
        figures("allowed", 2),
        figures("slope excursion", 0),
        figures("allowed", 2),
        figures("r", 3),
        column("fit, x the round", 4),
    ]);
    for tracked in &part.tracked {
        let Some(found) = &tracked.determination else {
            continue;
        };
        let mut line = vec![
            GridCell::from(words::tracked(tracked)),
            GridCell::from(format!("{}–{}", found.window.first, found.window.last)),
            GridCell::from(words::value(tracked.metric, found.window.mean)),
        ];
        for term in &found.terms {
            let tone = if term.holds { Tone::Good } else { Tone::Bad };
            line.push(GridCell::new(tone, words::percent(term.measured_percent)));
            line.push(GridCell::from(format!("≤ {} %", term.allowed_percent)));
        }
        let r = found.window.correlation;
        line.push(GridCell::from(
            r.map_or("–".to_owned(), |r| format!("{r:.3}")),
        ));
        line.push(GridCell::from(found.formula.clone()));
        grid.line(line);
    }
    grid.render(style)
}

/// Titles of columns are fixed texts; mixes are.
const MIXES: [(u8, &str); 7] = [
    (100, "100/0"),
    (95, "95/5"),
    (65, "65/35"),
    (50, "50/50"),
    (35, "35/65"),
    (5, "5/95"),
    (0, "0/100"),
];

/// The cells over the window, block sizes down and mixes across; where a mix is
/// none of the specification's, a cell a line.
fn table(findings: &Findings, style: Style) -> String {
    let setup = &findings.setup;
    let metric = setup.test.metric();
    let cells = || findings.parts.iter().flat_map(|part| &part.cells);
    if setup.test == SniaTest::Wsat || cells().all(|cell| cell.n == 0) {
        return String::new();
    }
    let title = |mix: &u8| {
        MIXES
            .iter()
            .find(|(known, _)| known == mix)
            .map(|(_, title)| *title)
    };
    let titles: Option<Vec<&'static str>> = setup.mixes.iter().map(title).collect();
    let value = |load: Load| {
        let found = cells().find(|cell| cell.cell == load);
        let value = found.and_then(|cell| charts::figure(cell, metric));
        value.map_or("–".to_owned(), |value| words::value(metric, value))
    };
    let Some(titles) = titles else {
        let mut grid = Grid::new([column("cell", 0), figures("average", 0)]);
        for cell in cells() {
            grid.line([
                GridCell::from(cell.cell.to_string()),
                GridCell::from(value(cell.cell)),
            ]);
        }
        return grid.render(style);
    };
    let mut columns = vec![column(words::metric(metric), 0)];
    columns.extend(titles.into_iter().map(|title| figures(title, 0)));
    let mut grid = Grid::new(columns);
    for &block_bytes in &setup.blocks {
        let load = |reads_percent| Load {
            reads_percent,
            block_bytes,
        };
        let mut line = vec![GridCell::from(load(0).block())];
        line.extend(
            setup
                .mixes
                .iter()
                .map(|&mix| GridCell::from(value(load(mix)))),
        );
        grid.line(line);
    }
    grid.render(style)
}

fn histogram(findings: &Findings, style: Style) -> String {
    let Some(cell) = findings
        .histogram
        .as_ref()
        .filter(|cell| cell.failed.is_none())
    else {
        return String::new();
    };
    let at = |percent| {
        let ns = cell.percentile_ns(percent);
        ns.map_or("–".to_owned(), |ns| units::latency(ns as f64))
    };
    let maximum = cell
        .lat_max_ns
        .map_or("–".to_owned(), |ns| units::latency(ns as f64));
    let text = format!(
        "histogram of {} for {}: p50 {}, p99 {}, p99.999 {}, maximum {maximum}",
        cell.cell,
        units::duration(findings.setup.histogram_ms),
        at(50.0),
        at(99.0),
        at(99.999)
    );
    let lines = wrap(&text, style.columns());
    lines.into_iter().map(|line| line + "\n").collect()
}

fn item(text: &str, style: Style) -> String {
    let lines = wrap(text, style.columns().saturating_sub(2));
    let mut lead = "- ";
    let mut all = String::new();
    for line in lines {
        all += &format!("{lead}{line}\n");
        lead = "  ";
    }
    all
}
