//! What came of a comparison, as a table and as a document.

use std::path::Path;

use fathom_analysis::compare::{CompareVerdict, FigureComparison};
use fathom_flow::{History, JobStep};
use fathom_model::{VerdictLevel, units};
use fathom_questions::ab::{
    AbConfig, AbFigure, AbRow, AbSide, AbState, NeededBoot, RaceNext, RaceStep,
};
use fathom_record::Record;
use fathom_report::compare::CompareCondition;
use fathom_report::gate::Gate;
use fathom_sheet::answer::{AnswerTable, RunAnswer};
use fathom_sheet::grid::{Grid, GridCell, figures, words};
use fathom_sheet::style::Tone;
use serde::Serialize;

use crate::cmd::Global;
use crate::out;

/// What is said where figures do not hold.
const INVALID: &str = "some measurements are invalid: fathom explain says which and why";
/// What is said of one that was stopped.
const UNFINISHED: &str = "the comparison did not come to its end: fathom resume goes on";

/// What `--json` prints.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AbDocument<'c> {
    /// `fathom.ab/1`
    schema: &'static str,
    /// Name of the run.
    run: String,
    /// The sides; the others are judged against the first.
    sides: &'c [AbSide],
    /// The device whose settings were changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<&'c Path>,
    /// Up to this both sides are the same, percent.
    margin_percent: f64,
    /// Pairs at the most.
    pairs: u32,
    /// From which the order follows.
    seed: u64,
    /// What was measured, in order.
    measured: Vec<RaceStep>,
    /// Whether it came to its end: by what was clear, or by the pairs that it had.
    ended: bool,
    /// The kernel of the next measurement, where sides are kernels and one is left.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_kernel: Option<String>,
    /// What came of it.
    rows: Vec<AbRow>,
    /// Whether the figures of all measurements are true: the worst of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<VerdictLevel>,
    /// What `--fail-if` came to.
    #[serde(skip_serializing_if = "Option::is_none")]
    gate: Option<Gate>,
}

/// Shows it; gives what the conditions of its gate came to.
pub fn answer(
    global: &Global,
    config: &AbConfig,
    conditions: Option<&[CompareCondition]>,
    dir: &Path,
) -> anyhow::Result<Option<Gate>> {
    let record = Record::open(dir)?;
    let history = History::of(&record.entries);
    let state = state(config, &history);
    let needed = NeededBoot::of(&config.sides, &state, &history);
    let verdict = fathom_document::read(dir)?.verdict;
    let verdict = verdict.map(|verdict| verdict.level);
    let gate = conditions.map(|conditions| {
        let named = |row: &AbRow| {
            let side = &config.sides[row.side].name;
            (format!("{side} {}", row.figure.name()), row.comparison)
        };
        let rows: Vec<_> = state.rows.iter().map(named).collect();
        let nothing = rows
            .is_empty()
            .then(|| "nothing was measured on both sides".to_owned());
        Gate::of(conditions, &rows, nothing.into_iter().collect())
    });
    let document = AbDocument {
        schema: "fathom.ab/1",
        run: record.id(),
        sides: &config.sides,
        device: config.setup.device.as_deref(),
        margin_percent: 100.0 * config.question.margin,
        pairs: config.question.pairs,
        seed: config.question.seed,
        measured: state.measured,
        ended: state.next == RaceNext::Ended,
        next_kernel: needed.map(|needed| needed.kernel),
        rows: state.rows,
        verdict,
        gate: gate.clone(),
    };
    match global.json {
        true => out::json(&document)?,
        false => text(global, &document),
    }
    Ok(gate)
}

/// What the history tells of a comparison.
pub fn state(config: &AbConfig, history: &History) -> AbState {
    let blank = JobStep::new((1, 1), "", String::new(), &[]);
    let jobs = vec![blank; config.sides.len()];
    super::script(jobs, config).state(history)
}

