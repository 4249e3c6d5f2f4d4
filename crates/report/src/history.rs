//! A figure over runs: where it changed, and what differed in the environment there.

use std::collections::BTreeMap;

use fathom_analysis::change_points::{HISTORY_LEAST, change_points};
use fathom_analysis::compare::{CompareVerdict, FigureComparison, FigureSides, RunValue, compare};
use fathom_model::Direction;
use serde::Serialize;

use crate::compare::{
    CompareCondition, CompareDifference, CompareFigure, ComparedRun, FigureKey,
    differences_between, figure_values,
};
use crate::gate::Gate;
use fathom_document::rfc3339;
use fathom_sheet::chart::palette::Ink;
use fathom_sheet::chart::{
    Chart, ChartAxis, Ends, Layer, Note, NoteKind, Panel, Quantity, Scale, Shape, Size, Theme,
};
use fathom_sheet::grid::{Grid, GridCell, figures, words};
use fathom_sheet::style::{Style, Tone};

/// Name and version of [`HistoryDocument`].
pub const HISTORY_SCHEMA: &str = "fathom.history/1";
/// Width of the largest bar, in columns.
const BAR: f64 = 24.0;
/// Columns of a figure, of the word of a change, and of what stands between.
const BESIDE_BAR: usize = 24;

/// Figures over runs.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct HistoryDocument {
    /// [`HISTORY_SCHEMA`].
    pub schema: &'static str,
    /// One for each job and direction.
    pub series: Vec<HistorySeries>,
    /// What `--fail-if` came to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gate: Option<Gate>,
}

/// One figure of one job over runs.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct HistorySeries {
    /// The step, where runs have several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// The job.
    pub job: String,
    /// Direction.
    pub dir: Direction,
    /// Options, and the `target`, in which it differs from others of this name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, String>,
    /// Which figure.
    pub figure: CompareFigure,
    /// The runs, oldest first.
    pub runs: Vec<HistoryRun>,
    /// Where it changed, in their order.
    pub changes: Vec<HistoryChange>,
}

/// A run of a history.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct HistoryRun {
    /// Its name.
    pub id: String,
    /// When it began.
    pub started: String,
    /// The figure.
    pub value: f64,
}

/// A change of level.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct HistoryChange {
    /// The first run of the new level.
    pub run: String,
    /// Place of that run, from 0.
    pub place: usize,
    /// The level before (`a`) and from there on (`b`), their ratio with its interval.
    #[serde(flatten)]
    pub comparison: FigureComparison,
    /// What differed in the environment between that run and the one before it.
    pub differences: Vec<CompareDifference>,
}

impl HistoryDocument {
    /// Judges conditions by the last change of each series. One of fewer runs than a change
    /// can be told in cannot be judged.
    pub fn judge(&mut self, conditions: &[CompareCondition]) {
        let (mut rows, mut missing) = (Vec::new(), Vec::new());
        for series in &self.series {
            let runs = series.runs.len();
            match series.changes.last() {
                Some(change) => rows.push((title(series), change.comparison)),
                None if runs < HISTORY_LEAST => missing.push(format!(
                    "{}: {runs} runs, and a change is told in {HISTORY_LEAST} at the least",
                    title(series)
                )),
                None => rows.push((title(series), unchanged())),
            }
        }
        self.gate = Some(Gate {
            // A series of few runs is compared with itself, later.
            has_common: !self.series.is_empty(),
            ..Gate::of(conditions, &rows, missing)
        });
    }

    /// Only jobs and steps whose name has this in it.
    pub fn choose(&mut self, word: &str) {
        let has = |name: &str| name.contains(word);
        self.series
            .retain(|series| has(&series.job) || series.step.as_deref().is_some_and(has));
    }
}

/// Makes the history of a figure of runs, oldest first.
pub fn history(runs: &[ComparedRun], figure: CompareFigure) -> HistoryDocument {
    let mut all: BTreeMap<FigureKey, Vec<(usize, f64)>> = BTreeMap::new();
    for (place, run) in runs.iter().enumerate() {
        for (key, value) in figure_values(run, figure) {
            all.entry(key).or_default().push((place, value));
        }
    }
    let keys: Vec<FigureKey> = all.keys().cloned().collect();
    let series = all.into_iter().map(|(key, values)| {
        let options = told_apart(&key, &keys);
        let FigureKey { step, job, dir, .. } = key;
        let changes = changes(runs, &values, figure);
        let each = values.iter().map(|&(place, value)| HistoryRun {
            id: runs[place].doc.id.clone(),
            started: rfc3339(runs[place].started_ms),
            value,
        });
        HistorySeries {
            step,
            job,
            dir,
            options,
            figure,
            runs: each.collect(),
            changes,
        }
    });
    HistoryDocument {
        schema: HISTORY_SCHEMA,
        series: series.collect(),
        gate: None,
    }
}

