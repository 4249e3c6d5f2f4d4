//! Statistics of latency logs as people and programs read them: blocks of text,
//! lines of CSV, a document.

use std::fmt::Write as _;

use fathom_analysis::latlog::{
    Breakdown, HISTOGRAM_ERROR_PERCENT, LatencyFigures, LatencyGroup, LatencyKey, LogInterval,
    PERCENTS, Statistics,
};
use fathom_analysis::priority::{IoShare, MissedLimit};
use fathom_model::log::class_name;
use fathom_model::{Direction, PrioColumn, text, units};
mod document;

pub use self::document::{LatDocument, document};

use fathom_sheet::grid::{Grid, figures, words};
use fathom_sheet::style::{Style, Tone};

/// A log and its statistics.
#[derive(Debug)]
pub struct LatLog<'l> {
    /// As the user named it.
    pub file: String,
    /// The logs whose I/Os these are, where they are several.
    pub logs: Vec<String>,
    /// What its priorities are.
    pub prio: PrioColumn,
    /// Lines that are in the statistics.
    pub lines: u64,
    /// Malformed lines that are not.
    pub skipped: u64,
    /// What else a reader has to know.
    pub notes: Vec<String>,
    /// I/Os that missed their limit, where limits are known.
    pub limits: &'l [MissedLimit],
    /// `None` without any line.
    pub statistics: Option<&'l Statistics>,
}

/// What a group is called.
struct Named<'s> {
    who: Who<'s>,
    group: &'s LatencyGroup,
}

#[derive(Clone, Copy)]
enum Who<'s> {
    All,
    Direction(Direction),
    Priority(PrioColumn, u16),
    Combined(PrioColumn, &'s LatencyKey),
}

