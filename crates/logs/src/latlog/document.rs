//! The document of latency logs: `fathom.lat/1`.

use fathom_analysis::latlog::{Breakdown, LatencyFigures, LogInterval, Statistics};
use fathom_analysis::priority::MissedLimit;
use fathom_model::{Direction, PrioColumn};
use schemars::JsonSchema;
use serde::Serialize;

use super::{Groups, LatLog, Named, Who, class_of, error_percent};

/// Name and version of the document.
pub const SCHEMA: &str = "fathom.lat/1";

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
    /// The file, or what several logs that are one population were called.
    file: &'l str,
    /// Those several logs.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    logs: &'l [String],
    lines: u64,
    skipped_lines: u64,
    notes: &'l [String],
    /// `absent`, `real_time`, `value`
    priority_column: &'static str,
    /// I/Os that missed their limit, where the limits lie beside the log.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    limits: Vec<LimitDocument>,
    #[serde(flatten)]
    statistics: Option<LogStatistics<'l>>,
}

/// I/Os that named a limit.
#[derive(Debug, Serialize, JsonSchema)]
struct LimitDocument {
    direction: Direction,
    number: u8,
    limit_ns: Option<u64>,
    n: u64,
    /// Those that took longer.
    over: u64,
    /// Those that the disk itself counts; null where it does not say.
    disk_over: Option<u64>,
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
    /// By what `--by` asks for besides.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    combined: Vec<CombinedShare<'l>>,
}

/// A group by several things at once, or by job or host.
#[derive(Debug, Serialize, JsonSchema)]
struct CombinedShare<'l> {
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<&'l str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<&'l str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    direction: Option<Direction>,
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<GroupName>,
    n: u64,
    share_percent: Option<f64>,
    #[serde(flatten)]
    figures: Option<&'l LatencyFigures>,
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
pub fn document<'l>(logs: &'l [LatLog<'l>]) -> LatDocument<'l> {
    LatDocument {
        schema: SCHEMA,
        files: logs.iter().map(LogDocument::of).collect(),
    }
}

/// Of a document everything is shown.
const EVERY_CLASS: [Breakdown; 3] = [Breakdown::ALL, Breakdown::DIRECTION, Breakdown::PRIORITY];

impl<'l> LogDocument<'l> {
    fn of(log: &'l LatLog<'l>) -> Self {
        Self {
            file: &log.file,
            logs: &log.logs,
            lines: log.lines,
            skipped_lines: log.skipped,
            notes: &log.notes,
            priority_column: match log.prio {
                PrioColumn::Absent => "absent",
                PrioColumn::RealTime => "real_time",
                PrioColumn::Value => "value",
            },
            limits: log.limits.iter().map(LimitDocument::of).collect(),
            statistics: log.statistics.map(|of| LogStatistics::of(log, of)),
        }
    }
}

impl LimitDocument {
    fn of(missed: &MissedLimit) -> Self {
        Self {
            direction: missed.dir,
            number: missed.limit.number,
            limit_ns: missed.limit.ns,
            n: missed.n,
            over: missed.over,
            disk_over: missed.disk,
        }
    }
}

impl<'l> LogStatistics<'l> {
    fn of(log: &LatLog, statistics: &'l Statistics) -> Self {
        let interval = |interval: &'l LogInterval| IntervalDocument {
            start_ms: interval.start_ms,
            end_ms: interval.end_ms,
            groups: GroupDocuments::of(Groups::of_interval(interval).named(log.prio, &EVERY_CLASS)),
        };
        Self {
            runtime_ms: statistics.runtime_ms,
            averaged: statistics.averaged,
            exact: statistics.exact,
            percentile_error_percent: error_percent(statistics),
            groups: GroupDocuments::of(Groups::of_whole(statistics).named(log.prio, &EVERY_CLASS)),
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
                Who::Priority(column, prio) => {
                    let named = GroupName::of_priority(column, prio);
                    all.priorities.extend(named.map(of));
                }
                Who::Combined(column, key) => all.combined.push(CombinedShare {
                    host: key.host.as_deref(),
                    job: key.job.as_deref(),
                    direction: key.dir,
                    priority: key
                        .prio
                        .and_then(|prio| GroupName::of_priority(column, prio)),
                    n: group.n,
                    share_percent: share.is_finite().then_some(share),
                    figures: group.figures.as_ref(),
                }),
            }
        }
        all
    }
}

impl GroupName {
    fn of_priority(column: PrioColumn, value: u16) -> Option<Self> {
        match column {
            PrioColumn::Absent => None,
            PrioColumn::RealTime => Some(Self::RealTime {
                real_time: value == 1,
            }),
            PrioColumn::Value => Some(Self::Priority {
                value,
                class: class_of(value),
                level: value & 7,
                hint: value >> 3 & 0x3ff,
            }),
        }
    }
}