/// In what a load differs from others of the same job: another load is another series.
fn told_apart(key: &FigureKey, all: &[FigureKey]) -> BTreeMap<String, String> {
    let is_other = |other: &&FigureKey| {
        other.step == key.step && other.job == key.job && other.dir == key.dir && *other != key
    };
    let others: Vec<&FigureKey> = all.iter().filter(is_other).collect();
    let names = others
        .iter()
        .flat_map(|other| other.load.keys())
        .chain(key.load.keys());
    let differs = |name: &&String| {
        others
            .iter()
            .any(|other| other.load.get(*name) != key.load.get(*name))
    };
    let value = |name: &String| key.load.get(name).map_or("–", String::as_str).to_owned();
    names
        .filter(differs)
        .map(|name| (name.clone(), value(name)))
        .collect()
}

/// A series that stayed on its level.
fn unchanged() -> FigureComparison {
    let mut found = compare(&[FigureSides::default()], 0.0)[0];
    found.verdict = CompareVerdict::Same;
    found.why_not = None;
    found
}

fn changes(
    runs: &[ComparedRun],
    values: &[(usize, f64)],
    figure: CompareFigure,
) -> Vec<HistoryChange> {
    // What runs vary by is a share of the figure.
    let logs: Vec<f64> = values.iter().map(|(_, value)| value.ln()).collect();
    let places = change_points(&logs);
    let ends: Vec<usize> = (places.iter().copied().skip(1))
        .chain([values.len()])
        .collect();
    let begins = [0].into_iter().chain(places.iter().copied());
    let each = places.iter().zip(begins).zip(ends);
    each.map(|((&place, begin), end)| {
        let side = |from: usize, to: usize| -> Vec<RunValue> {
            let each = values[from..to].iter();
            each.map(|&(run, value)| RunValue {
                value,
                own_error: None,
                at_ms: runs[run].started_ms,
            })
            .collect()
        };
        let sides = FigureSides {
            a: side(begin, place),
            b: side(place, end),
            more_is_better: figure.is_rate(),
            ..FigureSides::default()
        };
        let (before, first) = (values[place - 1].0, values[place].0);
        let mut comparison = compare(&[sides], 0.0)[0];
        // That it changed, the whole history has told; by how much, these runs.
        if let Some(ratio) = comparison.ratio {
            comparison.verdict = match (ratio > 1.0) == figure.is_rate() {
                true => CompareVerdict::Faster,
                false => CompareVerdict::Slower,
            };
            (comparison.why_not, comparison.more_runs) = (None, None);
        }
        HistoryChange {
            run: runs[first].doc.id.clone(),
            place,
            comparison,
            differences: differences_between(&runs[before..=before], &runs[first..=first]),
        }
    })
    .collect()
}

/// The history as text.
pub fn text(doc: &HistoryDocument, style: Style) -> String {
    let gate = doc.gate.iter().map(|gate| gate.line() + "\n");
    let parts = gate.chain(doc.series.iter().map(|series| one(series, style)));
    parts.collect::<Vec<String>>().join("\n")
}

pub(crate) fn title(series: &HistorySeries) -> String {
    let step = series.step.as_ref().filter(|step| **step != series.job);
    let step = step.map_or_else(String::new, |step| format!("{step} · "));
    let (job, dir, figure) = (&series.job, series.dir.name(), series.figure.name());
    let options = series.options.iter();
    let options: Vec<String> = options
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let options = match options.is_empty() {
        true => String::new(),
        false => format!(" ({})", fathom_model::text::line(&options.join(", "))),
    };
    format!("{step}{job} {dir}{options}, {figure}")
}

