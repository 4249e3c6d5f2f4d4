//! Statistics of latency logs as people and programs read them: blocks of text,
//! lines of CSV, a document.

use std::fmt::Write as _;

use fathom_analysis::latlog::{
    HISTOGRAM_ERROR_PERCENT, LatencyFigures, LatencyGroup, LogInterval, PERCENTS, Statistics,
};
use fathom_model::log::class_name;
use fathom_model::{Direction, PrioColumn, text};
use schemars::JsonSchema;
use serde::Serialize;

use crate::grid::{Grid, figures, words};
use crate::style::{Style, Tone};

/// Name and version of the document.
pub const SCHEMA: &str = "fathom.lat/1";

/// A log and its statistics.
#[derive(Debug)]
pub struct LatLog<'l> {
    /// As the user named it.
    pub file: String,
    /// What its priorities are.
    pub prio: PrioColumn,
    /// Lines that are in the statistics.
    pub lines: u64,
    /// Malformed lines that are not.
    pub skipped: u64,
    /// What else a reader has to know.
    pub notes: Vec<String>,
    /// `None` without any line.
    pub statistics: Option<&'l Statistics>,
}

/// Which I/Os figures are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LatencyClass {
    /// All.
    All,
    /// Each direction.
    Direction,
    /// Each priority.
    Priority,
}

/// What a group is called.
struct Named<'s> {
    who: Who,
    group: &'s LatencyGroup,
}

#[derive(Clone, Copy)]
enum Who {
    All,
    Direction(Direction),
    Priority(PrioColumn, u16),
}

impl Who {
    /// Class, level and hint; of a priority that is only real time or not, the class.
    fn parts(self) -> [String; 3] {
        let class = |name: &str| [name.to_owned(), String::new(), String::new()];
        match self {
            // Without priorities, that is who they all are.
            Self::All | Self::Priority(PrioColumn::Absent, _) => class("all"),
            Self::Direction(dir) => class(dir.name()),
            Self::Priority(PrioColumn::Value, value) => [
                class_of(value),
                (value & 7).to_string(),
                (value >> 3 & 0x3ff).to_string(),
            ],
            Self::Priority(_, 1) => class("RT"),
            Self::Priority(..) => class("not RT"),
        }
    }

    fn title(self) -> String {
        let [class, level, hint] = self.parts();
        match self {
            Self::All | Self::Priority(PrioColumn::Absent, _) => "All I/Os".to_owned(),
            Self::Direction(Direction::Read) => "Reads".to_owned(),
            Self::Direction(Direction::Write) => "Writes".to_owned(),
            Self::Direction(_) => "Trims".to_owned(),
            Self::Priority(PrioColumn::Value, value) => {
                format!("Priority 0x{value:04x}, class {class}, level {level}, hint {hint}")
            }
            Self::Priority(_, value) => format!("Priority {value}, class {class}"),
        }
    }

    fn short(self) -> String {
        match self {
            Self::Priority(PrioColumn::Value, value) => format!("0x{value:04x}"),
            other => other.parts()[0].clone(),
        }
    }
}

fn class_of(value: u16) -> String {
    class_name(value >> 13).map_or_else(|| (value >> 13).to_string(), str::to_owned)
}

impl LatLog<'_> {
    /// What text shows by default: nothing twice.
    fn by_default(&self, statistics: &Statistics) -> Vec<LatencyClass> {
        let several = statistics.priorities.len() > 1;
        let directions = statistics.directions.len() > 1;
        let priorities = several || (self.prio == PrioColumn::Value && !directions);
        let mut by = Vec::new();
        if several || directions || !priorities {
            by.push(LatencyClass::All);
        }
        if directions {
            by.push(LatencyClass::Direction);
        }
        if priorities {
            by.push(LatencyClass::Priority);
        }
        by
    }
}

