//! A comparison as a table, for a terminal and for a merge request.

use fathom_analysis::compare::{CompareVerdict, WhyNot};
use fathom_model::text;

use super::{CompareDifference, CompareDocument, CompareRow};
use fathom_sheet::grid::{Grid, GridCell, figures, words};
use fathom_sheet::style::{Style, Tone, wrap};

/// Differences that are shown one by one.
const DIFFERENCES_TOLD: usize = 40;

/// The comparison as text, ending in a newline.
pub fn text(doc: &CompareDocument, style: Style) -> String {
    let mut parts: Vec<String> = doc.gate.iter().map(|gate| gate.line() + "\n").collect();
    parts.push(format!("A  {}\nB  {}\n", doc.a.join(" "), doc.b.join(" ")));
    if !doc.differences.is_empty() {
        let mut grid = Grid::new([words("differs", 0), words("A", 0), words("B", 0)]);
        for one in doc.differences.iter().take(DIFFERENCES_TOLD) {
            let side = |values: &[String]| GridCell::from(side(values));
            grid.line([
                GridCell::from(one.what.as_str()),
                side(&one.a),
                side(&one.b),
            ]);
        }
        parts.push(grid.render(style) + &more(doc));
    }
    let mut grid = Grid::new([
        words("", 0),
        figures("A", 2),
        figures("B", 2),
        figures("B/A", 1),
        figures("95 %", 1),
        words("", 0),
    ])
    .continued(1);
    let mut last = None;
    for row in &doc.rows {
        let title = title(row);
        if last.as_ref() != Some(&title) {
            grid.heading(title.clone());
            last = Some(title);
        }
        let (tone, said) = told(doc, row);
        grid.line([
            GridCell::from(row.figure.name()),
            value(row, row.comparison.a),
            value(row, row.comparison.b),
            GridCell::new(Tone::Strong, ratio(row.comparison.ratio)),
            GridCell::from(interval(row)),
            GridCell::new(tone, said),
        ]);
    }
    if !doc.rows.is_empty() {
        parts.push(grid.render(style));
    }
    let mut lines = String::new();
    for note in unmatched(doc).iter().chain(&doc.notes) {
        for (n, line) in wrap(note, style.columns().saturating_sub(2))
            .iter()
            .enumerate()
        {
            lines += &format!("{} {line}\n", if n == 0 { "-" } else { " " });
        }
    }
    parts.push(lines);
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

/// The comparison in Markdown, for a comment or a merge request.
pub fn markdown(doc: &CompareDocument) -> String {
    let gate = doc.gate.iter();
    let mut text: String = gate
        .map(|gate| format!("**{}**\n\n", cell(&gate.line())))
        .collect();
    text += &format!(
        "**A**: {}  \n**B**: {}\n\n",
        code(&doc.a.join(" ")),
        code(&doc.b.join(" "))
    );
    if !doc.differences.is_empty() {
        text += "| differs | A | B |\n|---|---|---|\n";
        for one in doc.differences.iter().take(DIFFERENCES_TOLD) {
            let cells = [&one.what, &side(&one.a), &side(&one.b)].map(|cell| code(cell));
            text += &format!("| {} |\n", cells.join(" | "));
        }
        text += &format!("{}\n", more(doc));
    }
    if !doc.rows.is_empty() {
        text += "| | | A | B | B/A | 95 % | |\n|---|---|---:|---:|---:|---:|---|\n";
    }
    for row in &doc.rows {
        let shown = |value: Option<f64>| value.map_or("–".to_owned(), |v| row.figure.shown(v));
        let (_, said) = told(doc, row);
        let said = match row.comparison.verdict {
            CompareVerdict::Faster | CompareVerdict::Slower => format!("**{said}**"),
            _ => said,
        };
        text += &format!(
            "| {} | {} | {} | {} | {} | {} | {said} |\n",
            code(&title(row)),
            row.figure.name(),
            shown(row.comparison.a),
            shown(row.comparison.b),
            ratio(row.comparison.ratio),
            interval(row),
        );
    }
    for note in unmatched(doc).iter().chain(&doc.notes) {
        text += &format!("\n- {}", cell(note));
    }
    text.trim_end().to_owned() + "\n"
}

fn more(doc: &CompareDocument) -> String {
    match doc.differences.len().saturating_sub(DIFFERENCES_TOLD) {
        0 => String::new(),
        more => format!("and {more} further differences\n"),
    }
}

/// Foreign text in a cell of Markdown: it ends neither the cell nor the table, calls
/// nobody, and means nothing.
fn cell(text: &str) -> String {
    text::markdown(&text::line(text)).replace('@', "@\u{200b}")
}

fn code(text: &str) -> String {
    let line = text::line(text).replace(['`', '|'], "\u{fffd}");
    match line.trim() {
        "" => "–".to_owned(),
        line => format!("`{line}`"),
    }
}

pub(crate) fn title(row: &CompareRow) -> String {
    let dir = row.dir.name();
    match &row.step {
        Some(step) if *step != row.job => format!("{step} · {} {dir}", row.job),
        _ => format!("{} {dir}", row.job),
    }
}

fn side(values: &[String]) -> String {
    match values {
        [] => "–".to_owned(),
        values => values.join(", "),
    }
}

pub(super) fn difference(one: &CompareDifference) -> [String; 3] {
    [one.what.clone(), side(&one.a), side(&one.b)]
}

fn value(row: &CompareRow, value: Option<f64>) -> GridCell {
    GridCell::from(value.map_or("–".to_owned(), |value| row.figure.shown(value)))
}

pub(super) fn ratio(ratio: Option<f64>) -> String {
    ratio.map_or("–".to_owned(), |ratio| match ratio {
        ratio if ratio >= 10.0 => format!("{ratio:.1}"),
        ratio => format!("{ratio:.3}"),
    })
}

pub(super) fn interval(row: &CompareRow) -> String {
    match (row.comparison.ratio_low, row.comparison.ratio_high) {
        (Some(low), Some(high)) => format!("{} – {}", ratio(Some(low)), ratio(Some(high))),
        _ => "–".to_owned(),
    }
}

/// The verdict, and what it would take where there is none.
pub(super) fn told(doc: &CompareDocument, row: &CompareRow) -> (Tone, String) {
    let more = match row.comparison.more_runs {
        Some(1) => ": 1 more run of each".to_owned(),
        Some(more) => format!(": {more} more runs of each"),
        None => String::new(),
    };
    match (row.comparison.verdict, row.comparison.why_not) {
        (CompareVerdict::Faster, _) => (Tone::Good, "faster".to_owned()),
        (CompareVerdict::Slower, _) => (Tone::Bad, "slower".to_owned()),
        (CompareVerdict::Same, _) => (
            Tone::Plain,
            format!("same within ±{} %", doc.margin_percent),
        ),
        (_, Some(WhyNot::SpreadUnknown)) => (Tone::Doubtful, format!("cannot tell{more}")),
        (_, Some(WhyNot::Drift)) => (Tone::Doubtful, "cannot tell: it drifts".to_owned()),
        (_, Some(WhyNot::Invalid)) => (Tone::Doubtful, "cannot tell: not valid".to_owned()),
        (_, _) if more.is_empty() => (Tone::Doubtful, "cannot tell: too noisy".to_owned()),
        _ => (Tone::Doubtful, format!("cannot tell{more}")),
    }
}

pub(crate) fn unmatched(doc: &CompareDocument) -> Vec<String> {
    let each = doc.unmatched.iter().map(|one| {
        let step = one.step.as_ref().filter(|step| **step != one.job);
        let step = step.map_or_else(String::new, |step| format!("{step} · "));
        let dir = one
            .dir
            .map_or_else(String::new, |dir| format!(" {}", dir.name()));
        format!(
            "only {} has {step}{}{dir}",
            one.side.to_uppercase(),
            one.job
        )
    });
    each.collect()
}