fn one(series: &HistorySeries, style: Style) -> String {
    let most = series.runs.iter().map(|run| run.value).fold(0.0, f64::max);
    let bar = bar(series, style);
    let mut grid = Grid::new([words("run", 0), figures("", 0), words("", 1), words("", 0)]);
    for (place, run) in series.runs.iter().enumerate() {
        let change = series.changes.iter().find(|change| change.place == place);
        let said = change.map_or_else(GridCell::default, |change| {
            let (is_good, word) = word(change);
            let tone = if is_good { Tone::Good } else { Tone::Bad };
            GridCell::new(tone, format!("◀ {word}"))
        });
        let length = (bar * run.value / most).round().max(0.0) as usize;
        grid.line([
            GridCell::from(run.id.as_str()),
            GridCell::from(series.figure.shown(run.value)),
            GridCell::new(Tone::Faint, "▬".repeat(length)),
            said,
        ]);
    }
    let mut text = format!(
        "{}\n{}",
        style.paint(Tone::Strong, &title(series)),
        grid.render(style)
    );
    for change in &series.changes {
        let (_, word) = word(change);
        text += &format!("  {word} from {} on: {}\n", change.run, by(change));
        for said in differed(change) {
            text += &format!("  {said}\n");
        }
    }
    if series.runs.len() < HISTORY_LEAST {
        text += &format!("  {HISTORY_LEAST} runs at the least tell a change\n");
    }
    text
}

/// How long the longest bar is: what names and figures leave of a window.
fn bar(series: &HistorySeries, style: Style) -> f64 {
    let names = series.runs.iter().map(|run| run.id.chars().count());
    let beside = names.max().unwrap_or(0) + BESIDE_BAR;
    (style.columns().saturating_sub(beside) as f64).min(BAR)
}

/// What differed where it changed, a sentence each.
pub(crate) fn differed(change: &HistoryChange) -> impl Iterator<Item = String> {
    (change.differences.iter()).map(|one| {
        let (a, b) = (side(&one.a), side(&one.b));
        format!("at {}: {} was {a}, is {b}", change.run, one.what)
    })
}

/// The word for a change, and whether it is a good one.
pub(crate) fn word(change: &HistoryChange) -> (bool, &'static str) {
    match change.comparison.verdict {
        CompareVerdict::Slower => (false, "slower"),
        _ => (true, "faster"),
    }
}

fn side(values: &[String]) -> String {
    match values {
        [] => "not there".to_owned(),
        values => values.join(", "),
    }
}

pub(crate) fn by(change: &HistoryChange) -> String {
    let percent = |ratio: Option<f64>| ratio.map_or(0.0, |ratio| 100.0 * (ratio - 1.0));
    let found = &change.comparison;
    match (found.ratio_low, found.ratio_high) {
        (Some(_), Some(_)) => format!(
            "{:+.1} % ({:+.1} to {:+.1})",
            percent(found.ratio),
            percent(found.ratio_low),
            percent(found.ratio_high)
        ),
        _ => format!("{:+.1} %", percent(found.ratio)),
    }
}

/// The first run of a new level, named on the chart.
fn note(change: &HistoryChange) -> Note {
    let level = change.comparison.b.unwrap_or(f64::NAN);
    Note {
        at: (change.place as f64 + 1.0, level),
        lines: vec![
            format!("{} from run {} on", word(change).1, change.place + 1),
            by(change),
        ],
        kind: NoteKind::Leader,
        hollow: false,
        color: None,
    }
}

/// The history as a chart, a panel for each job.
pub fn svg(doc: &HistoryDocument) -> String {
    let chart = chart(doc.series.iter());
    chart.svg(&Theme::LIGHT, Size::default())
}

/// A panel for each of these.
pub(crate) fn chart<'s>(series: impl Iterator<Item = &'s HistorySeries>) -> Chart {
    Chart {
        title: "History".to_owned(),
        panels: series.map(panel).collect(),
        ..Chart::default()
    }
}

