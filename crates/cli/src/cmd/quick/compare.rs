//! `fathom quick compare`: two runs of the series, test by test.

use fathom_campaign::quick::{self, Compared, Comparison, QuickRun, TestFigures};
use fathom_model::Exit;
use fathom_report::Style;
use fathom_report::grid::{Grid, GridCell, figures, words};
use fathom_report::style::Tone;
use serde::Serialize;

use super::{Global, failed, record};
use crate::out;

/// Change from which a figure is coloured, percent: below it lies what two runs
/// of the same storage differ by anyway.
const NOTABLE_CHANGE_PERCENT: f64 = 5.0;

/// Compare two runs of the series, before and after tuning
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fathom quick compare 20261121T130744Z-quick 20261121T141203Z-quick
  fathom quick compare fathom-runs/BEFORE fathom-runs/AFTER --json")]
pub struct Args {
    /// Run before: a folder, or its name under --runs
    #[arg(value_name = "RUN")]
    before: String,
    /// Run after
    #[arg(value_name = "RUN")]
    after: String,
}

/// Runs the command.
pub fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    let read = |name: &str| -> anyhow::Result<QuickRun> {
        QuickRun::of(&record(global, name)?).map_err(failed)
    };
    let comparison = quick::compare(&read(&args.before)?, &read(&args.after)?);
    if global.json {
        out::json(&Document {
            schema: "fathom.quick-compare/1",
            comparison: &comparison,
        })?;
    } else {
        out::text(text(&comparison, out::style(global.color)));
    }
    Ok(Exit::Success)
}

#[derive(Serialize, schemars::JsonSchema)]
pub(in crate::cmd) struct Document<'c> {
    schema: &'static str,
    #[serde(flatten)]
    comparison: &'c Comparison,
}

fn text(comparison: &Comparison, style: Style) -> String {
    let mut grid = Grid::new([
        words("test", 0),
        figures("before", 0),
        figures("after", 0),
        figures("change", 0),
    ]);
    let mut headline = None;
    for test in &comparison.tests {
        if test.series != headline {
            headline.clone_from(&test.series);
            grid.heading(test.series.clone().unwrap_or_default());
        }
        grid.line([
            GridCell::from(test.name.as_str()),
            figure(test.before.as_ref()),
            figure(test.after.as_ref()),
            change(test),
        ]);
    }
    let mut text = format!(
        "before  {}\nafter   {}\n\n{}",
        comparison.before,
        comparison.after,
        grid.render(style)
    );
    if comparison.tests.iter().any(|test| test.cached_reads) {
        text.push_str("\nc: read through the page cache; only low figures are meaningful\n");
    }
    for note in &comparison.notes {
        text.push_str(&format!("doubt: {}\n", style.paint(Tone::Doubtful, note)));
    }
    text
}

fn figure(figures: Option<&TestFigures>) -> GridCell {
    let Some(figures) = figures else {
        return GridCell::from("–");
    };
    let text = match (figures.read_iops, figures.write_iops) {
        (None, None) => "0".to_owned(),
        (Some(one), None) | (None, Some(one)) => one.to_string(),
        (Some(read), Some(write)) => format!("{read}+{write}"),
    };
    match figures.good_iops() {
        Some(_) => GridCell::from(text),
        None if figures.interrupted => {
            GridCell::new(Tone::Doubtful, text).marked(Tone::Doubtful, " stopped")
        }
        None => GridCell::new(Tone::Bad, text).marked(Tone::Bad, " FAIL!"),
    }
}

fn change(test: &Compared) -> GridCell {
    let cell = match test.change_percent {
        None if !test.same_options => GridCell::new(Tone::Doubtful, "other options"),
        None => GridCell::from("–"),
        Some(percent) => {
            let tone = match percent {
                _ if test.cached_reads => Tone::Faint,
                _ if percent >= NOTABLE_CHANGE_PERCENT => Tone::Good,
                _ if percent <= -NOTABLE_CHANGE_PERCENT => Tone::Bad,
                _ => Tone::Plain,
            };
            GridCell::new(tone, format!("{percent:+.1}%"))
        }
    };
    if test.cached_reads {
        cell.marked(Tone::Faint, " c")
    } else {
        cell
    }
}