fn named<'s>(
    log: &LatLog,
    by: &[LatencyClass],
    all: &'s LatencyGroup,
    directions: &'s [(Direction, LatencyGroup)],
    priorities: &'s [(u16, LatencyGroup)],
) -> Vec<Named<'s>> {
    let mut list = Vec::new();
    if by.contains(&LatencyClass::All) {
        list.push((Who::All, all));
    }
    if by.contains(&LatencyClass::Direction) {
        list.extend(directions.iter().map(|(dir, g)| (Who::Direction(*dir), g)));
    }
    if by.contains(&LatencyClass::Priority) {
        let priority = |&(prio, ref g)| (Who::Priority(log.prio, prio), g);
        list.extend(priorities.iter().map(priority));
    }
    list.into_iter()
        .map(|(who, group)| Named { who, group })
        .collect()
}

fn of_whole<'s>(log: &LatLog, by: &[LatencyClass], s: &'s Statistics) -> Vec<Named<'s>> {
    named(log, by, &s.all, &s.directions, &s.priorities)
}

fn of_interval<'s>(log: &LatLog, by: &[LatencyClass], i: &'s LogInterval) -> Vec<Named<'s>> {
    named(log, by, &i.all, &i.directions, &i.priorities)
}

/// The share of the whole in percent, cut to two digits.
fn share(group: &LatencyGroup) -> String {
    let hundredths = u128::from(group.n) * 10_000 / u128::from(group.of.max(1));
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

/// The unit that fits a mean: fio's name of it, ns in it, digits behind the point.
fn unit_of(avg_ns: f64) -> (&'static str, f64, usize) {
    match avg_ns {
        ..10e3 => ("nsec", 1.0, 0),
        ..10e6 => ("usec", 1e3, 3),
        ..10e9 => ("msec", 1e6, 3),
        _ => ("sec", 1e9, 3),
    }
}

/// One digit, or three of what would be lost by that.
fn rate(value: f64) -> String {
    match value {
        ..1.0 => format!("{value:.3}"),
        _ => format!("{value:.1}"),
    }
}

const MIB: f64 = (1 << 20) as f64;

fn block(text: &mut String, style: Style, named: &Named, runtime_ms: u64, averaged: bool) {
    let Named { who, group } = named;
    let title = style.paint(Tone::Strong, &who.title());
    let _ = writeln!(text, "{title} ({} %):", share(group));
    let Some(f) = &group.figures else {
        return;
    };
    if let (Some(iops), Some(bw), Some(bytes)) = (f.iops, f.bw_bytes, f.io_bytes) {
        let mib = bytes / MIB;
        let total = match mib {
            ..10.0 => format!("{mib:.3}"),
            _ => format!("{mib:.0}"),
        };
        let _ = writeln!(
            text,
            "    IOPS={}, BW={}MiB/s ({}MB/s)({total}MiB/{runtime_ms}msec)",
            rate(iops),
            rate(bw / MIB),
            rate(bw / 1e6),
        );
    } else {
        let what = if averaged { "windows" } else { "I/Os" };
        let _ = writeln!(text, "    {} {what} in {runtime_ms}msec", group.n);
    }
    let (unit, scale, digits) = unit_of(f.avg_ns);
    let shown = |ns: u64| format!("{:.digits$}", ns as f64 / scale);
    let mean = |ns: f64| format!("{:.*}", digits.max(2), ns / scale);
    let _ = writeln!(
        text,
        "    lat ({unit}): min={}, max={}, avg={}, stdev={}",
        shown(f.min_ns),
        shown(f.max_ns),
        mean(f.avg_ns),
        f.stdev_ns.map_or_else(|| "–".to_owned(), mean),
    );
    let _ = writeln!(text, "    lat percentiles ({unit}):");
    let values: Vec<String> = f.percentiles_ns.iter().map(|&(_, ns)| shown(ns)).collect();
    let width = values.iter().map(String::len).max().unwrap_or(0).max(5);
    let fields: Vec<String> = f
        .percentiles_ns
        .iter()
        .zip(&values)
        .map(|((percent, _), value)| format!("{percent:5.2}th=[{value:>width$}]"))
        .collect();
    let lines: Vec<String> = fields.chunks(4).map(|four| four.join(", ")).collect();
    let _ = writeln!(text, "     | {}", lines.join(",\n     | "));
}

/// The text of a log: a heading, a block for each group, and the course of time.
#[must_use]
pub fn text(log: &LatLog, by: &[LatencyClass], style: Style) -> String {
    let mut text = style.paint(Tone::Strong, &log.file);
    let Some(statistics) = log.statistics else {
        let _ = writeln!(text, ": no I/O");
        return text + &notes(log, style);
    };
    let directions: Vec<&str> = statistics
        .directions
        .iter()
        .map(|(dir, _)| dir.name())
        .collect();
    let what = if statistics.averaged {
        "windows"
    } else {
        "I/Os"
    };
    let percentiles = match statistics.exact {
        true => "percentiles exact".to_owned(),
        false => format!("percentiles within {HISTOGRAM_ERROR_PERCENT} %"),
    };
    let _ = write!(
        text,
        ": {} {what} ({}), {percentiles}",
        log.lines,
        directions.join(", ")
    );
    // A block of its own would repeat that of all.
    if let [(prio, _)] = statistics.priorities[..]
        && log.prio == PrioColumn::Value
        && directions.len() > 1
    {
        let title = Who::Priority(log.prio, prio).title();
        let _ = write!(text, ", all of {}", title.replacen('P', "p", 1));
    }
    text.push('\n');
    text += &notes(log, style);
    let default = log.by_default(statistics);
    let shown = if by.is_empty() { &default } else { by };
    for named in of_whole(log, shown, statistics) {
        let (runtime_ms, averaged) = (statistics.runtime_ms, statistics.averaged);
        block(&mut text, style, &named, runtime_ms, averaged);
    }
    if !statistics.intervals.is_empty() {
        let by = if by.is_empty() {
            &[LatencyClass::All]
        } else {
            by
        };
        text += &over_time(log, by, statistics).render(style);
    }
    text
}

fn notes(log: &LatLog, style: Style) -> String {
    log.notes
        .iter()
        .map(|note| style.paint(Tone::Doubtful, &format!("  {note}")) + "\n")
        .collect()
}

fn over_time(log: &LatLog, by: &[LatencyClass], statistics: &Statistics) -> Grid {
    let mut grid = Grid::new([
        figures("from s", 0),
        words("I/Os", 0),
        figures("IOPS", 0),
        figures("MiB/s", 1),
        figures("min", 3),
        figures("avg", 0),
        figures("50 %", 2),
        figures("99 %", 0),
        figures("99.9 %", 1),
        figures("max", 0),
    ]);
    let none = || "–".to_owned();
    let latency = fathom_model::units::latency;
    for interval in &statistics.intervals {
        for Named { who, group } in of_interval(log, by, interval) {
            let f = group.figures.as_ref();
            let percentile = |percent: f64| {
                let all = &f?.percentiles_ns;
                let found = all.iter().find(|(p, _)| *p == percent)?;
                Some(latency(found.1 as f64))
            };
            // Nothing in an interval is known to be nothing; of windows it is not.
            let idle = (f.is_none() && !statistics.averaged).then_some(0.0);
            let known = |value: Option<f64>| value.or(idle).map_or_else(none, rate);
            let ns = |of: &dyn Fn(&LatencyFigures) -> f64| f.map_or_else(none, |f| latency(of(f)));
            grid.line([
                format!("{:.3}", interval.start_ms as f64 / 1e3).into(),
                who.short().into(),
                known(f.and_then(|f| f.iops)).into(),
                known(f.and_then(|f| Some(f.bw_bytes? / MIB))).into(),
                ns(&|f| f.min_ns as f64).into(),
                ns(&|f| f.avg_ns).into(),
                percentile(50.0).unwrap_or_else(none).into(),
                percentile(99.0).unwrap_or_else(none).into(),
                percentile(99.9).unwrap_or_else(none).into(),
                ns(&|f| f.max_ns as f64).into(),
            ]);
        }
    }
    grid
}

/// What stands before the columns of CSV.
#[derive(Debug, Clone, Copy)]
pub struct Leading<'l> {
    /// The title and the field of a first column.
    pub label: Option<(&'l str, &'l str)>,
    /// Whether lines are of intervals, whose begin comes next.
    pub over_time: bool,
}

