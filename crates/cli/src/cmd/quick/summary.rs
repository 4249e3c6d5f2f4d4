//! What stands below the last test: each series in a line, what to doubt, where
//! the record is; or, with --json, the whole run as one document.

use std::collections::BTreeMap;
use std::path::Path;

use fathom_model::{RunDocument, units};
use fathom_record::Record;
use fathom_sheet::grid::{Grid, GridCell, figures, words};
use fathom_sheet::style::{Style, Tone};
use fathom_suites::quick::{Baseline, QuickRun, TestFigures, TestResult};
use serde::Serialize;

use super::{Global, failed};
use crate::out;

/// Change between a test and its "take 2" from which it is worth a word, percent.
const NOTABLE_VARIATION_PERCENT: u64 = 25;

/// Shows the run recorded in `dir`.
pub fn show(global: &Global, dir: &Path, baselines: &[Baseline]) -> anyhow::Result<()> {
    let record = Record::open(dir)?;
    let run = QuickRun::of(&record).map_err(failed)?;
    if global.json {
        return out::json(&document(&record, &run, baselines));
    }
    out::line(format_args!(
        "\n{}",
        text(dir, &run, baselines, out::style(global.color))
    ));
    Ok(())
}

fn text(dir: &Path, run: &QuickRun, baselines: &[Baseline], style: Style) -> String {
    let (used, doubts) = usable(run, baselines);
    let mut grid = Grid::new([
        words("series", 0),
        figures("tests", 0),
        figures("IOPS", 0),
        figures("of baseline", 1),
        words("note", 2),
    ]);
    for tests in by_series(run) {
        grid.line(series_line(run, &tests, used.first().copied()));
    }
    let mut text = grid.render(style);
    text.push('\n');
    let mut fact = |name: &str, value: &str| {
        text.push_str(&format!(
            "{} {value}\n",
            style.paint(Tone::Faint, &format!("{name:<8}"))
        ));
    };
    fact("engine", run.engine.as_deref().unwrap_or("none"));
    fact("took", &units::duration(run.took_ms));
    fact("record", &dir.display().to_string());
    for doubt in run.doubts().into_iter().chain(doubts) {
        fact("doubt", &style.paint(Tone::Doubtful, &doubt));
    }
    text.truncate(text.trim_end().len());
    text
}

/// What `--json` says of a run beside its document.
///
/// # Errors
/// When the record is not one of the series.
pub fn value(dir: &Path, baselines: &[Baseline]) -> anyhow::Result<serde_json::Value> {
    let record = Record::open(dir)?;
    let run = QuickRun::of(&record).map_err(failed)?;
    Ok(serde_json::to_value(quick(&run, baselines))?)
}

/// The baselines that hold for this run, and what is to know of them and the others.
pub fn usable<'b>(run: &QuickRun, baselines: &'b [Baseline]) -> (Vec<&'b Baseline>, Vec<String>) {
    let conditions = run.conditions();
    let (mut used, mut doubts) = (vec![], vec![]);
    for baseline in baselines {
        match baseline.reason_not_to_use(&conditions) {
            None => {
                let tests = run.tests.iter().map(|test| test.name.as_str());
                doubts.extend(baseline.caveat(tests));
                let engine = run.engine.as_deref();
                doubts.extend(engine.and_then(|engine| baseline.doubt_for(engine)));
                used.push(baseline);
            }
            // The run says so itself when it is a shortened one.
            Some(_) if baseline.is_shipped => {}
            Some(reason) => doubts.push(reason),
        }
    }
    (used, doubts)
}

fn by_series(run: &QuickRun) -> Vec<Vec<&TestResult>> {
    let mut series: Vec<Vec<&TestResult>> = Vec::new();
    for test in &run.tests {
        match series
            .last_mut()
            .filter(|tests| tests[0].series == test.series)
        {
            Some(tests) => tests.push(test),
            None => series.push(vec![test]),
        }
    }
    series
}

fn series_line(
    run: &QuickRun,
    tests: &[&TestResult],
    baseline: Option<&Baseline>,
) -> [GridCell; 5] {
    let title = tests[0].series.as_deref().unwrap_or(&run.facts.group);
    let good: Vec<(&str, u64)> = tests
        .iter()
        .filter_map(|test| Some((test.name.as_str(), test.figures.as_ref()?.good_iops()?)))
        .collect();
    let of_baseline = baseline.map(|baseline| {
        let percents = good
            .iter()
            .filter_map(|(name, iops)| baseline.percent(name, *iops));
        let range = range(percents.collect());
        if range.is_empty() {
            range
        } else {
            format!("{range}% {}", baseline.name)
        }
    });
    let tone = if good.len() == tests.len() {
        Tone::Plain
    } else {
        Tone::Doubtful
    };
    [
        GridCell::from(title.trim_end_matches(" series")),
        GridCell::new(tone, format!("{} of {}", good.len(), tests.len())),
        GridCell::new(
            Tone::Strong,
            range(good.iter().map(|(_, iops)| *iops).collect()),
        ),
        GridCell::from(of_baseline.unwrap_or_default()),
        GridCell::new(Tone::Doubtful, notes(tests, &good)),
    ]
}