impl Who<'_> {
    /// Class, level and hint; of a priority that is only real time or not, the class.
    fn parts(self) -> [String; 3] {
        let class = |name: &str| [name.to_owned(), String::new(), String::new()];
        match self {
            Self::Combined(column, key) => match key.prio {
                Some(prio) => Self::Priority(column, prio).parts(),
                None => class("all"),
            },
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
            Self::Combined(..) => {
                let words = self.each(|who| who.title()).join(", ");
                let mut letters = words.chars();
                let first = letters.next().into_iter().flat_map(char::to_uppercase);
                first.chain(letters).collect()
            }
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

    /// What is said of each thing that a combination sets apart.
    fn each(self, says: impl Fn(Who<'_>) -> String) -> Vec<String> {
        let Self::Combined(column, key) = self else {
            return vec![says(self)];
        };
        let host = key.host.as_ref().map(|host| match host.as_str() {
            "" => "no host".to_owned(),
            host => format!("host {host}"),
        });
        // A job's name says where it is.
        let host = host.filter(|_| key.job.is_none());
        let dir = key.dir.map(|dir| says(Who::Direction(dir)).to_lowercase());
        let prio = key.prio.filter(|_| column != PrioColumn::Absent);
        let prio = prio.map(|prio| says(Who::Priority(column, prio)).replacen('P', "p", 1));
        let words = [host, key.job.clone(), dir, prio].into_iter().flatten();
        let words: Vec<String> = words.collect();
        match words.is_empty() {
            true => vec![says(Who::All)],
            false => words,
        }
    }

    fn short(self) -> String {
        match self {
            Self::Combined(..) => self.each(|who| who.short()).join(" "),
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
    fn by_default(&self, statistics: &Statistics) -> Vec<Breakdown> {
        let several = statistics.priorities.len() > 1;
        let directions = statistics.directions.len() > 1;
        let priorities = several || (self.prio == PrioColumn::Value && !directions);
        let mut by = Vec::new();
        if several || directions || !priorities {
            by.push(Breakdown::ALL);
        }
        if directions {
            by.push(Breakdown::DIRECTION);
        }
        if priorities {
            by.push(Breakdown::PRIORITY);
        }
        by
    }
}

/// The groups there are of the whole, or of an interval.
#[derive(Clone, Copy)]
struct Groups<'s> {
    all: &'s LatencyGroup,
    directions: &'s [(Direction, LatencyGroup)],
    priorities: &'s [(u16, LatencyGroup)],
    combined: &'s [(LatencyKey, LatencyGroup)],
}

impl<'s> Groups<'s> {
    fn of_whole(s: &'s Statistics) -> Self {
        Self {
            all: &s.all,
            directions: &s.directions,
            priorities: &s.priorities,
            combined: &s.combined,
        }
    }

    fn of_interval(i: &'s LogInterval) -> Self {
        Self {
            all: &i.all,
            directions: &i.directions,
            priorities: &i.priorities,
            combined: &i.combined,
        }
    }

    /// Those by which I/Os are to be set apart, and every combination.
    fn named(self, prio: PrioColumn, by: &[Breakdown]) -> Vec<Named<'s>> {
        let mut list = Vec::new();
        let mut add = |who, group| list.push(Named { who, group });
        if by.contains(&Breakdown::ALL) {
            add(Who::All, self.all);
        }
        if by.contains(&Breakdown::DIRECTION) {
            let each = self.directions.iter();
            each.for_each(|(dir, group)| add(Who::Direction(*dir), group));
        }
        if by.contains(&Breakdown::PRIORITY) {
            let each = self.priorities.iter();
            each.for_each(|(value, group)| add(Who::Priority(prio, *value), group));
        }
        for (key, group) in self.combined.iter().filter(|(key, _)| is_combined(key)) {
            add(Who::Combined(prio, key), group);
        }
        list
    }
}

/// Whether it is more than one of the groups that there always are.
fn is_combined(key: &LatencyKey) -> bool {
    let always = [Breakdown::ALL, Breakdown::DIRECTION, Breakdown::PRIORITY];
    !always.contains(&key.breakdown())
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
    } else if let Some(iops) = f.iops {
        let _ = writeln!(
            text,
            "    IOPS={}, {} I/Os in {runtime_ms}msec",
            rate(iops),
            group.n
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
pub fn text(log: &LatLog, by: &[Breakdown], style: Style) -> String {
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
    let percentiles = match error_percent(statistics) {
        None => "percentiles exact".to_owned(),
        Some(error) => format!("percentiles within {error:.2} %"),
    };
    let n = match statistics.bin_error_percent {
        Some(_) => statistics.all.n,
        None => log.lines,
    };
    let logs = match log.logs.len() {
        0 => String::new(),
        several => format!("{several} logs, "),
    };
    let _ = write!(
        text,
        ": {logs}{n} {what} ({}), {percentiles}",
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
    text += &limits(log.limits, style);
    let default = log.by_default(statistics);
    let shown = if by.is_empty() { &default } else { by };
    for named in Groups::of_whole(statistics).named(log.prio, shown) {
        let (runtime_ms, averaged) = (statistics.runtime_ms, statistics.averaged);
        block(&mut text, style, &named, runtime_ms, averaged);
    }
    if !statistics.intervals.is_empty() {
        let by = if by.is_empty() { &[Breakdown::ALL] } else { by };
        text += &over_time(log, by, statistics).render(style);
    }
    text
}

/// How far a percentile may be off; `None` where it is exact.
fn error_percent(statistics: &Statistics) -> Option<f64> {
    let ours = (!statistics.exact).then_some(HISTOGRAM_ERROR_PERCENT);
    // What a bin of the log holds stands in its middle, and that in one of ours.
    statistics
        .bin_error_percent
        .map(|bin| bin.max(HISTOGRAM_ERROR_PERCENT))
        .or(ours)
}

fn notes(log: &LatLog, style: Style) -> String {
    log.notes
        .iter()
        .map(|note| style.paint(Tone::Doubtful, &format!("  {note}")) + "\n")
        .collect()
}

/// How many I/Os missed their limit, by the log and by the disk's own count.
fn limits(all: &[MissedLimit], style: Style) -> String {
    if all.is_empty() {
        return String::new();
    }
    let mut text = style.paint(Tone::Strong, "Over their limit:") + "\n";
    for MissedLimit {
        dir,
        limit,
        n,
        over,
        disk,
    } in all
    {
        let ns = limit.ns.unwrap_or_default() as f64;
        let percent = IoShare::of(*over, *n).map_or(0.0, |share| share.percent);
        let _ = write!(
            text,
            "    limit {} of {}s ({}): {over} of {n} ({percent:.2} %)",
            limit.number,
            dir.name(),
            units::latency(ns)
        );
        text += &disk.map_or_else(String::new, |disk| format!(", {disk} by the disk's count"));
        text.push('\n');
    }
    text
}

fn over_time(log: &LatLog, by: &[Breakdown], statistics: &Statistics) -> Grid {
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
        for Named { who, group } in Groups::of_interval(interval).named(log.prio, by) {
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
    /// Whether there is a column for the host.
    pub host: bool,
    /// Whether there is one for the job.
    pub job: bool,
    /// Whether there is one for the direction, which else stands in that of the class.
    pub direction: bool,
}

impl Leading<'_> {
    /// Titles of the columns that say whose a line is.
    fn titles(self) -> Vec<String> {
        let title = |there: bool, title: &str| there.then(|| title.to_owned());
        let label = self.label.map(|(title, _)| text::csv_field(title));
        let columns = [
            label,
            title(self.over_time, "time (ms)"),
            title(self.host, "host"),
            title(self.job, "job"),
            title(self.direction, "direction"),
        ];
        let class = ["class", "level", "hint"].map(str::to_owned);
        columns.into_iter().flatten().chain(class).collect()
    }

    /// And what stands there.
    fn fields(self, who: Who, start_ms: Option<u64>) -> Vec<String> {
        let key = match who {
            Who::Combined(_, key) => key.clone(),
            _ => LatencyKey::default(),
        };
        let field = |there: bool, text: Option<&str>| {
            there.then(|| text::csv_field(text.unwrap_or_default()))
        };
        let mut parts = who.parts();
        let mut dir = key.dir;
        if let (true, Who::Direction(one)) = (self.direction, who) {
            dir = Some(one);
            parts = Who::All.parts();
        }
        let columns = [
            self.label.map(|(_, label)| text::csv_field(label)),
            start_ms.map(|ms| ms.to_string()),
            field(self.host, key.host.as_deref()),
            field(self.job, key.job.as_deref()),
            field(self.direction, dir.map(Direction::name)),
        ];
        columns.into_iter().flatten().chain(parts).collect()
    }
}

/// The titles of the columns, with the end of the line.
pub fn csv_head(leading: Leading) -> String {
    let mut columns = leading.titles();
    columns.extend(["IOPS", "MB/s", "min (ms)", "max (ms)", "avg (ms)"].map(str::to_owned));
    columns.extend(PERCENTS.map(|percent| format!("{percent}% (ms)")));
    columns.join(",") + "\n"
}

/// A line for each group, by priority where nothing else is asked for.
/// Latencies are in ms with every digit down to the ns.
pub fn csv(log: &LatLog, by: &[Breakdown], leading: Leading) -> String {
    let Some(statistics) = log.statistics else {
        return String::new();
    };
    let by = if by.is_empty() {
        &[Breakdown::PRIORITY]
    } else {
        by
    };
    let mut lines = String::new();
    if leading.over_time {
        for interval in &statistics.intervals {
            for named in Groups::of_interval(interval).named(log.prio, by) {
                lines += &csv_line(&named, leading, Some(interval.start_ms));
            }
        }
        return lines;
    }
    for named in Groups::of_whole(statistics).named(log.prio, by) {
        lines += &csv_line(&named, leading, None);
    }
    lines
}

fn csv_line(named: &Named, leading: Leading, start_ms: Option<u64>) -> String {
    let mut fields = leading.fields(named.who, start_ms);
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

/// The titles of the columns of [`cdf`], with the end of the line.
pub fn cdf_head(leading: Leading) -> String {
    let mut columns = leading.titles();
    columns.extend(["lat (ms)", "percent"].map(str::to_owned));
    columns.join(",") + "\n"
}

/// The distribution of each group: a latency in ms, and the percent of its I/Os that
/// took at most that. All I/Os where nothing else is asked for.
pub fn cdf(log: &LatLog, by: &[Breakdown], leading: Leading) -> String {
    let mut lines = String::new();
    let Some(statistics) = log.statistics else {
        return lines;
    };
    let by = if by.is_empty() { &[Breakdown::ALL] } else { by };
    for Named { who, group } in Groups::of_whole(statistics).named(log.prio, by) {
        let whose = leading.fields(who, None).join(",");
        for &(ns, at_most) in &group.curve {
            let percent = at_most as f64 * 100.0 / group.n.max(1) as f64;
            let _ = writeln!(lines, "{whose},{},{percent:.6}", exact_ms(ns));
        }
    }
    lines
}

/// Nanoseconds in ms, every digit that is there.
fn exact_ms(ns: u64) -> String {
    let text = format!("{}.{:06}", ns / 1_000_000, ns % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