/// The titles of the columns, with the end of the line.
#[must_use]
pub fn csv_head(leading: Leading) -> String {
    let mut columns: Vec<String> = Vec::new();
    columns.extend(leading.label.map(|(title, _)| text::csv_field(title)));
    if leading.over_time {
        columns.push("time (ms)".to_owned());
    }
    columns.extend(
        [
            "class", "level", "hint", "IOPS", "MB/s", "min (ms)", "max (ms)", "avg (ms)",
        ]
        .map(str::to_owned),
    );
    columns.extend(PERCENTS.map(|percent| format!("{percent}% (ms)")));
    columns.join(",") + "\n"
}

/// A line for each group, by priority where nothing else is asked for.
/// Latencies are in ms with every digit down to the ns.
#[must_use]
pub fn csv(log: &LatLog, by: &[LatencyClass], leading: Leading) -> String {
    let Some(statistics) = log.statistics else {
        return String::new();
    };
    let by = if by.is_empty() {
        &[LatencyClass::Priority]
    } else {
        by
    };
    let mut lines = String::new();
    if leading.over_time {
        for interval in &statistics.intervals {
            for named in of_interval(log, by, interval) {
                lines += &csv_line(&named, leading, Some(interval.start_ms));
            }
        }
        return lines;
    }
    for named in of_whole(log, by, statistics) {
        lines += &csv_line(&named, leading, None);
    }
    lines
}