/// What the report of the run shows first.
pub fn of_report(config: &AbConfig, dir: &Path) -> anyhow::Result<RunAnswer> {
    let state = state(config, &History::of(&Record::open(dir)?.entries));
    let is_ended = state.next == RaceNext::Ended;
    let mut answer = RunAnswer::default();
    for row in &state.rows {
        let margin = config.question.margin;
        answer.say(
            told(&row.comparison).0,
            said(&config.sides, row, margin, is_ended),
        );
    }
    let verdict = fathom_document::read(dir)?.verdict;
    if verdict.is_some_and(|verdict| verdict.level == VerdictLevel::Invalid) {
        answer.say(Tone::Doubtful, INVALID);
    }
    if !is_ended {
        answer.say(Tone::Doubtful, UNFINISHED);
    }
    let sides = config.sides.iter();
    let sides: Vec<String> = sides
        .map(|side| format!("{}: {}", side.name, side.label))
        .collect();
    answer.tables.push(AnswerTable {
        title: sides.join(", "),
        grid: table(&config.sides, &state.rows),
    });
    Ok(answer)
}

fn text(global: &Global, document: &AbDocument<'_>) {
    if let Some(gate) = &document.gate {
        out::line(gate.line());
    }
    for side in document.sides {
        out::line(format_args!("{}  {}", side.name, side.label));
    }
    out::text("\n");
    let style = out::style(global.color);
    out::text(table(document.sides, &document.rows).render(style));
    let margin = document.margin_percent / 100.0;
    for row in &document.rows {
        out::line(said(document.sides, row, margin, document.ended));
    }
    if document.verdict == Some(VerdictLevel::Invalid) {
        out::line(INVALID);
    }
    if !document.ended {
        out::line(UNFINISHED);
    }
}

/// A table of comparisons against the first side.
pub fn table(sides: &[AbSide], rows: &[AbRow]) -> Grid {
    let mut grid = Grid::new([
        words("", 0),
        words("", 0),
        figures("a", 0),
        figures("other", 0),
        figures("ratio", 0),
        figures("95 %", 1),
        figures("pairs", 0),
        words("", 0),
    ]);
    for row in rows {
        let found = &row.comparison;
        let value = |value: Option<f64>| {
            GridCell::from(value.map_or_else(|| "–".to_owned(), |value| shown(row.figure, value)))
        };
        let (tone, word) = told(found);
        grid.line([
            GridCell::from(sides[row.side].name.as_str()),
            GridCell::from(row.figure.name()),
            value(found.a),
            value(found.b),
            GridCell::new(
                Tone::Strong,
                found
                    .ratio
                    .map_or_else(|| "–".to_owned(), |ratio| format!("{ratio:.3}")),
            ),
            GridCell::from(interval(found)),
            GridCell::from(row.pairs.to_string()),
            GridCell::new(tone, word),
        ]);
    }
    grid
}

fn shown(figure: AbFigure, value: f64) -> String {
    match figure {
        AbFigure::Iops => units::count(value),
        AbFigure::BwBytes => units::bytes_per_second(value),
        _ => units::latency(value),
    }
}

fn interval(found: &FigureComparison) -> String {
    match (found.ratio_low, found.ratio_high) {
        (Some(low), Some(high)) => format!("{low:.3} – {high:.3}"),
        _ => "–".to_owned(),
    }
}

fn told(found: &FigureComparison) -> (Tone, &'static str) {
    match found.verdict {
        CompareVerdict::Faster => (Tone::Good, "faster"),
        CompareVerdict::Slower => (Tone::Bad, "slower"),
        CompareVerdict::Same => (Tone::Plain, "same"),
        CompareVerdict::CannotTell => (Tone::Doubtful, "cannot tell"),
    }
}

/// What came of a side, in a sentence.
fn said(sides: &[AbSide], row: &AbRow, margin: f64, ended: bool) -> String {
    let (side, first) = (&sides[row.side].name, &sides[0].name);
    let (found, figure) = (&row.comparison, row.figure.name());
    match found.verdict {
        CompareVerdict::Faster => format!("{side} is faster than {first}: {figure}"),
        CompareVerdict::Slower => format!("{side} is slower than {first}: {figure}"),
        CompareVerdict::Same => {
            let percent = 100.0 * margin;
            format!("{side} and {first} are the same within ±{percent:.1} %: {figure}")
        }
        CompareVerdict::CannotTell if !ended => {
            let pairs = units::counted(row.pairs as u64, "pair");
            format!("{figure}: after {pairs} {side} cannot be told from {first} yet")
        }
        CompareVerdict::CannotTell => {
            let more = found.more_runs.map_or_else(String::new, |more| {
                format!("; some {more} more pairs would probably tell (--pairs)")
            });
            format!(
                "{figure}: in {} pairs nobody can tell {side} from {first}{more}",
                row.pairs
            )
        }
    }
}