/// Lowest and highest, `44–128`.
pub fn range(values: Vec<u64>) -> String {
    match (values.iter().min(), values.iter().max()) {
        (Some(low), Some(high)) if low == high => low.to_string(),
        (Some(low), Some(high)) => format!("{low}–{high}"),
        _ => String::new(),
    }
}

fn notes(tests: &[&TestResult], good: &[(&str, u64)]) -> String {
    let mut notes = Vec::new();
    let mut count = |what: &str, is: &dyn Fn(&TestResult) -> bool| {
        let found = tests.iter().filter(|test| is(test)).count();
        if found > 0 {
            notes.push(format!("{found} {what}"));
        }
    };
    let ran =
        |test: &TestResult, is: fn(&TestFigures) -> bool| test.figures.as_ref().is_some_and(is);
    count("skipped", &|test| test.skipped.is_some());
    count("interrupted", &|test| {
        ran(test, |figures| figures.interrupted)
    });
    count("failed", &|test| {
        ran(test, |figures| {
            !figures.interrupted && figures.good_iops().is_none()
        })
    });
    count("not run", &|test| {
        test.skipped.is_none() && test.figures.is_none()
    });
    if good.iter().any(|(name, _)| {
        tests
            .iter()
            .any(|test| test.name == *name && test.cached_reads)
    }) {
        notes.push("high figures are cache".into());
    }
    if let Some(variation) = variation(good).filter(|&found| found >= NOTABLE_VARIATION_PERCENT) {
        notes.push(format!("take 2 differs by {variation}%"));
    }
    notes.join(", ")
}

/// Largest change from a test to its "take 2", percent of the first.
fn variation(good: &[(&str, u64)]) -> Option<u64> {
    let change = |(name, second): &(&str, u64)| {
        let first_name = name.strip_suffix(", take 2")?;
        let (_, first) = good
            .iter()
            .find(|(name, first)| *name == first_name && *first > 0)?;
        Some(first.abs_diff(*second).saturating_mul(100) / first)
    };
    good.iter().filter_map(change).max()
}

/// The run as `--json` prints it: the run's document, and the series in it.
#[derive(Debug, Serialize, schemars::JsonSchema)]
struct Document {
    #[serde(flatten)]
    run: RunDocument,
    quick: Quick,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(in crate::cmd) struct Quick {
    schema: &'static str,
    group: String,
    host: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    engine: Option<String>,
    folder: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    only: Option<String>,
    runtime_s: u32,
    size_bytes: u64,
    shortened: bool,
    baselines: Vec<String>,
    tests: Vec<TestSummary>,
    doubts: Vec<String>,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
struct TestSummary {
    #[serde(flatten)]
    result: TestResult,
    /// By baseline; whole, rounded down.
    percent: BTreeMap<String, u64>,
}

fn document(record: &Record, run: &QuickRun, baselines: &[Baseline]) -> Document {
    Document {
        run: fathom_document::document(record),
        quick: quick(run, baselines),
    }
}

fn quick(run: &QuickRun, baselines: &[Baseline]) -> Quick {
    let (used, doubts) = usable(run, baselines);
    let test = |result: &TestResult| {
        let iops = result.figures.as_ref().and_then(TestFigures::good_iops);
        let percent = |one: &&Baseline| Some((one.name.clone(), one.percent(&result.name, iops?)?));
        TestSummary {
            percent: used.iter().filter_map(percent).collect(),
            result: result.clone(),
        }
    };
    Quick {
        schema: "fathom.quick/1",
        group: run.facts.group.clone(),
        host: run.facts.host.clone(),
        engine: run.engine.clone(),
        folder: run.facts.folder.display().to_string(),
        only: run.facts.only.clone(),
        runtime_s: run.facts.runtime_s,
        size_bytes: run.facts.size_bytes,
        shortened: run.facts.shortened,
        baselines: used.iter().map(|one| one.name.clone()).collect(),
        tests: run.tests.iter().map(test).collect(),
        doubts: run.doubts().into_iter().chain(doubts).collect(),
    }
}