fn csv_line(named: &Named, leading: Leading, start_ms: Option<u64>) -> String {
    let mut fields: Vec<String> = Vec::new();
    fields.extend(leading.label.map(|(_, label)| text::csv_field(label)));
    fields.extend(start_ms.map(|ms| ms.to_string()));
    fields.extend(named.who.parts());
    let f = named.group.figures.as_ref();
    let number = |value: Option<f64>| value.map_or_else(String::new, |v| format!("{v:.3}"));
    let ms = |ns: Option<u64>| ns.map_or_else(String::new, exact_ms);
    fields.push(number(f.and_then(|f| f.iops)));
    fields.push(number(f.and_then(|f| Some(f.bw_bytes? / 1e6))));
    fields.push(ms(f.map(|f| f.min_ns)));
    fields.push(ms(f.map(|f| f.max_ns)));
    fields.push(ms(f.map(|f| f.avg_ns.round() as u64)));
    match f {
        Some(f) => fields.extend(f.percentiles_ns.iter().map(|&(_, ns)| exact_ms(ns))),
        None => fields.extend(PERCENTS.map(|_| String::new())),
    }
    fields.join(",") + "\n"
}

/// Nanoseconds in ms, every digit that is there.
fn exact_ms(ns: u64) -> String {
    let text = format!("{}.{:06}", ns / 1_000_000, ns % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The document of several logs: `fathom.lat/1`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LatDocument<'l> {
    /// [`SCHEMA`]
    schema: &'static str,
    files: Vec<LogDocument<'l>>,
}

/// A log; of one without any line there are no statistics.
#[derive(Debug, Serialize, JsonSchema)]
struct LogDocument<'l> {
    file: &'l str,
    lines: u64,
    skipped_lines: u64,
    notes: &'l [String],
    /// `absent`, `real_time`, `value`
    priority_column: &'static str,
    #[serde(flatten)]
    statistics: Option<LogStatistics<'l>>,
}

/// What a log says.
#[derive(Debug, Serialize, JsonSchema)]
struct LogStatistics<'l> {
    runtime_ms: u64,
    /// Whether a line stands for the I/Os of a time, not for one.
    averaged: bool,
    /// Whether percentiles are those of the single I/Os, not of a histogram.
    exact: bool,
    /// How far a percentile of a histogram may be off.
    percentile_error_percent: Option<f64>,
    #[serde(flatten)]
    groups: GroupDocuments<'l>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    intervals: Vec<IntervalDocument<'l>>,
}