fn panel(series: &HistorySeries) -> Panel {
    let axis = |title: &str, quantity, scale, ends| ChartAxis {
        title: title.to_owned(),
        quantity,
        scale,
        ends,
    };
    let quantity = match series.figure {
        CompareFigure::Iops => Quantity::Rate,
        CompareFigure::BwBytes => Quantity::BytesPerSecond,
        _ => Quantity::Latency,
    };
    let mut panel = Panel::new(
        axis("Run", Quantity::Number, Scale::Linear, Ends::Values),
        axis(&title(series), quantity, Scale::Linear, Ends::Ticks),
    );
    let points = |of: &mut dyn Iterator<Item = (usize, f64)>| -> Vec<(f64, f64)> {
        of.map(|(place, value)| (place as f64 + 1.0, value))
            .collect()
    };
    let values = series.runs.iter().map(|run| run.value).enumerate();
    panel.layers.push(Layer {
        name: None,
        shape: Shape::Curve(points(&mut values.clone())),
        ink: Ink::of_place(0),
    });
    let begins = [0]
        .into_iter()
        .chain(series.changes.iter().map(|change| change.place));
    let ends = series.changes.iter().map(|change| change.place);
    for (begin, end) in begins.zip(ends.chain([series.runs.len()])) {
        let part: Vec<f64> = series.runs[begin..end]
            .iter()
            .map(|run| run.value)
            .collect();
        let mean = part.iter().sum::<f64>() / part.len().max(1) as f64;
        let mut level = (begin..end).map(|place| (place, mean));
        panel.layers.push(Layer {
            name: None,
            shape: Shape::Line(points(&mut level)),
            ink: Ink::of_place(1),
        });
    }
    panel.notes = series.changes.iter().map(note).collect();
    panel
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::tests::run;

    fn runs() -> Vec<ComparedRun> {
        let iops = |n: u64| if n < 12 { 1000.0 } else { 900.0 } + (n * 7 % 5) as f64;
        (0..20)
            .map(|n| {
                let mut run = run(&format!("r{n:02}"), n * 1000, iops(n));
                if n >= 12 {
                    run.doc.environment.as_mut().unwrap().kernel = "6.9".into();
                }
                run
            })
            .collect()
    }

    #[test]
    fn a_change_is_found_with_what_differed_there() {
        let doc = history(&runs(), CompareFigure::Iops);
        let [series] = &doc.series[..] else {
            panic!("{doc:?}");
        };
        let [change] = &series.changes[..] else {
            panic!("{:?}", series.changes);
        };
        assert_eq!((change.run.as_str(), change.place), ("r12", 12));
        assert_eq!(change.comparison.verdict, CompareVerdict::Slower);
        assert_eq!(change.differences[0].what, "kernel");
        let style = Style {
            color: false,
            width: Some(120),
        };
        let shown = text(&doc, style);
        assert!(
            shown.contains("◀ slower\n") && shown.contains("slower from r12 on: -9.9 %"),
            "{shown}"
        );
        assert!(shown.contains("at r12: kernel was"), "{shown}");
        // No window is too narrow for the names of the runs.
        let width = Some(50);
        let narrow = text(&doc, Style { width, ..style });
        assert!(narrow.contains("\nr12 ") && narrow.lines().all(|line| line.chars().count() <= 50));
        let drawn = svg(&doc);
        assert!(drawn.contains("slower from run 13 on"), "{drawn}");
    }

    /// Another depth, another target and so on is another load, whatever the job is called.
    #[test]
    fn each_load_has_a_series_of_its_own() {
        type Change = fn(&mut ComparedRun);
        let changes: [(&str, Change); 6] = [
            ("bs=64k", |run| set(run, "bs", "64k")),
            ("iodepth=32", |run| set(run, "iodepth", "32")),
            ("rwmixread=70", |run| set(run, "rwmixread", "70")),
            ("direct=1", |run| set(run, "direct", "1")),
            ("ioengine=libaio", |run| set(run, "ioengine", "libaio")),
            ("target=S-2", |run| {
                let environment = run.doc.environment.as_mut().unwrap();
                environment.targets = vec![fathom_model::environment::Target {
                    device: Some(fathom_model::environment::BlockDevice {
                        serial: Some("S-2".into()),
                        ..Default::default()
                    }),
                    ..Default::default()
                }];
            }),
        ];
        for (title, change) in changes {
            let mut all = runs();
            all[12..].iter_mut().for_each(change);
            let doc = history(&all, CompareFigure::Iops);
            let titles: Vec<String> = doc.series.iter().map(super::title).collect();
            assert_eq!(doc.series.len(), 2, "{title}: {titles:?}");
            assert!(titles.iter().any(|it| it.contains(title)), "{titles:?}");
            let is_changed = doc.series.iter().any(|series| !series.changes.is_empty());
            assert!(!is_changed, "{title}");
        }
        for same in ["runtime", "ramp_time", "write_lat_log", "group_reporting"] {
            let mut all = runs();
            all[12..].iter_mut().for_each(|run| set(run, same, "9"));
            let doc = history(&all, CompareFigure::Iops);
            assert_eq!(doc.series.len(), 1, "{same}");
        }
    }

    fn set(run: &mut ComparedRun, name: &str, value: &str) {
        run.doc.jobs[0].options.insert(name.into(), value.into());
    }

    #[test]
    fn latencies_that_rise_are_slower() {
        let doc = history(&runs(), CompareFigure::MeanNs);
        assert_eq!(
            doc.series[0].changes[0].comparison.verdict,
            CompareVerdict::Slower
        );
    }
}