/// A piece of the log's time.
#[derive(Debug, Serialize, JsonSchema)]
struct IntervalDocument<'l> {
    start_ms: u64,
    end_ms: u64,
    #[serde(flatten)]
    groups: GroupDocuments<'l>,
}

/// All I/Os, and the same by direction and by priority.
#[derive(Debug, Default, Serialize, JsonSchema)]
struct GroupDocuments<'l> {
    all: Option<GroupShare<'l>>,
    directions: Vec<GroupShare<'l>>,
    priorities: Vec<GroupShare<'l>>,
}

/// The figures of a group with their share of the whole.
#[derive(Debug, Serialize, JsonSchema)]
struct GroupShare<'l> {
    n: u64,
    share_percent: Option<f64>,
    #[serde(flatten)]
    figures: Option<&'l LatencyFigures>,
    #[serde(flatten)]
    who: GroupName,
}

/// Whose I/Os they are.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
enum GroupName {
    Direction {
        direction: Direction,
    },
    /// Where the log says only this.
    RealTime {
        real_time: bool,
    },
    Priority {
        /// As ioprio_set(2) has it.
        value: u16,
        class: String,
        level: u16,
        hint: u16,
    },
    All {},
}

/// Makes the document.
#[must_use]
pub fn document<'l>(logs: &'l [LatLog<'l>]) -> LatDocument<'l> {
    LatDocument {
        schema: SCHEMA,
        files: logs.iter().map(LogDocument::of).collect(),
    }
}

/// Of a document everything is shown.
const EVERY_CLASS: [LatencyClass; 3] = [
    LatencyClass::All,
    LatencyClass::Direction,
    LatencyClass::Priority,
];

impl<'l> LogDocument<'l> {
    fn of(log: &'l LatLog<'l>) -> Self {
        Self {
            file: &log.file,
            lines: log.lines,
            skipped_lines: log.skipped,
            notes: &log.notes,
            priority_column: match log.prio {
                PrioColumn::Absent => "absent",
                PrioColumn::RealTime => "real_time",
                PrioColumn::Value => "value",
            },
            statistics: log.statistics.map(|of| LogStatistics::of(log, of)),
        }
    }
}

impl<'l> LogStatistics<'l> {
    fn of(log: &LatLog, statistics: &'l Statistics) -> Self {
        let interval = |interval: &'l LogInterval| IntervalDocument {
            start_ms: interval.start_ms,
            end_ms: interval.end_ms,
            groups: GroupDocuments::of(of_interval(log, &EVERY_CLASS, interval)),
        };
        Self {
            runtime_ms: statistics.runtime_ms,
            averaged: statistics.averaged,
            exact: statistics.exact,
            percentile_error_percent: (!statistics.exact).then_some(HISTOGRAM_ERROR_PERCENT),
            groups: GroupDocuments::of(of_whole(log, &EVERY_CLASS, statistics)),
            intervals: statistics.intervals.iter().map(interval).collect(),
        }
    }
}

impl<'l> GroupDocuments<'l> {
    fn of(list: Vec<Named<'l>>) -> Self {
        let mut all = Self::default();
        for Named { who, group } in list {
            let share = group.n as f64 * 100.0 / group.of as f64;
            let of = |who| GroupShare {
                n: group.n,
                share_percent: share.is_finite().then_some(share),
                figures: group.figures.as_ref(),
                who,
            };
            match who {
                Who::All => all.all = Some(of(GroupName::All {})),
                Who::Direction(direction) => {
                    all.directions.push(of(GroupName::Direction { direction }));
                }
                Who::Priority(PrioColumn::Absent, _) => {}
                Who::Priority(PrioColumn::RealTime, prio) => {
                    let real_time = prio == 1;
                    all.priorities.push(of(GroupName::RealTime { real_time }));
                }
                Who::Priority(PrioColumn::Value, value) => {
                    all.priorities.push(of(GroupName::Priority {
                        value,
                        class: class_of(value),
                        level: value & 7,
                        hint: value >> 3 & 0x3ff,
                    }));
                }
            }
        }
        all
    }
}
